"""Projects and their classes."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import Connection

from ..context import Context, Service, Someone
from ..errors import ConflictError, InvalidError
from ..learning.models import check_encoder
from ..schemas import (
    ActionFacts,
    ActionId,
    AnnotatorFacts,
    ClassAdded,
    ClassEdit,
    ClassFacts,
    ClassMerge,
    NewClass,
    Number,
    ProjectEdit,
    ProjectFacts,
    ProjectId,
    ProjectRequest,
    ProjectSummary,
)
from ..store.actions import ActionResult, add_class, edit_class, remove_class
from ..store.classes import check_classes, insert_class, live_classes
from ..store.projects import (
    Person,
    ProjectRow,
    change_project,
    create_project,
    find_project,
    hide_project,
    list_projects,
    new_id,
    role_in,
)
from ..store.texts import TextFilter, annotator_counts, class_counts, count_texts, state_counts

router = APIRouter()


def summary(connection: Connection, person: Person, row: ProjectRow) -> ProjectSummary:
    """A project as a list shows it."""
    names = ("id", "name", "owner", "encoder", "language", "use_class_names", "created", "version")
    facts = {name: getattr(row, name) for name in names}
    role = role_in(connection, person, row) or "read"
    return ProjectSummary(**facts, role=role, texts=row.visible, importing=row.import_job is not None)


def project_facts(connection: Connection, person: Person, row: ProjectRow) -> ProjectFacts:
    """All about a project."""
    counts = class_counts(connection, row)
    classes = [
        ClassFacts(
            number=one.number,
            name=one.name,
            note=one.note,
            words=one.words,
            position=one.position,
            texts=counts.get(one.number, 0),
        )
        for one in live_classes(connection, row.id)
    ]
    test, open_tests = (
        count_texts(connection, row, TextFilter(test=True, states=states)) for states in ((), ("open", "skipped", "unsure"))
    )
    return ProjectFacts(
        **summary(connection, person, row).model_dump(),
        classes=classes,
        states=state_counts(connection, row),
        annotators=[AnnotatorFacts(**one) for one in annotator_counts(connection, row)],
        test_set={"texts": test, "labelled": test - open_tests},
    )


@router.get("/projects", tags=["projects"])
def projects(service: Context, person: Someone) -> list[ProjectSummary]:
    """The projects that you own or that are shared with you, the newest first."""
    with service.database.reading() as connection:
        return [summary(connection, person, row) for row in list_projects(connection, person)]


@router.post("/projects", status_code=201, tags=["projects"])
def create(service: Context, person: Someone, body: ProjectRequest) -> ProjectFacts:
    """Create a project, with classes if they are known."""
    person.require("admin")
    check_encoder(body.encoder, body.language)
    limits = service.settings.limits
    with service.database.writing() as connection:
        given = body.name, body.encoder, body.language, body.use_class_names
        project = create_project(connection, person, *given, most=limits.projects)
        for one in body.classes:
            insert_class(connection, project, one.name, one.note, one.words, most=limits.classes)
        check_classes(connection, project)
        return project_facts(connection, person, find_project(connection, person, project, "admin"))


@router.get("/projects/{project}", tags=["projects"])
def read(service: Context, person: Someone, project: ProjectId) -> ProjectFacts:
    """A project with its classes, and its counts by state, class and annotator."""
    with service.database.reading() as connection:
        return project_facts(connection, person, find_project(connection, person, project, "read"))


@router.patch("/projects/{project}", tags=["projects"])
def edit(service: Context, person: Someone, project: ProjectId, body: ProjectEdit) -> ProjectFacts:
    """Rename a project, or change its encoder, language or use of class names."""
    values = body.model_dump(exclude_none=True)
    with service.changing(person, project, "admin") as (connection, row):
        if {"encoder", "language"} & values.keys():
            check_encoder(values.get("encoder", row.encoder), values.get("language", row.language))
        if values:
            change_project(connection, project, **values)
        facts = project_facts(connection, person, find_project(connection, person, project, "admin"))
    if "encoder" in values:
        service.learn(person, project)
    return facts


@router.delete("/projects/{project}", status_code=204, tags=["projects"])
def delete(service: Context, person: Someone, project: ProjectId) -> None:
    """Delete a project with everything in it, for good."""
    with service.changing(person, project, "admin") as (connection, row):
        if row.owner != person.account:
            raise ConflictError("Only the owner can delete a project: leave it instead.")
        hide_project(connection, project)
    service.brain.forget(project)
    service.jobs.remove_later(project)


# Classes


def stored(service: Service, project: str, visible: int, result: ActionResult) -> ActionFacts:
    """The answer about an action; the model learns from it in the background."""
    if not result.repeated:
        service.metrics.labels.inc(result.changed)
        service.brain.learn(project, (result.version, visible))
    return ActionFacts(**vars(result))


@router.get("/projects/{project}/classes", tags=["classes"])
def classes(service: Context, person: Someone, project: ProjectId) -> list[ClassFacts]:
    """The classes of a project in their order."""
    with service.database.reading() as connection:
        return project_facts(connection, person, find_project(connection, person, project, "read")).classes


@router.post("/projects/{project}/classes", status_code=201, tags=["classes"])
def add(service: Context, person: Someone, project: ProjectId, body: NewClass) -> ClassAdded:
    """Add a class."""
    with service.changing(person, project, "label") as (connection, row):
        most = service.settings.limits.classes
        given = body.id, body.name, body.note, body.words
        result, number = add_class(connection, row, person.annotator, *given, most)
    return ClassAdded(**stored(service, project, row.visible, result).model_dump(), number=number)


@router.patch("/projects/{project}/classes/{number}", tags=["classes"])
def change(service: Context, person: Someone, project: ProjectId, number: Number, body: ClassEdit) -> ActionFacts:
    """Rename a class, or change its note, words or position."""
    values = body.model_dump(exclude_none=True, exclude={"id"})
    if not values:
        raise InvalidError("There is nothing to change: give a name, note, words or position.")
    with service.changing(person, project, "label") as (connection, row):
        result = edit_class(connection, row, person.annotator, body.id, number, values)
    return stored(service, project, row.visible, result)


@router.post("/projects/{project}/classes/{number}/merge", tags=["classes"])
def merge(service: Context, person: Someone, project: ProjectId, number: Number, body: ClassMerge) -> ActionFacts:
    """Give all labels of a class to another one, and delete it."""
    with service.changing(person, project, "label") as (connection, row):
        result = remove_class(connection, row, person.annotator, body.id, number, body.into)
    return stored(service, project, row.visible, result)


@router.delete("/projects/{project}/classes/{number}", tags=["classes"])
def remove(service: Context, person: Someone, project: ProjectId, number: Number, id: ActionId | None = None) -> ActionFacts:  # noqa: A002
    """Delete a class; texts that have it become open again. This can be undone."""
    with service.changing(person, project, "label") as (connection, row):
        result = remove_class(connection, row, person.annotator, id or new_id(), number)
    return stored(service, project, row.visible, result)
