"""A file answered on a real local Dask, with a worker killed, and on a real local Ray: the same answers as in one process."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from test_cluster import ENVIRONMENT, PATIENCE, RAY_HOST, processes, wait_for

from handful import FewShotClassifier

pytestmark = pytest.mark.cluster

ROWS = 30_000
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    texts = ["tasty soup", "late train", "cracked screen"]
    FewShotClassifier().fit(texts, ["food", "travel", "repair"]).save(folder / "triage")
    (folder / "inbox.txt").write_text("".join(f"{texts[i % 3]} number {i}\n" for i in range(ROWS)))
    assert start_predict(folder, folder / "serial.csv").wait(PATIENCE) == 0
    return folder


def start_predict(place: Path, out: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "handful", "predict", str(place / "triage"), str(place / "inbox.txt"), "--keep"]
    return subprocess.Popen([*command, "--out", str(out), *options], env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def answers(path: Path) -> list[tuple[str, str]]:
    with path.open(newline="") as stream:
        return [(row["text"], row["label"]) for row in csv.DictReader(stream)]


def test_dask_with_a_worker_killed_in_the_middle(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    meeting, out = tmp_path / "scheduler.json", tmp_path / "dask.csv"
    with processes() as start:
        local = ("--host", "127.0.0.1", "--no-dashboard")
        start("-m", "dask", "scheduler", *local, "--port", "0", "--scheduler-file", str(meeting), **QUIET)
        wait_for(meeting.exists)
        worker = ("-m", "dask", "worker", *local, "--scheduler-file", str(meeting), "--nthreads", "1", "--no-nanny")
        victim, _ = start(*worker, **QUIET), start(*worker, **QUIET)
        address = json.loads(meeting.read_text())["address"]
        run = start_predict(place, out, "--backend", "dask", "--address", address)
        note = tmp_path / ".dask.csv.pending.json"
        wait_for(lambda: note.exists() and json.loads(note.read_text())["rows"] > 0)
        victim.send_signal(signal.SIGKILL)
        assert run.wait(PATIENCE) == 0
    assert answers(out) == answers(place / "serial.csv")
    assert len(answers(out)) == ROWS


def test_ray(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with TemporaryDirectory(prefix="ray") as sockets, processes() as start:  # a socket's path must be short
        host = start("-c", RAY_HOST, sockets, **pipes)
        address = host.stdout.readline().strip()
        run = start_predict(place, tmp_path / "ray.csv", "--backend", "ray", "--address", address)
        assert run.wait(PATIENCE) == 0
        host.communicate(timeout=PATIENCE)  # ends Ray's own processes
    assert answers(tmp_path / "ray.csv") == answers(place / "serial.csv")
