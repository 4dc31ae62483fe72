"""What runs leave behind that were interrupted or killed, and who takes it away."""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path

import pytest

from handful import FewShotClassifier
from handful.batch import output as sheets
from handful.batch import prediction
from handful.batch.prediction import OutputOptions, predict_file
from handful.batch.saved import SavedClassifier
from handful.data.reader import Source
from handful.errors import DataError
from handful.utils.files import write_atomic

TEXTS = ["the soup was tasty", "my train came late", "we had dinner", "a delayed flight"]
HOUR = 3600


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> SavedClassifier:
    folder = tmp_path_factory.mktemp("classifier") / "triage"
    FewShotClassifier().fit(TEXTS, ["food", "travel"] * 2).save(folder)
    return SavedClassifier.at(folder)


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr(prediction, "BATCH_ROWS", 10)
    path = tmp_path / "in.csv"
    path.write_text("text\n" + "".join(f"{TEXTS[i % 4]} {i}\n" for i in range(60)))
    return Source(str(path))


def begin(model: SavedClassifier, inbox: Source, out: Path, batches: int, **options: bool) -> str:
    """A run that Ctrl-C ends after so many batches, and what is said of it."""
    add, done = sheets.PendingFile.add, iter(range(1000))

    def counted(self: sheets.PendingFile, content: bytes, rows: int) -> None:
        if rows and next(done) >= batches:
            raise KeyboardInterrupt
        add(self, content, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sheets.PendingFile, "add", counted)
        with pytest.raises(KeyboardInterrupt) as interrupted:
            predict_file(model, inbox, out, options=OutputOptions(**options))
    return " ".join(getattr(interrupted.value, "__notes__", []))


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "in.csv")


def age(path: Path, seconds: int) -> Path:
    path.write_bytes(b"")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_an_interrupted_run_says_that_the_same_command_resumes(model: SavedClassifier, inbox: Source, tmp_path: Path) -> None:
    said = begin(model, inbox, tmp_path / "out.csv", 3)
    assert said == "30 texts are answered: run the same command again to resume after them."
    assert left(tmp_path) == [".out.csv.pending", ".out.csv.pending.json"]


def test_an_interrupted_run_without_a_row_leaves_nothing(model: SavedClassifier, inbox: Source, tmp_path: Path) -> None:
    assert begin(model, inbox, tmp_path / "out.csv", 0) == ""
    assert left(tmp_path) == []


def test_a_run_of_other_options_removes_what_it_cannot_use(model: SavedClassifier, inbox: Source, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    begin(model, inbox, out, 3)
    begin(model, inbox, out, 0, probabilities=True)
    assert left(tmp_path) == []
    begin(model, inbox, out, 3)
    assert predict_file(model, inbox, out, options=OutputOptions(keep=True)).resumed == 0
    assert left(tmp_path) == ["out.csv"]


def test_a_run_from_standard_input_removes_what_it_cannot_use(
    model: SavedClassifier, inbox: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(model, inbox, tmp_path / "out.csv", 3)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text\n" + b"fine\n" * 30 + b"a,b\n")))
    with pytest.raises(DataError):
        predict_file(model, Source("-", "csv"), tmp_path / "out.csv")
    assert left(tmp_path) == []


def test_a_parquet_file_that_is_not_finished_leaves_only_what_can_be_resumed(
    model: SavedClassifier, inbox: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target == tmp_path / "out.parquet":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            predict_file(model, inbox, tmp_path / "out.parquet")
    assert left(tmp_path) == [".out.parquet.pending", ".out.parquet.pending.json"]
    assert predict_file(model, inbox, tmp_path / "out.parquet").resumed == 60
    assert left(tmp_path) == ["out.parquet"]


def test_a_write_removes_what_killed_writes_of_the_same_file_left(tmp_path: Path) -> None:
    old = [age(tmp_path / name, HOUR + 60) for name in (".page.html.123", ".page.html.99999")]
    kept = [age(tmp_path / ".page.html.7", HOUR - 60)]
    kept += [age(tmp_path / name, 2 * HOUR) for name in (".page.html.bak", ".other.html.123", "page.html.5", ".page.html.1.2")]
    write_atomic(tmp_path / "page.html", b"whole")
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in kept)
    assert (tmp_path / "page.html").read_bytes() == b"whole"


def test_a_finished_run_removes_what_killed_runs_of_the_same_output_left(
    model: SavedClassifier, inbox: Source, tmp_path: Path
) -> None:
    age(tmp_path / "..out.csv.pending.json.123", HOUR + 60)
    predict_file(model, inbox, tmp_path / "out.csv")
    assert left(tmp_path) == ["out.csv"]


def test_a_write_that_fails_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = age(tmp_path / ".page.html.123", 2 * HOUR)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(tmp_path / "page.html", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == [old.name]
