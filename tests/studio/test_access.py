"""For everybody: axe-core's audit in light and dark, phone width, and the keyboard alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .person import VIEWS, Api, People
from .trips import CLASSES, pairs, texts


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed: pip install 'handful[browser]'")
    return (Path(package.__file__).parent / "axe.min.js").read_text("utf-8")


def _findings(page: Any, axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:150]} {node['failureSummary'][:300]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


@pytest.fixture
def project(api: Api) -> str:
    """Labels of two people, mistakes, duplicates and a disagreement, so that every view has something to show."""
    wrong = [(text, "money" if place in (1, 4) else label) for place, (text, label) in enumerate(pairs()[:24])]
    made = api.project(CLASSES, [*wrong, *texts()[24:], "The soup was tasty"])
    api.label(made, [0, 1, 2], 2, "bert")
    api.label(made, [2, 3, 4, 30], 1, "anna")
    return made


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_finding(person: People, project: str, axe: str, view: str, scheme: str) -> None:
    anna = person("anna", color_scheme=scheme)
    anna.open(project, view)
    anna.page.wait_for_timeout(1200)
    if view == "use":
        anna.page.get_by_label("A text to try").fill("My train was late")
        anna.page.wait_for_selector(".verdict")
    assert _findings(anna.page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_finding_in_dialogs_and_the_first_page(person: People, axe: str, scheme: str) -> None:
    anna = person("anna", color_scheme=scheme)
    assert _findings(anna.page, axe) == []
    anna.button("New project").click()
    assert _findings(anna.page, axe) == []
    anna.press("Escape")
    anna.button("Keys and settings").click()
    assert _findings(anna.page, axe) == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_does_not_scroll_sideways(person: People, project: str, view: str) -> None:
    anna = person("anna", viewport={"width": 360, "height": 740}, has_touch=True)
    anna.open(project, view)
    anna.page.wait_for_timeout(600)
    assert anna.page.evaluate("document.documentElement.scrollWidth") <= 360
    small = anna.page.evaluate(
        "[...document.querySelectorAll('main button:not(.link), main .button')].filter(one => one.offsetParent)"
        ".filter(one => one.offsetHeight < 24 || one.offsetWidth < 24).map(one => one.outerHTML.slice(0, 100))"
    )
    assert small == []


def test_dark_readers_get_dark_paper(person: People, project: str) -> None:
    def paper(scheme: str) -> int:
        anna = person("anna", color_scheme=scheme)
        anna.open(project, "label")
        colour = anna.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(one) for one in colour[4:-1].split(","))

    assert paper("dark") < 120
    assert paper("light") > 650


def test_a_project_from_nothing_with_the_keyboard_alone(person: People, api: Api) -> None:
    anna = person("anna")
    page = anna.page
    _tab_to(anna, "New project")
    anna.press("Enter")
    page.keyboard.type("Keys only")
    anna.press("Tab")
    page.keyboard.type("food")
    anna.press("Enter")
    page.keyboard.type("travel")
    _tab_to(anna, "Create")
    anna.press("Enter")
    page.wait_for_selector(".view-data")
    _tab_to(anna, "Texts, one per line")
    page.keyboard.insert_text("the soup was cold\nthe train was late\nmy dinner was good")
    _tab_to(anna, "Add these texts")
    anna.press("Enter")
    anna.see("3 texts imported")
    _tab_to(anna, "Label the first ones")
    anna.press("Enter")
    anna.wait_for_text()
    anna.press("1", "2", "1")
    anna.saved()
    assert len(api.labels_of(anna.project, "anna")) == 3


def _tab_to(anna: Any, name: str) -> None:
    """Press Tab until something with this name has the focus."""
    here = "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()"
    for _ in range(60):
        if anna.page.evaluate(here) == name:
            return
        anna.press("Tab")
    raise AssertionError(f"Tab never reaches {name}")


def test_what_happens_is_announced(person: People, project: str) -> None:
    anna = person("anna")
    anna.open(project, "label")
    anna.wait_for_text()
    anna.press("1")
    anna.until("document.getElementById('live').textContent.startsWith('food. Next text: ')")
    assert anna.page.locator("#live").get_attribute("aria-live") == "polite"
