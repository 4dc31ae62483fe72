"""Together: two people at once under their own names, the same text for both, agreement and disagreements."""

from __future__ import annotations

from .person import Api, People
from .trips import CLASSES, texts, truth


def test_two_people_at_once_get_different_texts(person: People, api: Api) -> None:
    project = api.project(CLASSES, texts())
    anna, bert = person("anna"), person("bert")
    for one in (anna, bert):
        one.open(project, "label")
        one.wait_for_text()
    for _ in range(5):
        for one in (anna, bert):
            text = one.text
            one.press(str(truth(text) + 1))
            one.shows_another(text)
    for one in (anna, bert):
        one.saved()
    first, second = api.labels_of(project, "anna"), api.labels_of(project, "bert")
    assert (len(first), len(second)) == (5, 5)
    assert not first.keys() & second.keys()
    anna.open(project, "together")
    anna.page.get_by_role("rowheader", name="bert").wait_for()


def test_a_name_is_given_in_the_page(person: People, api: Api) -> None:
    project, zoë = api.project(CLASSES, texts()), person()
    zoë.open(project, "together")
    zoë.button("Say your name").click()
    zoë.page.get_by_label("Name", exact=True).fill("Zoë 李")
    zoë.press("Enter")
    zoë.see("You label as Zoë 李")
    zoë.open(project, "label")
    zoë.wait_for_text()
    zoë.press("1")
    zoë.saved()
    assert len(api.labels_of(project, "Zoë 李")) == 1


def test_the_same_texts_for_two_agreement_and_a_disagreement_settled(person: People, api: Api) -> None:
    project = api.project(CLASSES, texts())
    for number in range(6):
        api.label(project, [number], truth(texts()[number]) + 1, "bert")
    anna = person("anna")
    anna.open(project, "together")
    anna.see("No text has labels of two people yet")
    anna.page.get_by_role("link", name="Label what others labelled").click()
    for place in range(6):
        anna.page.wait_for_selector(".labelling:not(.nothing) .text")
        text = anna.text
        anna.press("3" if place == 0 else str(truth(text) + 1))
        anna.shows_another(text)
    anna.saved()
    assert sorted(api.labels_of(project, "anna")) == list(range(6))
    differing = api.server.ask("GET", f"/projects/{project}/disagreements")["total"]
    anna.open(project, "together")
    anna.see("Krippendorff's alpha")
    facts = api.server.ask("GET", f"/projects/{project}/agreement")
    row = anna.page.get_by_role("row", name="anna and bert").inner_text()
    assert f"{facts['pairs'][0]['cohen_kappa']:.2f}" in row
    assert differing == anna.page.locator(".suspect").count() == 1
    anna.press("1")
    anna.saved()
    anna.see("Nobody differs on any text")
    assert api.facts(project)["states"]["disputed"] == 0


def test_a_label_of_another_person_is_seen_at_once(person: People, api: Api) -> None:
    project, anna = api.project(CLASSES, texts()), person("anna")
    anna.open(project, "table")
    anna.page.wait_for_selector(".grid-row")
    api.label(project, [0], 2, "bert")
    anna.page.locator(".grid-row[data-place='0'] .cell-2").get_by_text("travel").wait_for()
