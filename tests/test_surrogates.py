"""Unpaired surrogates in labels, which JSON can hold and UTF-8 cannot: everything works, and no label is lost."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handful import FewShotClassifier
from handful.cli import main

NAMES = ["\ud800food", "tra\udfffvel", "plain"]
TEXTS = [
    "the soup was tasty",
    "my train came late",
    "the screen is broken",
    "a sweet dessert",
    "a delayed bus",
    "a cracked phone",
]


def good(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, repr(result)
    return result


def write(path: Path, labels: list) -> Path:
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


LISTS = [["\ud800food"], ["tra\udfffvel"], ["plain"], ["\ud800food", "plain"], ["tra\udfffvel"], ["plain"]]


@pytest.fixture(params=["one", "several"])
def labels(request: pytest.FixtureRequest) -> list:
    return NAMES * 2 if request.param == "one" else LISTS


def test_labels_come_back_equal(tmp_path: Path, labels: list) -> None:
    good("fit", write(tmp_path / "a.jsonl", labels), "--out", tmp_path / "m", "--keep-examples")
    classifier = FewShotClassifier.load(tmp_path / "m")
    assert classifier.classes_.tolist() == sorted(NAMES)
    assert classifier.examples_ is not None
    assert list(classifier.examples_.labels.values) == [sorted(one) if isinstance(one, list) else one for one in labels]
    answers = FewShotClassifier().fit(TEXTS, labels).predict(TEXTS)
    assert list(classifier.predict(TEXTS)) == list(answers)
    good("fit", tmp_path / "a.jsonl", "--from", tmp_path / "m", "--out", tmp_path / "n")
    assert FewShotClassifier.load(tmp_path / "n").classes_.tolist() == sorted(NAMES)
    named = FewShotClassifier().fit([], class_names=NAMES)
    named.save(tmp_path / "named", keep_examples=True)
    assert FewShotClassifier.load(tmp_path / "named").classes_.tolist() == sorted(NAMES)


@pytest.mark.parametrize(
    "ending",
    ["csv", "tsv", "jsonl", "parquet"],
)
def test_predict_writes_every_format(tmp_path: Path, labels: list, ending: str) -> None:
    good("fit", write(tmp_path / "a.jsonl", labels), "--out", tmp_path / "m")
    out = tmp_path / f"out.{ending}"
    good("predict", tmp_path / "m", tmp_path / "a.jsonl", "--out", out, "--probabilities", "--keep")
    expected = list(FewShotClassifier.load(tmp_path / "m").predict(TEXTS))
    if ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["predicted label"] for row in rows] == expected
        assert f"probability of {NAMES[0]}" in rows[0]
        return
    if ending == "parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(out)
        found, columns = table["predicted label"].to_pylist(), table.column_names
    else:
        reader = csv.DictReader(io.StringIO(out.read_text("utf-8")), delimiter="\t" if ending == "tsv" else ",")
        rows = list(reader)
        several = isinstance(labels[0], list)
        found = [json.loads(row["predicted label"]) if several else row["predicted label"] for row in rows]
        columns = list(reader.fieldnames or [])
        expected = expected if not several else [[name.encode("utf-8", "replace").decode() for name in row] for row in expected]
        found = [[name.encode("utf-8", "replace").decode() for name in row] for row in found] if several else found
    assert "probability of ?food" in columns
    assert found == [_sound(value) for value in expected]


def _sound(value):
    return [_sound(one) for one in value] if isinstance(value, list) else value.encode("utf-8", "replace").decode()


def test_every_command_shows_them(tmp_path: Path, labels: list) -> None:
    path = write(tmp_path / "a.jsonl", labels)
    good("fit", path, "--out", tmp_path / "m", "--keep-examples")
    for command in ("explain", "inspect", "score", "suggest"):
        given = {"explain": [TEXTS[0]], "inspect": []}.get(command, [path])
        good(command, tmp_path / "m", *given)
        good(command, tmp_path / "m", *given, "--json")
    good("explain", tmp_path / "m", TEXTS[0], "--html", tmp_path / "why.html")
    assert "?food" in (tmp_path / "why.html").read_text("utf-8").replace("\N{REPLACEMENT CHARACTER}", "?")


def test_a_split_of_them_can_be_read_again(tmp_path: Path) -> None:
    from handful.data.datasets import load_dataset

    path = write(tmp_path / "my.jsonl", NAMES * 2)
    good("split", path, "--out", tmp_path / "my.split.json", "--sizes", "1,1,1")
    parts = json.loads((tmp_path / "my.split.json").read_text("utf-8"))
    assert sorted(parts["train"] + parts["val"] + parts["test"]) == sorted(NAMES)
    assert load_dataset(str(path)).split.train
