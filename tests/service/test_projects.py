"""Projects and classes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handful.service.settings import Limits

from .studio import Studio


def names(studio: Studio, path: str) -> list[str]:
    return [one["name"] for one in studio.get(f"{path}/classes")]


def test_a_project_is_created_read_changed_and_deleted(studio: Studio) -> None:
    path = studio.project(["food", "travel"], name="  Triage ")
    facts = studio.get(path)
    assert (facts["name"], facts["encoder"], facts["texts"], facts["role"]) == ("Triage", "words", 0, "admin")
    assert [one["number"] for one in facts["classes"]] == [1, 2]
    assert studio.ask("PATCH", path, json={"name": "Inbox", "use_class_names": False})["name"] == "Inbox"
    assert studio.get("projects")[0]["name"] == "Inbox"
    assert studio.request("DELETE", path).status_code == 204
    assert path not in [f"projects/{one['id']}" for one in studio.get("projects")]
    assert "no such project" in studio.error("GET", path, 404)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "body.name"),
        ({"name": " "}, "body.name"),
        ({"name": "x", "colour": 1}, "body.colour"),
        ({"name": "x" * 201}, "body.name"),
        ({"name": "a\0b"}, "body.name"),
        ({"name": "x", "encoder": "none"}, "encoder"),
        ({"name": "x", "language": "xx"}, "xx"),
        ({"name": "x", "classes": [{"name": "a"}, {"name": "a"}]}, "'a'"),
    ],
)
def test_a_project_that_cannot_be_is_refused_with_its_place(studio: Studio, body: dict, where: str) -> None:
    before = studio.get("projects")
    answer = studio.request("POST", "projects", json=body)
    assert answer.status_code in (409, 422)
    assert where in answer.text
    assert studio.get("projects") == before


def test_classes_are_added_renamed_moved_merged_and_deleted(studio: Studio) -> None:
    path = studio.labelled(2)
    food, travel, money = (one["number"] for one in studio.get(f"{path}/classes"))
    number = studio.post(f"{path}/classes", {"name": "late", "note": "anything that came late"}, 201)["number"]
    studio.ask("PATCH", f"{path}/classes/{number}", json={"name": "delay", "position": 0})
    assert names(studio, path) == ["delay", "food", "travel", "money"]
    assert studio.post(f"{path}/classes/{travel}/merge", {"into": number})["changed"] == 2
    assert studio.get(path)["classes"][0]["texts"] == 2
    assert studio.ask("DELETE", f"{path}/classes/{food}")["changed"] == 2
    assert studio.get(path)["states"]["open"] == 2
    assert names(studio, path) == ["delay", "money"]
    assert "no class" in studio.error("PATCH", f"{path}/classes/{food}", 404, json={"name": "x"})
    assert "itself" in studio.error("POST", f"{path}/classes/{money}/merge", 409, json={"into": money})


def test_changes_of_classes_are_undone_and_redone(studio: Studio) -> None:
    path = studio.labelled(2)
    food, travel, _ = (one["number"] for one in studio.get(f"{path}/classes"))
    studio.post(f"{path}/classes/{food}/merge", {"into": travel})
    studio.ask("PATCH", f"{path}/classes/{travel}", json={"name": "both"})
    assert [(one["name"], one["texts"]) for one in studio.get(f"{path}/classes")] == [("both", 4), ("money", 2)]
    studio.post(f"{path}/undo")
    studio.post(f"{path}/undo")
    assert [(one["name"], one["texts"]) for one in studio.get(f"{path}/classes")] == [("food", 2), ("travel", 2), ("money", 2)]
    studio.post(f"{path}/redo")
    assert names(studio, path) == ["travel", "money"]


def test_a_class_that_others_use_cannot_be_undone_away(studio: Studio) -> None:
    path = studio.project(["a"])
    studio.add(path, "hello")
    number = studio.post(f"{path}/classes", {"name": "b"}, 201, name="anna")["number"]
    studio.label(path, 0, number, name="bob")
    assert "delete or merge" in studio.error("POST", f"{path}/undo", 409, json={}, name="anna")
    assert names(studio, path) == ["a", "b"]


def test_two_classes_never_have_one_name(studio: Studio) -> None:
    path = studio.project(["a", "b"])
    for method, route in (("POST", "classes"), ("PATCH", "classes/2")):
        assert "another name" in studio.error(method, f"{path}/{route}", 409, json={"name": "a"})


def test_a_class_that_is_sent_again_is_added_once(studio: Studio) -> None:
    path = studio.project()
    one, other = (studio.post(f"{path}/classes", {"id": "same-id-1", "name": "a"}, 201) for _ in range(2))
    assert (one["number"], one["repeated"], other["number"], other["repeated"]) == (1, False, 1, True)


def test_limits_of_projects_and_classes(make_studio: Callable[..., Studio]) -> None:
    studio = make_studio(Limits(projects=2, classes=2))
    path = studio.project(["a", "b"])
    assert "limit" in studio.error("POST", f"{path}/classes", 413, json={"name": "c"})
    studio.project()
    assert "delete one first" in studio.error("POST", "projects", 413, json={"name": "third"})


def test_the_example_project_is_ready_to_label(studio: Studio) -> None:
    facts = studio.post("projects/example", status=201)
    assert len(facts["classes"]) == 8
    assert all(one["note"] for one in facts["classes"])
    assert facts["states"] == {"open": 152, "labelled": 8, "skipped": 0, "unsure": 0, "none": 0, "disputed": 0}


def test_a_store_that_is_opened_again_has_everything(make_studio: Callable[..., Studio]) -> None:
    first = make_studio()
    path = first.labelled(2)
    first.label(path, 0, 2)
    before = first.get(path)
    first.close()
    assert make_studio().get(path) == before
