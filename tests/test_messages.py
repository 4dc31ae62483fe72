"""A message names what its reader can change: arguments in Python, options at the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import handful
from handful import FewShotClassifier
from handful.batch.output import ColumnLayout, CsvFormat, PendingFile
from handful.batch.prediction import OutputOptions, predict_file
from handful.batch.saved import SavedClassifier
from handful.batch.scoring import score_file
from handful.cli import main
from handful.data.reader import Source, open_rows
from handful.errors import HandfulError
from handful.utils.parallel import Workers

TEXTS = ["the soup was tasty", "my train came late", "we had dinner", "a delayed flight"]
ARGUMENT = re.compile(r"`\w+(?:=[^`]*)?`")
OPTION = re.compile(r"(?<![\w-])--[a-z]")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Classifiers and files: `m` without its examples, `several` with several labels per text."""
    folder = tmp_path_factory.mktemp("place")
    FewShotClassifier().fit(TEXTS, ["food", "travel"] * 2).save(folder / "m")
    FewShotClassifier().fit(TEXTS, [["food"], ["travel"], ["food"], ["late"]]).save(folder / "several")
    (folder / "in.csv").write_text("text,label\nsoup,food\n")
    (folder / "wide.csv").write_text("a,b,c\nx,y,z\n")
    (folder / "broken.csv").write_text("text,label\nsoup,food,more\n")
    (folder / "latin.csv").write_bytes("text,label\ncafé,food\n".encode("latin-1"))
    (folder / "in.doc").write_text("text\nsoup\n")
    (folder / "in.jsonl").write_text('{"text": "soup"}\n')
    return folder


def read(path: Path, labelled: bool = False, **reading: object) -> None:
    with open_rows(Source(str(path), **reading), labelled=labelled) as rows:
        list(rows)


def predict(place: Path, name: str = "m", options: OutputOptions | None = None) -> None:
    predict_file(SavedClassifier.at(place / name), Source(str(place / "in.csv")), place / "unused.csv", options=options)


CASES: dict[str, tuple[Callable[[Path], object], str, list[str], str]] = {
    # in Python, what it names, at the command line, what it names
    "workers": (
        lambda p: Workers(0),
        "`processes` is 0: it must be at least 1.",
        ["predict", "m", "in.csv", "--workers", "0"],
        "--workers is 0: it must be at least 1.",
    ),
    "address": (
        lambda p: Workers(backend="dask"),
        "`address`",
        ["predict", "m", "in.csv", "--backend", "dask"],
        "give --address with",
    ),
    "reject": (
        lambda p: FewShotClassifier.load(p / "m").predict([], reject_below=3),
        "`reject_below` is 3: it must",
        ["predict", "m", "in.csv", "--reject-below", "3"],
        "--reject-below is 3.0: it must",
    ),
    "reject several": (
        lambda p: predict(p, "several", OutputOptions(reject_below=0.5)),
        "`reject_below` is for",
        ["predict", "several", "in.csv", "--reject-below", "0.5"],
        "--reject-below is for",
    ),
    "threshold": (
        lambda p: FewShotClassifier.load(p / "m").predict([], threshold=0.5),
        "`threshold` is for texts that may have several labels: use `reject_below`",
        ["predict", "m", "in.csv", "--threshold", "0.5"],
        "--threshold is for texts that may have several labels: use --reject-below",
    ),
    "encoder": (
        lambda p: FewShotClassifier(vectors="wordllama", encoder="bge-small").fit(TEXTS, ["a", "b"] * 2),
        "`vectors` is for `encoder='words'`",
        ["fit", "in.csv", "--vectors", "wordllama", "--encoder", "bge-small", "--out", "unused"],
        "--vectors is for --encoder words",
    ),
    "examples": (
        lambda p: FewShotClassifier.load(p / "m").partial_fit(["x"], ["food"]),
        "save it with `keep_examples=True`",
        ["fit", "in.csv", "--from", "m", "--out", "unused"],
        "save it with --keep-examples",
    ),
    "n": (
        lambda p: FewShotClassifier.load(p / "m").suggest(TEXTS, 0),
        "`n` is 0",
        ["suggest", "m", "in.csv", "--n", "0"],
        "--n is 0",
    ),
    "broken row": (
        lambda p: read(p / "broken.csv", labelled=True),
        "skip such rows with `skip_broken=True`.",
        ["score", "m", "broken.csv"],
        "skip such rows with --on-error skip.",
    ),
    "format": (lambda p: Source("x", "xml"), "(`form`)", ["predict", "m", "in.csv", "--format", "xml"], "(--format)"),
    "no ending": (lambda p: read(p / "in.doc"), "give `form`", ["predict", "m", "in.doc"], "give --format"),
    "text": (lambda p: read(p / "wide.csv"), "name it with `text`.", ["predict", "m", "wide.csv"], "name it with --text."),
    "label": (
        lambda p: read(p / "wide.csv", labelled=True, text="a"),
        "name it with `label`.",
        ["fit", "wide.csv", "--text", "a", "--out", "unused"],
        "name it with --label.",
    ),
    "encoding": (
        lambda p: read(p / "latin.csv"),
        "such as `encoding='windows-1252'`",
        ["predict", "m", "latin.csv"],
        "such as --encoding windows-1252",
    ),
    "no encoding": (
        lambda p: Source("x", encoding="klingon"),
        "(`encoding`)",
        ["predict", "m", "in.csv", "--encoding", "klingon"],
        "(--encoding)",
    ),
    "delimiter": (
        lambda p: read(p / "in.jsonl", delimiter=";"),
        "remove `delimiter`",
        ["predict", "m", "in.jsonl", "--delimiter", ";"],
        "remove --delimiter",
    ),
    "separator": (
        lambda p: score_file(SavedClassifier.at(p / "m"), Source(str(p / "in.csv")), label_separator=";"),
        "remove `label_separator`",
        ["score", "m", "in.csv", "--label-separator", ";"],
        "remove --label-separator",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_in_python_a_message_names_arguments(place: Path, case: str) -> None:
    raising, named, *_ = CASES[case]
    with pytest.raises(HandfulError) as caught:
        raising(place)
    assert named in str(caught.value)
    assert not OPTION.search(str(caught.value))


def test_a_second_run_of_one_output_in_python(tmp_path: Path) -> None:
    first = PendingFile(tmp_path / "out.csv", CsvFormat(ColumnLayout((), ())), None)
    with pytest.raises(HandfulError, match="choose another `out`"):
        PendingFile(tmp_path / "out.csv", CsvFormat(ColumnLayout((), ())), None)
    first.close(whole=False)


@pytest.mark.parametrize("case", CASES)
def test_at_the_command_line_a_message_names_options(place: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, command, named = CASES[case]
    monkeypatch.chdir(place)
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    assert named in result.stderr
    assert not ARGUMENT.search(result.stderr)


def test_data_that_looks_like_an_argument_stays_as_it_is(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    for name in ("`other`.csv", "keep_examples.csv", "label.csv"):
        assert f"There is no file {name}" in CliRunner().invoke(main, ["predict", "m", name]).stderr


def test_warnings_name_options_too(place: Path, tmp_path: Path) -> None:
    words = [f"zxqv{i}qj{i}w" for i in range(40)]
    rows = "".join(f"{' '.join(words[i : i + 5])},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "odd.csv").write_text("text,label\n" + rows)
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "odd.csv"), "--out", str(tmp_path / "m")])
    assert result.exit_code == 0, result.output
    assert "set --language and --vectors to those of your texts" in result.stderr


PRACTITIONERS = ["batch", "classifier", "data/reader.py", "data/lines.py", "data/text_tables.py", "data/binary_tables.py"]
BELOW = ["utils/parallel.py", "utils/files.py", "utils/paths.py", "embeddings/tables.py", "models/text_encoders.py"]


@pytest.mark.parametrize("name", [*PRACTITIONERS, *BELOW])
def test_the_librarys_strings_name_no_options(name: str) -> None:
    assert not _options_in(Path(handful.__file__).parent / name)


def _options_in(place: Path) -> list[str]:
    found = []
    for path in place.rglob("*.py") if place.is_dir() else [place]:
        tree = ast.parse(path.read_text("utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                found += [f"{path.name}:{node.lineno}: {node.value}"] if OPTION.search(node.value) else []
    return found
