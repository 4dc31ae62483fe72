"""Labels as words: `cardArrival`, `card_arrival` and `card/arrival` all say "card arrival", and `Q4` or `17` says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .frequencies import KNOWN_FROM, background_frequencies

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")  # ABC, Word or word, 123
LONG = 5  # letters: a code is rarely as long, so
LONG_KNOWN_FROM = 1e-8  # a rarer word counts as known
SHORTEST = 2  # letters of a word


def label_words(label: Any, language: str = "en") -> str:
    """The words that a label consists of, or an empty string if it does not read as known words.

    Parts are separated by spaces, signs, digits and changes of case. At least half of them must be words of the language, so
    most codes and abbreviations do not read as words.

    >>> label_words("cardArrival"), label_words("top_up-failed"), label_words("comp.sys.ibm.pc")
    ('card arrival', 'top up failed', 'comp sys ibm pc')
    >>> label_words("Q4"), label_words("cls_07"), label_words(3), label_words("b")
    ('', '', '', '')
    """
    if not isinstance(label, str):
        return ""
    parts = [part.lower() for part in PARTS.findall(label)]
    words = [part for part in parts if not part.isdigit()]
    known = sum(_is_known(word, language) for word in words)
    return " ".join(parts) if known and known * 2 >= len(words) else ""


def _is_known(word: str, language: str) -> bool:
    least = LONG_KNOWN_FROM if len(word) >= LONG else KNOWN_FROM
    return len(word) >= SHORTEST and bool(background_frequencies([word], language)[0] >= least)


def words_of_labels(labels: Iterable[Any], language: str = "en") -> dict[Any, str]:
    """The words of each label that reads as words, by label."""
    found = {label: label_words(label, language) for label in labels}
    return {label: words for label, words in found.items() if words}
