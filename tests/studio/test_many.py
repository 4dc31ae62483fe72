"""Label many: the table and the map."""

from __future__ import annotations

from .person import Api, People
from .trips import CLASSES, texts


def test_search_select_and_give_a_class_with_one_key(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, texts())
    anna.open(project, "table")
    anna.page.get_by_label("Search texts").fill("train")
    anna.see("2 texts")
    anna.button("Select all found").click()
    anna.see("2 texts selected")
    anna.page.get_by_role("grid").focus()
    anna.press("2")
    anna.saved()
    said = api.labels_of(project, "anna")
    assert [texts()[number] for number in said] == ["The train came late.", "The train was cancelled."]
    assert set(said.values()) == {2}
    assert len(api.actions(project, "anna")) == 1
    anna.press("z")
    anna.saved()
    assert api.labels_of(project, "anna") == {}


def test_the_keyboard_alone_selects_a_range(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, texts())
    anna.open(project, "table")
    anna.page.wait_for_selector(".grid-row[data-place='5']")
    anna.page.get_by_role("grid").focus()
    anna.press("ArrowDown", "Space", "Shift+ArrowDown", "Shift+ArrowDown")
    anna.see("3 texts selected")
    anna.press("1", "3")  # the selection, then the row that the keyboard is on
    anna.saved()
    assert api.labels_of(project, "anna") == {1: 1, 2: 1, 3: 3}


def test_filters_and_order_stay_in_the_address(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, texts())
    api.label(project, [0, 3], 1, "bert")
    anna.open(project, "table")
    anna.page.get_by_label("State").select_option("labelled")
    anna.see("2 texts")
    anna.page.get_by_label("State").select_option("open")
    anna.page.get_by_label("Prediction").select_option("2")
    anna.page.get_by_label("Order").select_option("-confidence")
    anna.until("[...document.querySelectorAll('.grid-row .cell-3')].every(one => one.textContent.startsWith('travel'))")

    def shown() -> list[str]:
        return list(anna.page.locator(".grid-row .cell-3").all_inner_texts())

    sure = "[...document.querySelectorAll('.grid-row .cell-3')].map(one => parseInt(one.textContent.match(/(\\d+)\\s*%/)[1]))"
    anna.until(f"{sure}.length && {sure}.every((one, place, all) => !place || all[place - 1] >= one)")  # once it is in order
    before = shown()
    assert before
    anna.page.reload()
    anna.page.wait_for_selector(".grid-row .cell-3 .chip")
    assert shown() == before
    anna.page.get_by_label("Confidence").select_option("0.95-1")
    anna.until("rows => document.querySelectorAll('.grid-row').length < rows", len(before))


def test_thousands_of_rows_scroll_and_only_those_seen_are_there(person: People, api: Api) -> None:
    many = [f"text number {number}" for number in range(5_000)]
    anna, project = person("anna"), api.project(CLASSES, many)
    anna.open(project, "table")
    anna.see("5,000 texts")
    anna.page.get_by_role("grid").focus()
    anna.press("End")
    anna.page.locator(".grid-row").get_by_text("text number 4999").wait_for()
    assert anna.page.locator(".grid-row").count() < 60
    anna.press("Home")
    anna.page.locator(".grid-row").get_by_text("text number 0", exact=True).wait_for()


def _map(person: People, api: Api):
    anna, project = person("anna"), api.project(CLASSES, texts())
    anna.open(project, "map")
    anna.see("36 texts. Texts that lie together are alike.")
    return anna, project


def test_a_lasso_on_the_map_selects_and_a_key_labels(person: People, api: Api) -> None:
    anna, project = _map(person, api)
    box = anna.page.locator("canvas").bounding_box()
    corners = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99), (0.01, 0.02)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    anna.page.mouse.move(*places[0])
    anna.page.mouse.down()
    for place in places[1:]:
        anna.page.mouse.move(*place, steps=4)
    anna.page.mouse.up()
    anna.see("36 texts selected")
    anna.press("1")
    anna.saved()
    assert set(api.labels_of(project, "anna").values()) == {1}
    assert len(api.labels_of(project, "anna")) == 36


def test_the_map_with_the_keyboard_alone(person: People, api: Api) -> None:
    anna, project = _map(person, api)
    anna.page.locator("canvas").focus()
    anna.press("ArrowRight")
    anna.until("document.getElementById('map-text').textContent !== ''")
    first = anna.page.locator("#map-text").inner_text()
    anna.press("Space")
    anna.see("1 text selected")
    anna.page.locator("ol.picked").get_by_text(first).wait_for()
    anna.press("ArrowLeft")
    anna.until("before => document.getElementById('map-text').textContent !== before", first)
    second = anna.page.locator("#map-text").inner_text()
    anna.press("Space")
    anna.see("2 texts selected")
    anna.press("3")
    anna.saved()
    said = api.labels_of(project, "anna")
    assert {texts()[number] for number in said} == {first, second}


def test_a_click_on_the_map_selects_one_text(person: People, api: Api) -> None:
    anna, project = _map(person, api)
    found = api.server.ask("GET", f"/projects/{project}/map", params={"wait": True})
    box = anna.page.locator("canvas").bounding_box()
    far = max(range(36), key=lambda place: abs(found["x"][place]))
    x = box["width"] / 2 + found["x"][far] * (box["width"] / 2 - 20)
    y = box["height"] / 2 + found["y"][far] * (box["height"] / 2 - 20)
    anna.page.mouse.click(box["x"] + x, box["y"] + y)
    anna.see("1 text selected")
    anna.page.locator("ol.picked").get_by_text(texts()[found["id"][far]]).wait_for()
