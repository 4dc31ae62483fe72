"""Compare FewShotClassifier with its peers: accuracy, macro-F1, seconds to fit, texts per second, memory, cold first answer.

python benchmarks/classifier.py --data banking77,20newsgroups:test --no-timing --vector-cache vectors.sqlite --out peers.jsonl
python benchmarks/classifier.py --data banking77,20newsgroups:test --timing-only --out peers.jsonl      (an idle machine)
python benchmarks/classifier.py --markdown --out peers.jsonl

A data set is NAME, or NAME:test for the paper's test classes, or NAME:val for the classes on which the generator was chosen,
or NAME:train+val; all these classes are used. The settings are:

examples    labelled examples alone
names       and the words of the classes' labels; possible without examples (0 shots)
unlabelled  and 5,000 texts without labels, which are neither queries nor examples; only FewShotClassifier uses them
transductive  (only if asked for) the queries themselves take the place of the unlabelled texts

A draw is some examples of each class and some queries, the same for every peer; the examples for one shot are among those for
five. Peers run in their own processes on two threads. Results are appended to the file as they come, an interrupted run is
resumed, and the tables show all results in the file for these data sets, peers and settings. It takes the extra peers,
tests/fetch_encoder.py for bge-small and benchmarks/fetch_potion.py for potion-base-8M.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from _peers import (
    EXAMPLES,
    INDUCTIVE,
    MOST_SHOTS,
    PEERS,
    SETTINGS,
    USUAL,
    Classifier,
    SetFit,
    fit_in_setting,
    load_texts,
    make_task,
)
from _tables import ACCURACY, BOTH, TIMING, Result, read_results, section
from speed import short_texts

from handful.errors import HandfulWarning

THREADS = 2
COLD_RUNS = 3  # the median counts
RATE_SECONDS = 2.0  # of prediction, to measure the rate
AT_ONCE = 1000  # short texts per call
TIMED_QUERIES = 100  # answered before memory is read, if only timings are measured
PACKAGES = ("handful", "numpy", "scikit-learn", "onnxruntime", "model2vec", "torch", "sentence-transformers", "setfit")


# Work in a separate process


@dataclass(frozen=True)
class Job:
    """One peer on one data set, for some cells (setting, shots, draw); without data, only its first answer."""

    peer: str
    threads: int
    cells: tuple[tuple[str, int, int], ...]
    data: str = ""
    queries: int = 0
    per_class: int = 0
    seed: int = 0
    kind: str = BOTH
    cache: str = ""  # file of vectors


def work(job: Job) -> Iterator[Result]:
    """Fit and predict each draw."""
    warnings.simplefilter("ignore", HandfulWarning)  # texts that occur twice in the data
    inputs = load_texts(job.data)
    classifier = PEERS[job.peer].make(Path(job.cache) if job.cache else None)
    if job.kind != ACCURACY:
        warm_up(classifier)
    for setting, shots, number in job.cells:
        task = make_task(inputs, shots, job.queries, job.seed, number, per_class=job.per_class)
        start = time.perf_counter()
        fit_in_setting(classifier, task, setting)
        measured: dict[str, Any] = {"fit_seconds": time.perf_counter() - start} if job.kind != ACCURACY else {}
        queries = len(task.queries) if job.kind != TIMING else TIMED_QUERIES
        found = np.asarray(classifier.predict(task.queries[:queries]))
        if job.kind != TIMING:
            measured |= quality(found, task.truth)
        if job.kind != ACCURACY:
            measured |= {"texts_per_second": rate(classifier), "peak_megabytes": peak_megabytes()}
        about = {"setting": setting, "kind": job.kind, "classes": len(inputs.classes), "versions": versions()}
        about["per_class"] = job.per_class
        yield Result(job.peer, job.threads, job.data, shots, job.queries, job.seed, number, **about, **measured)


def quality(found: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> dict[str, float]:
    """Accuracy and macro-F1."""
    from sklearn.metrics import f1_score

    macro = f1_score(truth, found, average="macro", zero_division=0)
    return {"accuracy": float(np.mean(found == truth)), "macro_f1": float(macro)}


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


def peak_megabytes() -> float:
    """The peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    classifier = PEERS[peer].make(None)
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
    for *_, number in job.cells:
        start = time.perf_counter()
        list(_lines_of(job, "--first-answer", job.peer))
        seconds = time.perf_counter() - start
        place = (job.peer, job.threads, job.data, 0, job.queries, job.seed, number)
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


def jobs(arguments: argparse.Namespace, done: set[tuple[Any, ...]]) -> Iterator[Job]:
    """The jobs that are still to be done; each group of cells whose memory or time counts has its own process."""
    for peer in arguments.peers:
        if PEERS[peer].make is None:
            continue
        if arguments.kind != ACCURACY:
            yield from missing(Job(peer, arguments.threads, tuple((EXAMPLES, 0, number) for number in range(COLD_RUNS))), done)
        for data in arguments.data:
            groups = list(cells_of(peer, arguments))
            if arguments.kind == ACCURACY:
                groups = [tuple(cell for group in groups for cell in group)]
            queries = arguments.queries, arguments.queries_per_class
            rest = (data, *queries, arguments.seed, arguments.kind, arguments.vector_cache)
            for group in groups:
                yield from missing(Job(peer, arguments.threads, group, *rest), done)


def cells_of(peer: str, arguments: argparse.Namespace) -> Iterator[tuple[tuple[str, int, int], ...]]:
    """The draws of each setting and number of shots that suits it."""
    draws = arguments.slow_draws if PEERS[peer].slow else arguments.draws
    for setting in arguments.settings:
        for shots in arguments.shots:
            if setting in PEERS[peer].settings and (shots or setting != EXAMPLES):
                yield tuple((setting, shots, number) for number in range(draws))


def missing(job: Job, done: set[tuple[Any, ...]]) -> Iterator[Job]:
    """The job without the cells that are done, if any remain."""
    place = (job.peer, job.threads, job.data, job.queries, job.per_class, job.seed)
    cells = tuple(cell for cell in job.cells if (*place, *cell) not in done)
    if cells:
        yield replace(job, cells=cells)


# The command


def parse() -> argparse.Namespace:
    """Parse the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = {"type": lambda value: value.split(",")}
    parser.add_argument("--data", **listed, help="Data sets, separated by commas. Default: huffpost:val.")
    parser.add_argument("--peers", **listed, help=f"Some of {', '.join(PEERS)}. Default: {', '.join(USUAL)}.")
    parser.add_argument("--settings", default=list(INDUCTIVE), **listed, help=f"Some of {', '.join(SETTINGS)}.")
    parser.add_argument(
        "--shots", type=lambda value: [int(number) for number in value.split(",")], help="0 to 10, for example 1,5."
    )
    parser.add_argument("--draws", type=int, help="Number of draws. Default: 5, or 1 with --timing-only.")
    parser.add_argument("--slow-draws", type=int, default=1, help="Number of draws for SetFit.")
    parser.add_argument("--queries", type=int, default=1000, help="Maximum number of queries per draw.")
    parser.add_argument("--queries-per-class", type=int, default=0, help="Exactly so many queries of each class instead.")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("peers.jsonl"), help="Results file.")
    parser.add_argument("--vector-cache", default="", help="SQLite file that keeps vectors of encoders; needs --no-timing.")
    kinds = parser.add_mutually_exclusive_group()
    measure = {"dest": "kind", "action": "store_const", "default": BOTH}
    kinds.add_argument("--no-timing", const=ACCURACY, **measure, help="Measure accuracy only: the machine may be busy.")
    kinds.add_argument("--timing-only", const=TIMING, **measure, help="Measure time and memory only.")
    kinds.add_argument("--markdown", action="store_true", help="Measure nothing, print the tables of the results file.")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--first-answer", help=argparse.SUPPRESS)
    return checked(parser.parse_args(), parser)


def checked(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options with their defaults, or an error."""
    only_timing = arguments.kind == TIMING
    arguments.queries = 0 if arguments.queries_per_class else arguments.queries
    arguments.data = arguments.data or ([] if arguments.markdown else ["huffpost:val"])
    arguments.peers = arguments.peers or [*USUAL, *(["setfit"] if arguments.markdown else [])]
    arguments.shots = arguments.shots or ([1, 5, 10] if only_timing else [0, 1, 2, 5, 10])
    arguments.draws = arguments.draws or (1 if only_timing else 5)
    if not set(arguments.peers) <= set(PEERS) or not set(arguments.settings) <= set(SETTINGS):
        parser.error(f"--peers must be some of {', '.join(PEERS)}, and --settings some of {', '.join(SETTINGS)}.")
    if max(arguments.shots) > MOST_SHOTS:
        parser.error(f"--shots is {max(arguments.shots)}: it must be at most {MOST_SHOTS}.")
    if arguments.vector_cache and arguments.kind != ACCURACY and not arguments.markdown:
        parser.error("--vector-cache would make timings wrong: add --no-timing.")
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
        if not arguments.markdown:
            measure(arguments)
        print_tables(arguments)


def measure(arguments: argparse.Namespace) -> None:
    """Append the missing results to the file."""
    done = {result.key for result in read_results(arguments.out) if result.kind in (BOTH, arguments.kind)}
    for job in jobs(arguments, done):
        for result in run(job):
            with arguments.out.open("a") as stream:
                stream.write(json.dumps(asdict(result)) + "\n")
            print(result, file=sys.stderr)


def print_tables(arguments: argparse.Namespace) -> None:
    """Print the tables of the results that were measured with these options."""
    results = [one for one in read_results(arguments.out) if one.threads == arguments.threads and one.peer in arguments.peers]
    wanted = (arguments.queries, arguments.queries_per_class, arguments.seed)
    alike = [one for one in results if not one.data or (one.queries, one.per_class, one.seed) == wanted]
    alike.sort(key=lambda one: list(PEERS).index(one.peer))
    for data in arguments.data or dict.fromkeys(one.data for one in alike if one.data):
        for setting in arguments.settings:
            if text := section(alike, data, setting):
                print(text)


if __name__ == "__main__":
    main()
