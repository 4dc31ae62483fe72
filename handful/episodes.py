"""Episodes: N-way K-shot tasks drawn from a corpus, each with its source pool, reproducible by index."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

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


BILLION = 1_000_000_000  # words that the background stands for
PUNCTUATION = 0.01  # share of a sign in running text: wordfreq counts words only


def background_pool(vocabulary: Vocabulary, language: str = "en") -> SourcePool:
    """How frequent each word is in a language at large (wordfreq), to stand in for a source pool."""
    counts = background_frequencies(vocabulary.words, language) * BILLION
    return SourcePool(counts, counts, BILLION, float(BILLION))


def background_frequencies(words: Sequence[str], language: str = "en") -> np.ndarray[Any, np.dtype[np.float64]]:
    """The share of each word in running text of a language; 0 for a word that was never counted."""
    from wordfreq import word_frequency

    try:
        return np.array([word_frequency(word, language) or PUNCTUATION * _is_sign(word) for word in words], np.float64)
    except LookupError as error:
        raise SettingError(f"There are no word frequencies for the language {language!r}: give a code such as en.") from error


def _is_sign(word: str) -> bool:
    """Punctuation, or a sign of mathematics or currency; an emoji is a word."""
    return unicodedata.category(word[0]) in ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk")


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


class Sampler(Protocol):
    """Episodes by index: what training and evaluation ask for."""

    @property
    def seed(self) -> int: ...

    def __getitem__(self, index: int) -> Episode: ...


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

    def pool_without(self, drawn: Ints) -> SourcePool:
        """The source pool of an episode: statistics add up by class, so leaving a few classes out is a subtraction."""
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
    """Support and queries of each class, without repetition."""
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
    """Episodes of any shape from several groups of classes: group, way and shot of episode i are drawn from the seed and i.

    Classes of one episode are of one group, such as one data set. `pool` stands for the source pool of every episode.
    """

    corpus: Corpus
    groups: Sequence[Sequence[int]]
    pool: SourcePool
    seed: int = 0
    ways: tuple[int, int] = (2, 20)
    shots: tuple[int, int] = (1, 10)
    queries: int = 60  # an episode, about

    @cached_property
    def members(self) -> list[Ints]:
        """The documents of each class."""
        return [np.flatnonzero(self.corpus.labels == label) for label in range(len(self.corpus.classes))]

    def __getitem__(self, index: int) -> Episode:
        rng = np.random.default_rng([self.seed, index])
        group = np.array(self.groups[int(rng.integers(len(self.groups)))])
        way = _log_uniform(rng, self.ways[0], min(self.ways[1], len(group)))
        spec = EpisodeSpec(way, _log_uniform(rng, *self.shots), max(1, min(self.queries // way, MOST_QUERIES)))
        classes = rng.choice(group, way, replace=False)
        return _draw(rng, index, classes, self.members, spec, self.pool, self.pool)


MOST_QUERIES = 15  # a class: two classes need no more to tell how good a step is


def _log_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, each doubling as likely as the next: small tasks are the common ones."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))
