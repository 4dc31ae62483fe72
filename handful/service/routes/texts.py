"""Texts, labels and actions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from sqlalchemy import Connection

from ...utils.functional import Ints
from ..context import Context, Service, Someone
from ..errors import ConflictError, InvalidError, TooLargeError
from ..files.importing import import_rows
from ..files.uploads import UploadedRow
from ..learning.computed import Kept, key_of
from ..learning.snapshot import Snapshot
from ..schemas import (
    Act,
    ActionFacts,
    LabelFacts,
    LabelRequest,
    Number,
    Prediction,
    ProjectId,
    TextFacts,
    TextPage,
    TextsRequest,
)
from ..store.actions import LabelValue, label_texts, own_actions, redo, text_history, undo
from ..store.names import TextState
from ..store.projects import ProjectRow, bump, find_project, new_id
from ..store.texts import (
    TextFilter,
    count_texts,
    delete_text,
    find_numbers,
    labels_by_text,
    missing,
    page_of_texts,
    recently_labelled,
    texts_by_number,
)
from .projects import stored

router = APIRouter()
Sort = Literal["id", "-id", "confidence", "-confidence", "recent"]
Probability = Annotated[float | None, Query(ge=0, le=1)]


def text_facts(connection: Connection, row: ProjectRow, numbers: Sequence[int], kept: Kept[Snapshot] | None) -> list[TextFacts]:
    """Texts with their labels and predictions, in the order of the numbers."""
    texts = texts_by_number(connection, row, numbers)
    labels = labels_by_text(connection, row.id, [text.number for text in texts])
    found = predictions(kept, [text.number for text in texts])
    return [
        TextFacts(
            id=text.number,
            text=text.text,
            state=text.state,
            label=text.label,
            test=text.test,
            extra=json.loads(text.extra) if text.extra else None,
            labels=[
                LabelFacts(annotator=one.annotator, mark=one.mark, label=one.label, final=one.final, made=one.made)
                for one in labels[text.number]
            ],
            prediction=found.get(text.number),
        )
        for text in texts
    ]


def predictions(kept: Kept[Snapshot] | None, numbers: list[int]) -> dict[int, Prediction]:
    """The predictions of some texts, as far as they are known."""
    if kept is None or not numbers:
        return {}
    shot = kept.value
    rows, known = shot.places(np.array(numbers))
    return {
        numbers[place]: Prediction(
            label=int(shot.classes[row]), probability=float(shot.probabilities[row]), margin=float(shot.margins[row])
        )
        for row, place in zip(rows.tolist(), known.tolist(), strict=True)
    }


@router.get("/projects/{project}/texts", tags=["texts"])
def find(
    service: Context,
    person: Someone,
    project: ProjectId,
    search: Annotated[str, Query(max_length=1_000, pattern="^[^\\x00]*$")] = "",
    state: Annotated[list[TextState] | None, Query()] = None,
    label: Annotated[Number | None, Query(alias="class")] = None,
    predicted: Number | None = None,
    least: Annotated[Probability, Query(alias="min_confidence")] = None,
    most: Annotated[Probability, Query(alias="max_confidence")] = None,
    annotator: Annotated[str | None, Query(max_length=200, pattern="^[^\\x00]*$")] = None,
    test: bool | None = None,
    ids: Annotated[list[Number] | None, Query(alias="id", max_length=1_000, description="Only these texts.")] = None,
    sort: Sort = "id",
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
    wait: Annotated[bool, Query(description="Wait for predictions of the present model.")] = False,
) -> TextPage:
    """A page of texts: by words, state, class, annotator, predicted class and confidence, sorted by one of them."""
    row = service.project(person, project)
    wanted = TextFilter(search, tuple(state or ()), label, annotator, None, test)
    kept = _snapshot(service, row, wait)
    by_prediction = predicted is not None or least is not None or most is not None
    with service.database.reading() as connection:
        if ids is not None:
            facts = text_facts(connection, row, ids, kept)
            return TextPage(total=len(facts), texts=facts, prediction_version=kept.key[0] if kept else None)
        if by_prediction or sort.endswith("confidence"):
            numbers = _by_prediction(connection, row, wanted, kept, (predicted, least, most), sort)
            total, numbers = len(numbers), numbers[offset : offset + limit]
        else:
            total = count_texts(connection, row, wanted)
            if sort == "recent":
                numbers = recently_labelled(connection, row, wanted, offset, limit)
            else:
                numbers = page_of_texts(connection, row, wanted, sort == "-id", offset, limit)
        facts = text_facts(connection, row, numbers, kept)
    return TextPage(total=total, texts=facts, prediction_version=kept.key[0] if kept else None)


def _snapshot(service: Service, row: ProjectRow, wait: bool) -> Kept[Snapshot] | None:
    """The last predictions, or those of the present model; None while there is nothing to predict."""
    snapshots = service.brain.snapshots
    try:
        return snapshots.current(row.id, key_of(row)) if wait else snapshots.latest(row.id, key_of(row))
    except ConflictError:
        return None


def _by_prediction(
    connection: Connection,
    row: ProjectRow,
    wanted: TextFilter,
    kept: Kept[Snapshot] | None,
    limits: tuple[int | None, float | None, float | None],
    sort: Sort,
) -> list[int]:
    """The numbers of texts with such predictions, sorted."""
    if kept is None:
        raise ConflictError("There are no predictions yet: add two classes, and wait a moment.")
    shot, (predicted, least, most) = kept.value, limits
    chosen = np.ones(len(shot.numbers), bool)
    if predicted is not None:
        chosen &= shot.classes == predicted
    if least is not None:
        chosen &= shot.probabilities >= least
    if most is not None:
        chosen &= shot.probabilities <= most
    if not wanted.is_empty:
        chosen &= np.isin(shot.numbers, np.array(find_numbers(connection, row, wanted), np.int64))
    rows: Ints = np.flatnonzero(chosen)
    if sort.endswith("confidence"):
        order = np.argsort(shot.probabilities[rows], kind="stable")
        rows = rows[order if sort == "confidence" else order[::-1]]
    found: list[int] = shot.numbers[rows].tolist()
    return found[::-1] if sort == "-id" else found


@router.post("/projects/{project}/texts", status_code=201, tags=["texts"])
def add(service: Context, person: Someone, project: ProjectId, body: TextsRequest) -> dict[str, Any]:
    """Add some texts; a file with many is imported."""
    limits = service.settings.limits
    check_texts(service, [one.text for one in body.texts])
    if any(not one.text.strip() for one in body.texts):
        raise InvalidError("A text is empty: remove it.")
    service.project(person, project, "admin")
    rows = [UploadedRow(one.text, one.label, one.extra or {}) for one in body.texts]
    facts = import_rows(service.database, limits, project, new_id(), rows, lambda: None)
    after = service.project(person, project)
    service.brain.learn(project, key_of(after))
    return facts | {"first": after.visible - facts["texts"]}


def check_texts(service: Service, texts: Sequence[str]) -> None:
    """Refuse more or longer texts than a request may have."""
    limits = service.settings.limits
    if len(texts) > limits.texts_per_request:
        raise TooLargeError(f"The request has {len(texts):,} texts, and the limit is {limits.texts_per_request:,}: send fewer.")
    longest = max(map(len, texts), default=0)
    if longest > limits.characters_per_text:
        raise InvalidError(f"A text has {longest:,} characters, and the limit is {limits.characters_per_text:,}: shorten it.")


@router.get("/projects/{project}/texts/{number}", tags=["texts"])
def read(service: Context, person: Someone, project: ProjectId, number: Number) -> dict[str, Any]:
    """A text with its labels, and who gave which label when."""
    row = service.project(person, project)
    kept = service.brain.snapshots.kept(project)
    with service.database.reading() as connection:
        found = text_facts(connection, row, [number], kept)
        if not found:
            raise missing(number)
        return found[0].model_dump(by_alias=True) | {"history": text_history(connection, project, number)}


@router.delete("/projects/{project}/texts/{number}", status_code=204, tags=["texts"])
def remove(service: Context, person: Someone, project: ProjectId, number: Number) -> None:
    """Remove a text and its labels for good."""
    with service.changing(person, project, "admin") as (connection, row):
        delete_text(connection, row, number)
        bump(connection, project)


# Labels


@router.post("/projects/{project}/labels", tags=["labels"])
def label(service: Context, person: Someone, project: ProjectId, body: LabelRequest) -> ActionFacts:
    """Give texts a label under your name. When this is answered it is durable; the same id is never stored twice."""
    if len(body.texts) > service.settings.limits.labels_per_action:
        raise TooLargeError(f"At most {service.settings.limits.labels_per_action:,} texts get a label at once: select fewer.")
    if (body.mark == "class") != (body.label is not None):
        raise InvalidError("Give a `class` with the mark class, and none with any other mark.")
    value = None if body.mark == "clear" else LabelValue(body.mark, body.label, body.final)
    with service.changing(person, project, "label") as (connection, row):
        result = label_texts(connection, row, person.annotator, body.id, body.texts, value)
    return stored(service, project, row.visible, result)


@router.post("/projects/{project}/undo", tags=["labels"])
def undo_last(service: Context, person: Someone, project: ProjectId, body: Act) -> ActionFacts:
    """Undo your last action: labels, or a change of a class."""
    with service.changing(person, project, "label") as (connection, row):
        result = undo(connection, row, person.annotator, body.id)
    return stored(service, project, row.visible, result)


@router.post("/projects/{project}/redo", tags=["labels"])
def redo_last(service: Context, person: Someone, project: ProjectId, body: Act) -> ActionFacts:
    """Do again what you undid last."""
    with service.changing(person, project, "label") as (connection, row):
        result = redo(connection, row, person.annotator, body.id)
    return stored(service, project, row.visible, result)


@router.get("/projects/{project}/actions", tags=["labels"])
def actions(
    service: Context, person: Someone, project: ProjectId, limit: Annotated[int, Query(ge=1, le=1_000)] = 50
) -> list[dict[str, Any]]:
    """Your latest actions, the last one first, with whether each is undone."""
    with service.database.reading() as connection:
        row = find_project(connection, person, project, "read")
        return own_actions(connection, row.id, person.annotator, limit)
