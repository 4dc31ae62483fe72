"""Turn raw texts into words with their vectors and frequencies: all that is known of a text without labelled examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from ..data.corpus import Texts, ragged_positions
from ..data.frequencies import KNOWN_FROM, background_frequencies
from ..data.text import tokens_of, words_of
from ..utils.functional import Floats, Ints
from .lexicon import cached_lexicon, cached_table

CHARACTERS_AT_ONCE = 300_000  # read together, about 50,000 words: few enough to bound memory, many enough to be fast
TEXT_COST = 24  # characters that a text counts for in addition to its own, since its vector takes memory too
PROBED_WORDS = 64  # enough to identify a table of vectors


@dataclass(frozen=True, eq=False)
class TokenizedTexts:
    """Texts as words, with the vectors and frequencies of the distinct words."""

    words: list[str]  # distinct
    texts: Texts  # ids and rows are positions in `words`
    frequencies: np.ndarray[Any, np.dtype[np.float64]]  # (distinct words,): P(x)
    cut: int  # texts that have more words than were read

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, positions: Ints) -> TokenizedTexts:
        """The given texts, in this order."""
        return replace(self, texts=self.texts.select(positions))


@dataclass(frozen=True)
class WordLookup:
    """Finds the vector and the frequency of each word of raw texts; words without a vector are dropped."""

    vectors: str  # names of word tables: see `load_vectors`
    language: str  # of the background word frequencies
    max_words: int  # read from each text

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return cached_table(self.vectors).dim

    def probe(self, words: Sequence[str]) -> Floats:
        """The mean vector of some words, which identifies a table of vectors: (dim,)."""
        found = cached_table(self.vectors).lookup(words[:PROBED_WORDS]) if words else np.zeros((1, self.dim))
        return found.mean(axis=0).astype(np.float32)  # type: ignore[no-any-return]

    def unknown_share(self, texts: Iterable[str]) -> float:
        """The share of words in the texts that are rare in the language or missing from one of the word tables."""
        words = [word for text in texts for word in words_of(text, self.max_words) if word[0].isalpha()]
        if not words:
            return 0.0
        known = (background_frequencies(words, self.language) >= KNOWN_FROM) & cached_table(self.vectors).knows(words)
        return 1 - float(known.mean())

    def is_cut(self, text: str) -> bool:
        """Whether a text has more words than are read."""
        return len(text) > self.max_words and len(words_of(text, self.max_words + 1)) > self.max_words

    def read(self, texts: Iterable[str]) -> TokenizedTexts:
        """Read all texts at once."""
        return self._look_up([self._tokens(text) for text in texts])

    def batches(self, texts: Iterable[str]) -> Iterator[TokenizedTexts]:
        """Read the texts in order and in batches, so that memory use stays constant."""
        waiting: list[list[str]] = []
        size = 0
        for text in texts:
            waiting.append(self._tokens(text))
            size += len(text) + TEXT_COST
            if size > CHARACTERS_AT_ONCE:
                yield self._look_up(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._look_up(waiting)

    def _tokens(self, text: str) -> list[str]:
        """The tokens that are read of a text, plus one more if there is one, which tells whether the text is cut."""
        return tokens_of(text, self.max_words + 1)

    def _look_up(self, texts: Sequence[list[str]]) -> TokenizedTexts:
        lexicon = cached_lexicon(self.vectors, self.language)
        known, numbers = lexicon.look_up(list(chain.from_iterable(texts)), self.max_words + 1)
        numbers_of_words = np.fromiter(chain.from_iterable(numbers), np.int64)  # (words,)
        ends = _ends(map(len, numbers))[_ends(map(len, texts))]  # of the texts: (texts + 1,)
        lengths = np.diff(ends)
        cut = int((lengths > self.max_words).sum())
        if cut:
            lengths = np.minimum(lengths, self.max_words)
            numbers_of_words = numbers_of_words[ragged_positions(ends[:-1], lengths)]
        distinct, ids = _by_first_occurrence(numbers_of_words, len(known.words))
        kept = known.has_vector[numbers_of_words]
        offsets = _ends(kept)[_ends(lengths)]
        ids = ids[kept]
        texts_of_words = Texts(ids, offsets, known.vectors[distinct], ids, np.empty((len(ids), 0), np.int64))
        words = [known.words[number] for number in distinct.tolist()]
        return TokenizedTexts(words, texts_of_words, known.frequencies[distinct], cut)


def _ends(lengths: Iterable[int]) -> Ints:
    """0, and where each of several consecutive stretches ends.

    >>> _ends([2, 0, 3])
    array([0, 2, 2, 5])
    """
    ends = np.fromiter(chain([0], lengths), np.int64)
    return np.cumsum(ends, out=ends)


def _by_first_occurrence(numbers: Ints, limit: int) -> tuple[Ints, Ints]:
    """The distinct numbers (all below `limit`) in order of first occurrence, and the place of each number among them.

    >>> _by_first_occurrence(np.array([7, 2, 7, 5]), 8)
    (array([7, 2, 5]), array([0, 1, 0, 2]))
    """
    first = np.full(limit, -1)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of equal numbers, the one written last remains
    present = np.flatnonzero(first >= 0)
    distinct = present[np.argsort(first[present])]
    place = np.empty(limit, np.int64)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[numbers]
