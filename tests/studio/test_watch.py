"""Watch: an honest estimate with its interval, the learning curve, classes, and a random test set."""

from __future__ import annotations

from .person import Api, People
from .trips import CLASSES, pairs, texts, truth


def test_the_estimate_the_curve_and_the_classes(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, pairs()[:18] + texts()[18:])
    anna.open(project, "watch")
    anna.see("with a confidence of 95 %")
    anna.see("leave-one-out over 18 labels")
    anna.page.wait_for_selector(".curve .point")
    rows = anna.page.locator(".measures tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == CLASSES
    assert all("6" in row for row in rows)
    anna.page.get_by_text("As a table").click()
    anna.page.get_by_role("columnheader", name="95 % interval").wait_for()


def test_the_model_learns_after_every_label(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, texts())
    anna.open(project, "label")
    anna.wait_for_text()
    for _ in range(9):
        text = anna.text
        anna.press(str(truth(text) + 1))
        anna.shows_another(text)
    anna.page.locator(".guess").wait_for()
    anna.page.locator(".guess").click()
    anna.see("over 9 labels")
    anna.see("Up to date with your last label")
    facts = api.server.ask("GET", f"/projects/{project}/accuracy", params={"wait": True})
    shown = anna.page.locator(".figure strong").inner_text()
    assert shown == f"{round(100 * facts['estimate']['accuracy']['value'])} %"


def test_a_random_test_set_is_drawn_and_labelled_without_predictions(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(CLASSES, pairs()[:9] + texts()[9:])
    anna.open(project, "watch")
    anna.button("Draw a test set").click()
    anna.page.get_by_label("How many texts").fill("12")
    anna.page.get_by_role("dialog").get_by_role("button", name="Draw").click()
    anna.page.get_by_role("link", name="Label the test set").click()
    anna.see("the prediction is hidden")
    assert anna.page.locator(".class .share").count() == 0
    for _ in range(12):
        text = anna.text
        anna.press(str(truth(text) + 1))
        anna.shows_another(text)
    anna.saved()
    assert api.facts(project)["test_set"] == {"texts": 12, "labelled": 12}
    anna.open(project, "watch")
    anna.see("On 12 texts of the random test set")
