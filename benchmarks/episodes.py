"""Seconds per episode, compared with a bare pass of PyTorch's own biLSTM over as many words, in the same run.

    python benchmarks/episodes.py [--threads 2] [--rounds 7] [--busy-anyway]

ratio = seconds of one whole episode / seconds of the yardstick. A ratio of 1 means that the engine adds nothing to PyTorch's
LSTM on perfectly even lengths; below 1, the compiled kernel is faster than PyTorch's. It is the sum of two parts, the compiled
kernel and the rest. Training takes one step per episode; testing is batched as in `handful evaluate`. Lengths are drawn once
from a log-normal distribution fitted to each corpus, cut at 500.

On a busy machine, threads wait for each other. That slows the yardstick down more than the engine, and ratios come out several
times too low. So the script stops if other processes use the machine, or if the yardstick varies too much.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from handful.data.corpus import Corpus, make_corpus
from handful.data.episodes import EpisodeSampler, EpisodeSpec
from handful.meta.evaluation import EPISODES_PER_JOB, evaluate
from handful.meta.training import TrainingSettings, restore_adam, take_steps
from handful.models import lstm_torch
from handful.models.few_shot import FewShotModel
from handful.models.settings import FinetuneSettings, ModelSettings
from handful.utils.parallel import torch_threads

DIM, HIDDEN, CUT = 256, 25, 500
TRAIN_EPISODES, TEST_EPISODES = 10, EPISODES_PER_JOB  # per round
MOST_CORES = 0.1  # that other processes may use
MOST_SPREAD = 1.5  # of the yardstick: its slowest round compared with its fastest
PROCESSOR_TIMES = Path("/proc/stat")


@dataclass(frozen=True)
class Shape:
    """The statistics of a corpus."""

    median_words: float
    spread: float  # of the logarithm of a text's length
    vocabulary: int
    classes: int
    documents: int  # per class


SHAPES = {"Reuters": Shape(135, 0.81, 9_400, 15, 20), "20 Newsgroups": Shape(201, 0.97, 120_000, 8, 60)}


def make_texts(shape: Shape) -> Corpus:
    """A corpus of this shape, with word frequencies as in natural language."""
    rng = np.random.default_rng(0)
    count = shape.classes * shape.documents
    lengths = np.exp(rng.normal(np.log(shape.median_words), shape.spread, count)).clip(5, CUT).astype(int)
    words = [f"w{i}" for i in range(shape.vocabulary)]
    frequency = 1 / np.arange(2, shape.vocabulary + 2)
    texts = [[words[i] for i in rng.choice(shape.vocabulary, n, p=frequency / frequency.sum())] for n in lengths]
    return make_corpus(texts, [str(i // shape.documents) for i in range(count)])


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def yardstick(documents: int, words: int, backward: bool) -> Callable[[], object]:
    """A bare biLSTM pass over documents of equal length."""
    network = torch.nn.LSTM(2, HIDDEN, batch_first=True, bidirectional=True)
    signatures = torch.rand(documents, words, 2)
    if backward:
        return lambda: network(signatures)[0].sum().backward()

    def forward() -> None:
        with torch.inference_mode():
            network(signatures)

    return forward


def busy_seconds() -> float:
    """Seconds that the cores have been busy since the machine was started, whoever used them."""
    if not PROCESSOR_TIMES.exists():
        raise SystemExit("This system has no /proc/stat, which says how busy it is: use --busy-anyway.")
    user, nice, system, _, _, *others = map(int, PROCESSOR_TIMES.read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def idle_machine() -> Iterator[None]:
    """Stop the script if other processes used the machine meanwhile."""
    before, start = busy_seconds() - time.process_time(), time.perf_counter()
    yield
    cores = (busy_seconds() - time.process_time() - before) / (time.perf_counter() - start)
    if cores > MOST_CORES:
        raise SystemExit(
            f"Other processes used {cores:.1f} cores, and {MOST_CORES} is the most: run this on an idle machine, or use "
            "--busy-anyway for ratios that are too low."
        )


def check_spread(times: list[float]) -> None:
    """Stop the script if the times of the yardstick vary too much."""
    if max(times) > MOST_SPREAD * min(times):
        raise SystemExit(
            f"The yardstick took {1000 * min(times):.1f} to {1000 * max(times):.1f} ms, which varies by more than a factor of "
            f"{MOST_SPREAD}: run this on an idle machine, or use --busy-anyway for ratios that are unreliable."
        )


@contextmanager
def kernel_clock() -> Iterator[list[float]]:
    """A list of the seconds that each pass of the compiled kernel takes."""
    passes, original = list[float](), lstm_torch.for_each_share

    def timed(*arguments: object) -> None:
        passes.append(seconds(lambda: original(*arguments)))  # type: ignore[arg-type]

    lstm_torch.for_each_share = timed
    try:
        yield passes
    finally:
        lstm_torch.for_each_share = original


@dataclass
class Rounds:
    """Seconds of the yardstick, of one whole episode, and of its part in the kernel, one of each per round."""

    bare: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)

    def add(self, yard: Callable[[], object], engine: Callable[[], object], episodes: int) -> None:
        """Time one round."""
        self.bare.append(statistics.median(seconds(yard) for _ in range(5)))
        with kernel_clock() as passes:
            self.whole.append(seconds(engine) / episodes)
        self.kernel.append(sum(passes) / episodes)

    def __str__(self) -> str:
        ratios = [mine / bare for bare, mine in zip(self.bare, self.whole, strict=True)]
        kernel = statistics.median(mine / bare for bare, mine in zip(self.bare, self.kernel, strict=True))
        ratio = statistics.median(ratios)
        whole, bare = (1000 * statistics.median(values) for values in (self.whole, self.bare))
        return (
            f"ratio {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) = kernel {kernel:.2f} + rest {ratio - kernel:.2f}   "
            f"{whole:.1f} ms per episode, yardstick {bare:.1f} ms ({1000 * min(self.bare):.1f} to {1000 * max(self.bare):.1f})"
        )


def measure(name: str, shape: Shape, rounds: int, busy_anyway: bool = False) -> None:
    """Print both ratios of one shape: medians over rounds, each of which times the yardstick and then the engine."""
    corpus = make_texts(shape)
    table = np.random.default_rng(1).normal(size=(len(corpus.vocabulary), DIM)).astype(np.float32) / DIM**0.5
    texts = corpus.texts(table)
    spec = EpisodeSpec(5, 1, 25)
    classes = range(shape.classes)
    sampler = EpisodeSampler(corpus, classes, classes, spec)
    tester = EpisodeSampler(corpus, classes, classes, spec, pool=sampler.training_pool)
    model = FewShotModel.initial(ModelSettings(), DIM).to_torch()
    learner = FewShotModel.initial(ModelSettings(), DIM).to_torch()
    optimizer = restore_adam(learner.parameters, TrainingSettings().learning_rate, {}, 0)

    episode = sampler[0]
    documents = len(episode.support) + len(episode.query)
    words = round(texts.lengths.mean())

    def train_episodes() -> None:
        with torch_threads():
            list(take_steps(learner, optimizer, texts, sampler, [[index] for index in range(TRAIN_EPISODES)]))

    def test_episodes() -> None:
        evaluate(model, texts, tester, TEST_EPISODES, quiet=True)

    jobs = {"train": (True, train_episodes, TRAIN_EPISODES), "test": (False, test_episodes, TEST_EPISODES)}
    for job, (backward, engine, episodes) in jobs.items():
        yard, found = yardstick(documents, words, backward), Rounds()
        yard()
        engine()  # compile, allocate
        with nullcontext() if busy_anyway else idle_machine():
            for _ in range(rounds):
                found.add(yard, engine, episodes)
        if not busy_anyway:
            check_spread(found.bare)
        print(f"{name:14} {job:5}  {documents} documents × {words} words   {found}")


ALGORITHMS = {  # head, episodes per update
    "ridge": 1,
    "logistic": 1,
    "prototype": 1,
    "centroid": 1,
    "routing": 1,
    "induction": 1,
    "maml": 10,
    "finetune": 4,
}


def measure_algorithms(rounds: int) -> None:
    """Print the cost of training on an episode of short texts with each head, relative to the ridge."""
    shape = Shape(12, 0.4, 8_000, 20, 60)
    corpus = make_texts(shape)
    table = np.random.default_rng(1).normal(size=(len(corpus.vocabulary), DIM)).astype(np.float32) / DIM**0.5
    texts = corpus.texts(table)
    classes = range(shape.classes)
    sampler = EpisodeSampler(corpus, classes, classes, EpisodeSpec(5, 1, 25))
    for representation in ("mean", "cnn", "attention"):
        cost = {}
        for head, tasks in ALGORITHMS.items():
            if representation == "mean" and head == "finetune":
                continue  # it has nothing to pre-train
            own = FinetuneSettings(shape.classes)
            settings = ModelSettings(representation=representation, head=head, finetune=own)  # type: ignore[arg-type]
            if representation == "attention" and head in ("maml", "finetune"):
                continue  # the LSTM does not support a batch of parameters
            learner = FewShotModel.initial(settings, DIM).to_torch()
            optimizer = restore_adam(learner.parameters, 1e-3, {}, 0)

            def update(learner: FewShotModel = learner, optimizer: object = optimizer, tasks: int = tasks) -> None:
                with torch_threads():
                    list(take_steps(learner, optimizer, texts, sampler, [range(tasks)]))

            update()
            cost[head] = statistics.median(seconds(update) for _ in range(rounds)) / tasks
        relative = ", ".join(f"{head} {value / cost['ridge']:.1f}" for head, value in cost.items())
        print(f"{representation:10} ridge {1000 * cost['ridge']:.1f} ms per episode; relative to it: {relative}")


def main() -> None:
    """Print one line per shape and job, and the peak memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--busy-anyway", action="store_true", help="report on a busy machine, too")
    arguments = parser.parse_args()
    if not arguments.busy_anyway:
        with idle_machine():
            time.sleep(1)
    torch.set_num_threads(arguments.threads)  # for the yardstick; the engine sets its own threads
    for name, shape in SHAPES.items():
        measure(name, shape, arguments.rounds, arguments.busy_anyway)
    measure_algorithms(arguments.rounds)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
