"""Processes that are killed, disks that are full, and several processes on one store."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine, text

from .running import Postgres, Server

pytestmark = pytest.mark.service

KILLS = 20
ROWS = 100_000
TEXTS = 200
Start = Callable[..., Server]


@pytest.fixture(params=["sqlite", "postgres"])
def options(request: pytest.FixtureRequest) -> list[str]:
    """The options of a server on either database."""
    if request.param == "sqlite":
        return []
    server: Postgres = request.getfixturevalue("postgres")
    return ["--database", server.create()]


def rows_of(folder: Path, options: list[str], query: str) -> Any:
    """The answer of the database itself to a query for one number."""
    url = options[1].replace("postgresql:", "postgresql+psycopg:") if options else f"sqlite:///{folder / 'handful.sqlite'}"
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.scalar(text(query))
    engine.dispose()
    return found


def filled(server: Server, texts: int = TEXTS) -> str:
    """The path of a project with texts and three classes."""
    classes = [{"name": name} for name in "abc"]
    path = f"/projects/{server.ask('POST', '/projects', 201, json={'name': 'p', 'classes': classes})['id']}"
    server.ask("POST", f"{path}/texts", 201, json={"texts": [{"text": f"text number {i}"} for i in range(texts)]})
    return path


class Labeller(threading.Thread):
    """Labels as fast as it can, and remembers what was acknowledged and what was sent last."""

    def __init__(self, server: Server, path: str, name: str) -> None:
        super().__init__()
        self.server, self.path, self.headers = server, path, {"x-handful-annotator": name}
        self.acknowledged: dict[str, tuple[int, int]] = {}
        self.last: dict[str, Any] | None = None
        self._name = name

    def run(self) -> None:
        for i in range(10_000):
            body = {"id": f"{self._name}-label-{i}", "texts": [i % TEXTS], "class": 1 + i * i % 3}
            self.last = body
            try:
                answer = self.server.client.post(f"{self.path}/labels", json=body, headers=self.headers)
            except httpx.TransportError:
                return
            assert answer.status_code == 200, answer.text
            self.acknowledged[body["id"]] = body["texts"][0], body["class"]


def test_every_acknowledged_label_survives_kill_9_and_none_is_there_twice(
    start_server: Start, tmp_path: Path, options: list[str]
) -> None:
    server = start_server(tmp_path, *options)
    path = filled(server)
    total = 0
    for kill in range(KILLS):
        labeller = Labeller(server, path, f"anna-{kill}")
        labeller.start()
        time.sleep(0.5 + 0.05 * kill)
        server.kill()
        labeller.join()
        server = start_server(tmp_path, *options)
        last = labeller.last
        assert last is not None
        again = server.ask("POST", f"{path}/labels", json=last, headers=labeller.headers)
        assert again["repeated"] or last["id"] not in labeller.acknowledged
        expected = labeller.acknowledged | {last["id"]: (last["texts"][0], last["class"])}
        actions = server.ask("GET", f"{path}/actions?limit=1000", headers=labeller.headers)
        assert sorted(one["client"] for one in actions) == sorted(expected)
        by_text = dict(expected.values())
        texts = server.ask("GET", f"{path}/texts?limit=1000&annotator=anna-{kill}")["texts"]
        mine = {one["id"]: label["class"] for one in texts for label in one["labels"] if label["annotator"] == f"anna-{kill}"}
        assert mine == by_text
        total += len(expected)
    assert total > 5 * KILLS
    assert rows_of(tmp_path, options, "SELECT count(*) FROM actions") == total


def test_an_import_that_is_killed_leaves_nothing(start_server: Start, tmp_path: Path, options: list[str]) -> None:
    server = start_server(tmp_path, *options)
    path = filled(server, 10)
    content = "text,label\n" + "".join(f"a message about number {i},class {i % 9}\n" for i in range(ROWS))
    job = server.ask("POST", f"{path}/import?format=csv", 202, content=content.encode())["id"]
    while not server.ask("GET", f"/jobs/{job}")["done"]:
        time.sleep(0.05)
    assert server.ask("GET", path)["texts"] == 10
    server.kill()
    assert rows_of(tmp_path, options, "SELECT count(*) FROM texts") > 10
    server = start_server(tmp_path, *options)
    if options:
        _age_jobs(options)
    _until(lambda: server.ask("GET", f"/jobs/{job}")["state"] == "failed")
    assert "nothing of it was kept" in server.ask("GET", f"/jobs/{job}")["message"]
    facts = server.ask("GET", path)
    assert (facts["texts"], len(facts["classes"]), facts["importing"]) == (10, 3, False)
    assert rows_of(tmp_path, options, "SELECT count(*) FROM texts") == 10
    assert rows_of(tmp_path, options, "SELECT count(*) FROM labels") == 0
    again = server.ask("POST", f"{path}/import?format=csv", 202, content=content.encode())["id"]
    _until(lambda: server.ask("GET", f"/jobs/{again}")["state"] == "done")
    facts = server.ask("GET", path)
    assert (facts["texts"], facts["states"]["labelled"], len(facts["classes"])) == (ROWS + 10, ROWS, 12)


def _age_jobs(options: list[str]) -> None:
    """Let the silent minute pass after which a process counts as dead."""
    engine = create_engine(options[1].replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE jobs SET seen = seen - 1000 WHERE state = 'running'"))
    engine.dispose()


def _until(check: Callable[[], bool], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "It took too long."
        time.sleep(0.1)


def test_a_server_that_is_asked_to_stop_finishes_what_it_accepted(start_server: Start, tmp_path: Path) -> None:
    server = start_server(tmp_path)
    path = filled(server, 10)
    content = "text\n" + "a message\n" * 20_000
    server.ask("POST", f"{path}/import?format=csv", 202, content=content.encode())
    assert server.stop() == 0
    assert start_server(tmp_path).ask("GET", path)["texts"] == 20_010


# A full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for a few megabytes."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can make a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip("no small disk can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(start_server: Start, small_disk: Path) -> None:
    server = start_server(small_disk)
    path = filled(server)
    ballast = small_disk / "ballast"
    sent = {"texts": [0], "class": 1}
    server.ask("POST", f"{path}/labels", json=sent)
    stored = 1
    with suppress(OSError), ballast.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4096)
    answer = None
    for i in range(2000):
        answer = server.client.post(f"{path}/labels", json={"texts": [i % TEXTS], "class": 1 + i % 3})
        if answer.status_code != 200:
            break
        stored += 1
    assert answer is not None
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "store_full")
    assert "make room" in answer.json()["error"]["message"]
    assert len(server.ask("GET", f"{path}/actions?limit=1000")) == min(stored, 1000)
    ballast.unlink()
    server.ask("POST", f"{path}/labels", json=sent)
    server.kill()
    again = start_server(small_disk)
    assert len(again.ask("GET", f"{path}/actions?limit=1000")) == min(stored + 1, 1000)


# Two processes on one PostgreSQL


def test_two_processes_agree(start_server: Start, tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.create()
    one, other = (start_server(tmp_path / "common", "--database", url) for _ in range(2))
    path = filled(one)
    for server, number in ((one, 1), (other, 2)):
        for i in range(5):
            server.ask("POST", f"{path}/labels", json={"texts": [10 * number + i], "class": number})
    ask = {"json": {"texts": ["text number 12", "text number 23"]}}
    first, second = (server.ask("POST", f"{path}/predict", **ask) for server in (one, other))
    assert first == second
    one.ask("POST", f"{path}/undo", json={})
    assert other.ask("GET", f"{path}/texts/24")["state"] == "open"
    assert one.ask("POST", f"{path}/predict", **ask) == other.ask("POST", f"{path}/predict", **ask) != first


def test_two_processes_store_a_label_once_and_lose_none(start_server: Start, tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.create()
    servers = [start_server(tmp_path / "common", "--database", url) for _ in range(2)]
    path = filled(servers[0])
    answers: list[dict[str, Any]] = []

    def label(server: Server, name: str) -> None:
        for i in range(60):
            body = {"id": f"{name}-same-{i}", "texts": [i], "class": 1 + i % 3}
            answers.append(server.ask("POST", f"{path}/labels", json=body, headers={"x-handful-annotator": name}))

    threads = [threading.Thread(target=label, args=(server, name)) for server in servers for name in ("anna", "bob")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(answers) == 240
    assert sum(not one["repeated"] for one in answers) == 120
    fresh = [one["version"] for one in answers if not one["repeated"]]
    assert len(set(fresh)) == 120
    assert servers[1].ask("GET", path)["annotators"] == servers[0].ask("GET", path)["annotators"]
    assert [one["labels"] for one in servers[1].ask("GET", path)["annotators"]] == [60, 60]


def test_a_job_of_one_process_is_seen_and_cancelled_by_the_other(
    start_server: Start, tmp_path: Path, postgres: Postgres
) -> None:
    url = postgres.create()
    one, other = (start_server(tmp_path / "common", "--database", url) for _ in range(2))
    path = filled(one, 10)
    content = "text\n" + "a message\n" * ROWS
    job = one.ask("POST", f"{path}/import?format=csv", 202, content=content.encode())["id"]
    _until(lambda: other.ask("GET", f"/jobs/{job}")["state"] == "running")
    assert other.ask("GET", path)["importing"]
    other.ask("POST", f"/jobs/{job}/cancel")
    _until(lambda: other.ask("GET", f"/jobs/{job}")["state"] == "cancelled")
    assert other.ask("GET", path)["texts"] == 10
    assert rows_of(tmp_path, ["--database", url], "SELECT count(*) FROM texts") == 10
