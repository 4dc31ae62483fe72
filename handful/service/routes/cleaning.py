"""Probable mistakes, and agreement between people."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy import Connection, delete, insert, select

from ..context import Context, Service, Someone
from ..learning import cleaning
from ..learning.agreement import agreement_facts
from ..learning.computed import key_of
from ..schemas import DismissalRequest, ProjectId
from ..store.projects import ProjectRow
from ..store.tables import DISMISSALS, LABELS
from ..store.texts import TextFilter, count_texts, page_of_texts
from .texts import text_facts

router = APIRouter()
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/projects/{project}/cleaning/{kind}", tags=["cleaning"])
def probable_mistakes(
    service: Context,
    person: Someone,
    project: ProjectId,
    kind: cleaning.Kind,
    offset: Offset = 0,
    limit: Limit = 50,
    wait: bool = False,
) -> dict[str, Any]:
    """Likely mistakes (`mistakes`), texts with the same words and different classes (`contradictions`), or near-`duplicates`.

    `current` is false while a newer state is being computed.
    """
    row = service.project(person, project)
    found, current = _found(service, row, kind, wait)
    with service.database.reading() as connection:
        gone = _dismissed(connection, project, kind)
        items = [one for one in found if one["item"] not in gone]
        page = items[offset : offset + limit]
        numbers = sorted({number for one in page for number in one["texts"]})
        texts = text_facts(connection, row, numbers, service.brain.snapshots.kept(project))
    known = {one.id: one.model_dump(by_alias=True) for one in texts}
    return {"total": len(items), "dismissed": len(found) - len(items), "current": current, "items": page, "texts": known}


def _found(service: Service, row: ProjectRow, kind: cleaning.Kind, wait: bool) -> tuple[list[dict[str, Any]], bool]:
    if kind == "contradictions":
        with service.database.reading() as connection:
            return cleaning.contradictions(connection, row), True
    if kind == "mistakes":
        made = service.brain.validations
        kept = made.current(row.id, key_of(row)) if wait else made.latest(row.id, key_of(row))
        return cleaning.likely_mistakes(kept.value) if kept and kept.value else [], bool(kept and kept.key[0] >= row.version)
    service.brain.model(row).require()
    pairs, key = service.brain.duplicates, (0, row.visible)
    known = pairs.current(row.id, key) if wait else pairs.latest(row.id, key)
    return (known.value if known else []), bool(known and known.key[1] >= row.visible)


def _dismissed(connection: Connection, project: str, kind: str) -> set[str]:
    query = select(DISMISSALS.c.item).where(DISMISSALS.c.project == project, DISMISSALS.c.kind == kind)
    return set(connection.scalars(query))


@router.post("/projects/{project}/dismissals", status_code=204, tags=["cleaning"])
def dismiss(service: Context, person: Someone, project: ProjectId, body: DismissalRequest) -> None:
    """Say that a probable mistake is none; it is not shown again. Dismissing it twice changes nothing."""
    with service.changing(person, project, "label") as (connection, _):
        if body.item not in _dismissed(connection, project, body.kind):
            values = {"project": project, "kind": body.kind, "item": body.item, "annotator": person.annotator}
            connection.execute(insert(DISMISSALS).values(**values, made=time.time()))


@router.delete("/projects/{project}/dismissals", status_code=204, tags=["cleaning"])
def restore(
    service: Context,
    person: Someone,
    project: ProjectId,
    kind: cleaning.Kind,
    item: Annotated[str, Query(max_length=100, pattern="^[^\\x00]*$")],
) -> None:
    """Show a dismissed one again."""
    with service.changing(person, project, "label") as (connection, _):
        here = (DISMISSALS.c.project == project) & (DISMISSALS.c.kind == kind) & (DISMISSALS.c.item == item)
        connection.execute(delete(DISMISSALS).where(here))


@router.get("/projects/{project}/agreement", tags=["together"])
def agreement(service: Context, person: Someone, project: ProjectId) -> dict[str, Any]:
    """How well people agree: Cohen's kappa for each two, Krippendorff's alpha for all."""
    row = service.project(person, project)
    with service.database.reading() as connection:
        query = select(LABELS.c.text, LABELS.c.annotator, LABELS.c.mark, LABELS.c.label)
        labels = connection.execute(query.where(LABELS.c.project == project, LABELS.c.text < row.visible)).all()
    return agreement_facts(labels)


@router.get("/projects/{project}/disagreements", tags=["together"])
def disagreements(
    service: Context, person: Someone, project: ProjectId, offset: Offset = 0, limit: Limit = 50
) -> dict[str, Any]:
    """Texts on which people differ; a label with `final` settles one."""
    row = service.project(person, project)
    wanted = TextFilter(states=("disputed",))
    with service.database.reading() as connection:
        total = count_texts(connection, row, wanted)
        numbers = page_of_texts(connection, row, wanted, False, offset, limit)
        texts = text_facts(connection, row, numbers, service.brain.snapshots.kept(project))
    return {"total": total, "texts": [one.model_dump(by_alias=True) for one in texts]}
