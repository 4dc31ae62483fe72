"""The words met so far with their vectors and frequencies: most words of new texts are among them, and need no work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from threading import Lock

import numpy as np

from ..data.frequencies import background_frequencies
from ..data.text import LONGEST_REMEMBERED, words_in
from ..utils.functional import Floats
from .tables import WordVectors, load_vectors

MOST_WORDS = 50_000  # kept with their vectors: at most 100 MB with vectors of 512 numbers
MOST_TOKENS = 200_000

Numbers = tuple[int, ...]


class KnownWords:
    """Words by number, with vectors and frequencies, and the words of tokens. It only grows, so readers need no lock."""

    def __init__(self, table: WordVectors, language: str, most_words: int) -> None:
        self.words: list[str] = []
        self.vectors: Floats = np.empty((most_words, table.dim), np.float32)  # (words, dim): takes memory as it is filled
        self.frequencies = np.empty(most_words, np.float64)  # (words,)
        self.has_vector = np.empty(most_words, bool)  # (words,)
        self.tokens: dict[str, Numbers] = {}
        self._numbers: dict[str, int] = {}
        self._table, self._language = table, language
        self._lock = Lock()

    def add(self, words: Iterable[str]) -> bool:
        """Add those of the words that are new; false if there is no room for them."""
        with self._lock:
            new = list({word: None for word in words if word not in self._numbers})
            first, last = len(self.words), len(self.words) + len(new)
            if last > len(self.vectors) or len(self.tokens) > MOST_TOKENS:
                return False
            if new:
                self.vectors[first:last] = self._table.lookup(new)
                self.frequencies[first:last] = background_frequencies(new, self._language)
                self.has_vector[first:last] = (self.vectors[first:last] != 0).any(axis=1)
                self.words.extend(new)
                self._numbers.update(zip(new, range(first, last), strict=True))
            return True

    def numbers(self, words: Iterable[str]) -> Numbers:
        """The numbers of known words."""
        return tuple(map(self._numbers.__getitem__, words))


class Lexicon:
    """Gives the words of tokens their numbers. If too many words are known, it starts again. Threads may share it."""

    def __init__(self, table: WordVectors, language: str) -> None:
        self._table, self._language = table, language
        self._known = KnownWords(table, language, MOST_WORDS)

    def look_up(self, tokens: Sequence[str], max_words: int) -> tuple[KnownWords, list[Numbers]]:
        """The numbers of the words of each token, at most `max_words`, and what is known of the words."""
        known = self._known
        found = list(map(known.tokens.get, tokens))
        if None not in found:
            return known, found  # type: ignore[return-value]
        missing = [token for token, numbers in zip(tokens, found, strict=True) if numbers is None]
        split = {token: words_in(token, max_words) for token in missing}
        if not known.add(chain.from_iterable(split.values())):
            return self._start_again(tokens, max_words)
        fresh = {token: known.numbers(words) for token, words in split.items()}
        known.tokens.update((token, numbers) for token, numbers in fresh.items() if len(token) <= LONGEST_REMEMBERED)
        return known, [fresh[token] if numbers is None else numbers for token, numbers in zip(tokens, found, strict=True)]

    def _start_again(self, tokens: Sequence[str], max_words: int) -> tuple[KnownWords, list[Numbers]]:
        split = {token: words_in(token, max_words) for token in tokens}
        words = set(chain.from_iterable(split.values()))
        known = KnownWords(self._table, self._language, max(MOST_WORDS, len(words)))
        known.add(words)
        if len(words) < MOST_WORDS:  # otherwise there are more than are worth keeping
            self._known = known
        fresh = {token: known.numbers(words) for token, words in split.items()}
        return known, [fresh[token] for token in tokens]


@lru_cache(maxsize=4)
def cached_table(names: str) -> WordVectors:
    """Word tables, read once per process."""
    return load_vectors(names)


@lru_cache(maxsize=4)
def cached_lexicon(vectors: str, language: str) -> Lexicon:
    """The lexicon of some word tables and a language, one per process."""
    return Lexicon(cached_table(vectors), language)
