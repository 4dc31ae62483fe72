"""Actions of people: labels and changes of classes. Each is done once, and its author can undo and redo it.

An action keeps what it changed, label by label and class by class. Undoing restores what was there before, except where
somebody has changed it since.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select, tuple_, update

from ..errors import ConflictError, NotFoundError
from .classes import check_classes, class_fields, find_class, insert_class, set_class
from .consensus import chunks, refresh_states
from .names import Mark
from .projects import ProjectRow, bump, read_row
from .tables import ACTIONS, CHANGES, LABELS, TEXTS

# Statements of every label, built once: building them takes longer than running them. Some names of parameters have a mark,
# since those of columns are taken.
_MINE = ACTIONS.c.project == bindparam("project_"), ACTIONS.c.annotator == bindparam("annotator_")
DROP_UNDONE = update(ACTIONS).where(*_MINE, ACTIONS.c.state == "undone").values(state="dropped")
ADD_ACTION = insert(ACTIONS).returning(ACTIONS.c.id)
ACTION_OF_CLIENT = select(ACTIONS).where(ACTIONS.c.project == bindparam("project"), ACTIONS.c.client == bindparam("client"))
_KEYS = tuple_(LABELS.c.text, LABELS.c.annotator).in_(bindparam("keys", expanding=True))
LABELS_OF_KEYS = select(LABELS).where(LABELS.c.project == bindparam("project"), _KEYS)
DELETE_LABELS = delete(LABELS).where(LABELS.c.project == bindparam("project"), _KEYS)
_THESE = TEXTS.c.project == bindparam("project"), TEXTS.c.number.in_(bindparam("numbers", expanding=True))
PRESENT = select(TEXTS.c.number).where(*_THESE)
COUNT_VISIBLE = select(func.count()).select_from(TEXTS).where(*_THESE, TEXTS.c.number < bindparam("visible"))


class LabelValue(NamedTuple):
    """A label as somebody gave it: a mark, the number of a class if it is one, and whether it settles a disagreement."""

    mark: Mark
    label: int | None
    final: bool


@dataclass(frozen=True)
class Change:
    """The label of one person for one text, before and after an action; None where there is none."""

    text: int
    annotator: str
    before: LabelValue | None
    after: LabelValue | None


@dataclass(frozen=True)
class ClassChange:
    """Fields of a class before and after an action."""

    number: int
    before: dict[str, Any]
    after: dict[str, Any]


@dataclass(frozen=True)
class ActionResult:
    """An action that is stored: whether it was stored before, how many labels it changed, and the version since."""

    action: int
    repeated: bool
    changed: int
    version: int


# Doing


def label_texts(
    connection: Connection, project: ProjectRow, annotator: str, client: str, texts: Sequence[int], value: LabelValue | None
) -> ActionResult:
    """Give texts a label of this person, or take it away (None)."""
    known = _repeated(connection, project.id, annotator, client)
    if known:
        return known
    if value and value.label is not None:
        find_class(connection, project.id, value.label)
    numbers = sorted(set(texts))
    _check_texts(connection, project, numbers)
    before = _labels_of(connection, project.id, [(number, annotator) for number in numbers])
    changes = [Change(number, annotator, before.get((number, annotator)), value) for number in numbers]
    return _perform(connection, project.id, annotator, client, "label", changes, [])


def add_class(
    connection: Connection, project: ProjectRow, annotator: str, client: str, name: str, note: str, words: str, most: int
) -> tuple[ActionResult, int]:
    """Add a class; gives its number too."""
    known = _repeated(connection, project.id, annotator, client)
    if known:
        return known, int(_detail(connection, known.action)["classes"][0]["number"])
    number = insert_class(connection, project.id, name, note, words, "deleted", most)
    change = ClassChange(number, {"state": "deleted"}, {"state": "live"})
    return _perform(connection, project.id, annotator, client, "class", [], [change]), number


def edit_class(
    connection: Connection, project: ProjectRow, annotator: str, client: str, number: int, values: dict[str, Any]
) -> ActionResult:
    """Rename a class, or change its note, its words or its position."""
    known = _repeated(connection, project.id, annotator, client)
    if known:
        return known
    find_class(connection, project.id, number)
    fields = class_fields(connection, project.id, number)
    change = ClassChange(number, {name: fields[name] for name in values}, values)
    return _perform(connection, project.id, annotator, client, "class", [], [change])


def remove_class(
    connection: Connection, project: ProjectRow, annotator: str, client: str, number: int, into: int | None = None
) -> ActionResult:
    """Delete a class with its labels, or merge it into another one, which gets them."""
    known = _repeated(connection, project.id, annotator, client)
    if known:
        return known
    for one in (number, *([] if into is None else [into])):
        find_class(connection, project.id, one)
    if number == into:
        raise ConflictError("A class cannot be merged into itself: choose another one.")
    query = select(LABELS).where(LABELS.c.project == project.id, LABELS.c.label == number)
    after = None if into is None else LabelValue("class", into, False)
    changes = [
        Change(row.text, row.annotator, LabelValue(row.mark, row.label, row.final), after and after._replace(final=row.final))
        for row in connection.execute(query)
    ]
    change = ClassChange(number, {"state": "live"}, {"state": "deleted"})
    return _perform(connection, project.id, annotator, client, "class", changes, [change])


def _perform(
    connection: Connection,
    project: str,
    annotator: str,
    client: str,
    kind: str,
    changes: Sequence[Change],
    classes: Sequence[ClassChange],
) -> ActionResult:
    """Make changes and keep them as an action; what was undone before can no longer be redone."""
    connection.execute(DROP_UNDONE, {"project_": project, "annotator_": annotator})
    detail = {"classes": [vars(change) for change in classes], "changed": len(changes)}
    action = _insert(connection, project, annotator, client, kind, detail)
    for some in chunks(changes):
        connection.execute(insert(CHANGES), [_row(action, change) for change in some])
    _write(connection, project, changes, [(one.number, one.after) for one in classes])
    if classes:
        check_classes(connection, project)
    return ActionResult(action, False, len(changes), bump(connection, project))


def _write(
    connection: Connection, project: str, changes: Sequence[Change], classes: Iterable[tuple[int, dict[str, Any]]]
) -> None:
    """Write labels (the `after` of changes) and fields of classes."""
    made = time.time()
    for some in chunks(changes):
        keys = [(change.text, change.annotator) for change in some]
        connection.execute(DELETE_LABELS, {"project": project, "keys": keys})
        fresh = [
            {"project": project, "text": one.text, "annotator": one.annotator, "made": made, **one.after._asdict()}
            for one in some
            if one.after
        ]
        if fresh:
            connection.execute(insert(LABELS), fresh)
    for number, values in classes:
        set_class(connection, project, number, values)
    refresh_states(connection, project, [change.text for change in changes])


# Undoing


def undo(connection: Connection, project: ProjectRow, annotator: str, client: str) -> ActionResult:
    """Undo the last action of this person that is done."""
    return _go_back(connection, project.id, annotator, client, forth=False)


def redo(connection: Connection, project: ProjectRow, annotator: str, client: str) -> ActionResult:
    """Do again what this person undid last."""
    return _go_back(connection, project.id, annotator, client, forth=True)


def _go_back(connection: Connection, project: str, annotator: str, client: str, forth: bool) -> ActionResult:
    known = _repeated(connection, project, annotator, client)
    if known:
        return known
    mine = (ACTIONS.c.project == project) & (ACTIONS.c.annotator == annotator) & ACTIONS.c.kind.in_(["label", "class"])
    query = select(ACTIONS).where(mine, ACTIONS.c.state == ("undone" if forth else "done"))
    target = connection.execute(query.order_by(ACTIONS.c.id if forth else ACTIONS.c.id.desc()).limit(1)).first()
    if target is None:
        raise ConflictError("There is nothing to redo." if forth else "There is nothing to undo.")
    classes = json.loads(target.detail)["classes"]
    changes = _still_true(connection, project, _changes(connection, target.id), forth)
    _write(connection, project, changes, [(one["number"], one["after" if forth else "before"]) for one in classes])
    check_classes(connection, project)
    connection.execute(update(ACTIONS).where(ACTIONS.c.id == target.id).values(state="done" if forth else "undone"))
    detail = {"action": target.id, "changed": len(changes), "texts": [change.text for change in changes[:100]]}
    action = _insert(connection, project, annotator, client, "redo" if forth else "undo", detail)
    return ActionResult(action, False, len(changes), bump(connection, project))


def _still_true(connection: Connection, project: str, changes: Sequence[Change], forth: bool) -> list[Change]:
    """The changes in the wanted direction, without those of labels that are different by now, or of texts that are gone."""
    now = _labels_of(connection, project, [(change.text, change.annotator) for change in changes])
    there = _present(connection, project, [change.text for change in changes])
    turned = changes if forth else [Change(one.text, one.annotator, one.after, one.before) for one in changes]
    return [one for one in turned if one.text in there and now.get((one.text, one.annotator)) == one.before]


def own_actions(connection: Connection, project: str, annotator: str, limit: int) -> list[dict[str, Any]]:
    """The latest actions of a person, the last one first."""
    query = select(ACTIONS).where(ACTIONS.c.project == project, ACTIONS.c.annotator == annotator)
    rows = connection.execute(query.order_by(ACTIONS.c.id.desc()).limit(limit)).all()
    return [
        {"id": row.id, "client": row.client, "kind": row.kind, "state": row.state, "made": row.made, **json.loads(row.detail)}
        for row in rows
    ]


def text_history(connection: Connection, project: str, text: int) -> list[dict[str, Any]]:
    """Who gave a text which label, and when, from the first on; imported labels have no action."""
    joined = CHANGES.join(ACTIONS, CHANGES.c.action == ACTIONS.c.id)
    query = select(CHANGES, ACTIONS.c.made, ACTIONS.c.state).select_from(joined)
    rows = connection.execute(query.where(ACTIONS.c.project == project, CHANGES.c.text == text).order_by(ACTIONS.c.id))
    return [
        {
            "annotator": row.annotator,
            "made": row.made,
            "undone": row.state != "done",
            "mark": row.mark_after,
            "class": row.label_after,
        }
        for row in rows
    ]


# Reading and writing actions


def _insert(connection: Connection, project: str, annotator: str, client: str, kind: str, detail: dict[str, Any]) -> int:
    values = {"project": project, "client": client, "annotator": annotator, "kind": kind, "made": time.time()}
    return int(connection.execute(ADD_ACTION, {**values, "detail": json.dumps(detail), "state": "done"}).scalar_one())


def _repeated(connection: Connection, project: str, annotator: str, client: str) -> ActionResult | None:
    """The result of an action that was sent before, under the same name."""
    row = connection.execute(ACTION_OF_CLIENT, {"project": project, "client": client}).first()
    if row is None:
        return None
    if row.annotator != annotator:
        raise ConflictError("Somebody else has used this id for an action: send a new one.")
    return ActionResult(row.id, True, json.loads(row.detail)["changed"], read_row(connection, project).version)


def _detail(connection: Connection, action: int) -> Any:
    return json.loads(connection.execute(select(ACTIONS.c.detail).where(ACTIONS.c.id == action)).scalar_one())


def _row(action: int, change: Change) -> dict[str, Any]:
    before, after = change.before, change.after
    return {
        "action": action,
        "text": change.text,
        "annotator": change.annotator,
        "mark_before": before and before.mark,
        "label_before": before and before.label,
        "final_before": before and before.final,
        "mark_after": after and after.mark,
        "label_after": after and after.label,
        "final_after": after and after.final,
    }


def _changes(connection: Connection, action: int) -> list[Change]:
    rows = connection.execute(select(CHANGES).where(CHANGES.c.action == action)).all()
    return [
        Change(
            row.text,
            row.annotator,
            LabelValue(row.mark_before, row.label_before, row.final_before) if row.mark_before else None,
            LabelValue(row.mark_after, row.label_after, row.final_after) if row.mark_after else None,
        )
        for row in rows
    ]


def _labels_of(connection: Connection, project: str, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], LabelValue]:
    found = {}
    for some in chunks(keys):
        for row in connection.execute(LABELS_OF_KEYS, {"project": project, "keys": some}):
            found[row.text, row.annotator] = LabelValue(row.mark, row.label, row.final)
    return found


def _present(connection: Connection, project: str, numbers: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for some in chunks(numbers):
        found.update(connection.scalars(PRESENT, {"project": project, "numbers": some}))
    return found


def _check_texts(connection: Connection, project: ProjectRow, numbers: Sequence[int]) -> None:
    count = 0
    for some in chunks(numbers):
        given = {"project": project.id, "numbers": some, "visible": project.visible}
        count += connection.scalar(COUNT_VISIBLE, given) or 0
    if count != len(numbers):
        missing = len(numbers) - count
        raise NotFoundError(f"Found {count} of {len(numbers)} texts in this project ({missing} missing): reload the list.")
