"""Identify the word vectors that a run was trained with, by one number for each of some words (its mark).

Marks are compared as numbers, not by a hash, because the last digits of a vector differ between machines. Each word has its own
mark, so that texts with only some words in common can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.text import Vocabulary
from ..utils.functional import Floats, Ints

MARKED = 64  # words: the most frequent ones, which are likely to occur in other texts too
TOLERANCE = 1e-3  # relative to the typical size of a mark
SENTENCE_TOLERANCE = 0.3  # of 8-bit encoders, whose vectors depend on the processor; other encoders differ by far more

Marks = Mapping[str, float]
Marking = Callable[[Sequence[str]], Marks]  # marks some of the words, from their vectors in some table


@dataclass(frozen=True)
class VectorIdentity:
    """The length of a run's word vectors, and the marks that identify them; `sentences` is the same for whole texts."""

    dim: int
    marks: Marks
    tolerance: float = TOLERANCE
    sentences: VectorIdentity | None = None  # if vectors of whole texts stand next to those of words

    @classmethod
    def from_json(cls, value: Any) -> VectorIdentity:
        """Read from a config file; raises KeyError, TypeError or ValueError if it is damaged."""
        marks = {str(word): float(mark) for word, mark in dict(value["marks"]).items()}
        sentences = cls.from_json(value["sentences"]) if value.get("sentences") else None
        return cls(int(value["dim"]), marks, sentences=sentences)

    def agrees(self, other: VectorIdentity) -> bool:
        """Whether the vectors have the same length, and the words marked in both have the same marks."""
        if self.sentences and not (other.sentences and self.sentences.agrees(other.sentences)):
            return False
        shared = [word for word in self.marks if word in other.marks]
        first, second = (np.array([identity.marks[word] for word in shared]) for identity in (self, other))
        tolerance = max(self.tolerance, other.tolerance)
        usual = np.sqrt(np.mean(np.square([*self.marks.values()]))) if shared else 0.0
        return self.dim == other.dim and bool(np.all(np.abs(first - second) <= tolerance * usual))


def words_to_mark(vocabulary: Vocabulary, counts: Ints) -> list[str]:
    """The most frequent words that a text file can hold."""
    words = (vocabulary.words[i] for i in np.argsort(-counts, kind="stable") if counts[i])
    return [word for word in words if word.isprintable()][:MARKED]


def mark_by_text(encode: Callable[[Sequence[str]], Floats]) -> Marking:
    """Marks from words encoded as one text, for vectors that depend on the context."""
    return lambda words: _marks(words, encode(words)) if words else {}


def mark_by_table(vocabulary: Vocabulary, table: Floats, lookup: Callable[[Sequence[str]], Floats]) -> Marking:
    """Marks from the words in a table; only if it has none of them are they looked up, which may read a large file."""

    def mark(words: Sequence[str]) -> Marks:
        rows = vocabulary.find(words)
        here = [word for word, row in zip(words, rows, strict=True) if row >= 0]
        return _marks(here, table[rows[rows >= 0]]) if here or not words else _marks(words, lookup(words))

    return mark


def _marks(words: Sequence[str], vectors: Floats) -> Marks:
    """The projection of each vector on one direction, to which every coordinate contributes."""
    dim = vectors.shape[1]
    direction = np.linspace(1, 2, dim) * np.resize([1.0, -1.0], dim)
    marks = np.asarray(vectors, np.float64) @ direction  # (words,)
    return {word: float(f"{mark:.6g}") for word, mark in zip(words, marks, strict=True)}
