"""The report in a real browser: nothing is fetched, nothing runs, everything can be seen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from handful.analysis.figures import COLOURS, Figure, panels
from handful.analysis.page import AnalysisOutcome, render
from handful.analysis.shaded_texts import Shaded, ShadedTable

pytestmark = pytest.mark.browser
EVIL = ["<script>document.title='broken'</script>", "<b>bold</b>", "<img", "src=x", "onerror=alert(1)>", "&amp;"]


def chromium() -> str:
    found = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
    if not found:
        pytest.skip("There is no Chromium here: install it (apt-get install chromium).")
    return found


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'handful[browser]'")
    program = chromium()
    sandbox = os.geteuid() != 0  # Chromium refuses its sandbox to root
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, chromium_sandbox=sandbox)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    def draw():
        drawing, axes = panels(9, 3)
        axes.plot(range(10), np.arange(10) ** 2, color=COLOURS[0])
        axes.set_title(" ".join(EVIL))
        return drawing

    table = ShadedTable("class", ["s(x)", "t(x)", EVIL[0]], [(EVIL[1], [Shaded(EVIL, np.arange(6.0))] * 3)])
    rows = [{"a long name of a column": "word" * 20, EVIL[1]: i / 3, "third": "x" * 60} for i in range(30)]
    drawn = Figure("drawn", "Drawn", "A curve.", f"A curve {EVIL[1]}.", rows, draw)
    written = Figure("written", EVIL[1], " ".join(EVIL), "Words.", table.numbers(), draw, table.html())
    heavy = Figure("dots", "Dots", "Dots.", "Dots.", rows, draw)
    heavy.__dict__["_drawn"] = ("<svg>" + " " * 700_000, drawn.png)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(
        render(EVIL[0], EVIL[1], [AnalysisOutcome("all", [drawn, written, heavy]), AnalysisOutcome("no", (), EVIL[0])]), "utf-8"
    )
    return path


@pytest.fixture
def opened(browser, page_file):
    """Opens the page; gives it with what went wrong."""
    contexts = []

    def open_page(width: int = 1200, scheme: str = "light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page, troubles = context.new_page(), []
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("request", lambda request: _note(request.url, page_file, troubles))
        page.goto(page_file.as_uri())
        return page, troubles

    yield open_page
    for context in contexts:
        context.close()


def _note(url: str, own: Path, troubles: list[str]) -> None:
    if url != own.as_uri() and not url.startswith("data:"):
        troubles.append(f"asked for {url}")


def test_nothing_goes_wrong_and_nothing_is_fetched(opened):
    page, troubles = opened()
    page.locator("summary").first.click()
    assert page.locator("table").first.is_visible()
    assert troubles == []


@pytest.mark.parametrize("width", [375, 1200])
def test_every_figure_is_seen(opened, width):
    page, _ = opened(width)
    assert page.locator("figure").count() == 3
    for figure in page.locator("figure").all():
        box = figure.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 60
    sizes = page.locator("img").evaluate_all("images => images.map(i => [i.complete, i.naturalWidth, i.alt.length])")
    assert len(sizes) == 2
    assert all(whole and natural > 100 and words > 3 for whole, natural, words in sizes)


def test_texts_with_markup_show_as_text(opened):
    page, _ = opened()
    assert page.title() == EVIL[0]
    assert page.locator("b, script").count() == 0
    shown = page.locator("#written").inner_text()
    for word in EVIL:
        assert word in shown


def test_a_narrow_page_does_not_scroll_sideways(opened):
    page, _ = opened(375)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_dark_readers_get_dark_paper_and_light_ink(opened):
    def look(scheme: str) -> tuple[str, bytes]:
        page, _ = opened(1200, scheme)
        picture = page.locator("#drawn img")
        return page.evaluate("getComputedStyle(document.body).backgroundColor"), picture.screenshot()

    light, dark = look("light"), look("dark")
    assert light[0] == "rgb(255, 255, 255)"
    assert sum(map(int, dark[0][4:-1].split(","))) < 100
    assert _brightest_and_darkest(light[1])[0] < 60  # dark ink on white
    assert _brightest_and_darkest(dark[1])[1] > 200  # light ink on black


def _brightest_and_darkest(png: bytes) -> tuple[int, int]:
    import io

    from PIL import Image

    grey = np.asarray(Image.open(io.BytesIO(png)).convert("L"))
    return int(grey.min()), int(grey.max())
