"""Real processes: interrupted, with a reader that has gone, with closed streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from handful import FewShotClassifier
from handful.utils.parallel import Workers, dependable_map, parallel_map

PATIENCE = 120  # seconds for anything to happen
TEXTS = ["the soup was tasty", "my train came late", "we had dinner", "a delayed flight", "dessert and wine", "lost luggage"]
HANDFUL = [sys.executable, "-m", "handful"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("classifier") / "triage"
    FewShotClassifier().fit(TEXTS, ["food", "travel"] * 3).save(path, keep_examples=True)
    return path


def write_inbox(path: Path, rows: int) -> Path:
    path.write_text("text\n" + "".join(f"{TEXTS[i % 6]} number {i}\n" for i in range(rows)))
    return path


def shell(command: str, **variables: object) -> subprocess.CompletedProcess[str]:
    """A command of bash, with `$handful` and these variables; its exit code is that of the first command of a pipe."""
    script = f'handful() {{ {sys.executable} -m handful "$@"; }}\n{command}\nexit ${{PIPESTATUS[0]}}'
    given = {name: str(value) for name, value in variables.items()}
    return subprocess.run(
        ["bash", "-c", script], env={**os.environ, **given}, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


# Interrupted


def interrupted(command: list[str], note: Path, group: bool = False) -> tuple[int, str]:
    """The exit code and the standard error of a run that gets Ctrl-C once it has written something."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
    deadline = time.monotonic() + PATIENCE
    while not (note.exists() and json.loads(note.read_text())["rows"]):
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.005)
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    printed = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, printed


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_is_one_line_and_130_and_the_same_command_resumes(folder: Path, tmp_path: Path, workers: int) -> None:
    inbox, out = write_inbox(tmp_path / "in.csv", 60_000), tmp_path / "out.csv"
    command = [*HANDFUL, "predict", str(folder), str(inbox), "--out", str(out), "--workers", str(workers)]
    code, printed = interrupted(command, tmp_path / ".out.csv.pending.json", group=workers > 1)
    assert (code, printed.count("\n")) == (130, 1), printed
    assert printed.startswith("Interrupted.")
    assert "run the same command again to resume" in printed
    assert not out.exists()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "of them by an earlier run" in again.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_ctrl_c_where_nothing_is_left_behind(folder: Path, tmp_path: Path) -> None:
    command = [*HANDFUL, "predict", str(folder), "-", "--format", "txt", "--out", str(tmp_path / "out.csv")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    pending = tmp_path / ".out.csv.pending"
    while not (pending.exists() and pending.stat().st_size):
        assert time.monotonic() < deadline, "nothing was begun"
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    printed = process.communicate(timeout=PATIENCE)[1]
    assert (process.returncode, printed) == (130, "Interrupted.\n")
    assert list(tmp_path.iterdir()) == []


def blocked_signals(_: int) -> tuple[int, set[int]]:
    return os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("others", [False, True], ids=["alone", "after another parallel map"])
def test_workers_do_not_see_ctrl_c_and_this_process_does(others: bool) -> None:
    strangers = dict(parallel_map(blocked_signals, ((i,) for i in range(6)), workers=2)) if others else {}
    outcomes = [outcome for _, outcome in dependable_map(blocked_signals, ((i,) for i in range(6)), Workers(2))]
    assert not dict(outcomes).keys() & {os.getpid(), *strangers}
    assert all(signal.SIGINT in blocked for _, blocked in outcomes)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


# A reader that has gone


@pytest.mark.parametrize(
    "command",
    [
        'handful predict "$folder" "$inbox" | head -1',
        'handful predict "$folder" "$inbox" --json | true',
        'handful suggest "$folder" "$inbox" | true',
        'handful suggest "$folder" "$inbox" --json | true',
        'handful inspect "$folder" | true',
        'handful score "$folder" "$labelled" | true',
        'handful explain "$folder" "tasty soup" | true',
        'handful explain "$folder" "tasty soup" --json | true',
        "handful datasets list | true",
    ],
)
def test_a_closed_pipe_is_silent_and_141(folder: Path, tmp_path: Path, command: str) -> None:
    inbox = write_inbox(tmp_path / "in.csv", 20_000)
    labelled = tmp_path / "labelled.csv"
    labelled.write_text("text,label\nsoup,food\n")
    result = shell(command, folder=folder, inbox=inbox, labelled=labelled)
    assert (result.returncode, result.stderr) == (141, "")


# Closed streams


@pytest.mark.parametrize(
    "command",
    [
        'predict "$folder" "$labelled" >&-',
        'explain "$folder" "tasty soup" >&-',
        'explain "$folder" "tasty soup" --json >&-',
        'inspect "$folder" >&-',
        'score "$folder" "$labelled" >&-',
        'suggest "$folder" "$labelled" >&-',
        'suggest "$folder" "$labelled" --json >&-',
        'fit "$labelled" --out "$out" >&-',
        'predict "$folder" "$labelled" --text text 2>&-',
        'score "$folder" "$labelled" 2>&-',
        'explain "$folder" "tasty soup" >&- 2>&-',
    ],
)
def test_closed_streams(folder: Path, tmp_path: Path, command: str) -> None:
    labelled = tmp_path / "labelled.csv"
    labelled.write_text("text,label\nsoup,food\ntrain,travel\n")
    result = shell(f"handful {command}", folder=folder, labelled=labelled, out=tmp_path / "m")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_closed_standard_input(folder: Path) -> None:
    result = shell('handful predict "$folder" - --format txt <&-', folder=folder)
    assert (result.returncode, result.stdout, result.stderr) == (0, "label,probability\n", "")
    result = shell('handful explain "$folder" - --json <&-', folder=folder)
    assert json.loads(result.stdout)["text"] == ""
    result = shell('handful predict "$folder" - --format csv <&-', folder=folder)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ['explain "$folder" "tasty soup"', 'predict "$folder" "$inbox"'])
def test_a_full_disk_is_one_sentence(folder: Path, tmp_path: Path, command: str) -> None:
    result = shell(f"handful {command} > /dev/full", folder=folder, inbox=write_inbox(tmp_path / "in.csv", 3))
    assert result.returncode == 2
    assert result.stderr == "Error: No space left on device: check the path, its permissions and the free space.\n"
