"""Word frequencies: in a source pool of texts, or in a language in general."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SettingError
from ..utils.functional import Ints
from .text import Vocabulary


@dataclass(frozen=True, eq=False)
class SourcePool:
    """Statistics of a source pool: how often and in how many documents each word occurs; total documents and words."""

    counts: np.ndarray[Any, Any]  # (vocabulary,)
    documents: np.ndarray[Any, Any]  # (vocabulary,)
    size: int
    total: float  # words in the pool, including those that this vocabulary lacks

    def probabilities(self, ids: Ints) -> np.ndarray[Any, Any]:
        """P(x) of words, given by their ids."""
        return self.counts[ids] / max(self.total, 1)


KNOWN_FROM = 1e-6  # a frequency: few speakers of a language know a rarer word
BILLION = 1_000_000_000  # words that the background frequencies represent
PUNCTUATION = 0.01  # share of a punctuation mark in running text: wordfreq counts only words


def background_pool(vocabulary: Vocabulary, language: str = "en") -> SourcePool:
    """A substitute for a source pool: the general frequency of each word in a language, from wordfreq."""
    counts = background_frequencies(vocabulary.words, language) * BILLION
    return SourcePool(counts, counts, BILLION, float(BILLION))


def background_frequencies(words: Sequence[str], language: str = "en") -> np.ndarray[Any, np.dtype[np.float64]]:
    """The share of each word in running text of a language; 0 for an unknown word."""
    from wordfreq import word_frequency

    with _language_errors(language):
        return np.array([word_frequency(word, language) or PUNCTUATION * _is_sign(word) for word in words], np.float64)


def check_language(language: str) -> None:
    """Raise a SettingError unless a language has word frequencies."""
    background_frequencies(["a"], language)


@contextmanager
def _language_errors(language: str) -> Iterator[None]:
    """Turn wordfreq's errors about unknown languages and missing packages into errors of one sentence."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            f"Word frequencies for the language {language[:20]!r} need {error.name}, which is not installed: "
            "pip install 'wordfreq[cjk]', or choose another language."
        ) from error
    except (LookupError, ValueError) as error:  # langcodes raises ValueError for a string that is not a language code
        raise SettingError(
            f"There are no word frequencies for the language {language[:20]!r}: give a code such as en."
        ) from error


def _is_sign(word: str) -> bool:
    """Whether a word is punctuation, or a mathematical or currency symbol; an emoji is a word."""
    return unicodedata.category(word[0]) in ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk")
