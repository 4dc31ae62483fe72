"""Clean up: likely mistakes, contradictions and near-duplicates, one key each."""

from __future__ import annotations

from .person import Api, People
from .trips import CLASSES, pairs


def test_a_likely_mistake_is_corrected_and_another_dismissed(person: People, api: Api) -> None:
    wrong = [(text, "money" if place in (1, 4, 7) else label) for place, (text, label) in enumerate(pairs())]
    anna, project = person("anna"), api.project(CLASSES, wrong)
    anna.open(project, "clean")
    anna.page.wait_for_selector(".suspect.active")
    first = anna.page.locator(".suspect.active").inner_text()
    found = anna.page.locator(".suspect").count()
    assert "money" in first
    assert "travel" in first
    anna.press("Enter")
    anna.saved()
    said = api.labels_of(project, "anna")
    assert list(said.values()) == [2]
    assert api.texts(project)[next(iter(said))]["class"] == 2
    anna.until("count => document.querySelectorAll('.suspect').length < count", found)
    anna.press("x")
    anna.see("Dismissed")
    dismissed = api.server.ask("GET", f"/projects/{project}/cleaning/mistakes", params={"wait": True})
    assert dismissed["dismissed"] == 1
    anna.button("Undo").last.click()
    anna.until("!document.querySelector('.view-clean .work .muted').textContent.includes('dismissed')")


def test_a_contradiction_gets_one_class(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, [*pairs(), ("the SOUP was tasty", "travel")])
    anna.open(project, "clean", "kind=contradictions")
    anna.page.wait_for_selector(".suspect.active")
    anna.press("1")
    anna.saved()
    anna.see("No two texts with the same words have different classes")
    assert {api.texts(project)[number]["class"] for number in (0, 36)} == {1}


def test_near_duplicates_are_removed_or_dismissed(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, [*pairs(), "The soup was tasty", "My flight came late!"])
    anna.open(project, "clean", "kind=duplicates")
    anna.page.wait_for_selector(".suspect.active")
    before = anna.page.locator(".suspect").count()
    assert before >= 2
    anna.button("Remove copies").first.click()
    anna.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    anna.until("count => document.querySelectorAll('.suspect').length === count", before - 1)
    assert len(api.texts(project)) == 37
    anna.press("x")
    anna.see("Dismissed")


def test_nothing_to_clean_up_says_so(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, ["a text"])
    for kind in ("Contradictions", "Near-duplicates", "Likely mistakes"):
        if kind == "Contradictions":
            anna.open(project, "clean")
        anna.page.get_by_role("tab", name=kind).click()
        anna.page.locator(".empty.small").filter(has_text="No ").wait_for()
