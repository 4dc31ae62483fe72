"""Measure the service on loopback: rates and latencies of a served classifier, labels during an import, and memory over time.

python benchmarks/service.py                                  (run it on an idle machine; about five minutes)
python benchmarks/service.py --encoder bge-small --seconds 10
python benchmarks/service.py --only soak --soak 600           (memory over ten minutes)
python benchmarks/service.py --json service.json

A server runs in its own process, the clients in this one. Everything stays on 127.0.0.1 and stops by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from handful import FewShotClassifier
from handful.data.datasets import find_data

TOKEN = "benchmark"  # noqa: S105 - of a server that lives for minutes
PER_CLASS = 10
RATE = 50  # single texts per second
ROWS = 100_000  # of the import
PARTS = ("rates", "single", "labels", "soak")


def corpus() -> tuple[list[str], list[str]]:
    """Texts and labels of the demonstration."""
    rows = [json.loads(line) for line in find_data("demo")[0].read_text("utf-8").splitlines()]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def make_model(encoder: str, folder: Path) -> FewShotClassifier:
    """A classifier of 30 classes with ten examples each, saved."""
    texts, labels = corpus()
    seen: dict[str, int] = {}
    chosen = [
        i
        for i, label in enumerate(labels)
        if seen.setdefault(label, 0) < PER_CLASS and not seen.update({label: seen[label] + 1})
    ]
    clf = FewShotClassifier(encoder=encoder).fit([texts[i] for i in chosen], [labels[i] for i in chosen])
    clf.save(folder)
    return clf


# A server, and clients without the weight of a library


@contextmanager
def server(*arguments: str) -> Iterator[tuple[int, int]]:
    """A server in its own process: its process id and its port."""
    command = [sys.executable, "-c", "from handful.cli import main; main()", *arguments, "--port", "0"]
    environment = os.environ | {"HANDFUL_TOKEN": TOKEN}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        assert process.stdout is not None  # noqa: S101
        line = process.stdout.readline()
        port = int(line.split("127.0.0.1:")[1].split("/")[0])
        _wait(port)
        yield process.pid, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)


def _wait(port: int) -> None:
    async def ready() -> bool:
        async with client(port) as ask:
            return (await ask("GET", "/ready", None))[0] == 200

    for _ in range(600):
        try:
            if asyncio.run(ready()):
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("The server did not start.")


Ask = Callable[[str, str, bytes | None], Any]


@asynccontextmanager
async def client(port: int) -> AsyncIterator[Ask]:
    """A connection that is kept open: sends a request and gives the status and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        sent = b"" if body is None else body
        kind = "application/json" if body is not None and body[:1] == b"{" else "text/csv"
        writer.write(f"{head}Content-Type: {kind}\r\nContent-Length: {len(sent)}\r\n\r\n".encode() + sent)
        await writer.drain()
        headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(headers.split()[1])
        length = int(headers.split("content-length:")[1].split()[0]) if "content-length:" in headers else 0
        return status, await reader.readexactly(length)

    try:
        yield ask
    finally:
        writer.close()


def summary(latencies: list[float], errors: int, seconds: float, texts: int) -> dict[str, float]:
    """Percentiles in milliseconds, errors, and texts per second."""
    found = np.percentile(np.array(latencies) * 1000, [50, 95, 99]) if latencies else [float("nan")] * 3
    names = ("p50_ms", "p95_ms", "p99_ms")
    shares = {name: round(float(value), 2) for name, value in zip(names, found, strict=True)}
    return {**shares, "requests": len(latencies), "errors": errors, "texts_per_second": round(texts / seconds, 1)}


async def load(port: int, bodies: list[bytes], clients: int, seconds: float, size: int) -> dict[str, float]:
    """Clients that send one request after the other."""
    latencies: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    async def run(number: int) -> None:
        nonlocal errors
        async with client(port) as ask:
            position = number
            while time.perf_counter() < end:
                start = time.perf_counter()
                status, _ = await ask("POST", "/predict", bodies[position % len(bodies)])
                latencies.append(time.perf_counter() - start)
                errors += status != 200
                position += clients

    start = time.perf_counter()
    await asyncio.gather(*(run(number) for number in range(clients)))
    return summary(latencies, errors, time.perf_counter() - start, size * len(latencies))


async def steady(port: int, bodies: list[bytes], seconds: float) -> dict[str, float]:
    """Single texts at a fixed rate, whether or not earlier ones have been answered."""
    latencies: list[float] = []
    errors = 0
    idle: asyncio.Queue[Ask] = asyncio.Queue()

    async def one(number: int) -> None:
        nonlocal errors
        start = time.perf_counter()
        ask = await idle.get()
        status, _ = await ask("POST", "/predict", bodies[number % len(bodies)])
        latencies.append(time.perf_counter() - start)
        errors += status != 200
        idle.put_nowait(ask)

    async def holding(opened: asyncio.Event, closed: asyncio.Event) -> None:
        async with client(port) as ask:
            idle.put_nowait(ask)
            opened.set()
            await closed.wait()

    closed, events = asyncio.Event(), [asyncio.Event() for _ in range(32)]
    holders = [asyncio.create_task(holding(event, closed)) for event in events]
    await asyncio.gather(*(event.wait() for event in events))
    begin, tasks = time.perf_counter(), []
    for number in range(int(RATE * seconds)):
        await asyncio.sleep(max(0.0, begin + number / RATE - time.perf_counter()))
        tasks.append(asyncio.create_task(one(number)))
    await asyncio.gather(*tasks)
    closed.set()
    await asyncio.gather(*holders)
    return summary(latencies, errors, seconds, len(latencies))


def request_bodies(texts: list[str], size: int) -> list[bytes]:
    """Requests for the most probable class of some texts each."""
    groups = [texts[i : i + size] for i in range(0, len(texts) - size + 1, size)]
    return [json.dumps({"inputs": group if size > 1 else group[0], "parameters": {"top_k": 1}}).encode() for group in groups]


# The parts


def in_process(clf: FewShotClassifier, texts: list[str], seconds: float) -> float:
    """Texts per second of the same model in this process, in batches of 32."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        position = count % (len(texts) - 32)
        clf.predict_proba(texts[position : position + 32])
        count += 32
    return round(count / (time.perf_counter() - start), 1)


def measure_model(encoder: str, parts: set[str], clients: int, seconds: float) -> dict[str, Any]:
    """A served classifier: rates in batches of 1 and 32, and single texts at a fixed rate."""
    texts = [text for text in corpus()[0] for _ in range(2)]
    report: dict[str, Any] = {}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        clf = make_model(encoder, folder)
        clf.predict_proba(texts[:64])
        report["in process, batches of 32"] = {"texts_per_second": in_process(clf, texts, seconds / 3)}
        with server("serve", str(folder), "--folder", scratch) as (_, port):
            asyncio.run(load(port, request_bodies(texts, 32), 4, 1.0, 32))  # warm
            if "rates" in parts:
                for size in (1, 32):
                    found = asyncio.run(load(port, request_bodies(texts, size), clients, seconds, size))
                    report[f"{clients} clients, batches of {size}"] = found
                base = report["in process, batches of 32"]["texts_per_second"]
                rate = report[f"{clients} clients, batches of 32"]["texts_per_second"]
                report["share of the rate in process"] = round(rate / base, 3)
            if "single" in parts:
                report[f"single texts, {RATE} per second"] = asyncio.run(steady(port, request_bodies(texts, 1), seconds))
    return report


async def _label_during_import(port: int, seconds: float) -> dict[str, Any]:
    async with client(port) as ask, client(port) as other:

        async def post(path: str, value: Any) -> Any:
            return json.loads((await ask("POST", f"/api/v1{path}", json.dumps(value).encode()))[1])

        project = (await post("/projects", {"name": "p", "classes": [{"name": name} for name in "abc"]}))["id"]
        await post(f"/projects/{project}/texts", {"texts": [{"text": text} for text in corpus()[0]]})
        content = ("text\n" + "".join(f'"message {i} about something or other, sent today"\n' for i in range(ROWS))).encode()
        alone = await _labels(post, project, 5.0)
        began = time.perf_counter()
        _, answer = await other("POST", f"/api/v1/projects/{project}/import?format=csv", content)
        job = json.loads(answer)["id"]
        done: asyncio.Event = asyncio.Event()

        async def watch() -> None:
            while json.loads((await other("GET", f"/api/v1/jobs/{job}", None))[1])["state"] in ("waiting", "running"):
                await asyncio.sleep(0.2)
            done.set()

        watcher = asyncio.create_task(watch())
        during = await _labels(post, project, 600.0, done)
        await watcher
        return {
            "labels alone": alone,
            "labels during an import": during,
            "import_seconds": round(time.perf_counter() - began, 1),
        }


async def _labels(post: Any, project: str, seconds: float, done: asyncio.Event | None = None) -> dict[str, float]:
    latencies: list[float] = []
    errors, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds and not (done and done.is_set()):
        number = len(latencies)
        body = {"texts": [number % 600], "class": 1 + number % 3}
        begin = time.perf_counter()
        answer = await post(f"/projects/{project}/labels", body)
        latencies.append(time.perf_counter() - begin)
        errors += "action" not in answer
        await asyncio.sleep(0.02)
    return summary(latencies, errors, time.perf_counter() - start, len(latencies))


def measure_labels(seconds: float) -> dict[str, Any]:
    """Labels that are acknowledged while another client imports a large file."""
    with TemporaryDirectory() as scratch, server("studio", scratch, "--no-browser") as (_, port):
        return asyncio.run(_label_during_import(port, seconds))


def memory(process: int) -> float:
    """Megabytes of a process."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure_soak(seconds: float, clients: int) -> dict[str, Any]:
    """Memory of a server under load, from the first tenth of the time to the end."""
    texts = corpus()[0]
    with TemporaryDirectory() as scratch:
        make_model("words", Path(scratch) / "model")
        with server("serve", str(Path(scratch) / "model"), "--folder", scratch) as (process, port):
            sizes = []
            for _ in range(10):
                asyncio.run(load(port, request_bodies(texts, 32), clients, seconds / 10, 32))
                sizes.append(round(memory(process), 1))
    return {"seconds": seconds, "megabytes": sizes, "growth_megabytes": round(sizes[-1] - sizes[0], 1)}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", action="append", help="words or bge-small; both by default, if the latter is here")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--soak", type=float, default=60.0, help="seconds of the soak")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    parts = set(given.only or PARTS)
    report: dict[str, Any] = {}
    if parts & {"rates", "single"}:
        for encoder in given.encoder or _encoders():
            report[encoder] = measure_model(encoder, parts, given.clients, given.seconds)
    if "labels" in parts:
        report["labels"] = measure_labels(given.seconds)
    if "soak" in parts:
        report["soak"] = measure_soak(given.soak, given.clients)
    print(json.dumps(report, indent=1))
    if given.json:
        given.json.write_text(json.dumps(report, indent=1) + "\n")


def _encoders() -> list[str]:
    from handful.embeddings.encoders import list_encoders

    return ["words", *(one["name"] for one in list_encoders() if one["path"])]


if __name__ == "__main__":
    main()
