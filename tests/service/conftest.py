"""A studio in this process, on SQLite or (HANDFUL_TEST_STORE=postgres) on PostgreSQL; servers of their own; a PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handful.service.settings import Limits, ServiceSettings

from .running import Postgres, Server, postgres_server
from .studio import MakeStudio, Studio


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL on loopback, started for the tests; skipped where there is none."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def new_store(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """Gives the address of a fresh PostgreSQL database if the suite runs on one, otherwise None: an SQLite file."""
    if os.environ.get("HANDFUL_TEST_STORE") != "postgres":
        return lambda: None
    server: Postgres = request.getfixturevalue("postgres")
    return server.create


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory, new_store: Callable[[], str | None]) -> Iterator[Studio]:
    """One studio for all tests that make their own projects in it."""
    opened = Studio(ServiceSettings(tmp_path_factory.mktemp("studio"), new_store(), token="secret"))
    yield opened
    opened.close()


@pytest.fixture
def make_studio(tmp_path: Path, new_store: Callable[[], str | None]) -> Iterator[MakeStudio]:
    """Opens studios on one store of their own; all are closed at the end."""
    opened: list[Studio] = []
    url = new_store()

    def make(limits: Limits | None = None, **given: object) -> Studio:
        settings = ServiceSettings(tmp_path / "store", url, limits=limits or Limits(), **({"token": "secret"} | given))
        opened.append(Studio(settings))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def start_server() -> Iterator[Callable[..., Server]]:
    """Starts real servers; those that still run are killed at the end."""
    started: list[Server] = []

    def start(folder: Path, *options: str, environment: dict[str, str] | None = None) -> Server:
        started.append(Server(["studio", str(folder), "--no-browser", "--port", "0", *options], environment))
        return started[-1]

    yield start
    for server in started:
        server.kill()
