"""A million texts through `handful predict`: killed in the middle and resumed, the same bytes as in one go, and its memory.

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

from handful.corpus import load_dataset

BLOCK = 10_000  # texts drawn at once
POLL = 0.05  # seconds between two looks


def write_files(folder: Path, rows: int, seed: int) -> None:
    """Five classes of the demo corpus as examples, five each; texts of words drawn from the same corpus, a line each."""
    corpus, rng = load_dataset("demo").corpus, np.random.default_rng(seed)
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
    """The command in a process of its own."""
    command = [sys.executable, "-m", "handful", "predict", str(folder / "triage"), str(folder / "inbox.jsonl"), "--keep"]
    return subprocess.Popen([*command, "--out", str(out), "--workers", str(workers), "--json"], stdout=subprocess.PIPE)


def peak_memory(process: subprocess.Popen[bytes]) -> float:
    """Wait for the end of a process; the most memory it ever held, in MB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024


def finish(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    """Wait for the command; its memory, and how many texts it took over from a run that was killed."""
    peak = peak_memory(process)
    if process.returncode or process.stdout is None:
        raise SystemExit(f"handful predict ended with {process.returncode}.")
    return peak, int(json.loads(process.stdout.read())["resumed"])


def kill_in_the_middle(process: subprocess.Popen[bytes], out: Path, rows: int) -> tuple[float, int]:
    """Kill it when half of the rows are written; its memory, and how many were."""
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
    """Write the files, answer them in one go, then killed and resumed, and compare."""
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
    """Print what both ways took; whether they gave the same bytes."""
    whole, resumed = folder / "whole.csv", folder / "resumed.csv"
    start = time.monotonic()
    peak, _ = finish(start_predict(folder, whole, workers))
    seconds = time.monotonic() - start
    print(f"In one go: {seconds:.0f} s, {rows / seconds:,.0f} texts a second, {peak:.0f} MB at most.", flush=True)
    peak, written = kill_in_the_middle(start_predict(folder, resumed, workers), resumed, rows)
    absent = "A FILE OF ANSWERS THAT IS NOT WHOLE" if resumed.exists() else "no file of answers yet"
    print(f"Killed after {written:,} texts were written ({absent}): {peak:.0f} MB at most.", flush=True)
    peak, taken = finish(start_predict(folder, resumed, workers))
    print(f"Resumed after {taken:,} texts: {peak:.0f} MB at most.")
    digests = [sha256(path) for path in (whole, resumed)]
    same = digests[0] == digests[1] and taken == written
    print(f"The answers are {'the same bytes' if same else 'NOT THE SAME'}, {whole.stat().st_size / 1e6:.1f} MB each:")
    print("\n".join(f"sha256 {digest}" for digest in digests))
    return same


if __name__ == "__main__":
    main()
