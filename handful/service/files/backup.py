"""Backup of a whole project as a zip archive of JSON lines, and its restoration."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection, Table, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..errors import InvalidError, TooLargeError
from ..learning.models import check_encoder
from ..settings import Limits
from ..store.database import Database
from ..store.names import Mark, TextState
from ..store.projects import Person, ProjectRow, create_project
from ..store.tables import ACTIONS, CHANGES, CLASSES, DISMISSALS, LABELS, PROJECTS, TEXTS
from ..store.texts import folded, words_digest
from .importing import Progress
from .uploads import is_sound

FORMAT = 1
STEP = 1_000  # rows in one transaction
LONGEST_LINE = 10_000_000  # characters
EXPANSION = 20  # times its size that an archive may unpack to
TOO_LARGE = "The archive unpacks to more than is allowed: it is not a backup of Handful."


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ProjectLine(_Line):
    """Settings of a project."""

    format: int
    name: str = Field(min_length=1, max_length=200)
    encoder: str
    language: str
    use_class_names: bool
    visible: int = Field(ge=0, lt=2**31)


class ClassLine(_Line):
    """A class, live or deleted."""

    number: int = Field(ge=1, lt=2**31)
    name: str = Field(min_length=1, max_length=200)
    note: str
    words: str
    position: int = Field(ge=0, lt=2**31)
    state: str = Field(pattern="^(live|deleted)$")


class TextLine(_Line):
    """A text; its state follows from its labels."""

    number: int = Field(ge=0)
    text: str
    extra: str | None
    state: TextState
    label: int | None
    test: bool


class LabelLine(_Line):
    """A label of one person."""

    text: int
    annotator: str = Field(min_length=1, max_length=200)
    mark: Mark
    label: int | None
    final: bool
    made: float = Field(allow_inf_nan=False)


class ActionLine(_Line):
    """An action, with the changes that it made."""

    client: str = Field(max_length=100)
    annotator: str = Field(max_length=200)
    kind: str = Field(pattern="^(label|class|undo|redo)$")
    detail: str
    made: float = Field(allow_inf_nan=False)
    state: str = Field(pattern="^(done|undone|dropped)$")
    changes: list[tuple[int, str, Mark | None, int | None, bool | None, Mark | None, int | None, bool | None]]


class _ClassFields(_Line):
    """Fields of a class that an action changed."""

    name: str | None = None
    note: str | None = None
    words: str | None = None
    position: int | None = None
    state: str | None = None


class _ClassDetail(_Line):
    """A class before and after an action."""

    number: int
    before: _ClassFields
    after: _ClassFields


class _Detail(BaseModel):
    """The part of an action about classes, by which it is undone."""

    classes: list[_ClassDetail]
    changed: int


class DismissalLine(_Line):
    """A probable mistake that somebody dismissed."""

    kind: str = Field(max_length=20)
    item: str = Field(max_length=100)
    annotator: str = Field(max_length=200)
    made: float = Field(allow_inf_nan=False)


LINES: dict[str, tuple[Table, type[_Line]]] = {
    "classes": (CLASSES, ClassLine),
    "texts": (TEXTS, TextLine),
    "labels": (LABELS, LabelLine),
    "actions": (ACTIONS, ActionLine),
    "dismissals": (DISMISSALS, DismissalLine),
}
CHANGE_FIELDS = [column.name for column in CHANGES.columns if column.name != "action"]


# Writing


def write_backup(database: Database, project: ProjectRow, path: Path) -> None:
    """Write all of a project to an archive, as it is at one moment."""
    with database.reading() as connection, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        row = connection.execute(select(PROJECTS).where(PROJECTS.c.id == project.id)).one()
        facts = {name: getattr(row, name) for name in ProjectLine.model_fields if name != "format"}
        archive.writestr("project.json", json.dumps({"format": FORMAT, **facts}))
        for name, (table, line) in LINES.items():
            with archive.open(f"{name}.jsonl", "w", force_zip64=True) as stream:
                for some in _rows(connection, row, table):
                    stream.write("".join(json.dumps(_facts(connection, one, line)) + "\n" for one in some).encode())


def _rows(connection: Connection, project: ProjectRow, table: Table) -> Iterator[list[Any]]:
    query = select(table).where(table.c.project == project.id).order_by(*table.primary_key.columns)
    if table is TEXTS:
        query = query.where(TEXTS.c.number < project.visible)
    if table is LABELS:
        query = query.where(LABELS.c.text < project.visible)
    if table is CLASSES:
        query = query.where(CLASSES.c.state != "pending")
    found = connection.execution_options(yield_per=STEP).execute(query)
    for some in found.partitions(STEP):
        yield list(some)


def _facts(connection: Connection, row: Any, line: type[_Line]) -> dict[str, Any]:
    facts = {name: getattr(row, name) for name in line.model_fields if name != "changes"}
    if line is ActionLine:
        columns = [CHANGES.c[name] for name in CHANGE_FIELDS]
        changes = connection.execution_options(yield_per=None).execute(select(*columns).where(CHANGES.c.action == row.id))
        facts["changes"] = [list(change) for change in changes]
    return facts


# Reading


def restore_backup(
    database: Database, limits: Limits, person: Person, path: Path, start: Callable[[Connection, str], None], progress: Progress
) -> dict[str, Any]:
    """Make a new project from an archive; it appears once it is complete. `start` is told its id."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path)
            facts = _project(archive)
            with database.writing() as connection:
                given = facts.name, facts.encoder, facts.language, facts.use_class_names
                project = create_project(connection, person, *given, ready=False, most=limits.projects)
                start(connection, project)
            _copy(database, limits, project, facts, archive, progress)
    except IntegrityError as error:
        raise InvalidError("The archive has the same text, class or label twice: it is not a backup of Handful.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, RuntimeError, zlib.error) as error:
        if isinstance(error, ValidationError):
            raise InvalidError(f"The archive is not a backup of Handful ({error.error_count()} invalid fields).") from error
        raise InvalidError(f"The archive cannot be read ({error}): give one that the backup of a project made.") from error
    with database.writing() as connection:
        connection.execute(update(PROJECTS).where(PROJECTS.c.id == project).values(ready=True, visible=facts.visible))
    return {"project": project}


def _check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    expected = {"project.json", *(f"{name}.jsonl" for name in LINES)}
    if set(archive.namelist()) != expected:
        raise InvalidError("The archive is not a backup of Handful: give one that the backup of a project made.")
    if sum(one.file_size for one in archive.infolist()) > max(EXPANSION * path.stat().st_size, LONGEST_LINE):
        raise TooLargeError(TOO_LARGE)


def _project(archive: zipfile.ZipFile) -> ProjectLine:
    with archive.open("project.json") as stream:
        facts = ProjectLine.model_validate_json(stream.read(LONGEST_LINE))
    if facts.format != FORMAT:
        raise InvalidError(f"The backup has format {facts.format}, and this version of Handful reads {FORMAT}: update Handful.")
    check_encoder(facts.encoder, facts.language)
    return facts


def _copy(
    database: Database, limits: Limits, project: str, facts: ProjectLine, archive: zipfile.ZipFile, progress: Progress
) -> None:
    done, total = 0, sum(one.file_size for one in archive.infolist())
    classes: set[int] = set()
    for name, (table, line) in LINES.items():
        count = 0
        with archive.open(f"{name}.jsonl") as stream:
            for lines in _parts(stream):
                rows = [_checked(line, one, facts.visible, classes) for one in lines]
                count += len(rows)
                if table is TEXTS and count > limits.texts_per_project:
                    raise TooLargeError(f"The backup has more than {limits.texts_per_project:,} texts: raise the limit.")
                with database.writing() as connection:
                    _insert(connection, project, table, rows)
                done += sum(map(len, lines))
                progress(min(done, total), total)


def _parts(stream: IO[bytes]) -> Iterator[list[bytes]]:
    lines = iter(lambda: stream.readline(LONGEST_LINE), b"")
    while some := list(islice(lines, STEP)):
        yield some


def _checked(line: type[_Line], content: bytes, visible: int, classes: set[int]) -> dict[str, Any]:
    """A row, with the numbers that it refers to checked."""
    row = line.model_validate_json(content).model_dump()
    if not all(is_sound(value) for value in row.values() if isinstance(value, str)):
        raise InvalidError("The archive has texts with zero bytes or unpaired surrogates: it is not a backup of Handful.")
    if line is ClassLine:
        classes.add(row["number"])
    if line is ActionLine and row["kind"] in ("label", "class"):
        _Detail.model_validate_json(row["detail"])
    if line is TextLine and row["extra"] is not None and not isinstance(json.loads(row["extra"]), dict):
        raise InvalidError("The archive has columns of a text that are not an object: it is not a backup of Handful.")
    number = row.get("number") if line is TextLine else row.get("text") if line is LabelLine else None
    label = row.get("label")
    if (number is not None and not 0 <= number < visible) or (label is not None and label not in classes):
        raise InvalidError("The archive refers to texts or classes that it does not have: it is not a backup of Handful.")
    return row


def _insert(connection: Connection, project: str, table: Table, rows: list[dict[str, Any]]) -> None:
    if table is TEXTS:
        rows = [row | {"folded": folded(row["text"]), "digest": words_digest(row["text"])} for row in rows]
    if table is not ACTIONS:
        connection.execute(insert(table), [{"project": project, **row} for row in rows])
        return
    for row in rows:
        changes = row.pop("changes")
        action = connection.execute(insert(ACTIONS).values(project=project, **row).returning(ACTIONS.c.id)).scalar_one()
        if changes:
            fields = [dict(zip(CHANGE_FIELDS, change, strict=True)) for change in changes]
            connection.execute(insert(CHANGES), [{"action": action, **one} for one in fields])
