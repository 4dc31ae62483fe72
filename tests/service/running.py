"""Servers in processes of their own, and a PostgreSQL, for tests; every process that is started here is ended here."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

START = 60.0  # seconds that a server may take


class Server:
    """A `handful` command that serves."""

    def __init__(self, arguments: list[str], environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-c", "from handful.cli import main; main()", *arguments]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process: Any = subprocess.Popen(command, env=os.environ | (environment or {}), **options)
        line = self.process.stdout.readline()
        assert "http://" in line, line
        address, _, token = line.split()[-1].partition("#token=")
        self.address, self.token = address.rstrip("/"), token.strip()
        self.client = httpx.Client(
            base_url=f"{self.address}/api/v1", headers={"authorization": f"Bearer {self.token}"}, timeout=60
        )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + START
        while time.monotonic() < end:
            try:
                if httpx.get(f"{self.address}/ready").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("The server did not start.")

    def ask(self, method: str, path: str, status: int = 200, **given: Any) -> Any:
        answer = self.client.request(method, path, **given)
        assert answer.status_code == status, answer.text
        return answer.json()

    def kill(self) -> None:
        """End the process at once, as a loss of power would."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.client.close()

    def stop(self) -> int:
        """Ask the process to end."""
        self.process.send_signal(signal.SIGTERM)
        return int(self.process.wait(timeout=60))


class Postgres:
    """A PostgreSQL on loopback."""

    def __init__(self, port: int) -> None:
        self._port, self._made = port, 0

    def _url(self, name: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/{name}"

    def create(self) -> str:
        """The address of a fresh database."""
        import psycopg

        self._made += 1
        name = f"test{self._made}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self._url(name)


def _programs() -> Path | None:
    """The folder with initdb and postgres; installed if this is root and they are missing."""
    for attempt in range(2):
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if found:
            return found[-1].parent
        on_path = shutil.which("initdb")
        if on_path:
            return Path(on_path).resolve().parent
        if attempt or os.name != "posix" or os.geteuid() != 0 or not shutil.which("apt-get"):
            return None
        subprocess.run(["apt-get", "update", "--quiet"], check=False, capture_output=True)
        subprocess.run(["apt-get", "install", "--yes", "--quiet", "postgresql"], check=False, capture_output=True)
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Start PostgreSQL as the user postgres (it refuses root) in a temporary folder."""
    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not installed: pip install 'handful[postgres]'")
    programs = _programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL, and no right to install it")
    as_user: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="handful-postgres."))
    try:
        if as_user:
            shutil.chown(folder, "postgres", "postgres")
        quiet: dict[str, Any] = {"cwd": "/", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        made = [programs / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run(made, check=True, **quiet, **as_user)
        port = _free_port()
        run = [programs / "postgres", "-D", folder / "data", "-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"]
        process = subprocess.Popen(run, **quiet, **as_user)
        try:
            _wait_for(port)
            yield Postgres(port)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int) -> None:
    import psycopg

    end = time.monotonic() + START
    while True:
        try:
            psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres").close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
