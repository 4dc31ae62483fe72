"""Begin: the example, a new project, files of every format, and predictions from class names alone."""

from __future__ import annotations

import io
import json

import pytest

from .person import Api, People
from .trips import CLASSES, pairs, texts


def test_the_example_is_one_click_away(person: People, api: Api) -> None:
    anna = person("anna")
    anna.button("Open the example").click()
    anna.wait_for_text()
    assert anna.page.locator(".class .note").count() == 8
    anna.press("1")
    anna.saved()
    assert list(api.labels_of(anna.project, "anna").values()) == [1]


def test_a_new_project_with_names_alone_predicts_at_once(person: People, api: Api) -> None:
    anna = person("anna")
    page = anna.page
    anna.button("New project").click()
    page.get_by_label("Name", exact=True).fill("Trips")
    page.get_by_label("Classes", exact=True).fill("food: what we ate\ntravel: how we got there\nmoney")
    anna.button("Create").click()
    page.get_by_label("Texts, one per line").fill("\n".join(texts()))
    anna.button("Add these texts").click()
    anna.see("36 texts imported")
    page.get_by_role("link", name="Label the first ones").click()
    anna.wait_for_text()
    anna.see("what we ate")
    facts = api.facts(anna.project)
    assert next((one["name"], one["note"]) for one in facts["classes"]) == ("food", "what we ate")
    assert facts["states"]["open"] == 36


def _parquet() -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    stream = io.BytesIO()
    write_table(pyarrow.table({"text": texts(), "label": [label for _, label in pairs()]}), stream)
    return stream.getvalue()


def _task(text: str, label: str) -> dict[str, object]:
    choice = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    return {"data": {"text": text}, "annotations": [{"result": [choice]}]}


FILES = {
    "trips.csv": lambda: "text,label\n" + "\n".join(f'"{text}",{label}' for text, label in pairs()),
    "trips.tsv": lambda: "text\tlabel\n" + "\n".join(f"{text}\t{label}" for text, label in pairs()),
    "trips.jsonl": lambda: "\n".join(json.dumps({"text": text, "label": label}) for text, label in pairs()),
    "trips.parquet": _parquet,
    "label-studio.json": lambda: json.dumps([_task(text, label) for text, label in pairs()]),
    "doccano.jsonl": lambda: "\n".join(json.dumps({"id": 1, "text": text, "label": [label]}) for text, label in pairs()),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_every_format(person: People, api: Api, name: str) -> None:
    made = FILES[name]()
    anna, project = person("anna"), api.project()
    anna.open(project, "data")
    content = made if isinstance(made, bytes) else made.encode()
    anna.page.locator("#file").set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})
    anna.see(f"The first rows of {name}")
    anna.button("Import").click()
    anna.see("36 texts imported, 36 of them labelled")
    assert sorted(one["name"] for one in api.facts(project)["classes"]) == sorted(CLASSES)


def test_a_column_can_be_chosen_and_labels_left_out(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(["a", "b"])
    anna.open(project, "data")
    rows = b"subject,body,label\nhello,the first text,a\nbye,the second text,b\n"
    anna.page.locator("#file").set_input_files({"name": "mail.csv", "mimeType": "text/csv", "buffer": rows})
    anna.page.get_by_label("Texts", exact=True).select_option("body")
    anna.page.get_by_label("Labels", exact=True).select_option("")
    anna.page.get_by_role("region", name="First rows").get_by_text("the second text").wait_for()
    anna.button("Import").click()
    anna.see("2 texts imported.")
    assert [one["text"] for one in api.texts(project)] == ["the first text", "the second text"]
    assert api.facts(project)["states"]["open"] == 2


def test_a_file_that_cannot_be_read_gets_a_sentence(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(["a", "b"])
    anna.lost_is_fine = True
    anna.open(project, "data")
    anna.page.locator("#file").set_input_files({"name": "x.jsonl", "mimeType": "text/plain", "buffer": b"no json at all\n"})
    anna.page.get_by_role("alert").filter(has_text="The file").wait_for()
    anna.troubles = [one for one in anna.troubles if "422" not in one]  # browsers note refused requests by themselves
    assert api.facts(project)["texts"] == 0


@pytest.mark.parametrize(("view", "said"), [("label", "No texts yet"), ("table", "No texts yet"), ("map", "No map yet")])
def test_empty_states_say_what_to_do(person: People, api: Api, view: str, said: str) -> None:
    anna = person("anna")
    anna.open(api.project(), view)
    anna.see(said)
    anna.page.locator(".empty a").click()
    anna.see("Drop a file here")


def test_class_names_are_pasted_moved_renamed_merged_and_deleted(person: People, api: Api) -> None:
    anna, project = person("anna"), api.project(["food", "travel"], pairs())
    page = anna.page
    anna.open(project, "data")
    page.get_by_label("New classes, one per line").fill("weather: rain and sun\nsnow")
    anna.button("Add these classes").click()
    anna.button("Change class weather").wait_for()
    anna.button("Move snow up").click()
    anna.until("[...document.querySelectorAll('.codebook .name')].at(-1).textContent === 'weather'")
    anna.button("Change class weather").click()
    page.get_by_label("Name", exact=True).fill("climate")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    anna.button("Change class climate").click()
    page.get_by_text("Merge or delete").click()
    page.get_by_label("Class to merge into").select_option("money")
    anna.button("Merge").click()
    anna.see("climate was merged into money")
    anna.button("Change class snow").click()
    page.get_by_text("Merge or delete").click()
    anna.button("Delete this class").click()
    anna.see("snow was deleted")
    assert [one["name"] for one in api.facts(project)["classes"]] == ["food", "travel", "money"]
    anna.button("Undo").last.click()
    anna.button("Change class snow").wait_for()
