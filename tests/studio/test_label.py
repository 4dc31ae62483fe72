"""Label: one key is label, save and next; undo, redo, marks, classes at any time; nothing stalls, nothing is lost."""

from __future__ import annotations

import time

from .person import Api, People
from .trips import CLASSES, texts, truth


def _labelling(person: People, api: Api, query: str = ""):
    anna, project = person("anna"), api.project(CLASSES, texts())
    anna.open(project, "label", query)
    anna.wait_for_text()
    return anna, project


def _label_rightly(anna, count: int) -> list[str]:
    seen = []
    for _ in range(count):
        text = anna.text
        seen.append(text)
        anna.press(str(truth(text) + 1))
        anna.shows_another(text)
    return seen


def test_one_key_labels_saves_and_shows_the_next(person: People, api: Api) -> None:
    anna, project = _labelling(person, api)
    seen = _label_rightly(anna, 12)
    anna.saved()
    assert len(set(seen)) == 12
    said = api.labels_of(project, "anna")
    numbers = {one["text"]: one["id"] for one in api.texts(project)}
    assert said == {numbers[text]: truth(text) + 1 for text in seen}
    assert len(api.actions(project, "anna")) == 12


def test_a_legend_shows_the_keys(person: People, api: Api) -> None:
    anna, _ = _labelling(person, api)
    assert anna.page.locator(".classes kbd").all_inner_texts() == ["1", "2", "3"]
    assert anna.page.locator(".marks kbd").all_inner_texts() == ["Enter", "s", "u", "n"]
    anna.press("?")
    anna.see("give this class, save and show the next text")
    anna.press("Escape")


def test_everything_is_undone_and_redone(person: People, api: Api) -> None:
    anna, project = _labelling(person, api)
    seen = _label_rightly(anna, 4)
    for text in reversed(seen):
        anna.press("z")
        anna.shows(text)
    anna.saved()
    assert api.labels_of(project, "anna") == {}
    anna.press("Control+Shift+z", "y")
    anna.saved()
    numbers = {one["text"]: one["id"] for one in api.texts(project)}
    assert set(api.labels_of(project, "anna")) == {numbers[text] for text in seen[:2]}


def test_what_was_done_before_a_reload_is_undone_too(person: People, api: Api) -> None:
    anna, project = _labelling(person, api)
    (text,) = _label_rightly(anna, 1)
    anna.saved()
    anna.page.reload()
    anna.wait_for_text()
    anna.press("Backspace")
    anna.shows(text)
    assert api.labels_of(project, "anna") == {}


def test_skip_unsure_and_none_of_these(person: People, api: Api) -> None:
    anna, project = _labelling(person, api, "strategy=order")
    first = anna.text
    anna.press("s", "u", "n", "Enter")
    anna.saved()
    said = api.labels_of(project, "anna")
    assert list(said.values())[:3] == ["skip", "unsure", "none"]
    assert isinstance(said[3], int)
    assert api.texts(project)[0]["text"] == first
    assert api.facts(project)["states"] | {"open": 0} == {
        "open": 0, "labelled": 1, "skipped": 1, "unsure": 1, "none": 1, "disputed": 0,
    }  # fmt: skip


def test_an_earlier_label_is_changed(person: People, api: Api) -> None:
    anna, project = _labelling(person, api, "strategy=order")
    first = anna.text
    anna.press("1", "1")
    anna.saved()
    anna.press("ArrowLeft", "ArrowLeft")
    anna.shows(first)
    anna.see("You said")
    anna.press("3")
    anna.saved()
    assert api.labels_of(project, "anna") == {0: 3, 1: 1}


def test_a_new_class_comes_up_while_labelling(person: People, api: Api) -> None:
    anna, project = _labelling(person, api)
    anna.press("c")
    anna.page.get_by_label("Name", exact=True).fill("weather")
    anna.press("Enter")
    anna.see("weather")
    anna.saved()
    assert list(api.labels_of(project, "anna").values()) == [4]
    anna.press("/")
    anna.page.get_by_label("Name, or part of it").fill("weath")
    anna.press("Enter")
    anna.page.wait_for_selector("dialog", state="detached")
    anna.saved()
    assert list(api.labels_of(project, "anna").values()) == [4, 4]


def test_words_are_shaded_by_the_class_looked_at(person: People, api: Api) -> None:
    anna, _ = _labelling(person, api)
    anna.page.wait_for_selector("mark.spoke")
    anna.see("what speaks for")

    def hues() -> list[str]:
        return list(anna.page.locator("mark.spoke").evaluate_all("all => all.map(one => one.style.getPropertyValue('--hue'))"))

    anna.page.locator("[data-class='1']").focus()
    first = hues()
    anna.page.locator("[data-class='2']").hover()
    second = hues()
    assert set(first).isdisjoint(second)
    assert first or second


def test_typing_is_never_blocked(person: People, api: Api) -> None:
    anna, project = _labelling(person, api)

    def slow(route) -> None:
        time.sleep(0.4)
        route.continue_()

    anna.page.route("**/labels", slow)
    seen = []
    for _ in range(6):
        seen.append(anna.text)
        anna.press("1")
    assert len(set(seen)) == 6  # each next text was there at once, though no label had been answered
    anna.saved()
    assert len(api.labels_of(project, "anna")) == 6


def test_every_way_to_choose_what_comes_next(person: People, api: Api) -> None:
    anna, _ = _labelling(person, api)
    for strategy in ("uncertain", "random", "order"):
        anna.page.get_by_label("Which text comes next").select_option(strategy)
        anna.wait_for_text()
    assert anna.text == texts()[0]
    anna.page.get_by_label("Which text comes next").select_option("search")
    anna.page.get_by_label("Label texts with these words").fill("ferry")
    anna.until("document.getElementById('text').textContent.includes('ferry')")


def test_reload_and_back_lose_nothing(person: People, api: Api) -> None:
    anna, _project = _labelling(person, api, "strategy=random")
    before = anna.text
    anna.page.reload()
    anna.wait_for_text()
    assert anna.text == before
    anna.page.get_by_role("link", name="Watch").click()
    anna.see("How good is it?")
    anna.page.go_back()
    anna.wait_for_text()
    assert anna.text == before
    assert anna.page.get_by_label("Which text comes next").input_value() == "random"


def test_single_keys_can_be_turned_off(person: People, api: Api) -> None:
    anna, project = _labelling(person, api)
    anna.press("?")
    anna.page.get_by_label("Single keys do things").uncheck()
    anna.press("Escape", "1", "2")
    before = anna.text
    anna.page.locator("[data-class='1']").focus()
    anna.press("Enter")
    anna.shows_another(before)
    anna.saved()
    assert list(api.labels_of(project, "anna").values()) == [1]
