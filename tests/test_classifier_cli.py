from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from bundles import ENCODER, MODEL, change_array, change_bytes, change_config, config_of, part, rewrite
from bundles import EXAMPLES as EXAMPLES_FILE
from click.testing import CliRunner, Result
from pyarrow import parquet

from handful import FewShotClassifier
from handful.batch.scoring import compare
from handful.cli import main

EXAMPLES = """text,label
the soup was tasty,food
we had a lovely dinner,food
wine and a sweet dessert,food
my train came late,travel
the flight was delayed,travel
they lost my luggage,travel
the screen is broken,repair
my phone does not start,repair
"""
COLOURS = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
INBOX = 'id,text\n1,a delicious meal\n2,the plane did not leave\n3,"the display, it is cracked"\n'


def handful(*arguments: object, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


def good(*arguments: object, stdin: str | bytes | None = None) -> Result:
    result = handful(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def error(*arguments: object, stdin: str | bytes | None = None) -> str:
    """The one sentence of a command that goes wrong."""
    result = handful(*arguments, stdin=stdin)
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert "Traceback" not in line
    return line


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    (folder / "examples.csv").write_text(EXAMPLES)
    (folder / "inbox.csv").write_text(INBOX)
    good("fit", folder / "examples.csv", "--out", folder / "triage", "--keep-examples")
    good("fit", folder / "examples.csv", "--out", folder / "bare")
    return folder


@pytest.fixture(scope="module")
def triage(place: Path) -> Path:
    return place / "triage"


# fit


def test_fit_says_what_it_saved(place: Path, tmp_path: Path) -> None:
    result = good("fit", place / "examples.csv", "--out", tmp_path / "new")
    words = "it also learned from the words of 3 labels, each worth 3.0 examples"
    assert result.stdout == f"{tmp_path / 'new'}: 3 classes, saved without its examples; {words}.\n"
    plain = good("fit", place / "examples.csv", "--class-names", "off", "--out", tmp_path / "plain")
    assert plain.stdout == f"{tmp_path / 'plain'}: 3 classes, saved without its examples.\n"
    assert EXAMPLES_FILE not in config_of(tmp_path / "new")["files"]
    assert EXAMPLES_FILE in config_of(place / "triage")["files"]


def test_fit_is_the_librarys(place: Path, triage: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(EXAMPLES)))
    classifier = FewShotClassifier().fit([row["text"] for row in rows], [row["label"] for row in rows])
    texts = ["a delicious meal", "a cracked display"]
    np.testing.assert_allclose(FewShotClassifier.load(triage).predict_proba(texts), classifier.predict_proba(texts), rtol=1e-5)


def test_fit_from_standard_input_with_named_columns_and_vectors(tmp_path: Path) -> None:
    lines = '{"a": "tasty soup", "b": "x", "c": 1}\n{"a": "late train", "b": "y", "c": 2}\n'
    options = ("--text", "a", "--label", "b", "--vectors", "wordllama", "--format", "jsonl")
    good("fit", "-", *options, "--out", tmp_path / "m", stdin=lines)
    found = json.loads(good("inspect", tmp_path / "m", "--json").stdout)
    assert list(found["classes"]) == ["x", "y"]
    assert found["settings"]["vectors"] == "wordllama"


def test_fit_learns_more(place: Path, triage: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("text,label\nthe invoice is wrong,billing\nmy laptop is broken,repair\n")
    result = good("fit", more, "--from", triage, "--out", tmp_path / "m")
    assert result.stdout.startswith(
        f"{tmp_path / 'm'}: 4 classes, saved with its examples; it also learned from the words of 4"
    )
    found = json.loads(good("inspect", tmp_path / "m", "--json", "--quiet").stdout)
    assert found["classes"] == {"billing": 1, "food": 3, "repair": 3, "travel": 3}
    (tmp_path / "all.csv").write_text(EXAMPLES + "the invoice is wrong,billing\nmy laptop is broken,repair\n")
    good("fit", tmp_path / "all.csv", "--out", tmp_path / "at-once")
    assert (
        good("predict", tmp_path / "m", place / "inbox.csv").stdout
        == good("predict", tmp_path / "at-once", place / "inbox.csv").stdout
    )
    good("fit", more, "--from", tmp_path / "m", "--out", tmp_path / "m")  # in its own place
    assert json.loads(good("inspect", tmp_path / "m", "--json", "--quiet").stdout)["classes"]["billing"] == 2
    assert "saved without its examples" in error("fit", more, "--from", place / "bare", "--out", tmp_path / "n")
    assert "remove them" in error("fit", more, "--from", triage, "--language", "de", "--out", tmp_path / "n")
    assert not (tmp_path / "n").exists()


def test_fit_warns_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text(EXAMPLES + "my train came late,food\n")
    result = good("fit", tmp_path / "twice.csv", "--out", tmp_path / "m")
    [line] = result.stderr.splitlines()
    assert line.startswith("Warning: Some texts are given with different labels: 'my train came late'")


def test_fit_errors(place: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    one.write_text("text,label\na,x\nb,x\n")
    assert "at least 2 are needed" in error("fit", one, "--out", tmp_path / "m")
    one.write_text("text,label\n")
    assert "Found 0 classes" in error("fit", one, "--out", tmp_path / "m")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    assert "is not a saved classifier" in error("fit", place / "examples.csv", "--out", tmp_path / "full")
    assert "no word frequencies" in error("fit", place / "examples.csv", "--out", tmp_path / "m", "--language", "xx")
    assert "There are no vectors 'none.vec'" in error(
        "fit", place / "examples.csv", "--out", tmp_path / "m", "--vectors", "none.vec"
    )
    assert not (tmp_path / "m").exists()


def test_fit_reads_files_as_spreadsheets_write_them(place: Path, tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO(EXAMPLES)))
    files = {
        "semicolons.csv": "\r\n".join(";".join(row) for row in rows).encode("utf-8-sig"),
        "array.json": json.dumps([dict(zip(rows[0], row, strict=True)) for row in rows[1:]], indent=1).encode(),
    }
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(stream)
    files["sheet.xlsx"] = stream.getvalue()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        good("fit", tmp_path / name, "--out", tmp_path / "m")
        assert good("score", tmp_path / "m", tmp_path / name).stdout.startswith("100.0% of 8 texts right"), name
        assert (
            good("predict", tmp_path / "m", place / "inbox.csv").stdout
            == good("predict", place / "bare", place / "inbox.csv").stdout
        )


def test_fit_with_a_delimiter_and_an_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text^label\ncafé crème^food\nmy train^travel\n".encode("latin-1"))
    assert "--encoding windows-1252" in error("fit", path, "--delimiter", "^", "--out", tmp_path / "m")
    good("fit", path, "--delimiter", "^", "--encoding", "latin-1", "--out", tmp_path / "m", "--keep-examples")
    assert "café crème" in json.loads(next((tmp_path / "m").glob("examples.*")).read_text())["texts"]
    path.write_text("text\tlabel\na, b\tfood\nmy train\ttravel\n")
    for tab in ("\t", "\\t", "tab"):
        assert "2 classes" in good("fit", path, "--delimiter", tab, "--out", tmp_path / "m").stdout
    assert "give one character" in error("fit", path, "--delimiter", "--", "--out", tmp_path / "m")
    assert "There is no encoding 'klingon'" in error("fit", path, "--encoding", "klingon", "--out", tmp_path / "m")


# predict


def test_predict_to_standard_output(place: Path, triage: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(good("predict", triage, place / "inbox.csv").stdout)))
    assert [row["label"] for row in rows] == ["food", "travel", "repair"]
    assert all(0.3 < float(row["probability"]) <= 1 for row in rows)
    lines = [json.loads(line) for line in good("predict", triage, place / "inbox.csv", "--json").stdout.splitlines()]
    assert [{name: str(value) for name, value in line.items()} for line in lines] == rows


def test_predict_to_a_file_with_all_there_is(place: Path, triage: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.csv"
    result = good("predict", triage, place / "inbox.csv", "--keep", "--probabilities", "--out", out)
    assert result.stdout == f"{out}: 3 texts answered.\n"
    counts = json.loads(good("predict", triage, place / "inbox.csv", "--json", "--out", tmp_path / "again.csv").stdout)
    assert counts == {"out": str(tmp_path / "again.csv"), "rows": 3, "resumed": 0, "skipped": 0, "problem": "", "cut": 0}
    header = out.read_text().splitlines()[0]
    assert header == "id,text,label,probability,probability of food,probability of repair,probability of travel"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_predict_leaves_the_label_empty_where_it_is_unsure(place: Path, triage: Path, tmp_path: Path, ending: str) -> None:
    texts = [row["text"] for row in csv.DictReader(io.StringIO(INBOX))]
    classifier = FewShotClassifier.load(triage)
    level = float(np.median(classifier.predict_proba(texts).max(axis=1)))
    expected = classifier.predict(texts, reject_below=level).tolist()
    assert 0 < expected.count(None) < len(expected)
    out = tmp_path / f"answers.{ending}"
    good("predict", triage, place / "inbox.csv", "--reject-below", level, "--out", out)
    if ending == "parquet":
        found = parquet.read_table(out).column("label").to_pylist()
    elif ending == "jsonl":
        found = [json.loads(line)["label"] for line in out.read_text().splitlines()]
    else:
        found = [row["label"] or None for row in csv.DictReader(out.open())]
    assert found == expected


def test_predict_plain_lines_from_standard_input(triage: Path) -> None:
    printed = good("predict", triage, "-", "--format", "txt", stdin="a delicious meal\n\nthe plane\n").stdout
    assert len(printed.splitlines()) == 4


def test_predict_leaves_broken_rows_out_and_says_so(triage: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'text\nfine\n"open\ncaf\xe9\na,b\nlast\n')
    sentence = "line 3 begins a row in which line 4 is not in UTF-8"
    assert sentence in error("predict", triage, path, "--out", tmp_path / "out.csv")
    result = good("predict", triage, path, "--on-error", "skip", "--out", tmp_path / "out.csv")
    assert result.stderr.startswith("3 rows that cannot be read were skipped; the first: ")
    assert sentence in result.stderr
    assert "2 texts answered." in result.stdout


def test_predict_errors(place: Path, triage: Path, tmp_path: Path) -> None:
    inbox = place / "inbox.csv"
    assert "is not a saved model" in error("predict", tmp_path / "none", inbox)
    assert "There is no file" in error("predict", triage, tmp_path / "none.csv")
    assert "ends in .csv, .tsv, .jsonl or .parquet" in error("predict", triage, inbox, "--out", tmp_path / "a.xlsx")
    assert "There is no backend 'spark'" in error("predict", triage, inbox, "--backend", "spark")
    assert "give --address" in error("predict", triage, inbox, "--backend", "dask")
    assert "--workers is 0: it must be at least 1." in error("predict", triage, inbox, "--workers", 0)
    assert "There is no format 'xml'" in error("predict", triage, inbox, "--format", "xml")
    assert "has no column 'body'" in error("predict", triage, inbox, "--text", "body")
    assert "must be a probability" in error("predict", triage, inbox, "--reject-below", 3, "--out", tmp_path / "a.csv")
    assert f"{inbox} is the input" in error("predict", triage, inbox, "--out", inbox)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert "check the path, its permissions and the free space" in error(
        "predict", triage, inbox, "--out", tmp_path / "file" / "a.csv"
    )


def lead_out(folder: Path) -> None:
    path = part(folder, ENCODER)
    path.rename(folder.parent / "elsewhere.json")
    path.symlink_to(folder.parent / "elsewhere.json")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda folder: change_bytes(folder, MODEL, lambda content: content[:-100]),
    "oversized": lambda folder: rewrite(folder, model=part(folder, MODEL).read_bytes().replace(b"[384,3]", b"[384,9]")),
    "not a number": lambda folder: change_array(folder, "weights", lambda weights: weights * np.float32(np.nan)),
    "wrong shape": lambda folder: change_array(folder, "weights", lambda weights: weights.T.copy()),
    "no tensors": lambda folder: part(folder, MODEL).unlink(),
    "leads out": lead_out,
    "not json": lambda folder: (folder / "config.json").write_text("{"),
    "newer": lambda folder: change_config(folder, format=99),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_classifier_is_one_sentence(place: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "m"
    good("fit", place / "examples.csv", "--out", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    DAMAGES[damage](folder)
    assert damage == "leads out" or {path.name: path.read_bytes() for path in folder.iterdir()} != before
    for command in (("predict", folder, place / "inbox.csv"), ("explain", folder, "x"), ("inspect", folder)):
        assert str(folder) in error(*command)


HOSTILE = [
    "",
    "x " * 5_000_000,
    "\x01\x1b[31m",
    "half \ud800 a pair",
    "🎉👍🏽",
    "‮שלום العالم",
    "nul \x00 inside",
    "again " * 100_000,
]


def test_hostile_texts_at_the_command_line(triage: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "label": "odd"} for text in HOSTILE] + [{"text": "a tasty soup", "label": "food"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    good("fit", tmp_path / "in.jsonl", "--out", tmp_path / "m")
    for command in ("score", "suggest"):
        good(command, triage, tmp_path / "in.jsonl", "--json")
    answers = good("predict", triage, tmp_path / "in.jsonl", "--json").stdout.splitlines()
    assert len(answers) == len(rows)
    assert json.loads(answers[-1])["label"] == "food"
    for text in HOSTILE:
        json.loads(good("explain", triage, "-", "--json", stdin=text.encode("utf-8", "surrogatepass")).stdout)


# score


def test_score_by_hand() -> None:
    report = compare([("a", "a"), ("a", "b"), ("b", "b"), ("c", "b"), ("a", "a")])
    assert report.accuracy == 3 / 5
    assert report.macro_f1 == pytest.approx(np.mean([2 * 2 / 5, 2 * 1 / 4, 0]))
    assert report.matrix() == [[2, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert report.mistakes() == [(("a", "b"), 1), (("c", "b"), 1)]


def test_score_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    true, answers = (rng.choice(list("abcdef"), 200) for _ in range(2))
    report = compare(zip(true.tolist(), answers.tolist(), strict=True))
    assert report.accuracy == metrics.accuracy_score(true, answers)
    assert report.macro_f1 == pytest.approx(metrics.f1_score(true, answers, average="macro"))
    assert report.matrix() == metrics.confusion_matrix(true, answers).tolist()


def test_score_of_several_labels_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    true, answers = (np.random.default_rng(seed).integers(0, 2, (100, 4)) for seed in (0, 1))
    lists = [[[int(i) for i in np.flatnonzero(row)] for row in rows] for rows in (true, answers)]
    report = compare(zip(*lists, strict=True), several=True)
    assert report.accuracy == metrics.accuracy_score(true, answers)
    assert report.macro_f1 == pytest.approx(metrics.f1_score(true, answers, average="macro"))
    assert report.matrix() is None


def test_score(place: Path, triage: Path, tmp_path: Path) -> None:
    result = good("score", triage, place / "examples.csv")
    assert result.stdout.startswith("100.0% of 8 texts right, macro-F1 1.000.\n")
    assert "true \\ answered" in result.stdout
    (tmp_path / "labelled.csv").write_text("text,label\na tasty soup,food\na late train,food\na cracked screen,unheard of\n")
    report = json.loads(good("score", triage, tmp_path / "labelled.csv", "--json").stdout)
    assert (report["rows"], report["accuracy"]) == (3, round(1 / 3, 6))
    assert report["labels"] == ["food", "repair", "travel", "unheard of"]
    assert np.sum(report["confusion"]) == 3
    assert "it is not clear which one holds the labels" in error("score", triage, "-", "--format", "txt", stdin="a\n")
    several = '{"text": "a", "label": ["food"]}\n'
    assert "gives one label per text" in error("score", triage, "-", "--format", "jsonl", stdin=several)
    assert "no rows to score" in error("score", triage, "-", "--format", "csv", stdin="text,label\n")


def test_score_compares_labels_as_they_are_written(tmp_path: Path) -> None:
    lines = '{"text": "tasty soup", "label": 1}\n{"text": "late train", "label": 2}\n'
    good("fit", "-", "--format", "jsonl", "--out", tmp_path / "m", stdin=lines)
    report = good("score", tmp_path / "m", "-", "--format", "csv", "--json", stdin="text,label\ntasty soup,1\nlate train,2\n")
    assert json.loads(report.stdout)["accuracy"] == 1


def test_score_of_several_labels(tmp_path: Path) -> None:
    lines = '{"text": "tasty soup", "label": ["a", "b"]}\n{"text": "late train", "label": "c"}\n'
    good("fit", "-", "--format", "jsonl", "--out", tmp_path / "m", stdin=lines)
    result = good("score", tmp_path / "m", "-", "--format", "jsonl", stdin=lines)
    assert "100.0% of 2 texts right" in result.stdout
    assert "F1" in result.stdout


def test_score_of_many_classes_shows_the_mistakes(tmp_path: Path) -> None:
    rows = "".join(f"word{i} thing{i * 7},class{i}\n" for i in range(40))
    good("fit", "-", "--format", "csv", "--out", tmp_path / "m", stdin="text,label\n" + rows)
    result = good("score", tmp_path / "m", "-", "--format", "csv", stdin="text,label\nword1 thing7,class2\n")
    assert "0.0% of 1 texts right" in result.stdout
    assert "class2" in result.stdout
    assert "class1" in result.stdout


# explain


def test_explain(triage: Path, tmp_path: Path) -> None:
    result = good("explain", triage, "The soup was tasty & <b>hot</b>")
    assert "→ food" in result.stdout
    assert "attention" in result.stdout
    found = json.loads(good("explain", triage, "The soup", "--json").stdout)
    assert (found["answer"], [word["word"] for word in found["words"]]) == ("food", ["The", "soup"])
    good("explain", triage, "The soup & <b>hot</b>", "--html", tmp_path / "why.html")
    page = (tmp_path / "why.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<b>hot" not in page
    assert json.loads(good("explain", triage, "-", "--json", stdin=b"caf\xe9 soup").stdout)["answer"] == "food"


def test_explain_colours_a_terminal(triage: Path) -> None:
    code = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    command = [sys.executable, "-c", code, sys.executable, "-m", "handful", "explain", str(triage), "the tasty \x1b[31m soup"]
    shown = subprocess.run(command, capture_output=True, check=True, env=COLOURS)
    assert b"\x1b[30;48;2;" in shown.stdout  # black on a colour
    assert b"\x1b[31m" not in shown.stdout  # what the text says to the terminal is not passed on


# suggest


def test_suggest_is_the_librarys(triage: Path, tmp_path: Path) -> None:
    words = ["soup", "train", "screen", "wine", "flight", "phone", "thing", "it", "dessert", "luggage"]
    texts = [f"{a} and {b}" for a in words for b in words]
    (tmp_path / "pool.txt").write_text("\n".join(texts))
    expected = FewShotClassifier.load(triage).suggest(texts, 3).tolist()
    lines = good("suggest", triage, tmp_path / "pool.txt", "--n", 3, "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [one["row"] - 1 for one in found] == expected
    assert [one["text"] for one in found] == [texts[i] for i in expected]
    assert {one["label"] for one in found} <= {"food", "repair", "travel"}


def test_suggest_prints_a_file_to_fill_in(place: Path, triage: Path) -> None:
    printed = good("suggest", triage, place / "inbox.csv", "--n", 2).stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [(list(row), row["label"]) for row in rows] == [(["text", "label"], "")] * 2
    assert good("suggest", triage, "-", "--format", "csv", stdin="text\n").stdout == "text,label\n"
    assert "must be at least 1" in error("suggest", triage, place / "inbox.csv", "--n", 0)
    assert "line 2 has no label" in error("fit", "-", "--format", "csv", "--out", "unused", stdin=printed)


# inspect


def test_inspect(place: Path, triage: Path) -> None:
    found = json.loads(good("inspect", triage, "--json").stdout)
    assert found["classes"] == {"food": 3, "repair": 2, "travel": 3}
    assert (found["labels"], found["folds"], found["settings"]["language"]) == ("one", 2, "en")
    assert 0 <= found["accuracy"] <= 1
    printed = good("inspect", triage).stdout
    assert "in 2-fold cross-validation" in printed
    assert "3 classes, one label per text; vectors blend, language en" in printed
    assert "learned from the words of 3 labels" in printed
    bare = good("inspect", place / "bare").stdout
    assert "not kept" in bare
    assert "cross-validation" not in bare
    assert json.loads(good("inspect", place / "bare", "--json").stdout)["classes"] == dict.fromkeys(
        ("food", "repair", "travel")
    )


def test_inspect_without_two_examples_a_class_or_with_several_labels(tmp_path: Path) -> None:
    few = "text,label\ntasty soup,[red]food\nlate train,travel\nlate bus,travel\n"
    good("fit", "-", "--format", "csv", "--keep-examples", "--out", tmp_path / "few", stdin=few)
    printed = good("inspect", tmp_path / "few").stdout
    assert "cross-validation" not in printed
    assert "[red]food" in printed
    lists = '{"text": "tasty soup", "label": ["a", "b"]}\n{"text": "late train", "label": ["c"]}\n'
    good("fit", "-", "--format", "jsonl", "--keep-examples", "--out", tmp_path / "lists", stdin=lists)
    assert json.loads(good("inspect", tmp_path / "lists", "--json").stdout)["labels"] == "several"


# All of them


@pytest.mark.parametrize("command", ["fit", "predict", "score", "explain", "suggest", "inspect"])
def test_help_has_an_example(command: str) -> None:
    assert f"handful {command} " in good(command, "--help").stdout.partition("Usage:")[2].partition("\n")[2]


@pytest.mark.parametrize("command", ["predict", "explain", "fit"])
def test_nothing_heavy_is_imported(place: Path, triage: Path, tmp_path: Path, command: str) -> None:
    arguments = {
        "predict": ["predict", triage, place / "inbox.csv", "--out", tmp_path / "a.csv"],
        "explain": ["explain", triage, "a tasty soup"],
        "fit": ["fit", place / "examples.csv", "--out", tmp_path / "m"],
    }[command]
    code = (
        "import sys; from handful.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'joblib', 'numba', 'pandas', 'pyarrow', 'transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    command_line = [sys.executable, "-c", code, *map(str, arguments)]
    printed = subprocess.run(command_line, capture_output=True, check=True, text=True).stdout
    assert printed.splitlines()[-1] == "[]"


def test_vectors_of_a_file_are_named_again(place: Path, tmp_path: Path) -> None:
    words = sorted({word for line in EXAMPLES.splitlines() for word in line.replace(",", " ").split()})
    table = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    np.savez(tmp_path / "own.npz", words=np.array(words), vectors=table)
    good("fit", place / "examples.csv", "--vectors", tmp_path / "own.npz", "--out", tmp_path / "m")
    sentence = error("explain", tmp_path / "m", "tasty soup")
    assert "may not name files" in sentence
    assert "load with --vectors PATH." in sentence
    answer = good("explain", tmp_path / "m", "the soup was tasty", "--vectors", tmp_path / "own.npz", "--json").stdout
    assert json.loads(answer)["answer"] == "food"
    rows = good("predict", tmp_path / "m", place / "examples.csv", "--vectors", tmp_path / "own.npz").stdout.splitlines()
    assert len(rows) == 9


def test_class_names_count_as_examples(place: Path, tmp_path: Path) -> None:
    """The labels' own words, and descriptions from a file."""
    few = tmp_path / "few.csv"
    few.write_text("text,label\nsoup was cold,food\nlate again,travel\n")
    good("fit", few, "--class-names", "off", "--out", tmp_path / "plain")
    good("fit", few, "--out", tmp_path / "auto")
    names = tmp_path / "names.csv"
    names.write_text("label,description\nfood,restaurants and meals and cooking\ntravel,trains and planes and hotels\n")
    good("fit", few, "--class-names", names, "--out", tmp_path / "described")
    text = "a hotel near the station"
    found = [FewShotClassifier.load(tmp_path / name).predict_proba([text])[0, 1] for name in ("plain", "auto", "described")]
    assert found[0] < found[1] < found[2]
    assert "remove them" in error("fit", few, "--class-names", "off", "--from", tmp_path / "auto", "--out", tmp_path / "m")


def test_descriptions_of_classes_are_enough(place: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("label,description\n1,restaurants and meals and cooking\n2,trains and planes and hotels\n")
    result = good("fit", "--class-names", names, "--unlabeled", place / "inbox.csv", "--out", tmp_path / "described")
    assert "the words of 2 labels" in result.stdout
    assert "unlabelled texts" in result.stdout
    clf = FewShotClassifier.load(tmp_path / "described")
    assert clf.predict(["a train to the coast", "a soup with bread"]).tolist() == ["2", "1"]
    (tmp_path / "names.txt").write_text("food\ntravel\n")
    good("fit", "--class-names", tmp_path / "names.txt", "--out", tmp_path / "named")
    assert FewShotClassifier.load(tmp_path / "named").classes_.tolist() == ["food", "travel"]
    assert "There are no examples" in error("fit", "--out", tmp_path / "m")
    found = json.loads(good("inspect", tmp_path / "described", "--json", "--quiet").stdout)
    assert found["sources"]["named"] == ["1", "2"]
    assert found["sources"]["unlabeled"] > 0


def test_texts_that_are_cut_are_counted_in_a_sentence(triage: Path, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox.jsonl"
    inbox.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in ("short", "word " * 600, "longer " * 501, "w " * 500))
    )
    result = good("predict", triage, inbox, "--out", tmp_path / "answers.csv")
    assert "2 texts are longer than" in result.stderr
    counts = json.loads(good("predict", triage, inbox, "--out", tmp_path / "again.csv", "--json").stdout)
    assert counts["cut"] == 2
    labelled = tmp_path / "labelled.jsonl"
    labelled.write_text("".join(json.dumps({"text": "word " * number, "label": "food"}) + "\n" for number in (1, 500, 501)))
    assert "1 text is longer than 500 words: only its first 500 words were read" in good("score", triage, labelled).stderr


def test_a_threshold_for_several_labels(tmp_path: Path) -> None:
    rows = [{"text": "lost card", "label": ["card"]}, {"text": "refund my card", "label": ["card", "money"]}]
    rows += [{"text": "money back", "label": ["money"]}]
    (tmp_path / "tags.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "in.txt").write_text("my card\n")
    good("fit", tmp_path / "tags.jsonl", "--out", tmp_path / "m")
    all_of_them = json.loads(good("predict", tmp_path / "m", tmp_path / "in.txt", "--threshold", 0, "--json").stdout)
    assert all_of_them["label"] == ["card", "money"]
    assert "from 0 to 1" in error("predict", tmp_path / "m", tmp_path / "in.txt", "--threshold", 7)
