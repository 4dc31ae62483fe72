"""Turn raw texts into words with their vectors and frequencies: all that is known of a text without labelled examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from ..data.corpus import Texts
from ..data.frequencies import KNOWN_FROM, background_frequencies
from ..data.text import Vocabulary, words_of
from ..utils.functional import Floats, Ints
from .tables import SideBySide, WordVectors, load_vectors

WORDS_AT_ONCE = 50_000  # read together: few enough to bound memory, many enough to be fast
PROBED_WORDS = 64  # enough to identify a table of vectors


@dataclass(frozen=True, eq=False)
class TokenizedTexts:
    """Texts as words, with the vectors and frequencies of the distinct words."""

    words: list[str]  # distinct
    texts: Texts  # ids and rows are positions in `words`
    frequencies: Floats  # (distinct words,): P(x)
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
        table = cached_table(self.vectors)
        tables = table.tables if isinstance(table, SideBySide) else (table,)
        unknown = background_frequencies(words, self.language) < KNOWN_FROM
        for each in tables if words else ():
            unknown |= (each.lookup(words) == 0).all(axis=1)
        return float(unknown.mean()) if words else 0.0

    def is_cut(self, text: str) -> bool:
        """Whether a text has more words than are read."""
        return len(text) > self.max_words and len(words_of(text, self.max_words + 1)) > self.max_words

    def read(self, texts: Iterable[str]) -> TokenizedTexts:
        """Read all texts at once."""
        return self._look_up([self._words_and_one_more(text) for text in texts])

    def batches(self, texts: Iterable[str]) -> Iterator[TokenizedTexts]:
        """Read the texts in order and in batches, so that memory use stays constant."""
        documents: list[list[str]] = []
        waiting = 0
        for text in texts:
            documents.append(self._words_and_one_more(text))
            waiting += len(documents[-1]) + 1
            if waiting > WORDS_AT_ONCE:
                yield self._look_up(documents)
                documents, waiting = [], 0
        if documents:
            yield self._look_up(documents)

    def _words_and_one_more(self, text: str) -> list[str]:
        """The words that are read of a text, plus one more if there is one, which tells whether the text is cut."""
        return words_of(text, self.max_words + 1)

    def _look_up(self, texts_and_more: Sequence[list[str]]) -> TokenizedTexts:
        cut = sum(len(words) > self.max_words for words in texts_and_more)
        documents = [words[: self.max_words] for words in texts_and_more] if cut else texts_and_more
        vocabulary = Vocabulary()
        ids = vocabulary.ids(word for words in documents for word in words)
        offsets = np.concatenate([[0], np.cumsum([len(words) for words in documents])]).astype(np.int64)
        table = cached_table(self.vectors).lookup(vocabulary.words)
        kept = (table != 0).any(axis=1)[ids]
        ids = ids[kept]
        offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
        texts = Texts(ids, offsets, table, ids, np.empty((len(ids), 0), np.int64))
        frequencies = cast("Floats", background_frequencies(vocabulary.words, self.language))
        return TokenizedTexts(vocabulary.words, texts, frequencies, cut)


@lru_cache(maxsize=4)
def cached_table(names: str) -> WordVectors:
    """Word tables, read once per process."""
    return load_vectors(names)
