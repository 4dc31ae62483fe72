"""Figures as files: the same bytes each time, for light and dark, with their numbers."""

from __future__ import annotations

import csv
import io

import pytest
from defusedxml.ElementTree import fromstring

from handful.analysis.figures import COLOURS, DASHES, HATCHES, INK, MARKERS, Figure, panels, weight_scale
from handful.errors import MissingExtraError
from handful.utils.shading import FOR

ROWS = [{"name": "first", "value": 0.25}, {"name": "se,cond", "value": 1.5, "more": 3}]


def make_figure(alt: str = "Two bars.", title: str = "cost: $5 & $6 <b>") -> Figure:
    def draw():
        drawing, axes = panels(3, 2)
        axes.bar([row["name"] for row in ROWS], [row["value"] for row in ROWS], color=COLOURS[0])
        axes.set_title(title)
        return drawing

    return Figure("bars", "Bars", "Two bars.", alt, ROWS, draw)


def test_files_hold_the_picture_and_its_numbers(tmp_path):
    paths = make_figure().save(tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["bars.csv", "bars.pdf", "bars.png", "bars.svg"]
    assert [path.suffix for path in paths] == [".svg", ".pdf", ".png", ".csv"]
    rows = list(csv.DictReader(io.StringIO(paths[3].read_text("utf-8"))))
    assert rows == [
        {"name": "first", "value": "0.25", "more": ""},
        {"name": "se,cond", "value": "1.5", "more": "3"},
    ]
    assert paths[1].read_bytes().startswith(b"%PDF")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert fromstring(paths[0].read_bytes()).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_same_figure_has_the_same_bytes():
    first, second = make_figure(), make_figure()
    assert first.svg == second.svg
    assert first.png == second.png
    assert first.pdf == second.pdf


def test_ink_follows_the_scheme_of_the_reader():
    svg = make_figure().svg
    assert "prefers-color-scheme:dark" in svg
    assert "currentColor" in svg
    assert svg.count(INK) == 1  # where the ink of light paper is named


def test_words_for_who_does_not_see_it_are_escaped():
    picture = fromstring(make_figure(alt='a "quote" </svg><script>alert(1)</script>\x00').svg)
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == 'a "quote" </svg><script>alert(1)</script> '


def test_settings_of_the_user_neither_matter_nor_change():
    import matplotlib as mpl

    plain = make_figure().svg
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "none"}):
        assert make_figure().svg == plain
        assert mpl.rcParams["font.size"] == 30


def test_a_missing_library_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"handful\[report\]"):
        _ = make_figure().svg


def test_weights_go_from_bare_paper_to_one_colour():
    scale = weight_scale()
    assert scale(0.0)[3] == 0
    assert scale(1.0) == pytest.approx((*(c / 255 for c in FOR), 1.0))


def test_categories_have_a_second_cue():
    assert len(COLOURS) == len(MARKERS) == len(HATCHES) == len(DASHES)
    assert len(set(MARKERS)) == len(set(HATCHES)) == len(COLOURS)
