"""From raw texts to scores for classes, by the universal generator and a linear head: the numbers behind the estimator.

A score is linear in the words: that of class c is constant_c + Σ αᵢ (f(xᵢ) / |φ| - centre)·w_c with φ = Σ αᵢ f(xᵢ), so the
part of each word in it is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import cast

import numpy as np

from .corpus import Texts
from .embeddings import WordVectors, load_vectors
from .episodes import background_frequencies
from .functional import TINY, Floats, Ints, softmax, unit_length, weighted_bag
from .heads import UniversalRidge, part_of
from .model import FewShotModel
from .representations import Batch
from .signatures import Evidence, frequency_level
from .text import Vocabulary, words_of

WORDS_AT_ONCE = 50_000  # of texts that are read together: bounds memory, and is enough to be quick
BACKGROUND_WORDS = 100_000  # of unlabelled texts weigh as much as the background
FACTORS = np.geomspace(1 / 4, 4, 33)  # by which examples left out may correct the scale
CAUTION = 80.0  # trust in the scale that was meta-learned, in examples that would speak against it
MOST_ROUNDS, MOST_LEARNED_AGAIN = 2, 400  # of leaving examples out, and examples: it takes as long as learning them first


@dataclass(frozen=True, eq=False)
class Words:
    """Texts as words, with the vectors and frequency levels of the distinct ones."""

    distinct: list[str]
    texts: Texts  # ids and rows are positions in `distinct`
    levels: Floats  # (distinct,): f


@dataclass(frozen=True)
class Reader:
    """Turns raw texts into words, vectors and frequencies, for which no example is needed."""

    vectors: str
    language: str
    longest: int
    counts: Mapping[str, int] = field(default_factory=dict)  # of words in unlabelled texts, which join the background

    def read(self, texts: Iterable[str]) -> Words:
        """All the texts at once; words that have no vector are left out."""
        return self._words([words_of(text, self.longest) for text in texts])

    def batches(self, texts: Iterable[str]) -> Iterator[Words]:
        """The texts in order, some at a time, so that memory stays flat."""
        documents: list[list[str]] = []
        waiting = 0
        for text in texts:
            documents.append(words_of(text, self.longest))
            waiting += len(documents[-1]) + 1
            if waiting > WORDS_AT_ONCE:
                yield self._words(documents)
                documents, waiting = [], 0
        if documents:
            yield self._words(documents)

    def _words(self, documents: Sequence[Sequence[str]]) -> Words:
        vocabulary = Vocabulary()
        ids = vocabulary.ids(word for words in documents for word in words)
        offsets = np.concatenate([[0], np.cumsum([len(words) for words in documents])]).astype(np.int64)
        table = table_of(self.vectors).lookup(vocabulary.words)
        kept = (table != 0).any(axis=1)[ids]
        ids, offsets = ids[kept], np.concatenate([[0], np.cumsum(kept)])[offsets]
        texts = Texts(ids, offsets, table, ids, np.empty((len(ids), 0), np.int64))
        return Words(vocabulary.words, texts, frequency_level(self._frequencies(vocabulary.words)))

    def _frequencies(self, words: Sequence[str]) -> Floats:
        background = background_frequencies(words, self.language)
        if not self.counts:
            return cast("Floats", background)
        own = np.array([self.counts.get(word, 0) for word in words])
        return (background * BACKGROUND_WORDS + own) / (BACKGROUND_WORDS + sum(self.counts.values()))  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def table_of(names: str) -> WordVectors:
    """Read once a process."""
    return load_vectors(names)


@dataclass(frozen=True, eq=False)
class Decision:
    """What labelled texts decided: all that is needed to score others."""

    vocabulary: Vocabulary  # the words of the examples
    evidence: Evidence  # ids are those of the vocabulary
    centre: Floats  # (dim,): the mean of the examples' vectors
    weights: Floats  # (dim, classes)
    constants: Floats  # (classes,): the score of a text without words

    def attention(self, words: Words, generator: FewShotModel) -> Floats:
        """The weight of each word, (words,); those of a text sum to one."""
        texts, evidence = words.texts, self.evidence
        uneven = evidence.uneven_of(self.vocabulary.find(words.distinct))
        signals = _signals(generator, words.levels, evidence.u(uneven), evidence.r(texts.table @ evidence.directions))
        return generator.weights(Batch(texts, signals[texts.ids]))

    def scores(self, words: Words, generator: FewShotModel) -> Floats:
        """(texts, classes)."""
        vectors = self.represent(words, generator).astype(np.float64) - self.centre  # so that company changes no digit
        vectors[words.texts.lengths == 0] = 0
        return (vectors @ self.weights.astype(np.float64) + self.constants).astype(np.float32)

    def represent(self, words: Words, generator: FewShotModel) -> Floats:
        """φ / |φ|: (texts, dim)."""
        return _unit_bags(words.texts, self.attention(words, generator))

    def parts(self, words: Words, generator: FewShotModel) -> tuple[Floats, Floats]:
        """The attention of each word of one text, and what it adds to each score: (words,), (words, classes)."""
        texts, attention = words.texts, self.attention(words, generator)
        length = np.linalg.norm(attention @ texts.table[texts.rows])
        table = (texts.table / max(float(length), TINY) - self.centre) @ self.weights  # (distinct, classes)
        return attention, cast("Floats", attention[:, None] * table[texts.rows])


def _unit_bags(texts: Texts, attention: Floats) -> Floats:
    return cast("Floats", unit_length(weighted_bag(texts.table, texts.rows, attention, texts.offsets)))


def _signals(generator: FewShotModel, f: Floats, u: Floats, r: Floats) -> Floats:
    named = {"f": f, "u": u, "r": r}
    return np.stack([named[name] for name in generator.settings.signals], axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Lesson:
    """Labelled texts, as the head takes them."""

    words: Words
    targets: Floats  # (texts, classes): 1 where a text has a class
    exclusive: bool  # a text has one class, and scores are logits of a softmax; otherwise of a sigmoid each

    @property
    def sizes(self) -> Floats:
        """How many examples each class has."""
        return self.targets.sum(axis=0)  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, float]:
        """The number of classes that compete for a text, and of examples for each."""
        classes = self.targets.shape[1] if self.exclusive else 2
        return classes, len(self.targets) / classes

    @property
    def constants(self) -> Floats:
        """The logits of how frequent the classes are."""
        if self.exclusive:
            return np.log(self.sizes / self.sizes.sum())  # type: ignore[no-any-return]
        share = (self.sizes + 0.5) / (len(self.targets) + 1)  # never 0 nor 1
        return np.log(share / (1 - share))

    @property
    def shares(self) -> Floats:
        """How much each text counts, (texts, 1): a class of many examples pulls no more than others."""
        counts = self.targets @ (self.sizes.mean() / self.sizes) if self.exclusive else np.ones(len(self.targets))
        return counts[:, None].astype(np.float32)

    @property
    def goals(self) -> Floats:
        """What the regression aims at: (texts, classes)."""
        return self.targets if self.exclusive else self.targets - self.targets.mean(axis=0)

    def select(self, positions: Ints) -> Lesson:
        """Some of the texts."""
        words = replace(self.words, texts=self.words.texts.select(positions))
        return Lesson(words, self.targets[positions], self.exclusive)

    def centre(self, vectors: Floats) -> Floats:
        """The mean of the texts' vectors, were the classes equally large: (dim,)."""
        return np.average(vectors, axis=0, weights=self.shares[:, 0]).astype(np.float32)


def decide(lesson: Lesson, generator: FewShotModel) -> Decision:
    """Learn from labelled texts."""
    decision, scale = _learn(lesson, generator), _scale_of(lesson, generator) * _scale_factor(lesson, generator)
    return replace(
        decision, weights=(decision.weights * scale).astype(np.float32), constants=lesson.constants.astype(np.float32)
    )


def _learn(lesson: Lesson, generator: FewShotModel) -> Decision:
    """What the examples say, in scores that have no scale yet, and nothing to say of a text without words."""
    words, head = lesson.words, cast("UniversalRidge", generator.head)
    nothing = np.empty((0, 0), np.float32)
    blank = Decision(Vocabulary(words.distinct), Evidence.of(words.texts, lesson.targets), nothing, nothing, nothing)
    vectors = blank.represent(words, generator)  # (texts, dim)
    centre = lesson.centre(vectors)
    solve = head.weights if lesson.exclusive else head.ridge
    weights = solve(vectors - centre, lesson.goals, lesson.shares)
    return replace(blank, centre=centre, weights=weights, constants=np.zeros(weights.shape[1], np.float32))


def _scale_of(lesson: Lesson, generator: FewShotModel) -> float:
    """What makes logits of scores for tasks of this shape, as it was meta-learned."""
    scale = cast("UniversalRidge", generator.head).scale_of(part_of(generator.parameters, "head"), *lesson.shape)
    return float(scale) * (1 if lesson.exclusive else 2)  # one class against all others


def _scale_factor(lesson: Lesson, generator: FewShotModel) -> float:
    """How much larger than meta-learned the scale should be, by the likelihood of examples that were left out.

    One example of each class is left out at a time, so that the others are a task of the same kind with one example less.
    """
    likelihood = -CAUTION / 2 * np.log(FACTORS) ** 2
    for left in _left_out(lesson):
        rest = lesson.select(np.delete(np.arange(len(lesson.targets)), left))
        scores = _learn(rest, generator).scores(lesson.select(left).words, generator)  # (classes, classes)
        logits = FACTORS[:, None, None] * _scale_of(rest, generator) * scores + rest.constants
        found = (softmax(logits) * lesson.targets[left]).sum(axis=-1)  # (factors, classes)
        likelihood = likelihood + np.log(np.maximum(found, TINY)).sum(axis=-1)
    return float(FACTORS[np.argmax(likelihood)])


def _left_out(lesson: Lesson) -> list[Ints]:
    """One example of each class, then another of each if that takes no time; none where a class has no second one."""
    if not lesson.exclusive or lesson.sizes.min() < 2:
        return []
    members = [np.flatnonzero(column) for column in lesson.targets.T]
    rounds = min(MOST_ROUNDS, max(1, MOST_LEARNED_AGAIN // len(lesson.targets)))
    return [np.array([own[number] for own in members]) for number in range(rounds)]
