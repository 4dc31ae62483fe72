"""The report: one page that needs nothing but itself, and the commands that make it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from handful.analysis import ANALYSES, Analysis, InspectedRun, NotApplicableError
from handful.analysis import page as report
from handful.analysis.figures import Figure, panels
from handful.analysis.page import AnalysisOutcome, analyse, render, write_report
from handful.cli import main
from handful.errors import SettingError
from handful.meta.experiment import RunSettings
from handful.models.settings import ModelSettings, VectorSettings

EVIL = '<script>alert("x")</script> & <b>bold</b>'


def text_figure(name="evil", rows=(), html="") -> Figure:
    def draw():
        drawing, axes = panels(3, 2)
        axes.plot([0, 1], [0, 1])
        return drawing

    return Figure(name, EVIL, EVIL, EVIL, rows, draw, html)


def test_words_of_the_data_are_text():
    page = render(EVIL, EVIL, [AnalysisOutcome("evil", [text_figure(rows=[{EVIL: EVIL}])]), AnalysisOutcome("none", (), EVIL)])
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("&lt;script&gt;") >= 8


def test_the_page_needs_nothing_but_itself():
    page = render("title", "about", [AnalysisOutcome("one", [text_figure("one"), text_figure("two", html="<p>words</p>")])])
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
    with pytest.raises(SettingError, match="There is no analysis wrong"):
        list(analyse(InspectedRun(demo_run), ["wrong"]))


def test_command_makes_page_and_files(demo_run, tmp_path):
    page, figures = tmp_path / "report.html", tmp_path / "figures"
    wanted = "overview,attention,mismatch,granularity"
    result = CliRunner().invoke(
        main, ["report", str(demo_run), "--out", str(page), "--only", wanted, "--figures", str(figures)]
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


def test_attention_on_the_terminal(demo_run, demo):
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
