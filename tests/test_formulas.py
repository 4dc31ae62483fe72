"""Cells that a spreadsheet would run as formulas: escaped where people open the file, and learned as they were."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handful import FewShotClassifier
from handful.cli import main

PLAIN = ["the soup was tasty", "my train came late", "'quoted' soup", "a=b", "", "[x]", '"=x"']
FORMULAS = [
    '=HYPERLINK("http://x")',
    "+1 soup",
    "-5 degrees",
    "@home",
    "\ttab soup",
    "\rreturn soup",
    "'=soup",
    "''-late",
    "'+'",
]


def good(*arguments: object, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == 0, repr(result) + result.output
    return result


def cells(printed: str, column: str = "text", delimiter: str = ",") -> list[str]:
    return [row[column] for row in csv.DictReader(io.StringIO(printed, newline=""), delimiter=delimiter)]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("m") / "m"
    FewShotClassifier().fit(["tasty soup", "late train"], ["=food", "travel"]).save(folder, keep_examples=True)
    return folder


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in PLAIN + FORMULAS))
    return path


def test_predict_escapes_formulas_if_asked(model: Path, pool: Path, tmp_path: Path) -> None:
    for ending, delimiter in (("csv", ","), ("tsv", "\t")):
        for options in ((), ("--no-escape-formulas",), ("--escape-formulas",)):
            out = tmp_path / f"out.{ending}"
            good("predict", model, pool, "--keep", "--out", out, *options)
            content, escaped = out.read_bytes().decode(), options == ("--escape-formulas",)
            assert cells(content, delimiter=delimiter) == PLAIN + ["'" * escaped + text for text in FORMULAS]
            assert ("'=food" if escaped else "=food") in cells(content, "label", delimiter)
            assert ("=food" if escaped else "'=food") not in cells(content, "label", delimiter)
    good("predict", model, pool, "--keep", "--out", tmp_path / "out.jsonl", "--escape-formulas")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == PLAIN + FORMULAS
    numbers = tmp_path / "n.jsonl"
    numbers.write_text('{"text": "soup", "degrees": -5, "=sum": "x"}\n')
    out = tmp_path / "n.csv"
    good("predict", model, numbers, "--keep", "--out", out, "--text", "text", "--escape-formulas")
    assert out.read_text().splitlines()[0] == "text,degrees,'=sum,label,probability"
    assert cells(out.read_text(), "degrees") == ["-5"]


def test_suggest_escapes_formulas_unless_told_not_to(model: Path, pool: Path) -> None:
    everything = ("--n", len(PLAIN + FORMULAS))
    assert sorted(cells(good("suggest", model, pool, *everything).stdout_bytes.decode())) == sorted(
        PLAIN + ["'" + text for text in FORMULAS]
    )
    raw = good("suggest", model, pool, *everything, "--no-escape-formulas").stdout_bytes.decode()
    assert sorted(cells(raw)) == sorted(PLAIN + FORMULAS)
    lines = good("suggest", model, pool, *everything, "--json").stdout.splitlines()
    assert sorted(json.loads(line)["text"] for line in lines) == sorted(PLAIN + FORMULAS)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_what_suggest_escaped_is_learned_and_scored_as_it_was(model: Path, pool: Path, tmp_path: Path, ending: str) -> None:
    texts = cells(good("suggest", model, pool, "--n", len(PLAIN + FORMULAS)).stdout_bytes.decode())
    filled = tmp_path / f"filled.{ending}"
    with filled.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t" if ending == "tsv" else ",")
        writer.writerows([("text", "label"), *((text, "'=food" if "soup" in text else "travel") for text in texts)])
    good("fit", filled, "--out", tmp_path / "m", "--keep-examples")
    classifier = FewShotClassifier.load(tmp_path / "m")
    assert classifier.examples_ is not None
    assert sorted(classifier.examples_.texts) == sorted(PLAIN + FORMULAS)
    assert classifier.classes_.tolist() == ["=food", "travel"]
    truth = ["=food" if "soup" in text else "travel" for text in PLAIN + FORMULAS]
    found = json.loads(good("score", tmp_path / "m", filled, "--json").stdout)
    assert found["labels"] == ["=food", "travel"]
    assert found["accuracy"] == round(classifier.score(PLAIN + FORMULAS, truth), 6)


def test_json_lines_are_learned_as_they_are(tmp_path: Path) -> None:
    rows = [{"text": "'=soup", "label": "'-a"}, {"text": "train", "label": "b"}]
    good("fit", "-", "--format", "jsonl", "--out", tmp_path / "m", "--keep-examples", stdin="\n".join(map(json.dumps, rows)))
    classifier = FewShotClassifier.load(tmp_path / "m")
    assert classifier.examples_ is not None
    assert classifier.examples_.texts == ["'=soup", "train"]
    assert classifier.classes_.tolist() == ["'-a", "b"]
    good("suggest", tmp_path / "m", "-", "--format", "txt", "--escape-formulas", stdin="x\n")
