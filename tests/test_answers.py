from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from handful import FewShotClassifier
from handful.batch import output as sheets
from handful.batch import prediction as answers
from handful.batch.prediction import OutputOptions, answered, batches_of, predict_file
from handful.batch.saved import SavedClassifier
from handful.data.reader import Row, Source
from handful.errors import DataError, MissingExtraError, ModelError, SettingError
from handful.utils.parallel import Workers

TEXTS = ["the soup was tasty", "my train came late", "we had dinner", "a delayed flight", "dessert and wine", "lost luggage"]
LABELS = ["food", "travel"] * 3
PATIENCE = 120  # seconds for anything to happen


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("classifier") / "triage"
    FewShotClassifier().fit(TEXTS, LABELS).save(path)
    return path


@pytest.fixture
def model(folder: Path) -> SavedClassifier:
    return SavedClassifier.at(folder)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    return write_inbox(tmp_path / "inbox.csv", 60)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "BATCH_ROWS", 10)


def write_inbox(path: Path, rows: int) -> Path:
    with path.open("w") as stream:
        stream.write("id,text\n")
        stream.writelines(f'{i},"{TEXTS[i % 6]}, number {i}"\n' for i in range(rows))
    return path


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t" if path.suffix == ".tsv" else ","))


def source(path: Path, **options: object) -> Source:
    return Source(str(path), text="text", **options)


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


# What is written


def test_answers_are_those_of_the_classifier_in_order(
    model: SavedClassifier, inbox: Path, tmp_path: Path, small_batches: None
) -> None:
    outcome = predict_file(model, source(inbox), tmp_path / "a.csv")
    assert (outcome.rows, outcome.resumed, outcome.skipped) == (60, 0, 0)
    texts = [row["text"] for row in table(inbox)]
    rows = table(tmp_path / "a.csv")
    assert [row["label"] for row in rows] == model.load().predict(texts).tolist()
    expected = model.load().predict_proba(texts).max(axis=1)
    assert [float(row["probability"]) for row in rows] == pytest.approx(expected.tolist(), abs=2e-6)
    assert leftovers(tmp_path) == []


def test_every_format_says_the_same(model: SavedClassifier, inbox: Path, tmp_path: Path, small_batches: None) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        predict_file(model, source(inbox), tmp_path / f"a.{ending}", options=OutputOptions(probabilities=True, keep=True))
    columns = ["id", "text", "label", "probability", "probability of food", "probability of travel"]
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert all(list(line) == columns for line in lines)
    assert [line["id"] for line in lines] == [str(i) for i in range(60)]
    assert all(line["probability"] == line[f"probability of {line['label']}"] for line in lines)
    as_strings = [{name: str(value) for name, value in line.items()} for line in lines]
    assert table(tmp_path / "a.csv") == table(tmp_path / "a.tsv") == as_strings
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist() == lines
    assert leftovers(tmp_path) == []


def test_columns_that_are_kept_keep_their_types_and_names(model: SavedClassifier, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"text": ["tasty soup", "a late train"], "label": [7, None], "tags": [["a"], []]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "in.parquet")
    predict_file(model, source(tmp_path / "in.parquet"), tmp_path / "out.parquet", options=OutputOptions(keep=True))
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.column_names == ["text", "label", "tags", "predicted label", "probability"]
    assert {name: found[name].to_pylist() for name in columns} == columns
    assert found["predicted label"].to_pylist() == ["food", "travel"]
    predict_file(model, source(tmp_path / "in.parquet"), tmp_path / "out.csv", options=OutputOptions(keep=True))
    assert [(row["label"], row["tags"]) for row in table(tmp_path / "out.csv")] == [("7", '["a"]'), ("", "[]")]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_several_labels_a_text(tmp_path: Path, ending: str) -> None:
    FewShotClassifier().fit(TEXTS, [["food"], ["travel"], ["food", "late"], ["travel"], ["food"], ["travel"]]).save(
        tmp_path / "m"
    )
    model = SavedClassifier.at(tmp_path / "m")
    (tmp_path / "in.txt").write_text("\n".join(TEXTS))
    out = tmp_path / f"out.{ending}"
    predict_file(model, Source(str(tmp_path / "in.txt")), out)
    if ending == "csv":
        found = [json.loads(row["label"]) for row in table(out)]
    elif ending == "jsonl":
        found = [json.loads(line)["label"] for line in out.read_text().splitlines()]
    else:
        found = pytest.importorskip("pyarrow.parquet").read_table(out)["label"].to_pylist()
    assert found == model.load().predict(TEXTS)
    assert any(found)


def test_hostile_texts_get_answers(model: SavedClassifier, tmp_path: Path) -> None:
    texts = ["", "x" * 10_000_000, "\x00 \x07", "lone \ud800 half", "🎉", "‮", "word " * 100_000, "tasty soup"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for ending in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"out.{ending}"
        outcome = predict_file(model, source(tmp_path / "in.jsonl"), out, options=OutputOptions(keep=True))
        assert outcome.rows == len(texts)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == texts
    assert lines[-1]["label"] == "food"
    csv.field_size_limit(1 << 26)
    assert [row["text"] for row in table(tmp_path / "out.csv")][2:4] == ["\x00 \x07", "lone ? half"]


def test_a_stream_gets_the_same_bytes_as_a_file(
    model: SavedClassifier, inbox: Path, tmp_path: Path, small_batches: None
) -> None:
    stream = io.BytesIO()
    predict_file(model, source(inbox), stream)
    predict_file(model, source(inbox), tmp_path / "a.csv")
    assert stream.getvalue() == (tmp_path / "a.csv").read_bytes()


def test_nothing_to_answer_gives_a_header(model: SavedClassifier, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\n")
    assert predict_file(model, source(tmp_path / "in.csv"), tmp_path / "out.csv").rows == 0
    assert (tmp_path / "out.csv").read_text() == "label,probability\n"


@pytest.mark.parametrize("name", ["a.txt", "a.xlsx", "a", "s3://bucket/a.csv", "a.csv.gz"])
def test_files_that_cannot_be_written(model: SavedClassifier, inbox: Path, name: str) -> None:
    with pytest.raises(SettingError, match="give a local file that ends in"):
        predict_file(model, source(inbox), Path(name))


def test_without_pyarrow_there_is_a_hint(
    model: SavedClassifier, inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"handful\[files\]"):
        predict_file(model, source(inbox), tmp_path / "a.parquet")
    assert leftovers(tmp_path) == []


# Batches


def some_rows(lengths: list[int]) -> Iterator[Row]:
    return (Row(i, "", None, (i, "x" * length)) for i, length in enumerate(lengths))


def test_batches_are_bounded_in_rows_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "BATCH_CHARACTERS", 100)
    monkeypatch.setattr(answers, "BATCH_ROWS", 4)
    lengths = [1, 1, 1, 1, 1, 200, 50, 60, 1]
    assert [[row.number for row in batch] for batch in batches_of(some_rows(lengths))] == [[0, 1, 2, 3], [4, 5], [6, 7], [8]]


def test_only_so_many_batches_are_read_before_the_first_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch finishes last, as with a slow worker; answers come in order all the same."""
    monkeypatch.setattr(answers, "MOST_AHEAD", 5)
    read: list[int] = []

    def last_first(function: Callable, jobs: Iterator, _: Workers) -> Iterator:
        drawn = list(jobs)
        assert len(drawn) <= 5
        return ((job, function(*job)) for job in reversed(drawn))

    def batches() -> Iterator[list[Row]]:
        for number in range(12):
            read.append(number)
            yield [Row(number, str(number), None, ())]

    monkeypatch.setattr(answers, "dependable_map", last_first)
    given = []
    for batch, cells in answered(batches(), lambda number, texts: [(number, *texts)], Workers()):
        assert len(read) - len(given) <= 5
        assert cells == [(batch[0].number, str(batch[0].number))]
        given.append(batch[0].number)
    assert given == list(range(12))


def test_a_batch_without_answers_is_an_error(
    model: SavedClassifier, inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(answers, "answer_cells", refuse)
    with pytest.raises(DataError, match="Lines 2 to 61 could not be answered: MemoryError: none left"):
        predict_file(model, source(inbox), tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()


def test_several_processes_write_the_same_bytes(
    model: SavedClassifier, inbox: Path, tmp_path: Path, small_batches: None
) -> None:
    predict_file(model, source(inbox), tmp_path / "one.csv", options=OutputOptions(keep=True))
    predict_file(model, source(inbox), tmp_path / "two.csv", options=OutputOptions(keep=True), workers=Workers(2))
    one, two = table(tmp_path / "one.csv"), table(tmp_path / "two.csv")
    assert [(row["id"], row["label"]) for row in one] == [(row["id"], row["label"]) for row in two]
    shares = [[float(row["probability"]) for row in rows] for rows in (one, two)]
    assert shares[0] == pytest.approx(shares[1], abs=2e-6)  # the last digit may depend on the number of threads


def test_a_broken_row_is_told_by_several_processes_too(model: SavedClassifier, tmp_path: Path, small_batches: None) -> None:
    path = tmp_path / "in.csv"
    path.write_text("text\n" + "fine\n" * 45 + "a,b\n" + "fine\n" * 20)
    with pytest.raises(DataError, match="line 47 has 2 fields, but the header has 1"):
        predict_file(model, source(path), tmp_path / "a.csv", workers=Workers(2))
    assert not (tmp_path / "a.csv").exists()
    lenient = source(path, skip_broken=True)
    outcome = predict_file(model, lenient, tmp_path / "a.csv", workers=Workers(2))
    assert (outcome.rows, outcome.resumed, outcome.skipped) == (65, 40, 1)  # it goes on with what was right


def test_a_classifier_that_changes_between_workers(folder: Path, tmp_path: Path) -> None:
    model = SavedClassifier.at(folder)
    assert model.load() is model.load()
    with pytest.raises(ModelError, match="differs between workers"):
        SavedClassifier(model.folder, None, "another").load()


# Interrupted runs


class Interruption(Exception):
    """Stands for anything that ends a run."""


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let a run end after so many additions to its file."""
    add, calls = sheets.PendingFile.add, iter(range(10**9))

    def counted(self: sheets.PendingFile, content: bytes, rows: int) -> None:
        if next(calls) >= after:
            self._stream.write(content[: len(content) // 2])  # half a batch is on the disk when it happens
            self._stream.flush()
            raise Interruption
        add(self, content, rows)

    monkeypatch.setattr(sheets.PendingFile, "add", counted)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(
    model: SavedClassifier, inbox: Path, tmp_path: Path, small_batches: None, ending: str
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    whole, out = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    predict_file(model, source(inbox), whole, options=OutputOptions(keep=True))
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, 4)  # the header and three batches
        with pytest.raises(Interruption):
            predict_file(model, source(inbox), out, options=OutputOptions(keep=True))
    assert not out.exists()
    assert leftovers(tmp_path) == [f".out.{ending}.pending", f".out.{ending}.pending.json"]
    outcome = predict_file(model, source(inbox), out, options=OutputOptions(keep=True))
    assert (outcome.rows, outcome.resumed) == (60, 30)
    assert out.read_bytes() == whole.read_bytes()
    assert leftovers(tmp_path) == []


def test_other_input_model_or_options_start_anew(
    model: SavedClassifier, inbox: Path, tmp_path: Path, small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin() -> None:
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, 4)
            with pytest.raises(Interruption):
                predict_file(model, source(inbox), tmp_path / "out.csv")

    def resumed(model: SavedClassifier = model, **options: object) -> int:
        begin()
        return predict_file(model, source(inbox), tmp_path / "out.csv", **options).resumed

    assert resumed() == 30
    assert resumed(options=OutputOptions(probabilities=True)) == 0
    FewShotClassifier().fit(TEXTS, [*LABELS[:-1], "lost"]).save(tmp_path / "other")
    assert resumed(SavedClassifier.at(tmp_path / "other")) == 0
    begin()
    os.utime(inbox, ns=(1, 1))
    assert predict_file(model, source(inbox), tmp_path / "out.csv").resumed == 0
    begin()
    (tmp_path / ".out.csv.pending.json").write_text("{damaged")
    assert predict_file(model, source(inbox), tmp_path / "out.csv").resumed == 0
    begin()
    (tmp_path / ".out.csv.pending").write_text("cut")
    assert predict_file(model, source(inbox), tmp_path / "out.csv").resumed == 0
    assert len(table(tmp_path / "out.csv")) == 60


def test_broken_rows_are_counted_once_by_a_run_that_goes_on(
    model: SavedClassifier, tmp_path: Path, small_batches: None
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("text\n" + ("fine\n" * 9 + "a,b\n") * 6)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, 4)
        with pytest.raises(Interruption):
            predict_file(model, source(path, skip_broken=True), tmp_path / "out.csv")
    outcome = predict_file(model, source(path, skip_broken=True), tmp_path / "out.csv")
    assert (outcome.rows, outcome.resumed, outcome.skipped) == (54, 30, 6)


def test_two_runs_do_not_write_one_file(model: SavedClassifier, inbox: Path, tmp_path: Path) -> None:
    with (tmp_path / ".out.csv.pending").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SettingError, match=r"Another run is writing .*out\.csv: wait for it"):
            predict_file(model, source(inbox), tmp_path / "out.csv")
    assert predict_file(model, source(inbox), tmp_path / "out.csv").rows == 60


def test_standard_input_leaves_nothing_behind(
    model: SavedClassifier, tmp_path: Path, small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text\n" + b"fine\n" * 30 + b"a,b\n")))
    with pytest.raises(DataError, match="Standard input, line 32 has 2 fields"):
        predict_file(model, Source("-", "csv"), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    """A real process, killed the hard way as soon as it has written something."""
    inbox = write_inbox(tmp_path / "inbox.csv", 20_000)

    def start(out: Path) -> subprocess.Popen:
        command = [sys.executable, "-m", "handful", "predict", str(folder), str(inbox), "--text", "text", "--keep"]
        return subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.PIPE, text=True)

    whole, out, note = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / ".out.csv.pending.json"
    assert start(whole).wait(PATIENCE) == 0
    process, deadline = start(out), time.monotonic() + PATIENCE
    while not (note.exists() and json.loads(note.read_text())["rows"]):
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    process.stdout.close()
    assert not out.exists()
    done = json.loads(note.read_text())["rows"]
    assert 0 < done < 20_000
    finished = start(out)
    printed = finished.communicate(timeout=PATIENCE)[0]
    assert f"20,000 texts answered, {done:,} of them by an earlier run." in printed
    assert out.read_bytes() == whole.read_bytes()
    assert leftovers(tmp_path) == []


def test_memory_stays_flat(folder: Path, tmp_path: Path) -> None:
    """Fifty thousand texts need no more memory than five thousand, but for what wanders."""
    peaks = []
    for rows in (5_000, 50_000):
        inbox = write_inbox(tmp_path / f"{rows}.csv", rows)
        code = (
            "import resource, sys; from handful.cli import main\n"
            "main(sys.argv[1:], standalone_mode=False)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        command = [sys.executable, "-c", code, "predict", str(folder), str(inbox), "--text", "text"]
        printed = subprocess.run(
            [*command, "--out", str(inbox.with_suffix(".jsonl"))], stdout=subprocess.PIPE, check=True, text=True
        ).stdout
        peaks.append(int(printed.splitlines()[-1]) / 1024)
    assert all(later - earlier < 30 for earlier, later in pairwise(peaks)), peaks  # MB
