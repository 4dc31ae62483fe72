"""Projects, and who may see and change them."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from ..errors import ConflictError, ForbiddenError, NotFoundError, TooLargeError
from .names import ROLES, Role
from .tables import ACTIONS, CHANGES, CLASSES, DISMISSALS, JOBS, LABELS, MEMBERS, PROJECTS, TEXTS

ProjectRow = Row[Any]
ROWS_AT_ONCE = 5_000  # removed in one transaction
# Built once: see actions.py
READY = select(PROJECTS).where(PROJECTS.c.id == bindparam("project"), PROJECTS.c.ready)
LOCKED_READY = READY.with_for_update()
_ONE_MORE = {"version": PROJECTS.c.version + 1}
BUMP = update(PROJECTS).where(PROJECTS.c.id == bindparam("project")).values(_ONE_MORE).returning(PROJECTS.c.version)


@dataclass(frozen=True)
class Person:
    """An account as it came with a request: the name that labels are made under, and what its key allows."""

    account: str
    annotator: str
    role: Role

    def may(self, needed: Role) -> bool:
        """Whether the key allows what this role may do."""
        return ROLES.index(self.role) >= ROLES.index(needed)

    def require(self, needed: Role) -> None:
        """Refuse what the key does not allow."""
        if not self.may(needed):
            raise ForbiddenError(f"This key may only {self.role}: use one with the role {needed}.")


def new_id() -> str:
    """A name that nobody can guess."""
    return secrets.token_hex(12)


# Who may do what


def find_project(connection: Connection, person: Person, project: str, needed: Role, lock: bool = False) -> ProjectRow:
    """A project that this person may use; one of somebody else is not found. `lock` makes other writers wait."""
    row = connection.execute(LOCKED_READY if lock else READY, {"project": project}).first()
    role = None if row is None else role_in(connection, person, row)
    if row is None or role is None:
        raise NotFoundError("There is no such project: check the address, or ask its owner to add you.")
    person.require(needed)
    if ROLES.index(role) < ROLES.index(needed):
        raise ForbiddenError(f"You may only {role} in this project: ask its owner for the role {needed}.")
    return row


def role_in(connection: Connection, person: Person, project: ProjectRow) -> Role | None:
    """The role of a person in a project, by ownership or membership."""
    if project.owner == person.account:
        return "admin"
    query = select(MEMBERS.c.role).where(MEMBERS.c.project == project.id, MEMBERS.c.account == person.account)
    role: Role | None = connection.scalar(query)
    return role


def members(connection: Connection, project: str) -> list[dict[str, str]]:
    """The accounts that a project is shared with."""
    query = select(MEMBERS.c.account, MEMBERS.c.role).where(MEMBERS.c.project == project).order_by(MEMBERS.c.account)
    return [{"account": row.account, "role": row.role} for row in connection.execute(query)]


def set_member(connection: Connection, project: str, account: str, role: Role | None) -> None:
    """Share a project with an account, or no longer."""
    connection.execute(delete(MEMBERS).where(MEMBERS.c.project == project, MEMBERS.c.account == account))
    if role:
        connection.execute(insert(MEMBERS).values(project=project, account=account, role=role))


# Projects


def create_project(
    connection: Connection,
    person: Person,
    name: str,
    encoder: str = "words",
    language: str = "en",
    use_class_names: bool = True,
    ready: bool = True,
    most: int = 1_000,
) -> str:
    """A new project of a person."""
    owned = connection.scalar(select(func.count()).select_from(PROJECTS).where(PROJECTS.c.owner == person.account))
    if (owned or 0) >= most:
        raise TooLargeError(f"You have {owned} projects, which is the limit: delete one first.")
    values = {"name": name, "encoder": encoder, "language": language, "use_class_names": use_class_names}
    project = new_id()
    fresh = {"id": project, "owner": person.account, "created": time.time(), "ready": ready, "version": 1, "visible": 0}
    connection.execute(insert(PROJECTS).values(**values, **fresh))
    return project


def list_projects(connection: Connection, person: Person) -> list[ProjectRow]:
    """The projects that a person owns or is a member of."""
    shared = select(MEMBERS.c.project).where(MEMBERS.c.account == person.account)
    mine = (PROJECTS.c.owner == person.account) | PROJECTS.c.id.in_(shared)
    return list(connection.execute(select(PROJECTS).where(PROJECTS.c.ready, mine).order_by(PROJECTS.c.created.desc())))


def change_project(connection: Connection, project: str, **values: Any) -> None:
    """Change settings of a project; its models are rebuilt."""
    connection.execute(update(PROJECTS).where(PROJECTS.c.id == project).values(version=PROJECTS.c.version + 1, **values))


def bump(connection: Connection, project: str) -> int:
    """Count a change that models learn from; gives the new version."""
    return int(connection.execute(BUMP, {"project": project}).scalar_one())


def read_row(connection: Connection, project: str, lock: bool = False) -> ProjectRow:
    """A project of any owner; `lock` makes other writers wait."""
    query = select(PROJECTS).where(PROJECTS.c.id == project)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise NotFoundError("There is no such project any more: reload the list of projects.")
    return row


def hide_project(connection: Connection, project: str) -> None:
    """Make a project vanish; `remove_hidden` then removes its rows in steps."""
    connection.execute(update(PROJECTS).where(PROJECTS.c.id == project).values(ready=False))


def remove_hidden(connection: Connection, project: str) -> bool:
    """Remove some rows of a hidden project; False once nothing is left."""
    acts = select(ACTIONS.c.id).where(ACTIONS.c.project == project)
    for table, owner in (
        (CHANGES, CHANGES.c.action.in_(acts)),
        *((t, t.c.project == project) for t in (ACTIONS, LABELS, TEXTS)),
    ):
        keys = list(table.primary_key.columns)
        some = connection.execute(select(*keys).where(owner).limit(ROWS_AT_ONCE)).all()
        if some:
            lead = keys[0] if table in (CHANGES, ACTIONS) else keys[1]
            position = keys.index(lead)
            values = sorted({row[position] for row in some})
            connection.execute(delete(table).where(owner, lead.in_(values)))
            return True
    for table in (CLASSES, DISMISSALS, MEMBERS, JOBS):
        connection.execute(delete(table).where(table.c.project == project))
    connection.execute(delete(PROJECTS).where(PROJECTS.c.id == project, ~PROJECTS.c.ready))
    return False


# Imports


def begin_import(connection: Connection, project: ProjectRow, job: str) -> int:
    """Reserve the numbers beyond the visible texts for a job; gives the first of them."""
    if project.import_job and project.import_job != job:
        raise ConflictError("Another import into this project is running: wait until it is done, or cancel it.")
    connection.execute(update(PROJECTS).where(PROJECTS.c.id == project.id).values(import_job=job))
    return int(project.visible)


def finish_import(connection: Connection, project: str, job: str, visible: int) -> None:
    """Make all that an import wrote visible, at once."""
    mine = (PROJECTS.c.id == project) & (PROJECTS.c.import_job == job)
    values = {"visible": visible, "import_job": None, "version": PROJECTS.c.version + 1}
    if connection.execute(update(PROJECTS).where(mine).values(**values)).rowcount != 1:
        raise ConflictError("The import was taken to be dead and removed: start it again.")
    live = (CLASSES.c.project == project) & (CLASSES.c.state == "pending")
    connection.execute(update(CLASSES).where(live).values(state="live"))


def remove_unfinished(connection: Connection, project: str, job: str) -> bool:
    """Remove some rows of an import that did not finish; False once nothing is left, and another import may begin."""
    row = connection.execute(select(PROJECTS).where(PROJECTS.c.id == project).with_for_update()).first()
    if row is None or row.import_job != job:
        return False
    for table, number in ((LABELS, LABELS.c.text), (TEXTS, TEXTS.c.number)):
        beyond = (table.c.project == project) & (number >= row.visible)
        some = connection.scalars(select(number).where(beyond).order_by(number).limit(ROWS_AT_ONCE)).all()
        if some:
            connection.execute(delete(table).where(beyond, number <= some[-1]))
            return True
    connection.execute(delete(CLASSES).where(CLASSES.c.project == project, CLASSES.c.state == "pending"))
    connection.execute(update(PROJECTS).where(PROJECTS.c.id == project).values(import_job=None))
    return False
