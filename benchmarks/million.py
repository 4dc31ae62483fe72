"""Send a million texts through `handful predict`, uninterrupted and killed halfway; compare the bytes, and measure the memory.

python benchmarks/million.py                        a million texts
python benchmarks/million.py --rows 100000 --workers 2
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from handful.data.datasets import load_dataset

BLOCK = 10_000  # texts drawn at once
POLL = 0.05  # seconds between two checks


def write_files(folder: Path, rows: int, seed: int) -> None:
    """Write five examples each of five demo classes, and one text per line, of words drawn from the same corpus."""
    corpus = load_dataset("demo").corpus
    rng = np.random.default_rng(seed)
    with (folder / "examples.jsonl").open("w") as stream:
        for label in range(5):
            for document in np.flatnonzero(corpus.labels == label)[:5]:
                text = " ".join(corpus.words(document))
                stream.write(json.dumps({"text": text, "label": corpus.classes[label]}) + "\n")
    counts = corpus.word_counts().sum(axis=0)
    with (folder / "inbox.jsonl").open("w") as stream:
        for start in range(0, rows, BLOCK):
            lengths = rng.integers(3, 20, min(BLOCK, rows - start))
            words = rng.choice(corpus.vocabulary.words, lengths.sum(), p=counts / counts.sum())
            for number, text in enumerate(np.split(words, lengths.cumsum()[:-1]), start):
                stream.write(json.dumps({"id": number, "text": " ".join(text)}) + "\n")


def start_predict(folder: Path, out: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start the command in a separate process."""
    command = [sys.executable, "-m", "handful", "predict", str(folder / "triage"), str(folder / "inbox.jsonl"), "--keep"]
    return subprocess.Popen([*command, "--out", str(out), "--workers", str(workers), "--json"], stdout=subprocess.PIPE)


def peak_memory(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process to end, and return its peak memory in MB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024


def finish(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    """Wait for the command; return its peak memory, and the number of texts it reused from a killed run."""
    peak = peak_memory(process)
    if process.returncode or process.stdout is None:
        raise SystemExit(f"handful predict ended with exit code {process.returncode}.")
    return peak, int(json.loads(process.stdout.read())["resumed"])


def kill_in_the_middle(process: subprocess.Popen[bytes], out: Path, rows: int) -> tuple[float, int]:
    """Kill it when half of the rows are written; return its peak memory, and the number of rows written."""
    note = out.with_name(f".{out.name}.pending.json")
    while not note.exists() or json.loads(note.read_text())["rows"] < rows // 2:
        if process.poll() is not None:
            raise SystemExit("handful predict ended before it could be killed.")
        time.sleep(POLL)
    process.send_signal(signal.SIGKILL)
    return peak_memory(process), int(json.loads(note.read_text())["rows"])


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main() -> None:
    """Write the files, predict uninterrupted, then killed and resumed, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, arguments.rows, arguments.seed)
        fit = [sys.executable, "-m", "handful", "fit", str(folder / "examples.jsonl"), "--out", str(folder / "triage")]
        subprocess.run(fit, check=True)
        raise SystemExit(0 if compare(folder, arguments.rows, arguments.workers) else 1)


def compare(folder: Path, rows: int, workers: int) -> bool:
    """Print the costs of both runs, and return whether they gave the same bytes."""
    whole, resumed = folder / "whole.csv", folder / "resumed.csv"
    start = time.monotonic()
    peak, _ = finish(start_predict(folder, whole, workers))
    seconds = time.monotonic() - start
    print(f"Uninterrupted: {seconds:.0f} s, {rows / seconds:,.0f} texts per second, peak memory {peak:.0f} MB.", flush=True)
    peak, written = kill_in_the_middle(start_predict(folder, resumed, workers), resumed, rows)
    absent = "AN INCOMPLETE ANSWER FILE" if resumed.exists() else "no answer file yet"
    print(f"Killed after {written:,} texts were written ({absent}): peak memory {peak:.0f} MB.", flush=True)
    peak, taken = finish(start_predict(folder, resumed, workers))
    print(f"Resumed after {taken:,} texts: peak memory {peak:.0f} MB.")
    digests = [sha256(path) for path in (whole, resumed)]
    same = digests[0] == digests[1] and taken == written
    print(f"The answers are {'identical' if same else 'NOT IDENTICAL'}, {whole.stat().st_size / 1e6:.1f} MB each:")
    print("\n".join(f"sha256 {digest}" for digest in digests))
    return same


if __name__ == "__main__":
    main()
