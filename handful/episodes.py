"""Episodes: N-way K-shot tasks drawn from a corpus, each with its source pool, reproducible by index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .corpus import Corpus
from .errors import DataError, SettingError
from .functional import Ints
from .text import Vocabulary


@dataclass(frozen=True)
class EpisodeSpec:
    """The shape of an episode: classes, labelled examples a class, queries a class."""

    way: int = 5
    shot: int = 1
    queries: int = 25

    def __post_init__(self) -> None:
        if self.way < 2 or self.shot < 1 or self.queries < 1:
            raise SettingError(f"An episode needs a way of at least 2, and 1 shot and query at least; this is {self}.")


@dataclass(frozen=True, eq=False)
class SourcePool:
    """What the source pool says about each word: its count, the documents that have it, and the number of documents."""

    counts: np.ndarray[Any, Any]  # (vocabulary,)
    documents: np.ndarray[Any, Any]  # (vocabulary,)
    size: int
    total: float  # words in the pool, also those that this vocabulary lacks


def background_pool(vocabulary: Vocabulary, language: str = "en") -> SourcePool:
    """How frequent each word is in a language at large (wordfreq), to stand in for a source pool."""
    from wordfreq import word_frequency

    billion = 1e9
    counts = np.array([word_frequency(word, language) for word in vocabulary.words]) * billion
    return SourcePool(counts, counts, int(billion), billion)


@dataclass(frozen=True, eq=False)
class Episode:
    """One task, as positions in its corpus; labels are positions in `classes`."""

    index: int
    classes: Ints  # (way,)
    support: Ints  # (way * shot,)
    support_labels: Ints
    query: Ints
    query_labels: Ints
    pool: SourcePool
    training: SourcePool  # all training examples: the pool itself, but for a meta-training episode


class EpisodeSampler:
    """Episode i is a pure function of the seed and i: the same for any order, batch or number of workers.

    In meta-training the source pool is every example of the classes not drawn (`pool_classes` without the episode's own);
    in validation and testing it is every training example: then the two sets of classes do not meet, and nothing is removed.
    A `pool` given stands for either; `training`, given, is what is known of all training examples.
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
        self.corpus, self.classes, self.spec, self.seed = corpus, np.array(classes), spec, seed
        self.pool, self._training = pool, training
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
        """Queries of the class that has the fewest: less than asked for where it has fewer than shot + queries documents."""
        return min(self.spec.queries, min(len(self.members[label]) for label in self.classes) - self.spec.shot)

    @cached_property
    def _counts(self) -> tuple[Ints, Ints]:
        return self.corpus.word_counts(), self.corpus.document_counts()

    @cached_property
    def training_pool(self) -> SourcePool:
        """Every training example."""
        return self._training or self._sum_pool(self.pool_classes)

    def _sum_pool(self, labels: frozenset[int]) -> SourcePool:
        chosen = sorted(labels)
        words, documents = self._counts
        counts = words[chosen].sum(0)
        return SourcePool(counts, documents[chosen].sum(0), sum(len(self.members[c]) for c in chosen), float(counts.sum()))

    def _pool_without(self, drawn: Ints) -> SourcePool:
        """Statistics add up by class, so leaving a few classes out is a subtraction."""
        overlap = self.pool_classes.intersection(drawn.tolist())
        if self.pool or not overlap:
            return self.pool or self.training_pool
        whole, gone = self.training_pool, self._sum_pool(overlap)
        return SourcePool(
            whole.counts - gone.counts, whole.documents - gone.documents, whole.size - gone.size, whole.total - gone.total
        )

    def __getitem__(self, index: int) -> Episode:
        rng = np.random.default_rng([self.seed, index])
        classes = rng.choice(self.classes, self.spec.way, replace=False)
        support, query = [], []
        for label in classes:
            drawn = rng.permutation(self.members[label])[: self.spec.shot + self.spec.queries]
            support.append(drawn[: self.spec.shot])
            query.append(drawn[self.spec.shot :])
        return Episode(
            index,
            classes,
            np.concatenate(support),
            np.repeat(np.arange(self.spec.way), self.spec.shot),
            np.concatenate(query),
            np.repeat(np.arange(self.spec.way), [len(part) for part in query]),
            self._pool_without(classes),
            self.training_pool,
        )
