"""Nothing that is written may take the place of what is read, however its path is spelled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handful import FewShotClassifier
from handful.cli import main
from handful.data.episodes import EpisodeSpec
from handful.errors import SettingError
from handful.meta.experiment import train_run
from handful.meta.settings import RunSettings
from handful.utils.bundle import CONFIG

TEXTS = ["the soup was tasty", "my train came late", "we had dinner", "a delayed flight"]
INBOX = "text\na delicious meal\nthe plane did not leave\n"


def handful(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(*arguments: object) -> str:
    """The one sentence that says that the output is the input."""
    result = handful(*arguments)
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert "is the input" in line
    assert line.endswith("which would be replaced: choose another place for the output.")
    return line


@pytest.fixture(scope="module")
def triage(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "triage"
    FewShotClassifier().fit(TEXTS, ["food", "travel"] * 2).save(folder, keep_examples=True)
    return folder


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    path = tmp_path / "d" / "in.csv"
    path.parent.mkdir()
    path.write_text(INBOX)
    return path


def spelled(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


def linked(path: Path) -> Path:
    link = path.parent.parent / f"link{path.suffix}"
    link.symlink_to(path)
    return link


def hard_linked(path: Path) -> Path:
    link = path.parent.parent / f"hard{path.suffix}"
    link.hardlink_to(path)
    return link


def through_a_folder(path: Path) -> Path:
    link = path.parent.parent / "elsewhere"
    link.symlink_to(path.parent)
    return link / path.name


def itself(path: Path) -> Path:
    return path


WAYS = [itself, spelled, linked, hard_linked, through_a_folder]


@pytest.mark.parametrize("way", WAYS)
def test_predict_keeps_its_input(triage: Path, inbox: Path, way: Callable[[Path], Path]) -> None:
    refused("predict", triage, inbox, "--out", way(inbox))
    refused("predict", triage, way(inbox) if way is spelled else inbox, "--out", inbox)
    assert inbox.read_text() == INBOX


@pytest.mark.parametrize("way", WAYS)
def test_predict_keeps_the_classifier(triage: Path, inbox: Path, tmp_path: Path, way: Callable[[Path], Path]) -> None:
    (tmp_path / "m").mkdir()
    FewShotClassifier.load(triage).save(tmp_path / "m" / "triage")
    config = tmp_path / "m" / "triage" / CONFIG
    before = config.read_bytes()
    refused("predict", config.parent, inbox, "--out", way(config))
    assert config.read_bytes() == before
    for _ in range(2):  # answers may be in the classifier's folder, and may be written again
        assert handful("predict", config.parent, inbox, "--out", config.parent / "answers.csv").exit_code == 0


@pytest.mark.parametrize("name", [".answers.csv.pending", ".answers.csv.pending.json"])
def test_predict_keeps_an_input_with_the_name_of_a_pending_file(triage: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(INBOX)
    refused("predict", triage, path, "--format", "csv", "--out", tmp_path / "answers.csv")
    assert path.read_text() == INBOX


def test_predict_keeps_a_file_on_standard_input(triage: Path, inbox: Path) -> None:
    command = [sys.executable, "-m", "handful", "predict", str(triage), "-", "--format", "csv", "--out", str(inbox)]
    with inbox.open("rb") as stream:
        result = subprocess.run(command, stdin=stream, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "is the input" in result.stderr
    assert inbox.read_text() == INBOX


@pytest.mark.parametrize("way", WAYS)
def test_explain_keeps_the_classifier(triage: Path, tmp_path: Path, way: Callable[[Path], Path]) -> None:
    (tmp_path / "m").mkdir()
    FewShotClassifier.load(triage).save(tmp_path / "m" / "triage")
    config = tmp_path / "m" / "triage" / CONFIG
    before = config.read_bytes()
    refused("explain", config.parent, "tasty", "--html", way(config))
    assert config.read_bytes() == before


@pytest.mark.parametrize("way", WAYS)
def test_distilled_vectors_keep_their_texts(inbox: Path, way: Callable[[Path], Path]) -> None:
    refused("vectors", "distill", "--texts", inbox, "--words", 100, "--dim", 2, "--out", way(inbox))
    assert inbox.read_text() == INBOX


@pytest.mark.parametrize("way", WAYS)
def test_fit_keeps_examples_and_class_names_that_lead_to_the_classifier(
    triage: Path, tmp_path: Path, way: Callable[[Path], Path]
) -> None:
    folder = tmp_path / "m" / "triage"
    FewShotClassifier.load(triage).save(folder)
    examples = tmp_path / "examples.csv"
    examples.write_text("text,label\ntasty soup,food\nlate train,travel\n")
    rows = '{"text": "tasty soup", "label": "food"}\n{"text": "late train", "label": "travel"}\n'
    data = folder / "data.0123456789abcdef.json"
    data.write_text(rows)
    given = way(data)
    refused("fit", given, "--format", "jsonl", "--out", folder)
    refused("fit", examples, "--class-names", given, "--out", folder)
    assert data.read_text() == rows


def test_fit_keeps_its_input_in_the_folder_of_the_classifier(triage: Path, tmp_path: Path) -> None:
    """A classifier's folder may hold other people's files, but not under the names that it gives its own."""
    folder = tmp_path / "m"
    FewShotClassifier.load(triage).save(folder, keep_examples=True)
    for name in ("data.0123456789abcdef.json", CONFIG):
        path = folder / name
        (folder / CONFIG).rename(tmp_path / "aside")
        path.write_text('{"text": "tasty soup", "label": "food"}\n{"text": "late train", "label": "travel"}\n')
        if name != CONFIG:
            (tmp_path / "aside").rename(folder / CONFIG)
        os.utime(path, (1, 1))
        before = path.read_text()
        refused("fit", spelled(path), "--out", folder, "--format", "jsonl")
        assert path.read_text() == before
    free = folder / "more.csv"
    free.write_text("text,label\ntasty soup,food\n")
    FewShotClassifier.load(triage).save(tmp_path / "n", keep_examples=True)
    (tmp_path / "n" / "more.csv").write_text(free.read_text())
    assert handful("fit", tmp_path / "n" / "more.csv", "--from", triage, "--out", tmp_path / "n").exit_code == 0
    assert (tmp_path / "n" / "more.csv").exists()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "d" / "history.jsonl"
    path.parent.mkdir(exist_ok=True)
    rows = [{"text": f"text {i} of {label}", "label": label} for label in "abcdef" for i in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("way", WAYS)
def test_a_split_keeps_its_corpus(corpus: Path, way: Callable[[Path], Path]) -> None:
    before = corpus.read_text()
    refused("split", corpus, "--out", way(corpus))
    assert corpus.read_text() == before


def test_training_keeps_its_corpus(corpus: Path) -> None:
    before = corpus.read_text()
    (corpus.parent / "split.json").write_text('{"train": ["a", "b"], "val": ["c", "d"], "test": ["e", "f"]}')
    settings = RunSettings(data=str(corpus), split=str(corpus.parent / "split.json"), episode=EpisodeSpec(2, 1, 1))
    with pytest.raises(SettingError, match="is the input"):
        train_run(settings, corpus.parent / ".." / "d", quiet=True)
    assert corpus.read_text() == before
    assert not (corpus.parent / CONFIG).exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_benchmark_keeps_its_grid(tmp_path: Path, way: Callable[[Path], Path]) -> None:
    grid = tmp_path / "d" / "grid.json"
    grid.parent.mkdir()
    grid.write_text('{"about": "", "seeds": [0], "blocks": [{"data": ["demo"], "presets": ["idf-rr"], "shots": [1]}]}')
    before = grid.read_text()
    refused("benchmark", grid, "--out", way(grid), "--runs", tmp_path / "runs", "--quiet")
    assert grid.read_text() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_report_keeps_its_run(demo_run: Path, tmp_path: Path, way: Callable[[Path], Path]) -> None:
    run = tmp_path / "d"
    run.mkdir()
    for path in demo_run.iterdir():
        (run / path.name).write_bytes(path.read_bytes())
    before = (run / CONFIG).read_bytes()
    refused("report", run, "--only", "words", "--quiet", "--out", way(run / CONFIG))
    assert (run / CONFIG).read_bytes() == before


def test_figures_keep_the_data(tmp_path: Path) -> None:
    from handful.analysis.figures import Figure

    figure = Figure("words", "Words", "", "", [{"a": 1}], lambda: None)
    (tmp_path / "words.csv").write_text(INBOX)
    with pytest.raises(SettingError, match="is the input"):
        figure.save(tmp_path, [tmp_path / "words.csv"])
    assert (tmp_path / "words.csv").read_text() == INBOX


def test_a_directory_or_a_place_that_cannot_be_written_is_one_sentence_before_any_work(triage: Path, inbox: Path) -> None:
    place = inbox.parent / "answers.csv"
    place.mkdir()
    closed = [Path("/proc/answers.csv")] if sys.platform == "linux" else []
    for out in (place, *closed):
        result = handful("predict", triage, inbox, "--out", out)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
        assert result.stderr.startswith("Error: ")
        assert str(out) in result.stderr
    assert "is a folder" in handful("predict", triage, inbox, "--out", place).stderr
    assert sorted(path.name for path in inbox.parent.iterdir()) == ["answers.csv", "in.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="rights do not bind root")
def test_a_folder_without_rights_is_one_sentence(triage: Path, inbox: Path) -> None:
    inbox.parent.chmod(0o500)
    try:
        result = handful("predict", triage, inbox, "--out", inbox.parent / "answers.csv")
    finally:
        inbox.parent.chmod(0o700)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "check the path, its permissions" in result.stderr
