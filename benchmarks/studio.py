"""Measure the studio as a person meets it, over HTTP: labels until it is useful, and large projects.

HANDFUL_DATA=data python benchmarks/studio.py value --out results/studio.jsonl            labels to 80 % accuracy
HANDFUL_DATA=data python benchmarks/studio.py value --encoders bge-small --out results/studio.jsonl
python benchmarks/studio.py scale --texts 10000,100000 --out results/studio.jsonl         import, search and memory

`value` plays a person who begins with an empty folder, imports texts of the 20 largest classes of BANKING77 without labels, and
labels one text after another, always correctly, until 80 % of held-out texts are answered correctly twice in a row. Results are
appended to the file as they come, an interrupted run is resumed, and the table shows everything in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import httpx
import numpy as np
from _peers import load_texts

WAYS = {  # how a person goes about it: strategy, and whether class names count as examples
    "suggestions and class names": ("suggest", True),
    "suggestions": ("suggest", False),
    "random order": ("random", False),
}
CLASSES = 20
GOAL = 0.8
EVERY = 10  # labels between two measurements
MOST = 400  # labels
HELD_OUT = 1_000  # texts
AHEAD = 12  # texts that the page fetches ahead
AT_ONCE = 500  # texts per request
WORDS = ("late", "card", "my", "refund please", "zebra crossing")  # to search for


# A server of its own


@contextmanager
def server(folder: Path) -> Iterator[tuple[httpx.Client, int]]:
    """A studio on a free port of this machine; gives a client and the number of its process."""
    command = [
        sys.executable,
        "-c",
        "from handful.cli import main; main()",
        "studio",
        str(folder),
        "--port",
        "0",
        "--no-browser",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        printed = process.stdout.readline() if process.stdout else ""
        address, _, token = printed.split()[-1].partition("/#token=")
        with httpx.Client(
            base_url=f"{address}/api/v1", headers={"authorization": f"Bearer {token}"}, timeout=httpx.Timeout(600)
        ) as client:
            _wait(client, address)
            yield client, process.pid
    finally:
        process.terminate()
        process.wait()


def _wait(client: httpx.Client, address: str) -> None:
    while True:
        try:
            client.get(f"{address}/ready").raise_for_status()
            return
        except httpx.TransportError:
            time.sleep(0.1)


def ask(client: httpx.Client, method: str, path: str, **given: Any) -> Any:
    """The JSON of an answer."""
    answer = client.request(method, path, **given)
    answer.raise_for_status()
    return answer.json()


def upload(client: httpx.Client, project: str, texts: list[str]) -> float:
    """Import texts; gives the seconds until they are there."""
    body = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    start = time.perf_counter()
    job = ask(client, "POST", f"/projects/{project}/import", params={"format": "jsonl"}, content=body)
    while job["state"] in ("waiting", "running"):
        time.sleep(0.1)
        job = ask(client, "GET", f"/jobs/{job['id']}")
    if job["state"] != "done":
        raise RuntimeError(job["message"])
    return time.perf_counter() - start


# A person


@dataclass(frozen=True)
class Task:
    """Texts to label, and held-out ones to answer, with their classes."""

    texts: list[str]
    truth: list[str]
    queries: list[str]
    answers: list[str]
    classes: list[str]


def make_task(seed: int) -> Task:
    """The largest classes of BANKING77, split at random into texts to label and held-out ones."""
    material = load_texts("banking77")
    names = [material.classes[label] for label in material.labels]
    largest = {name for name, _ in Counter(names).most_common(CLASSES)}
    rows = [place for place, name in enumerate(names) if name in largest]
    mixed = np.random.default_rng([seed, 18]).permutation(rows).tolist()
    held, rest = mixed[:HELD_OUT], mixed[HELD_OUT:]
    pick = lambda places, values: [values[place] for place in places]  # noqa: E731
    return Task(pick(rest, material.texts), pick(rest, names), pick(held, material.texts), pick(held, names), sorted(largest))


class Labeller:
    """A person who labels correctly, at a steady pace, what the page shows next."""

    def __init__(self, client: httpx.Client, task: Task, strategy: str, named: bool, encoder: str, pace: float) -> None:
        self._client, self._task, self._strategy, self._pace = client, task, strategy, pace
        classes = [{"name": name} for name in task.classes] if named else []
        settings = {"name": "value", "encoder": encoder, "use_class_names": named, "classes": classes}
        facts = ask(client, "POST", "/projects", json=settings)
        self.project, self._numbers = facts["id"], {one["name"]: one["number"] for one in facts["classes"]}
        upload(client, self.project, task.texts)
        self._queue: list[int] = []
        self._done: list[int] = []

    def label(self) -> None:
        """Label one text; the page asks for the next ones after each answer."""
        start = time.perf_counter()
        if not self._queue:
            self._fetch()
        text = self._queue.pop(0)
        name = self._task.truth[text]
        body = {"texts": [text], "class": self._number(name)}
        ask(self._client, "POST", f"/projects/{self.project}/labels", json=body)
        self._done.append(text)
        time.sleep(max(0.0, self._pace - (time.perf_counter() - start)))
        self._fetch()

    def _fetch(self) -> None:
        query = {"strategy": self._strategy, "count": AHEAD, "exclude": self._done[-50:]}
        found = ask(self._client, "GET", f"/projects/{self.project}/next", params=query)
        self._queue = [one["id"] for one in found["texts"]]

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            made = ask(self._client, "POST", f"/projects/{self.project}/classes", json={"name": name})
            self._numbers[name] = made["number"]
        return self._numbers[name]

    def accuracy(self) -> float:
        """The share of held-out texts that are answered correctly; 0 while there are fewer than two classes."""
        if len(self._numbers) < 2:
            return 0.0
        found: list[str] = []
        for start in range(0, len(self._task.queries), AT_ONCE):
            body = {"texts": self._task.queries[start : start + AT_ONCE], "top_k": 1}
            answers = ask(self._client, "POST", f"/projects/{self.project}/predict", json=body)["answers"]
            found += [one["label"] for one in answers]
        return float(np.mean([one == other for one, other in zip(found, self._task.answers, strict=True)]))


def play(way: str, encoder: str, seed: int, pace: float) -> dict[str, Any]:
    """Label until the goal is reached twice in a row; gives the curve and the number of labels."""
    strategy, named = WAYS[way]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (client, _):
        person = Labeller(client, make_task(seed), strategy, named, encoder, pace)
        curve = [(0, person.accuracy())]
        while curve[-1][0] < MOST and min(share for _, share in [(0, 0.0), *curve][-2:]) < GOAL:
            for _ in range(EVERY):
                person.label()
            curve.append((curve[-1][0] + EVERY, person.accuracy()))
    reached = next((labels for labels, share in curve if share >= GOAL), None)
    facts = {"kind": "value", "way": way, "encoder": encoder, "seed": seed, "pace": pace, "labels": reached}
    return facts | {"curve": [[labels, round(share, 4)] for labels, share in curve], "seconds": time.perf_counter() - start}


# Large projects


def scale(texts: int) -> dict[str, Any]:
    """Import, search, label and memory of a project with this many texts."""
    rng = np.random.default_rng(0)
    demo = [json.loads(line)["text"].split() for line in _resource().splitlines()]
    words = [word for text in demo for word in text]
    made = [" ".join(words[place] for place in rng.integers(0, len(words), rng.integers(8, 30))) for _ in range(texts)]
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (client, process):
        classes = [{"name": name} for name in ("library", "repair", "heating", "money")]
        project = ask(client, "POST", "/projects", json={"name": "large", "classes": classes})["id"]
        facts: dict[str, Any] = {"kind": "scale", "texts": texts, "import_seconds": upload(client, project, made)}
        path = f"/projects/{project}"
        facts["first_predictions_seconds"] = _seconds(lambda: ask(client, "GET", f"{path}/texts", params={"wait": True}))
        facts["search_ms"] = _worst(lambda word: ask(client, "GET", f"{path}/texts", params={"search": word}), WORDS)
        facts["last_page_ms"] = 1000 * _seconds(lambda: ask(client, "GET", f"{path}/texts", params={"offset": texts - 50}))
        sure = {"sort": "confidence", "predicted": 1, "search": "late"}
        facts["filter_ms"] = 1000 * _seconds(lambda: ask(client, "GET", f"{path}/texts", params=sure))
        facts["project_ms"] = 1000 * _seconds(lambda: ask(client, "GET", path))
        facts["map_seconds"] = _seconds(lambda: ask(client, "GET", f"{path}/map", params={"wait": True, "limit": 20_000}))
        facts["label_ms"] = _labels(client, path)
        facts["next_ms"] = 1000 * _seconds(lambda: ask(client, "GET", f"{path}/next", params={"count": AHEAD}))
        facts["peak_megabytes"] = _peak(process)
    return facts


def _resource() -> str:
    from handful.utils.paths import resource

    return resource("demo.jsonl").read_text("utf-8")


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _worst(work: Any, given: tuple[str, ...]) -> float:
    """The slowest of several, each the median of three, in milliseconds."""
    return max(1000 * median(_seconds(lambda one=one: work(one)) for _ in range(3)) for one in given)


def _labels(client: httpx.Client, path: str) -> float:
    """The median time of a label, in milliseconds, while the model learns."""
    body = [{"texts": [number], "class": 1 + number % 4} for number in range(20)]
    return 1000 * median(_seconds(lambda one=one: ask(client, "POST", f"{path}/labels", json=one)) for one in body)


def _peak(process: int) -> float:
    """The most memory that a process has used, in megabytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


# Results


def read(path: Path) -> list[dict[str, Any]]:
    """The results so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(path: Path, facts: dict[str, Any]) -> None:
    """Append a result."""
    with path.open("a") as stream:
        stream.write(json.dumps(facts) + "\n")


def show(results: list[dict[str, Any]]) -> None:
    """Print both tables."""
    for encoder in sorted({one["encoder"] for one in results if one["kind"] == "value"}, reverse=True):
        print(f"\nlabels to {100 * GOAL:.0f} % accuracy, {encoder}")
        for way in WAYS:
            found = [one for one in results if one["kind"] == "value" and (one["encoder"], one["way"]) == (encoder, way)]
            if found:
                labels = [one["labels"] if one["labels"] is not None else MOST for one in found]
                beyond = sum(one["labels"] is None for one in found)
                never = f", {beyond} not within {MOST}" if beyond else ""
                start, fifty = (mean(_at(one["curve"], at) for one in found) for at in (0, 50))
                print(f"  {way:30} {mean(labels):5.0f} {sorted(labels)}{never}; at 0 {start:.2f}, at 50 {fifty:.2f}")
    for one in (one for one in results if one["kind"] == "scale"):
        print(f"\n{one['texts']:,} texts")
        for name, value in one.items():
            if name not in ("kind", "texts"):
                print(f"  {name:28} {value:9.1f}")


def _at(curve: list[list[float]], labels: int) -> float:
    return next((share for number, share in curve if number == labels), curve[-1][1])


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["value", "scale", "show"])
    parser.add_argument("--out", type=Path, default=Path("studio.jsonl"))
    parser.add_argument("--encoders", default="words")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pace", type=float, default=0.4, help="Seconds that the person takes for a text.")
    parser.add_argument("--texts", default="10000,100000")
    given = parser.parse_args()
    results = read(given.out)
    if given.what == "scale":
        known = {one["texts"] for one in results if one["kind"] == "scale"}
        for texts in map(int, given.texts.split(",")):
            if texts not in known:
                write(given.out, scale(texts))
    if given.what == "value":
        if not os.environ.get("HANDFUL_DATA"):
            sys.exit("HANDFUL_DATA names no folder with the benchmark files.")
        known_runs = {(one["way"], one["encoder"], one["seed"]) for one in results if one["kind"] == "value"}
        runs = [
            (way, encoder, seed)
            for seed in range(given.seeds)
            for encoder in given.encoders.split(",")
            for way in given.ways.split(",")
        ]
        for run in runs:
            if run not in known_runs:
                write(given.out, play(*run, given.pace))
    show(read(given.out))


if __name__ == "__main__":
    main()
