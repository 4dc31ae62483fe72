"""Compare FewShotClassifier with its peers: accuracy, seconds to fit, texts per second, memory, time to a cold first answer.

python benchmarks/classifier.py --data banking77,20newsgroups:test --out peers.jsonl      (extra peers; an idle machine)
python benchmarks/classifier.py --data huffpost:val --peers handful,ridge --shots 1,5 --draws 20 --out peers.jsonl

A data set is NAME, or NAME:test for the paper's test classes, or NAME:val for the classes on which the generator was chosen;
all these classes are used. A draw is some examples of each class and some queries, the same for every peer; the examples for
one shot are among those for five. Every peer runs in its own process on two threads. Results are appended to the file as they
come, an interrupted run is resumed, and the table shows everything in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from _peers import MOST_SHOTS, PEERS, Classifier, SetFit, draw, load_texts
from speed import short_texts

THREADS = 2
COLD_RUNS = 3  # the median counts
RATE_SECONDS = 2.0  # of prediction, to measure the rate
AT_ONCE = 1000  # short texts per call
PACKAGES = ("handful", "numpy", "scikit-learn", "torch", "transformers", "sentence-transformers", "setfit")


# Work in a separate process


@dataclass(frozen=True)
class Job:
    """One peer on one data set with one number of shots, for some draws; without data, only its first answer."""

    peer: str
    threads: int
    data: str = ""
    shots: int = 0
    queries: int = 0
    seed: int = 0
    draws: tuple[int, ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of one draw, or of one cold process, which has no data."""

    peer: str
    threads: int
    data: str
    shots: int
    queries: int
    seed: int
    draw: int
    classes: int = 0
    accuracy: float = 0.0
    fit_seconds: float = 0.0
    texts_per_second: float = 0.0
    peak_megabytes: float = 0.0
    first_answer_seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """The values that identify it."""
        return self.peer, self.threads, self.data, self.shots, self.queries, self.seed, self.draw

    def __str__(self) -> str:
        if not self.data:
            return f"{self.peer}: first answer of a cold process after {self.first_answer_seconds:.1f} s"
        return f"{self.peer} on {self.data}, {self.shots}-shot, draw {self.draw}: {100 * self.accuracy:.1f} %"


def work(job: Job) -> Iterator[Result]:
    """Fit and predict each draw."""
    inputs = load_texts(job.data)
    classifier = PEERS[job.peer].make()
    names = np.array(inputs.classes)[inputs.labels]
    for number in job.draws:
        chosen = draw(inputs.labels, job.shots, job.queries, job.seed, number)
        support, query = ([inputs.texts[i] for i in part] for part in (chosen.support, chosen.query))
        if number == job.draws[0]:
            warm_up(classifier)
        start = time.perf_counter()
        classifier.fit(support, names[chosen.support].tolist())
        seconds = time.perf_counter() - start
        right = float(np.mean(np.asarray(classifier.predict(query)) == names[chosen.query]))
        measured = {"accuracy": right, "fit_seconds": seconds, "texts_per_second": rate(classifier), **surroundings()}
        place = (job.peer, job.threads, job.data, job.shots, job.queries, job.seed, number, len(inputs.classes))
        yield Result(*place, **measured)


def warm_up(classifier: Classifier) -> None:
    """Do all one-time imports and loading, so that they do not count as fitting."""
    if isinstance(classifier, SetFit):
        import setfit  # noqa: F401
        from datasets import Dataset  # noqa: F401

        return
    classifier.fit(["a good meal", "a late train"], ["food", "travel"])
    classifier.predict(["a dinner"])


def rate(classifier: Classifier) -> float:
    """Short texts per second."""
    texts = short_texts()[:AT_ONCE]
    done = 0
    start = time.perf_counter()
    while time.perf_counter() - start < RATE_SECONDS:
        classifier.predict(texts)
        done += len(texts)
    return done / (time.perf_counter() - start)


def surroundings() -> dict[str, Any]:
    """The peak memory of this process, and the installed versions."""
    return {"peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "versions": versions()}


def versions() -> dict[str, str]:
    """The versions of the relevant packages."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def first_answer(peer: str) -> None:
    """Learn from two short texts and predict a third; SetFit fits only its head, as if it had been fine-tuned before."""
    classifier = PEERS[peer].make()
    texts, labels = ["a good meal", "a late train"], ["food", "travel"]
    if isinstance(classifier, SetFit):
        classifier.model.model_head.fit(classifier.model.encode(texts), labels)
    else:
        classifier.fit(texts, labels)
    print(classifier.predict(["a dinner"])[0])


# The run


def run(job: Job) -> Iterator[Result]:
    """The results of a job, each as soon as it is available."""
    if job.data:
        for line in _lines_of(job, "--work", json.dumps(asdict(job))):
            yield Result(**json.loads(line))
        return
    for number in job.draws:
        start = time.perf_counter()
        list(_lines_of(job, "--first-answer", job.peer))
        seconds = time.perf_counter() - start
        place = (job.peer, job.threads, job.data, job.shots, job.queries, job.seed, number)
        yield Result(*place, first_answer_seconds=seconds, versions=versions())


def _lines_of(job: Job, *options: str) -> Iterator[str]:
    """The output of this script in a separate process, without network access."""
    bounds = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    environment = {**os.environ, **bounds, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-W", "ignore", __file__, *options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout or ()
    if process.returncode:
        raise SystemExit(
            f"{job.peer} failed with exit code {process.returncode}: see the output above; earlier results are kept."
        )


def read_results(path: Path) -> list[Result]:
    """The results in a file; a truncated line is removed."""
    if not path.is_file():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        os.truncate(path, len(whole))
    return [Result(**json.loads(line)) for line in whole.splitlines()]


def jobs(arguments: argparse.Namespace, done: set[tuple[Any, ...]]) -> Iterator[Job]:
    """The jobs that are still to be done."""
    for peer in arguments.peers:
        cold = Job(peer, arguments.threads, draws=tuple(range(COLD_RUNS)))
        draws = range(arguments.slow_draws if PEERS[peer].slow else arguments.draws)
        rest = (arguments.queries, arguments.seed, tuple(draws))
        shots = [Job(peer, arguments.threads, data, number, *rest) for data in arguments.data for number in arguments.shots]
        for job in (cold, *shots):
            place = (job.peer, job.threads, job.data, job.shots, job.queries, job.seed)
            missing = tuple(number for number in job.draws if (*place, number) not in done)
            if missing:
                yield replace(job, draws=missing)


# The table


def interval(values: Sequence[float]) -> str:
    """The mean with the half-width of its 95 % interval by Student's t, in percent; for one value, only the value."""
    from scipy.stats import t

    mean = 100 * float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.1f}"
    width = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{mean:.1f} ± {100 * width:.1f}"


def table(results: Sequence[Result], data: str) -> str:
    """The peers on one data set as a Markdown table; accuracies are in percent."""
    found = [result for result in results if result.data == data]
    shots = sorted({result.shots for result in found})
    heads = [*(f"{number}-shot" for number in shots), *(f"fit {number}-shot, s" for number in shots)]
    lines = [cells(["", *heads, "texts/s", "memory, MB", "first answer, s"]), cells(["---"] * (len(heads) + 4))]
    for name, peer in PEERS.items():
        mine = [result for result in found if result.peer == name]
        if not mine:
            continue
        by_shots = [[result for result in mine if result.shots == number] for number in shots]
        cold = [result.first_answer_seconds for result in results if result.peer == name and not result.data]
        columns = [interval([result.accuracy for result in group]) if group else "–" for group in by_shots]
        columns += [seconds(np.median([result.fit_seconds for result in group])) if group else "–" for group in by_shots]
        columns += [f"{np.median([result.texts_per_second for result in mine]):,.0f}"]
        columns += [f"{max(result.peak_megabytes for result in mine):.0f}", f"{np.median(cold):.1f}" if cold else "–"]
        draws = "/".join(str(len(group)) for group in by_shots)
        lines.append(cells([f"{peer.title} ({draws} draws)", *columns]))
    first = found[0]
    about = f"{data}: all {first.classes} classes, at most {first.queries} queries per draw, {first.threads} threads."
    return "\n".join([about, "", *lines, ""])


def seconds(value: float) -> str:
    """Seconds with three digits.

    >>> seconds(0.03551), seconds(1032.8)
    ('0.0355', '1,033')
    """
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def cells(values: Iterable[str]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(values)} |"


def parse() -> argparse.Namespace:
    """Parse the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = {"type": lambda value: value.split(",")}
    parser.add_argument("--data", default=["huffpost:val"], **listed, help="Data sets, separated by commas.")
    parser.add_argument("--peers", default=list(PEERS), **listed, help=f"Peers, separated by commas: {', '.join(PEERS)}.")
    parser.add_argument("--shots", default=[1, 2, 5, 10], type=lambda value: [int(number) for number in value.split(",")])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--slow-draws", type=int, default=2, help="Number of draws for MiniLM and SetFit.")
    parser.add_argument("--queries", type=int, default=1000, help="Maximum number of queries per draw.")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("peers.jsonl"), help="Results file.")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--first-answer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if max(arguments.shots) > MOST_SHOTS or not set(arguments.peers) <= set(PEERS):
        parser.error(f"--shots must be at most {MOST_SHOTS}, and --peers some of {', '.join(PEERS)}.")
    return arguments


def main() -> None:
    """Measure what is missing, then print the tables; or do the work of one separate process."""
    arguments = parse()
    if arguments.first_answer:
        first_answer(arguments.first_answer)
    elif arguments.work:
        results_only = sys.stdout
        with redirect_stdout(sys.stderr):  # output of libraries
            for result in work(Job(**json.loads(arguments.work))):
                print(json.dumps(asdict(result)), file=results_only, flush=True)
    else:
        for job in jobs(arguments, {result.key for result in read_results(arguments.out)}):
            for result in run(job):
                with arguments.out.open("a") as stream:
                    stream.write(json.dumps(asdict(result)) + "\n")
                print(result, file=sys.stderr)
        print_tables(arguments)


def print_tables(arguments: argparse.Namespace) -> None:
    """Print the tables of the results that were measured with these options."""
    results = [result for result in read_results(arguments.out) if result.threads == arguments.threads]
    alike = [one for one in results if not one.data or (one.queries, one.seed) == (arguments.queries, arguments.seed)]
    for data in arguments.data:
        print(table(alike, data))


if __name__ == "__main__":
    main()
