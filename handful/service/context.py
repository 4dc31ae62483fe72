"""The parts of a server that its routes share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection

from .jobs import JobRunner
from .learning.brain import Brain
from .learning.computed import key_of
from .learning.encoding import encode_texts, needs_encoding
from .metrics import Metrics
from .settings import ServiceSettings
from .store.database import Database
from .store.names import Role
from .store.projects import Person, ProjectRow, find_project, read_row


@dataclass(frozen=True)
class Service:
    """A studio's server: its store, what it learns, and its jobs."""

    settings: ServiceSettings
    database: Database
    brain: Brain
    jobs: JobRunner
    metrics: Metrics

    def project(self, person: Person, project: str, needed: Role = "read") -> ProjectRow:
        """A project that a person may use."""
        with self.database.reading() as connection:
            return find_project(connection, person, project, needed)

    @contextmanager
    def changing(self, person: Person, project: str, needed: Role) -> Iterator[tuple[Connection, ProjectRow]]:
        """A transaction that writes to a project, which waits for others that do."""
        with self.database.writing() as connection:
            yield connection, find_project(connection, person, project, needed, lock=True)

    def learn(self, person: Person, project: str) -> None:
        """Learn a project in the background; if its encoder is slow, a job encodes all texts."""
        with self.database.reading() as connection:
            row = read_row(connection, project)
        self.brain.learn(project, key_of(row))
        if needs_encoding(row):
            database, folder = self.database, self.settings.folder
            self.jobs.submit(person, project, "encode", lambda _, progress: encode_texts(database, folder, project, progress))


async def service_of(request: Request) -> Service:
    """The server that a request came to."""
    found: Service = request.app.state.service
    return found


async def person_of(request: Request) -> Person:
    """The person who sent a request; the gate has looked at the key."""
    found: Person = request.state.person
    return found


Context = Annotated[Service, Depends(service_of)]
Someone = Annotated[Person, Depends(person_of)]
