"""Labels, marks, undo and redo, and people who differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handful.service.store.consensus import consensus

from .studio import Studio


def state(studio: Studio, path: str, text: int = 0) -> tuple[str, int | None]:
    facts = studio.text(path, text)
    return facts["state"], facts["class"]


@pytest.fixture
def path(studio: Studio) -> str:
    path = studio.project(["a", "b", "c"])
    studio.add(path, "one", "two", "three", "four")
    return path


def test_a_label_is_stored_with_its_author_and_time(studio: Studio, path: str) -> None:
    before = studio.get(path)["version"]
    answer = studio.label(path, 0, 1, name="anna")
    assert (answer["repeated"], answer["changed"]) == (False, 1)
    assert answer["version"] > before
    [label] = studio.text(path, 0)["labels"]
    assert (label["annotator"], label["mark"], label["class"], label["final"]) == ("anna", "class", 1, False)
    assert studio.get(path)["annotators"][0]["labels"] == 1
    assert state(studio, path) == ("labelled", 1)


@pytest.mark.parametrize(("mark", "expected"), [("skip", "skipped"), ("unsure", "unsure"), ("none", "none")])
def test_marks(studio: Studio, path: str, mark: str, expected: str) -> None:
    studio.post(f"{path}/labels", {"texts": [0], "mark": mark})
    assert state(studio, path) == (expected, None)
    studio.post(f"{path}/labels", {"texts": [0], "mark": "clear"})
    assert state(studio, path) == ("open", None)


def test_a_label_that_is_sent_again_is_stored_once(studio: Studio, path: str) -> None:
    first = studio.label(path, 0, 1, id="abcdefgh-1")
    studio.label(path, 0, 2)
    again = studio.label(path, 0, 1, id="abcdefgh-1")
    assert (again["action"], again["repeated"]) == (first["action"], True)
    assert state(studio, path) == ("labelled", 2)
    assert "new one" in studio.label(path, 0, 1, 409, id="abcdefgh-1", name="bob")["error"]["message"]


def test_many_texts_are_one_action(studio: Studio, path: str) -> None:
    assert studio.post(f"{path}/labels", {"texts": [0, 1, 2, 2], "class": 3})["changed"] == 3
    assert studio.get(path)["states"]["labelled"] == 3
    assert studio.post(f"{path}/undo")["changed"] == 3
    assert studio.get(path)["states"]["open"] == 4


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"texts": [9], "class": 1}, 404),
        ({"texts": [0, 9], "class": 1}, 404),
        ({"texts": [0], "class": 9}, 404),
        ({"texts": [0]}, 422),
        ({"texts": [0], "mark": "skip", "class": 1}, 422),
        ({"texts": [], "class": 1}, 422),
        ({"texts": [-1], "class": 1}, 422),
        ({"texts": [0], "class": 1, "id": "short"}, 422),
    ],
)
def test_labels_that_cannot_be_change_nothing(studio: Studio, path: str, body: dict, status: int) -> None:
    before = studio.get(path)
    studio.error("POST", f"{path}/labels", status, json=body)
    assert studio.get(path) == before


def test_undo_and_redo_without_end(studio: Studio, path: str) -> None:
    for number in (1, 2, 3):
        studio.label(path, 0, number)
    seen = []
    for _ in range(3):
        studio.post(f"{path}/undo")
        seen.append(state(studio, path)[1])
    assert seen == [2, 1, None]
    assert "nothing to undo" in studio.error("POST", f"{path}/undo", 409, json={})
    for number in (1, 2, 3):
        studio.post(f"{path}/redo")
        assert state(studio, path)[1] == number
    assert "nothing to redo" in studio.error("POST", f"{path}/redo", 409, json={})


def test_what_was_undone_cannot_be_redone_after_something_else(studio: Studio, path: str) -> None:
    studio.label(path, 0, 1)
    studio.post(f"{path}/undo")
    studio.label(path, 1, 2)
    studio.error("POST", f"{path}/redo", 409, json={})
    assert [one["state"] for one in studio.get(f"{path}/actions")] == ["done", "done", "dropped"]


def test_an_undo_that_is_sent_again_undoes_once(studio: Studio, path: str) -> None:
    studio.label(path, 0, 1)
    studio.label(path, 0, 2)
    for _ in range(2):
        studio.post(f"{path}/undo", {"id": "undo-undo-1"})
    assert state(studio, path) == ("labelled", 1)


def test_people_undo_only_what_they_did(studio: Studio, path: str) -> None:
    studio.label(path, 0, 1, name="anna")
    studio.label(path, 0, 2, name="bob")
    studio.post(f"{path}/undo", name="anna")
    assert state(studio, path) == ("labelled", 2)
    studio.error("POST", f"{path}/undo", 409, json={}, name="anna")


def test_undo_leaves_alone_what_somebody_changed_since(studio: Studio, path: str) -> None:
    studio.label(path, 0, 1, name="anna")
    studio.post(f"{path}/classes/1/merge", {"into": 2}, name="bob")
    assert studio.post(f"{path}/undo", name="anna")["changed"] == 0
    assert state(studio, path) == ("labelled", 2)


def test_undo_never_brings_back_a_class_that_is_gone(studio: Studio, path: str) -> None:
    studio.label(path, 0, 1, name="anna")
    studio.label(path, 0, 2, name="anna")
    studio.ask("DELETE", f"{path}/classes/1", name="bob")
    assert "by now" in studio.error("POST", f"{path}/undo", 409, json={}, name="anna")
    assert state(studio, path) == ("labelled", 2)


def test_the_history_of_a_text(studio: Studio, path: str) -> None:
    studio.label(path, 0, 1, name="anna")
    studio.label(path, 0, 2, name="bob")
    studio.post(f"{path}/undo", name="bob")
    history = studio.text(path, 0)["history"]
    assert [(one["annotator"], one["class"], one["undone"]) for one in history] == [("anna", 1, False), ("bob", 2, True)]


def test_people_who_differ_and_a_final_label(studio: Studio, path: str) -> None:
    studio.label(path, 0, 1, name="anna")
    studio.label(path, 0, 2, name="bob")
    assert state(studio, path) == ("disputed", None)
    studio.label(path, 0, 2, name="eve")
    assert state(studio, path) == ("disputed", 2)
    assert [one["id"] for one in studio.get(f"{path}/disagreements")["texts"]] == [0]
    studio.label(path, 0, 1, name="carl", final=True)
    assert state(studio, path) == ("labelled", 1)
    assert studio.get(f"{path}/disagreements")["total"] == 0


def label(mark: str, number: int | None, final: bool = False, made: float = 0.0) -> Any:
    return SimpleNamespace(mark=mark, label=number, final=final, made=made)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([], ("open", None)),
        ([label("skip", None)], ("skipped", None)),
        ([label("skip", None), label("unsure", None)], ("unsure", None)),
        ([label("unsure", None), label("class", 1)], ("labelled", 1)),
        ([label("class", 1), label("none", None)], ("disputed", None)),
        ([label("class", 1), label("class", 1), label("none", None)], ("disputed", 1)),
        ([label("class", 1), label("class", 2, True, 1.0), label("class", 3, True, 2.0)], ("labelled", 3)),
        ([label("none", None), label("none", None)], ("none", None)),
    ],
)
def test_consensus(labels: list, expected: tuple) -> None:
    assert consensus(labels) == expected


steps = st.lists(st.tuples(st.sampled_from(["label", "undo", "redo"]), st.integers(0, 2), st.integers(1, 3)), max_size=12)


@settings(max_examples=15, deadline=None, database=None)
@given(steps)
def test_undo_and_redo_act_like_an_editor(studio: Studio, steps: list) -> None:
    """Against a model of an editor: a list of states and a place in it."""
    path = studio.project(["a", "b", "c"])
    studio.add(path, "one", "two", "three")
    history: list[dict[int, int]] = [{}]
    place = 0
    for kind, text, number in steps:
        if kind == "label":
            studio.label(path, text, number)
            history = [*history[: place + 1], {**history[place], text: number}]
            place += 1
        else:
            possible = place > 0 if kind == "undo" else place < len(history) - 1
            studio.post(f"{path}/{kind}", status=200 if possible else 409)
            place += (1 if kind == "redo" else -1) * possible
        found = {one["id"]: one["class"] for one in studio.get(f"{path}/texts")["texts"] if one["class"] is not None}
        assert found == history[place]
