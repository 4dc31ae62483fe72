"""Episodes: N-way K-shot tasks drawn from a corpus, each with a source pool and reproducible from its index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from ..errors import DataError, SettingError
from ..utils.functional import Ints
from .corpus import Corpus
from .frequencies import SourcePool


@dataclass(frozen=True)
class EpisodeSpec:
    """The shape of an episode: number of classes, labelled examples per class, queries per class.

    The rest is what later papers add, drawn by an `OpenSampler`: the words of the classes' names as further examples, texts
    without labels (`unlabelled` per class, or the queries themselves if `transductive`), and queries that are `unbalanced` or,
    for a share of `none_share`, of no class of the episode.
    """

    way: int = 5
    shot: int = 1
    queries: int = 25
    class_names: bool = False
    unlabelled: int = 0
    transductive: bool = False
    unbalanced: bool = False
    none_share: float = 0.0

    def __post_init__(self) -> None:
        if self.way < 2 or self.shot < 1 or self.queries < 1:
            raise SettingError(f"An episode needs a way of at least 2, and a shot and queries of at least 1; got {self}.")
        if self.unlabelled < 0 or not 0 <= self.none_share < 1:
            raise SettingError(
                f"--unlabelled is {self.unlabelled} and --none-share {self.none_share}: the first must be at least 0, and "
                "the second from 0 to below 1."
            )

    @property
    def is_open(self) -> bool:
        """Whether it asks for more than examples and queries."""
        return self != EpisodeSpec(self.way, self.shot, self.queries)

    @property
    def for_training(self) -> EpisodeSpec:
        """The same, with queries that can be learned from: balanced, and of the episode's classes."""
        return replace(self, unbalanced=False, none_share=0.0)


@dataclass(frozen=True, eq=False)
class Episode:
    """One task, as positions in its corpus; labels are positions in `classes`.

    In open episodes, the first `names` documents of the support are the words of classes, and queries beyond the last label
    belong to no class.
    """

    index: int
    classes: Ints  # (way,)
    support: Ints  # (way * shot,)
    support_labels: Ints
    query: Ints
    query_labels: Ints
    pool: SourcePool
    training: SourcePool  # all training examples: the pool itself, except in meta-training
    names: int = 0
    unlabelled: Ints = field(default_factory=lambda: np.empty(0, np.int64))


class Sampler(Protocol):
    """Anything that training and evaluation can draw episodes from, by index."""

    @property
    def seed(self) -> int: ...

    def __getitem__(self, index: int) -> Episode: ...


class EpisodeSampler:
    """Draws episodes of one shape. Episode i depends only on the seed and i, whatever the order, batch or number of workers.

    In meta-training the source pool is every example of the classes not drawn (`pool_classes` without the episode's own). In
    validation and testing it is every training example: the episode's classes are not among them, so nothing is removed.
    `pool`, if given, replaces either; `training`, if given, replaces the statistics of all training examples.
    """

    def __init__(
        self,
        corpus: Corpus,
        classes: Sequence[int],
        pool_classes: Sequence[int],
        spec: EpisodeSpec,
        seed: int = 0,
        pool: SourcePool | None = None,
        training: SourcePool | None = None,
    ) -> None:
        if len(classes) < spec.way:
            raise DataError(
                f"{len(classes)} classes are too few for {spec.way}-way episodes: lower the way (--way), or add classes."
            )
        self.corpus = corpus
        self.classes = np.array(classes)
        self.spec = spec
        self.seed = seed
        self.pool = pool
        self._training = training
        self.members = [np.flatnonzero(corpus.labels == label) for label in range(len(corpus.classes))]
        for label in classes:
            if len(self.members[label]) <= spec.shot:
                raise DataError(
                    f"Class {corpus.classes[label]!r} has {len(self.members[label])} documents, fewer than the {spec.shot + 1} "
                    f"that {spec.shot}-shot episodes need: lower the shot (--shot), or add documents."
                )
        self.pool_classes = frozenset(pool_classes)

    @cached_property
    def queries_used(self) -> int:
        """Number of queries from the smallest class: fewer than requested if it has fewer than shot + queries documents."""
        return min(self.spec.queries, min(len(self.members[label]) for label in self.classes) - self.spec.shot)

    @cached_property
    def _counts(self) -> tuple[Ints, Ints]:
        return self.corpus.word_counts(), self.corpus.document_counts()

    @cached_property
    def training_pool(self) -> SourcePool:
        """The statistics of all training examples."""
        return self._training or self._sum_pool(self.pool_classes)

    def _sum_pool(self, labels: frozenset[int]) -> SourcePool:
        chosen = sorted(labels)
        words, documents = self._counts
        counts = words[chosen].sum(0)
        return SourcePool(counts, documents[chosen].sum(0), sum(len(self.members[c]) for c in chosen), float(counts.sum()))

    def pool_without(self, drawn: Ints) -> SourcePool:
        """The source pool of an episode: statistics add up over classes, so leaving a few out is a subtraction."""
        overlap = self.pool_classes.intersection(drawn.tolist())
        if self.pool or not overlap:
            return self.pool or self.training_pool
        whole = self.training_pool
        gone = self._sum_pool(overlap)
        return SourcePool(
            whole.counts - gone.counts, whole.documents - gone.documents, whole.size - gone.size, whole.total - gone.total
        )

    def __getitem__(self, index: int) -> Episode:
        rng = np.random.default_rng([self.seed, index])
        classes = rng.choice(self.classes, self.spec.way, replace=False)
        return _draw(rng, index, classes, self.members, self.spec, self.pool_without(classes), self.training_pool)


def _draw(
    rng: np.random.Generator,
    index: int,
    classes: Ints,
    members: Sequence[Ints],
    spec: EpisodeSpec,
    pool: SourcePool,
    training: SourcePool,
) -> Episode:
    """Draw the support and queries of each class, without repetition."""
    support, query = [], []
    for label in classes:
        drawn = rng.permutation(members[label])[: spec.shot + spec.queries]
        support.append(drawn[: spec.shot])
        query.append(drawn[spec.shot :])
    return Episode(
        index,
        classes,
        np.concatenate(support),
        np.repeat(np.arange(spec.way), spec.shot),
        np.concatenate(query),
        np.repeat(np.arange(spec.way), [len(part) for part in query]),
        pool,
        training,
    )


@dataclass(frozen=True, eq=False)
class MixedSampler:
    """Draws episodes of varying shape from several groups of classes; the seed and i decide group, way and shot of episode i.

    The classes of an episode come from one group, such as one data set. `pool` is the source pool of every episode.
    """

    corpus: Corpus
    groups: Sequence[Sequence[int]]
    pool: SourcePool
    seed: int = 0
    ways: tuple[int, int] = (2, 20)
    shots: tuple[int, int] = (1, 10)
    queries: int = 60  # per episode, approximately

    @cached_property
    def members(self) -> list[Ints]:
        """The documents that belong to each class."""
        return [np.flatnonzero(self.corpus.labels == label) for label in range(len(self.corpus.classes))]

    def __getitem__(self, index: int) -> Episode:
        rng = np.random.default_rng([self.seed, index])
        group = np.array(self.groups[int(rng.integers(len(self.groups)))])
        way = _log_uniform(rng, self.ways[0], min(self.ways[1], len(group)))
        spec = EpisodeSpec(way, _log_uniform(rng, *self.shots), max(1, min(self.queries // way, MOST_QUERIES)))
        classes = rng.choice(group, way, replace=False)
        return _draw(rng, index, classes, self.members, spec, self.pool, self.pool)


MOST_QUERIES = 15  # per class: with two classes, more would not improve the estimate of the loss


def _log_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, drawn uniformly on a logarithmic scale, because small tasks are the most common."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))
