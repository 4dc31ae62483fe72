"""Classes of a project, with their notes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from ..errors import ConflictError, NotFoundError, TooLargeError
from .tables import CLASSES, LABELS

LONGEST_CLASS_NAME = 200
FIELDS = ("name", "note", "words", "position", "state")  # that an action may change
ONE_CLASS = select(CLASSES).where(CLASSES.c.project == bindparam("project"), CLASSES.c.number == bindparam("number"))


def live_classes(connection: Connection, project: str) -> list[Any]:
    """The classes in their order."""
    query = select(CLASSES).where(CLASSES.c.project == project, CLASSES.c.state == "live")
    return list(connection.execute(query.order_by(CLASSES.c.position, CLASSES.c.number)))


def find_class(connection: Connection, project: str, number: int) -> Any:
    """A class by its number."""
    row = connection.execute(ONE_CLASS, {"project": project, "number": number}).first()
    if row is None or row.state != "live":
        raise NotFoundError(f"There is no class {number} in this project: reload the list of classes.")
    return row


def insert_class(
    connection: Connection, project: str, name: str, note: str = "", words: str = "", state: str = "live", most: int = 1_000
) -> int:
    """Add a class; gives its number."""
    mine = CLASSES.c.project == project
    query = select(func.count(), func.coalesce(func.max(CLASSES.c.number), 0)).where(mine)
    known, last = connection.execute(query).one()
    if known >= most:
        raise TooLargeError(f"The project has had {known} classes, which is the limit: use those that there are.")
    number = last + 1
    values = {"number": number, "name": name, "note": note, "words": words, "position": number, "state": state}
    connection.execute(insert(CLASSES).values(project=project, **values))
    return int(number)


def set_class(connection: Connection, project: str, number: int, values: dict[str, Any]) -> None:
    """Write some fields of a class."""
    connection.execute(update(CLASSES).where(CLASSES.c.project == project, CLASSES.c.number == number).values(**values))


def class_fields(connection: Connection, project: str, number: int) -> dict[str, Any]:
    """All fields of a class, even of a deleted one."""
    row = connection.execute(ONE_CLASS, {"project": project, "number": number}).one()
    return {name: getattr(row, name) for name in FIELDS}


def check_classes(connection: Connection, project: str) -> None:
    """Refuse two classes of one name, and labels of a class that is not there any more."""
    names = [row.name for row in live_classes(connection, project)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConflictError(f"There is a class {twice!r} already: choose another name, or merge the two.")
    gone = select(CLASSES.c.number).where(CLASSES.c.project == project, CLASSES.c.state == "deleted")
    used = select(LABELS.c.label).where(LABELS.c.project == project, LABELS.c.label.in_(gone)).limit(1)
    if connection.scalar(used) is not None:
        raise ConflictError("Texts have this class by now: delete or merge the class instead.")
