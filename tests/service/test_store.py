"""The store's versions, errors and writers; its commands."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from handful.cli import main
from handful.errors import DataError, SettingError
from handful.service.errors import FullError, UnavailableError
from handful.service.server import bound, check_reachable, locked, page_address
from handful.service.settings import Limits, ServiceSettings
from handful.service.store import database as module
from handful.service.store.database import Database, store_errors
from handful.service.store.projects import Person, create_project, list_projects
from handful.service.store.tables import METADATA

ME = Person("me", "me", "admin")
SECOND = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"
def upgrade():
    op.add_column("projects", sa.Column("colour", sa.String(20)))
"""


def open_store(folder: Path) -> Database:
    database = Database(f"sqlite:///{folder / 'handful.sqlite'}")
    database.prepare()
    return database


def project_names(database: Database) -> list[str]:
    with database.reading() as connection:
        return [row.name for row in list_projects(connection, ME)]


def test_the_migrations_make_the_tables_that_the_code_knows(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with open_store(tmp_path).reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_store_of_an_older_version_is_migrated_and_a_copy_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = open_store(tmp_path)
    with database.writing() as connection:
        create_project(connection, ME, "old")
    database.close()
    later = tmp_path / "migrations"
    shutil.copytree(module.MIGRATIONS, later)
    (later / "versions" / "v0002_second.py").write_text(SECOND)
    monkeypatch.setattr(module, "MIGRATIONS", later)
    database = open_store(tmp_path)
    assert project_names(database) == ["old"]
    with database.reading() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0002"
        assert connection.scalar(text("SELECT colour FROM projects")) is None
    database.close()
    copies = [path.name for path in tmp_path.glob("*.before-0001")]
    assert copies == ["handful.sqlite.before-0001"]
    monkeypatch.undo()
    with pytest.raises(DataError, match="newer version of Handful"):
        open_store(tmp_path)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = open_store(tmp_path)
    with database.writing() as connection:
        create_project(connection, ME, "old")
    database.close()
    later = tmp_path / "migrations"
    shutil.copytree(module.MIGRATIONS, later)
    (later / "versions" / "v0002_second.py").write_text(SECOND + "    raise RuntimeError('half-way')\n")
    with monkeypatch.context() as patched:
        patched.setattr(module, "MIGRATIONS", later)
        with pytest.raises(RuntimeError, match="half-way"):
            open_store(tmp_path)
    assert project_names(open_store(tmp_path)) == ["old"]


def test_a_file_or_database_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "handful.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match="cannot be used"):
        open_store(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with sqlite3.connect(other / "handful.sqlite") as connection:
        connection.execute("CREATE TABLE projects (id INT)")
    with pytest.raises(DataError, match="did not make"):
        open_store(other)


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "sqlite://", "postgresql+nothing://x/y"])
def test_addresses_that_cannot_be_used(url: str) -> None:
    with pytest.raises(SettingError):
        Database(url)


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(tmp_path: Path) -> None:
    """SQLite's limit of pages stands for a disk that is full."""
    database = open_store(tmp_path)
    with database.writing() as connection:
        create_project(connection, ME, "kept")

    def fill() -> None:
        with database.writing() as connection:
            connection.execute(text("PRAGMA max_page_count = 1"))
            for i in range(1000):
                create_project(connection, ME, f"lost {i}", most=10_000)

    with pytest.raises(FullError, match="make room"):
        fill()
    assert project_names(database) == ["kept"]


def test_a_store_that_is_locked_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    database = open_store(tmp_path)
    other = sqlite3.connect(tmp_path / "handful.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError, match="Another process"), database.writing():
        pass
    other.close()


def test_unknown_errors_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), store_errors():
        1 / 0  # noqa: B018


def test_writers_take_turns(tmp_path: Path) -> None:
    database = open_store(tmp_path)

    def write(number: int) -> None:
        for i in range(10):
            with database.writing() as connection:
                create_project(connection, ME, f"{number} {i}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(set(project_names(database))) == 50


# Settings and commands


def test_settings_that_contradict_are_refused(tmp_path: Path) -> None:
    for given in (
        {"port": 70_000},
        {"host": "0.0.0.0", "token": "x"},
        {"root_path": "x/"},
        {"host": "1.2.3.4", "open_to_all": True},
    ):
        with pytest.raises(SettingError):
            ServiceSettings(tmp_path, **given)


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDFUL_MOST_PROJECTS", "7")
    assert Limits.from_environment() == Limits(projects=7)
    monkeypatch.setenv("HANDFUL_MOST_PROJECTS", "many")
    with pytest.raises(SettingError, match="HANDFUL_MOST_PROJECTS is 'many'"):
        Limits.from_environment()


def test_a_folder_is_kept_to_one_server(tmp_path: Path) -> None:
    settings = ServiceSettings(tmp_path)
    with locked(settings), pytest.raises(SettingError, match="Another server is using"), locked(settings):
        pass


def test_a_port_in_use_gets_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(SettingError, match=f"Port {port} of 127.0.0.1 is in use"),
            bound(ServiceSettings(tmp_path, port=port)),
        ):
            pass


def test_an_address_that_others_reach_needs_names_and_keys(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="--allow-host"):
        check_reachable(ServiceSettings(tmp_path, host="0.0.0.0"))
    settings = ServiceSettings(tmp_path, host="0.0.0.0", hosts=("models.example.org",))
    with pytest.raises(SettingError, match="handful keys add"):
        check_reachable(settings)
    assert CliRunner().invoke(main, ["keys", "add", "anna", "--folder", str(tmp_path)]).exit_code == 0
    check_reachable(settings)


def test_the_token_is_behind_the_hash_of_the_address(tmp_path: Path) -> None:
    settings = ServiceSettings(tmp_path, host="::1", token="abc", root_path="/studio")
    assert page_address(settings) == "http://[::1]:8000/studio/#token=abc"


def test_keys_are_added_listed_and_revoked(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["keys", *arguments, "--folder", str(tmp_path)])
        return result.output

    assert "no keys" in run("list")
    key = run("add", "anna", "--role", "read").strip()
    assert key.startswith("handful_")
    name = key.split("_")[1]
    assert name in run("list")
    assert key not in run("list")
    assert "no longer" in run("revoke", key)
    assert "revoked" in run("list")
    assert "There is no key" in run("revoke", name)


def test_without_the_extra_there_is_a_hint(tmp_path: Path) -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; from handful.cli import main; main()"
    command = [sys.executable, "-c", code, "studio", str(tmp_path), "--no-browser"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, "handful[studio]" in result.stderr) == (2, True)


def test_the_command_line_stays_light(tmp_path: Path) -> None:
    code = (
        "import sys; from handful.cli import main; print([n for n in ('fastapi', 'sqlalchemy', 'uvicorn') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_every_route_is_in_the_docs(tmp_path: Path) -> None:
    from handful import FewShotClassifier
    from handful.service.serving.app import serving_app
    from handful.service.serving.learning import ServedModel
    from handful.service.studio import studio_app

    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    FewShotClassifier().fit(["a", "b"], ["x", "y"]).save(tmp_path / "m")
    studio = studio_app(ServiceSettings(tmp_path / "s", token="x"))
    studio.state.service.database.close()
    serving = serving_app(ServedModel(tmp_path / "m"), ServiceSettings(tmp_path, token="x"), None)
    for app in (studio, serving):
        for path, methods in app.openapi()["paths"].items():
            for method in methods:
                assert f"`{method.upper()} {path.removeprefix('/api/v1')}`" in page, (method, path)
