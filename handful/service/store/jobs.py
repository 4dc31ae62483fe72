"""Jobs: what takes long, with its progress, kept in the store so that every process sees it."""

from __future__ import annotations

import json
import time
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from ..errors import BusyError, NotFoundError
from .projects import Person, new_id
from .tables import JOBS, PROJECTS

ACTIVE = ("waiting", "running")
SILENT = 60.0  # seconds after which a process that says nothing counts as dead


def insert_job(connection: Connection, person: Person, project: str | None, kind: str, server: str, most: int) -> str:
    """A job that waits."""
    mine = (JOBS.c.account == person.account) & JOBS.c.state.in_(ACTIVE)
    active = connection.scalar(select(func.count()).select_from(JOBS).where(mine)) or 0
    if active >= most:
        raise BusyError(f"You have {active} jobs that wait or run, which is the limit: wait for one, or cancel one.")
    job, now = new_id(), time.time()
    values = {"id": job, "project": project, "account": person.account, "kind": kind, "state": "waiting", "done": 0}
    rest = {"total": None, "message": "", "result": "{}", "cancel": False, "server": server, "seen": now, "created": now}
    connection.execute(insert(JOBS).values(**values, **rest))
    return job


def find_job(connection: Connection, person: Person, job: str) -> Any:
    """A job of this person."""
    row = connection.execute(select(JOBS).where(JOBS.c.id == job)).first()
    if row is None or row.account != person.account:
        raise NotFoundError("There is no such job: see the list of jobs.")
    return row


def list_jobs(connection: Connection, person: Person, project: str | None, limit: int = 100) -> list[Any]:
    """The latest jobs of this person."""
    query = select(JOBS).where(JOBS.c.account == person.account)
    query = query if project is None else query.where(JOBS.c.project == project)
    return list(connection.execute(query.order_by(JOBS.c.created.desc()).limit(limit)))


def job_facts(row: Any) -> dict[str, Any]:
    """A job as the API shows it."""
    names = ("id", "project", "kind", "state", "done", "total", "message", "created")
    return {name: getattr(row, name) for name in names} | {"result": json.loads(row.result)}


def change_job(connection: Connection, job: str, **values: Any) -> None:
    """Write how a job stands."""
    connection.execute(update(JOBS).where(JOBS.c.id == job).values(seen=time.time(), **values))


def is_cancelled(connection: Connection, job: str) -> bool:
    """Whether somebody asked to stop it, or it is gone with its project."""
    found = connection.scalar(select(JOBS.c.cancel).where(JOBS.c.id == job))
    return found is None or bool(found)


def dead_jobs(connection: Connection, server: str, alone: bool) -> list[Any]:
    """Jobs whose process died; if this process is `alone` on the store, those of every other one."""
    active = JOBS.c.state.in_(ACTIVE) & (JOBS.c.server != server)
    silent = active if alone else active & (JOBS.c.seen < time.time() - SILENT)
    return list(connection.execute(select(JOBS).where(silent)))


def fail_dead(connection: Connection, job: str) -> None:
    """Say that the server stopped before a job was done."""
    message = "The server stopped before this was done, and nothing of it was kept: start it again."
    query = update(JOBS).where(JOBS.c.id == job, JOBS.c.state.in_(ACTIVE))
    connection.execute(query.values(state="failed", message=message))


def hidden_projects(connection: Connection) -> list[str]:
    """Projects that are being restored or deleted, with no active job."""
    busy = select(JOBS.c.project).where(JOBS.c.state.in_(ACTIVE), JOBS.c.project.is_not(None))
    return list(connection.scalars(select(PROJECTS.c.id).where(~PROJECTS.c.ready, PROJECTS.c.id.not_in(busy))))
