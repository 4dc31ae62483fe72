"""The grid on a real local Dask and a real local Ray: the same lines as in one process, also when a worker is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import pytest

pytestmark = pytest.mark.cluster

OPTIONS = {"way": 3, "queries": 3, "episodes": 30, "validation_episodes": 2, "epochs": 6, "test_episodes": 20}
TIMES = ("seconds", "peak_memory_mb", "resumed_from_epoch")
PATIENCE = 240  # seconds for anything to happen
FAREWELL = 10  # seconds for a process to end by itself
ENVIRONMENT = {
    **os.environ,
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's own way to stay on 127.0.0.1
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": token_hex(32),  # of this test's cluster alone
}
RAY_HOST = """
import sys, ray
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=10**8, _temp_dir=sys.argv[1], log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("grid") / "grid.json"
    block = {"data": ["demo"], "presets": ["idf-rr", "our", "avg-nn", "our-without-s"], "shots": [1], "options": OPTIONS}
    path.write_text(json.dumps({"about": "for a test", "seeds": [0, 1], "blocks": [block]}))
    return path


@pytest.fixture(scope="module")
def serial(grid: Path) -> list[dict]:
    process = start_benchmark(grid, grid.parent / "serial")
    assert process.wait(PATIENCE) == 0
    return lines_of(grid.parent / "serial")


def start_benchmark(grid: Path, folder: Path, *options: str) -> subprocess.Popen:
    folder.mkdir()
    command = [sys.executable, "-m", "handful", "benchmark", str(grid), "--out", str(folder / "r.jsonl"), "--quiet"]
    return subprocess.Popen([*command, "--runs", str(folder / "runs"), *options], env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def lines_of(folder: Path) -> list[dict]:
    """Lines without times and memory, in a fixed order."""
    rows = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    kept = [{name: value for name, value in row.items() if name not in TIMES} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


@contextmanager
def processes() -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts processes that end with the block."""
    started: list[subprocess.Popen] = []

    def start(*command: str, **options: object) -> subprocess.Popen:
        started.append(subprocess.Popen([sys.executable, *command], env=ENVIRONMENT, **options))
        return started[-1]

    try:
        yield start
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(FAREWELL)
            except subprocess.TimeoutExpired:  # a Dask worker may wait for a scheduler that has gone
                process.kill()
                process.wait(PATIENCE)


def test_dask_with_a_worker_killed_in_the_middle(grid: Path, serial: list[dict], tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    quiet, meeting = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}, tmp_path / "scheduler.json"
    with processes() as start:
        local = ("--host", "127.0.0.1", "--no-dashboard")
        start("-m", "dask", "scheduler", *local, "--port", "0", "--scheduler-file", str(meeting), **quiet)
        wait_for(meeting.exists)
        worker = ("-m", "dask", "worker", *local, "--scheduler-file", str(meeting), "--nthreads", "1", "--no-nanny")
        victim, _ = start(*worker, **quiet), start(*worker, **quiet)
        address = json.loads(meeting.read_text())["address"]
        run = start_benchmark(grid, tmp_path / "dask", "--backend", "dask", "--address", address)
        wait_for(lambda: len(list((tmp_path / "dask").glob("runs/*/checkpoint.safetensors"))) == 2)  # both are in the middle
        victim.send_signal(signal.SIGKILL)
        assert run.wait(PATIENCE) == 0
    assert lines_of(tmp_path / "dask") == serial
    assert any(json.loads(line)["resumed_from_epoch"] for line in (tmp_path / "dask" / "r.jsonl").read_text().splitlines())


def test_ray(grid: Path, serial: list[dict], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with TemporaryDirectory(prefix="ray") as sockets, processes() as start:  # a socket's path must be short
        host = start("-c", RAY_HOST, sockets, **pipes)
        address = host.stdout.readline().strip()
        assert address.startswith("127.0.0.1:")
        run = start_benchmark(grid, tmp_path / "ray", "--backend", "ray", "--address", address)
        assert run.wait(PATIENCE) == 0
        host.communicate(timeout=PATIENCE)  # ends Ray's own processes
    assert lines_of(tmp_path / "ray") == serial


def test_an_address_where_nobody_is(grid: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    command = [sys.executable, "-m", "handful", "benchmark", str(grid), "--out", str(tmp_path / "r.jsonl"), "--quiet"]
    command += ["--runs", str(tmp_path / "runs"), "--backend", "dask", "--address", "tcp://127.0.0.1:9"]
    environment = {**ENVIRONMENT, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 2
    assert result.stderr.startswith("Error: There is no Dask scheduler at tcp://127.0.0.1:9")
