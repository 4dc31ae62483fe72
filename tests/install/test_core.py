"""The core install alone, without any extra, in a fresh environment: what a practitioner gets from `pip install handful`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.install

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = "text,label\nthe soup was tasty,food\na lovely dinner,food\nmy train came late,travel\nthey lost my luggage,travel\n"
USE = """
from handful import FewShotClassifier
clf = FewShotClassifier().fit(["I was charged twice.", "The parcel has not arrived."], ["billing", "delivery"])
text = "Why is there a second charge on my card?"
clf.explain(text).show()
clf.save("triage", keep_examples=True)
loaded = FewShotClassifier.load("triage")
assert loaded.predict_proba([text]).tolist() == clf.predict_proba([text]).tolist()
print(loaded.partial_fit(["my card was refused"], ["billing"]).predict([text]).tolist())
"""
LARGEST = 10  # packages that are named


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the environment."""
    folder = tmp_path_factory.mktemp("core") / "venv"
    run(sys.executable, "-m", "venv", folder)
    options = ("--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt")
    run(folder / "bin" / "pip", "install", *options, ROOT)
    return folder


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints, away from this project's source and settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HANDFUL"))}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, env=clean)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_of_an_extra_is_there(core: Path, tmp_path: Path) -> None:
    extras = ("torch", "numba", "transformers", "pyarrow", "openpyxl", "setfit", "dask", "ray", "fastapi", "sqlalchemy")
    code = f"from importlib.util import find_spec; print([name for name in {extras} if find_spec(name)])"
    assert run(core / "bin" / "python", "-c", code, cwd=tmp_path) == "[]\n"


def test_the_library_fits_predicts_explains_saves_and_loads(core: Path, tmp_path: Path) -> None:
    printed = run(core / "bin" / "python", "-c", USE, cwd=tmp_path)
    assert "→ billing" in printed
    assert printed.splitlines()[-1] == "['billing']"


def test_the_command_line_fits_predicts_scores_explains_and_suggests(core: Path, tmp_path: Path) -> None:
    handful = core / "bin" / "handful"
    (tmp_path / "examples.csv").write_text(EXAMPLES)
    (tmp_path / "inbox.txt").write_text("a delicious meal\nthe plane did not leave\n")
    assert "2 classes" in run(handful, "fit", "examples.csv", "--out", "triage", "--keep-examples", cwd=tmp_path)
    run(handful, "predict", "triage", "inbox.txt", "--out", "answers.jsonl", cwd=tmp_path)
    answers = [json.loads(line)["label"] for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert answers == ["food", "travel"]
    assert "100.0% of 4 texts right" in run(handful, "score", "triage", "examples.csv", cwd=tmp_path)
    assert json.loads(run(handful, "explain", "triage", "tasty soup", "--json", cwd=tmp_path))["answer"] == "food"
    assert len(run(handful, "suggest", "triage", "inbox.txt", "--n", "1", cwd=tmp_path).splitlines()) == 2
    assert "2 classes" in run(handful, "inspect", "triage", cwd=tmp_path)


def test_the_packaged_encoder_asks_for_its_engine(core: Path, tmp_path: Path) -> None:
    code = (
        "from handful import FewShotClassifier, HandfulError\n"
        "try: FewShotClassifier(encoder='handful').fit(['a', 'b'], ['c', 'd'])\n"
        "except HandfulError as error: print(error)"
    )
    assert "pip install 'handful[encoder]'" in run(core / "bin" / "python", "-c", code, cwd=tmp_path)


def test_size_on_disk(core: Path) -> None:
    """It is printed, with its largest parts (run with -s)."""
    [packages] = core.glob("lib/python*/site-packages")
    sizes = {part.name: megabytes(part) for part in packages.iterdir() if part.name.split("-")[0] not in ("pip", "setuptools")}
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST]
    named = ", ".join(f"{name} {size:.0f}" for name, size in largest)
    sys.stdout.write(f"\nThe core install: {sum(sizes.values()):.0f} MB, of which {named}.\n")
    encoder = megabytes(packages / "handful" / "resources" / "encoder")
    assert encoder < 26
    assert 10 < sizes["handful"] - encoder < 40  # with the packaged vectors
    assert sum(sizes.values()) < 600


def megabytes(path: Path) -> float:
    """What the files of a folder take on disk, as du counts them."""
    files = [path, *path.rglob("*")]
    return sum(file.stat().st_blocks for file in files if not file.is_symlink()) * 512 / 1e6
