"""Labels as words: `cardArrival`, `card_arrival` and `card/arrival` all say "card arrival", and `Q4` or `17` says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .frequencies import KNOWN_FROM, background_frequencies

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")  # ABC, Word or word, 123
SHORTEST = 2  # letters of a word


def label_words(label: Any, language: str = "en") -> str:
    """The words that a label consists of, or an empty string if it does not read as known words.

    Parts are separated by spaces, signs, digits and changes of case. A part that is not a word of the language, such as most
    codes and abbreviations, is dropped; a label most of whose parts are dropped does not read as words.

    >>> label_words("cardArrival"), label_words("top_up-failed"), label_words("comp.sys.ibm.pc")
    ('card arrival', 'top up failed', 'comp ibm pc')
    >>> label_words("Q4"), label_words("cls_07"), label_words(3), label_words("b")
    ('', '', '', '')
    """
    if not isinstance(label, str):
        return ""
    parts = [part.lower() for part in PARTS.findall(label)]
    words = [part for part in parts if not part.isdigit()]
    known = {word for word in words if len(word) >= SHORTEST and background_frequencies([word], language)[0] >= KNOWN_FROM}
    if not known or sum(word in known for word in words) * 2 < len(words):
        return ""
    return " ".join(part for part in parts if part in known or part.isdigit())


def words_of_labels(labels: Iterable[Any], language: str = "en") -> dict[Any, str]:
    """The words of each label that reads as words, by label."""
    found = {label: label_words(label, language) for label in labels}
    return {label: words for label, words in found.items() if words}
