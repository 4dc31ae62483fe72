"""A type checker knows the public names, as from another project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.install

OUTSIDE = """
import numpy as np

from handful import EpisodeSpec, Explanation, FewShotClassifier, RunSettings, Score, evaluate_run, load_vectors

classifier: FewShotClassifier = FewShotClassifier(max_words=100).fit(["a b", "c d"], ["x", "y"])
explanation: Explanation = classifier.explain("a")
strongest: float = explanation.words[0].attention
settings = RunSettings(episode=EpisodeSpec(way=3))
shot: int = settings.episode.shot
dimensions: int = load_vectors("wordllama").dim
classifier.save("folder")


def accuracy(run: Score) -> float:
    return run.mean


WRONG
"""


def test_a_type_checker_knows_the_public_names(tmp_path: Path) -> None:
    script = tmp_path / "outside.py"
    script.write_text(OUTSIDE.replace("WRONG", ""))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    script.write_text(OUTSIDE.replace("WRONG", 'FewShotClassifier(max_words="many")'))
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "incompatible type" in done.stdout
