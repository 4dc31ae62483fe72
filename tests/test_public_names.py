"""What users import: the same names at run time and for a type checker, and nothing heavier than it has to be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import handful

HEAVY = ("torch", "numba", "transformers", "sklearn", "scipy", "handful.meta", "handful.bench", "handful.analysis")
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


def test_the_names_for_type_checkers_are_those_at_run_time() -> None:
    tree = ast.parse(Path(handful.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == handful._HOMES
    assert all(getattr(handful, name).__name__ == name for name in handful.__all__)


def test_an_answer_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys; from handful import FewShotClassifier as F; f = F().fit(['a b', 'c d'], [0, 1]); f.predict(['a']); "
        "f.explain('a'); f.suggest(['a'], 1); print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(done.stdout)
    assert "handful.classifier.fitted" in loaded
    assert not [name for name in loaded if name in HEAVY or name.startswith(tuple(f"{heavy}." for heavy in HEAVY))]
