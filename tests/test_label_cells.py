"""Several labels in one cell of CSV or TSV: from suggest over a hand that fills them in to fit and score."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handful import FewShotClassifier
from handful.cli import main

TEXTS = [
    "the soup was tasty",
    "my train came late",
    "dinner on a train",
    "a delayed flight",
    "dessert and wine",
    "lost luggage",
]
LABELS = [["food"], ["travel"], ["food", "travel"], ["late", "travel"], ["food"], ["travel"]]
POOL = ["a tasty meal on the plane", "the bus was late", "wine and soup"]


def handful(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


def good(*arguments: object, stdin: str | None = None) -> Result:
    result = handful(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def error(*arguments: object) -> str:
    result = handful(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    return result.stderr


def sheet(path: Path, labels: list[str], texts: list[str] = TEXTS, delimiter: str = ",") -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([("text", "label"), *zip(texts, labels, strict=True)])
    return path


def as_json(labels: list) -> list[str]:
    return [json.dumps(row) for row in labels]


def joined(labels: list, separator: str) -> list[str]:
    return [separator.join(map(str, row)) for row in labels]


@pytest.fixture(scope="module")
def several(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("several") / "m"
    FewShotClassifier().fit(TEXTS, LABELS).save(folder, keep_examples=True)
    return folder


def accuracy(*arguments: object) -> float:
    return json.loads(good("score", *arguments, "--json").stdout)["accuracy"]


def expected_accuracy(folder: Path) -> float:
    return round(FewShotClassifier.load(folder).score(TEXTS, LABELS), 6)


def test_score_reads_lists_and_separated_labels(several: Path, tmp_path: Path) -> None:
    expected = expected_accuracy(several)
    assert expected > 0.5
    assert accuracy(several, sheet(tmp_path / "a.csv", as_json(LABELS))) == expected
    assert accuracy(several, sheet(tmp_path / "a.tsv", as_json(LABELS), delimiter="\t")) == expected
    for separator in (";", "|", " / "):
        path = sheet(tmp_path / "b.csv", joined(LABELS, separator))
        assert accuracy(several, path, "--label-separator", separator) == expected
    answers = sheet(tmp_path / "c.csv", as_json(FewShotClassifier.load(several).predict(TEXTS)))
    assert accuracy(several, answers) == 1


@pytest.mark.parametrize("form", ["json", "separated"])
def test_suggest_filled_in_by_hand_fits(several: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "pool.txt").write_text("\n".join(POOL))
    printed = good("suggest", several, tmp_path / "pool.txt", "--n", 3).stdout
    texts = [row["text"] for row in csv.DictReader(io.StringIO(printed))]
    assert sorted(texts) == sorted(POOL)
    labels = [["food", "travel"], ["bus", "late"], ["food"]]
    options: tuple[str, ...] = () if form == "json" else ("--label-separator", ";")
    filled = sheet(tmp_path / "filled.csv", as_json(labels) if form == "json" else joined(labels, ";"), texts)
    good("fit", filled, "--from", several, "--out", tmp_path / "new", *options)
    found, classifier = FewShotClassifier.load(tmp_path / "new"), FewShotClassifier().fit(TEXTS + texts, LABELS + labels)
    assert found.classes_.tolist() == ["bus", "food", "late", "travel"]
    assert found.examples_ is not None
    assert found.examples_.labels.values == [sorted(row) for row in LABELS + labels]
    assert found.predict_proba(POOL) == pytest.approx(classifier.predict_proba(POOL), abs=1e-6)


def test_labels_that_stand_alone_join_the_lists(several: Path, tmp_path: Path) -> None:
    good("fit", sheet(tmp_path / "a.csv", ["food", "late"], POOL[:2]), "--from", several, "--out", tmp_path / "m")
    found = FewShotClassifier.load(tmp_path / "m").examples_
    assert found is not None
    assert found.labels.values[-2:] == [["food"], ["late"]]


def test_a_fresh_classifier_learns_lists_where_every_cell_is_one(tmp_path: Path) -> None:
    expected = [sorted(row) for row in LABELS]
    for name, cells, options in (
        ("a.csv", as_json(LABELS), ()),
        ("b.csv", joined(LABELS, ";"), ("--label-separator", ";")),
        ("c.csv", joined(LABELS, " ; "), ("--label-separator", ";")),
    ):
        good("fit", sheet(tmp_path / name, cells), "--out", tmp_path / name[0], "--keep-examples", *options)
        found = FewShotClassifier.load(tmp_path / name[0]).examples_
        assert found is not None
        assert found.labels.values == expected


def test_cells_some_of_which_are_lists_are_one_label_each_with_a_warning(tmp_path: Path) -> None:
    result = good("fit", sheet(tmp_path / "a.csv", [*as_json(LABELS[:-1]), "[travel]"]), "--out", tmp_path / "m")
    [line] = result.stderr.splitlines()
    assert line.startswith("Warning: ")
    assert "JSON lists of labels, but '[travel]' is not" in line
    assert FewShotClassifier.load(tmp_path / "m").fitted_.label_format == "single"


def test_numbers(tmp_path: Path) -> None:
    labels = [[1], [2], [1, 2], [2, 3], [1], [2]]
    good("fit", sheet(tmp_path / "a.csv", as_json(labels)), "--out", tmp_path / "m", "--keep-examples")
    assert FewShotClassifier.load(tmp_path / "m").classes_.tolist() == [1, 2, 3]
    more = sheet(tmp_path / "more.csv", ["1;4", "2"], POOL[:2])
    good("fit", more, "--from", tmp_path / "m", "--out", tmp_path / "n", "--label-separator", ";")
    found = FewShotClassifier.load(tmp_path / "n")
    assert found.classes_.tolist() == [1, 2, 3, 4]
    assert found.examples_ is not None
    assert found.examples_.labels.values[-2:] == [[1, 4], [2]]
    assert accuracy(tmp_path / "m", tmp_path / "a.csv") == round(FewShotClassifier.load(tmp_path / "m").score(TEXTS, labels), 6)


def test_json_lines_and_classifiers_of_one_label_stay_as_they_are(several: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, as_json(LABELS), strict=True)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    good("fit", path, "--out", tmp_path / "m")
    assert '["food", "travel"]' in FewShotClassifier.load(tmp_path / "m").classes_.tolist()
    assert "remove --label-separator" in error("score", several, path, "--label-separator", ";")
    plain = sheet(tmp_path / "b.csv", ["food", "travel"] * 3)
    good("fit", plain, "--out", tmp_path / "one", "--keep-examples")
    assert "gives one label per text" in error("score", tmp_path / "one", plain, "--label-separator", ";")
    command = ("fit", plain, "--from", tmp_path / "one", "--out", tmp_path / "two", "--label-separator", ";")
    assert "gives one label per text" in error(*command)
    assert "is empty: give a separator" in error("score", several, plain, "--label-separator", "")
