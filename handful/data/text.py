"""Split raw text into words, and map words to ids."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import numpy as np

# `\w` does not match the vowel signs and accents that other scripts write inside a word.
_MARKS = r"\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff\u0e00-\u0eff"
_CLITIC = r"['’](?:s|re|ve|ll|d|m)(?!\w)"
_WORD = re.compile(
    rf"""
      (?:[^\W\d_]\.){{2,}}                                 # u.s.  e.g.
    | \d+(?:[.,:/]\d+)*[^\W_]*                             # 5,000  1.5  04/09/87  3rd
    | n['’]t(?!\w)                                         # the end of don't
    | {_CLITIC}                                            # the end of it's, they'll
    | can(?=not(?!\w))                                     # can not
    | [^\W\d_]+?(?=n['’]t(?!\w))                           # the do of don't
    | [\w{_MARKS}]+(?:(?!{_CLITIC})['’][\w{_MARKS}]+)*     # words, o'reilly
    | ([^\w\s])\1*                                         # punctuation; a run of one sign is one word: ... -- !!!
    """,
    re.VERBOSE | re.IGNORECASE,
)


MAX_WORD_CHARACTERS = 100  # anything longer is a line of dashes or an encoded file, and only its beginning counts
MOST_REMEMBERED = 100_000  # tokens whose words are kept: those of most texts, in some tens of megabytes
LONGEST_REMEMBERED = 40  # characters of such a token: longer ones are rarely met again


@dataclass(frozen=True)
class Word:
    """A word as the model sees it, and its place in the text."""

    text: str
    start: int
    end: int


def tokenize(text: str, max_words: int | None = None) -> list[Word]:
    """Lower-cased words, numbers and punctuation with their character offsets, at most `max_words`; contractions are split.

    >>> [word.text for word in tokenize("I don't think it's 5,000 U.S. dollars...")]
    ['i', 'do', "n't", 'think', 'it', "'s", '5,000', 'u.s.', 'dollars', '...']
    """
    return [Word(_word(match), *match.span()) for match in islice(_WORD.finditer(text), max_words)]


def _word(match: re.Match[str]) -> str:
    return match.group()[:MAX_WORD_CHARACTERS].lower()


def words_of(text: str | Iterable[str], max_words: int | None = None) -> list[str]:
    """The words of a string, or of a text that is already a list of words; at most `max_words`."""
    if isinstance(text, str):
        tokens = tokens_of(text, max_words)
        words = (_remembered(token) if len(token) <= LONGEST_REMEMBERED else words_in(token, max_words) for token in tokens)
        return list(islice(chain.from_iterable(words), max_words))
    return list(islice(text, max_words))


def tokens_of(text: str, most: int | None = None) -> list[str]:
    """The stretches of a text between whitespace, at most `most`. No word extends over two, and each has at least one word.

    >>> tokens_of("I don't know, really")
    ['I', "don't", 'know,', 'really']
    """
    return text.split() if most is None else text.split(None, most)[:most]


def words_in(token: str, max_words: int | None = None) -> tuple[str, ...]:
    """The words of a stretch without whitespace, at most `max_words`.

    >>> words_in("Don't!")
    ('do', "n't", '!')
    """
    return tuple(_word(match) for match in islice(_WORD.finditer(token), max_words))


_remembered = lru_cache(MOST_REMEMBERED)(words_in)  # most tokens are met again


@dataclass
class Vocabulary:
    """Words and their ids, in order of first occurrence. It serves statistics only: any word can have a vector.

    >>> vocabulary = Vocabulary()
    >>> vocabulary.ids(["a", "b", "a"])
    array([0, 1, 0])
    """

    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ids = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The id of each word; a new word gets the next free id."""
        known = self._ids
        numbers = []
        for word in words:
            number = known.setdefault(word, len(known))
            if number == len(self.words):
                self.words.append(word)
            numbers.append(number)
        return np.array(numbers, np.int64)

    def find(self, words: Iterable[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The id of each word; -1 for an unknown one."""
        return np.array([self._ids.get(word, -1) for word in words], np.int64)
