"""The report: one page that needs nothing but itself, and the commands that make it."""

from __future__ import annotations

import csv
import html
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from handful import __version__
from handful.analysis import ANALYSES, Analysis, InspectedRun, NotApplicableError
from handful.analysis import page as report
from handful.analysis.attention import attention_table
from handful.analysis.figures import Figure, panels
from handful.analysis.page import AnalysisOutcome, analyse, render, write_report
from handful.cli import main
from handful.cli.meta import train
from handful.errors import SettingError
from handful.meta.experiment import evaluate_run
from handful.meta.settings import RunSettings, settings_from_options
from handful.models.settings import ModelSettings, VectorSettings
from handful.utils.settings import flat_settings

EVIL = '<script>alert("x")</script> & <b>bold</b>'


def text_figure(name="evil", rows=(), words="") -> Figure:
    def draw():
        drawing, axes = panels(3, 2)
        axes.plot([0, 1], [0, 1])
        return drawing

    return Figure(name, EVIL, EVIL, EVIL, rows, draw, words)


def test_words_of_the_data_are_text():
    page = render(EVIL, EVIL, [AnalysisOutcome("evil", [text_figure(rows=[{EVIL: EVIL}])]), AnalysisOutcome("none", (), EVIL)])
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("&lt;script&gt;") >= 8


def test_the_page_needs_nothing_but_itself():
    page = render("title", "about", [AnalysisOutcome("one", [text_figure("one"), text_figure("two", words="<p>words</p>")])])
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:|//)""", page)
    assert 'href="#one"' in page
    assert '<article id="two">' in page
    assert page.count("data:image/svg+xml") == 1  # the other one is made of words
    assert "<p>words</p>" in page


def test_long_tables_are_cut_and_say_so():
    rows = [{"i": i, "share": i / 7} for i in range(report.MOST_ROWS + 5)]
    page = render("title", "", [AnalysisOutcome("one", [text_figure(rows=rows)])])
    assert page.count("<tr>") == report.MOST_ROWS + 1
    assert f"the first {report.MOST_ROWS} of {len(rows)} rows" in page
    assert "<td>0.1429</td>" in page


def test_a_heavy_drawing_becomes_dots(monkeypatch):
    monkeypatch.setattr(report, "LARGEST_DRAWING", 10)
    figure = text_figure()
    figure.__dict__["_drawn"] = ("<svg" + " " * 100_000, b"dots")
    assert "data:image/png;base64,ZG90cw==" in render("title", "", [AnalysisOutcome("one", [figure])])


def test_a_page_that_is_too_large_is_refused(demo_run, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "LARGEST_PAGE", 1000)
    with pytest.raises(SettingError, match="--only"):
        write_report(tmp_path / "page.html", InspectedRun(demo_run), [])
    assert not list(tmp_path.iterdir())


def test_what_does_not_apply_says_why(demo_run, monkeypatch):
    def fail(inspected):
        raise NotApplicableError("It has no such thing: train another run.")

    monkeypatch.setitem(ANALYSES, "odd", Analysis("Odd.", fail))
    (outcome,) = analyse(InspectedRun(demo_run), ["odd"])
    assert str(outcome) == "odd: skipped. It has no such thing: train another run."
    monkeypatch.setitem(ANALYSES, "odd", Analysis("Odd.", lambda inspected: [text_figure("even")], also=("even",)))
    for name in ("odd", "even"):
        [outcome] = analyse(InspectedRun(demo_run), [name])
        assert str(outcome) == "odd: even."
    assert len(list(analyse(InspectedRun(demo_run), ["odd", "even"]))) == 1
    with pytest.raises(SettingError, match="There is no analysis wrong"):
        list(analyse(InspectedRun(demo_run), ["wrong"]))


def test_every_figure_can_be_asked_for_by_its_name():
    sources = (path.read_text("utf-8") for path in Path(report.__file__).parent.glob("*.py"))
    shown = {name for source in sources for name in re.findall(r'\bFigure\(\s*"([\w-]+)"', source)}
    assert len(shown) >= len(ANALYSES)
    assert shown <= {name for own, analysis in ANALYSES.items() for name in (own, *analysis.also)}


def test_the_page_begins_with_what_was_measured_and_how(demo_run, tmp_path):
    inspected = InspectedRun(demo_run, quick=True, quiet=True)
    write_report(tmp_path / "page.html", inspected, [])
    page = html.unescape((tmp_path / "page.html").read_text("utf-8"))
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(?:<code>)?(.*?)(?:</code>)?</dd>", page))
    assert list(facts) == ["Method", "Data", "Accuracy", "Settings", "Version", "Command"]
    assert facts["Method"] == "attention + ridge, word vectors wordllama"
    measured = evaluate_run(demo_run, episodes=100, quiet=True).score
    assert facts["Accuracy"].startswith(f"{100 * measured.mean:.1f} % ± {100 * measured.ci95:.1f} (95 % interval) on 100 tasks")
    assert facts["Version"] == f"Handful {__version__}"
    program, command, *options = shlex.split(facts["Command"])
    assert (program, command, options[-2:]) == ("handful", "train", ["--out", demo_run.name])
    parsed = train.make_context("train", list(options)).params
    names = set(flat_settings(RunSettings))
    assert settings_from_options({name: value for name, value in parsed.items() if name in names}) == inspected.settings


def test_command_makes_page_and_files(demo_run, tmp_path):
    page, figures = tmp_path / "report.html", tmp_path / "figures"
    wanted = "overview,attention,mismatch,granularity"
    result = CliRunner().invoke(
        main, ["report", str(demo_run), "--quick", "--out", str(page), "--only", wanted, "--figures", str(figures)]
    )
    assert result.exit_code == 0, result.output
    assert "granularity: skipped. Fine and coarse tasks need the classes of Reuters" in result.output
    assert f"{page}: 3 figures, also saved in {figures}." in result.output
    assert sorted(path.name for path in figures.glob("*.svg")) == ["attention.svg", "mismatch.svg", "overview.svg"]
    text = page.read_text("utf-8")
    assert text.count("<article") == 3
    assert len(text) < report.LARGEST_PAGE
    share = next(csv.DictReader((figures / "mismatch.csv").open()))["share"]
    assert f"{float(share):.1%} never occur" in text  # the caption says what the file says


def test_command_lists_the_analyses():
    result = CliRunner().invoke(main, ["report", "--list"])
    assert result.exit_code == 0
    for name, analysis in ANALYSES.items():
        assert name in result.output
        assert analysis.needs in result.output


def test_attention_in_a_pipe_is_numbers_next_to_words(demo_run):
    result = CliRunner().invoke(main, ["attention", str(demo_run), "--n", "2"])
    header, *lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == ["text", "class", "word", "s", "t", "attention"]
    table = attention_table(InspectedRun(demo_run), 2)
    words = [word for _, cells in table.rows for word in cells[0].words]
    assert [line[2] for line in lines] == words
    assert {line[0] for line in lines} == {"1", "2"}
    first = [float(line[5]) for line in lines if line[0] == "1"]
    assert first == pytest.approx(table.rows[0][1][2].weights.tolist(), abs=1e-4)


def test_attention_on_the_terminal(demo_run, demo, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = CliRunner().invoke(main, ["attention", str(demo_run), "--n", "2"], terminal_width=200)
    assert result.exit_code == 0, result.output
    shown = [demo.corpus.classes[i] for i in demo.dataset.split.test if demo.corpus.classes[i].split()[0] in result.output]
    assert shown
    result = CliRunner().invoke(main, ["attention", str(demo_run), "--classes", "nothing,such"])
    assert result.exit_code == 2
    assert "There is no class nothing, such" in result.output


def test_a_page_names_vectors_without_their_folders(monkeypatch) -> None:
    settings = RunSettings(model=ModelSettings(vectors=VectorSettings("wordllama+/home/me/glove.npz")))
    monkeypatch.setattr(InspectedRun, "settings", settings)
    assert InspectedRun(Path("run")).vectors == "wordllama+glove.npz"
    for data, split, shown in [
        ("/home/me/my.csv", "/home/me/s.json", "--data my.csv --split s.json"),
        ("hf:/home/me/topics", "mine/s.json", "--data hf:topics --split mine/s.json"),
        ("hf:mteb/banking77", None, "--data hf:mteb/banking77"),
    ]:
        command = report.train_command(report.shareable(replace(settings, data=data, split=split)), "run")
        assert command == f"handful train {shown} --vectors wordllama+glove.npz --out run"
