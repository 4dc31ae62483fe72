"""Seconds per episode, compared with a bare pass of PyTorch's own biLSTM over as many words, in the same run.

    python benchmarks/episodes.py [--threads 2] [--rounds 7]

ratio = seconds of one whole episode / seconds of the yardstick. A ratio of 1 means that the engine adds nothing to PyTorch's
LSTM on perfectly even lengths; below 1, the compiled kernel is faster than PyTorch's. Training takes one step per episode;
testing is batched as in `handful evaluate`. Lengths are drawn once from a log-normal distribution fitted to each corpus, cut
at 500.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from handful.data.corpus import Corpus, make_corpus
from handful.data.episodes import EpisodeSampler, EpisodeSpec
from handful.meta.evaluation import evaluate
from handful.meta.training import TrainingSettings, _step, restore_adam
from handful.models.few_shot import AT_ONCE, FewShotModel
from handful.models.settings import FinetuneSettings, ModelSettings
from handful.utils.parallel import torch_threads

DIM, HIDDEN, CUT = 256, 25, 500


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


def measure(name: str, shape: Shape, rounds: int) -> None:
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
    train_yard, test_yard = (yardstick(documents, words, backward) for backward in (True, False))

    def train_episodes() -> None:
        with torch_threads():
            for index in range(AT_ONCE):
                _step(learner, optimizer, texts, sampler, [index])

    jobs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "train": (train_yard, train_episodes),
        "test": (test_yard, lambda: evaluate(model, texts, tester, AT_ONCE, quiet=True)),
    }
    for job, (yard, engine) in jobs.items():
        yard()
        engine()  # compile, allocate
        pairs = [(statistics.median(seconds(yard) for _ in range(5)), seconds(engine) / AT_ONCE) for _ in range(rounds)]
        ratio = statistics.median(mine / bare for bare, mine in pairs)
        bare, mine = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"{name:14} {job:5}  {documents} documents × {words} words   {1000 * mine:6.1f} ms per episode, "
            f"yardstick {1000 * bare:6.1f} ms, ratio {ratio:.2f}"
        )


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
                    _step(learner, optimizer, texts, sampler, range(tasks))

            update()
            cost[head] = statistics.median(seconds(update) for _ in range(rounds)) / tasks
        relative = ", ".join(f"{head} {value / cost['ridge']:.1f}" for head, value in cost.items())
        print(f"{representation:10} ridge {1000 * cost['ridge']:.1f} ms per episode; relative to it: {relative}")


def main() -> None:
    """Print one line per shape and job, and the peak memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)  # for the yardstick; the engine sets its own threads
    for name, shape in SHAPES.items():
        measure(name, shape, arguments.rounds)
    measure_algorithms(arguments.rounds)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
