"""The database: SQLite with one writer at a time, or PostgreSQL; brought to the present version when it is opened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Any

from alembic.command import upgrade
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from ...errors import DataError, HandfulError, MissingExtraError, SettingError
from ..errors import FullError, UnavailableError

MIGRATIONS = Path(__file__).parent / "migrations"
PATIENCE = 30.0  # seconds that another writer may take
CONNECTIONS = 20
WRITES = "handful_writes"  # marks a connection whose transaction takes the write lock when it begins
FULL = ("disk is full", "disk i/o error", "readonly database", "no space left", "could not extend file")
ADVISORY_LOCK = 5_017_001  # of PostgreSQL, while the tables are made: any number that is always the same


class Database:
    """A store that is open."""

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)
        self.is_sqlite = self._engine.dialect.name == "sqlite"
        self.place = self._engine.url.render_as_string(hide_password=True)
        self._writer: AbstractContextManager[Any] = Lock() if self.is_sqlite else nullcontext()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads: all of it sees the same state."""
        with store_errors(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; what it wrote is durable when it ends."""
        with store_errors(), self._writer, self._engine.connect() as plain:
            connection = plain.execution_options(**{WRITES: True})
            with connection.begin():
                yield connection

    def prepare(self) -> None:
        """Create the tables, or bring those of an older version up to date; a newer version is refused."""
        try:
            with self.writing() as connection:
                self._migrate(connection)
        except HandfulError:
            raise
        except DBAPIError as error:
            raise DataError(f"The store {self.place} cannot be used ({error.orig}): check the file or the server.") from error

    def _migrate(self, connection: Connection) -> None:
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": ADVISORY_LOCK})
        found = MigrationContext.configure(connection).get_current_revision()
        known = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]
        if found == known[0]:
            return
        if found is not None and found not in known:
            raise DataError(
                f"The store {self.place} was written by a newer version of Handful ({found}): install that version."
            )
        if found is None and inspect(connection).has_table("projects"):
            raise DataError(f"The store {self.place} has tables that Handful did not make: choose another database.")
        if found is not None:
            self._keep_copy(found)
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        upgrade(config, "head")

    def _keep_copy(self, version: str) -> None:
        """Keep a copy of an SQLite file before it is changed; nobody writes to it now."""
        if self.is_sqlite and (name := self._engine.url.database):
            for ending in ("", "-wal"):
                if Path(name + ending).exists():
                    shutil.copyfile(name + ending, f"{name}.before-{version}{ending}")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn failures of the database that people can do something about into sentences."""
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig).lower()
        if any(words in reason for words in FULL):
            raise FullError(
                "The store cannot be written to: make room on its disk. Nothing of this request was kept."
            ) from error
        if "locked" in reason or "could not serialize" in reason or "deadlock" in reason:
            raise UnavailableError("Another process is writing to the store: send the request again.") from error
        if error.connection_invalidated or "connect" in reason:
            raise UnavailableError("The database cannot be reached: check that its server runs, and send it again.") from error
        raise


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        options: dict[str, Any] = {
            "pool_size": CONNECTIONS,
            "max_overflow": 0,
            "pool_timeout": PATIENCE,
            "hide_parameters": True,
        }
        if parsed.drivername.startswith("postgresql"):
            return create_engine(parsed, pool_pre_ping=True, **options)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            return _sqlite(create_engine(parsed, connect_args={"timeout": PATIENCE}, **options))
    except (ArgumentError, NoSuchModuleError) as error:
        raise SettingError(f"The address of the database cannot be read ({error}): give one like postgresql://…") from error
    except ImportError as error:
        raise MissingExtraError("PostgreSQL", "postgres") from error
    raise SettingError(f"There is no support for {parsed.drivername}: give a postgresql:// address or an SQLite file.")


def _sqlite(engine: Engine) -> Engine:
    """WAL, every commit on the disk, and transactions that begin when they are told to."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
