"""Detection of labels and texts that are probably mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import DataError

NAMED = 3  # how many mistakes of one kind a warning lists; the others are only counted


def check_examples(texts: Sequence[str], labels: Sequence[Any]) -> list[str]:
    """Warnings about probable mistakes, one sentence each; raises a DataError if a label is blank.

    `labels` has one label or one list of labels per text; positions count from 0.

    >>> check_examples(["hello", " "], ["a", "b"])
    ['1 of 2 texts is empty (example 1): remove such texts, or fill them in.']
    """
    of_texts = [one if isinstance(one, (list, tuple, set, frozenset)) else [one] for one in labels]
    for position, own in enumerate(of_texts):
        if any(isinstance(label, str) and not label.strip() for label in own):
            raise DataError(f"Label {position} is blank: give its text a label, or remove the text.")
    return [*_alike_labels(label for own in of_texts for label in own), *_empty_texts(texts)]


def _alike_labels(labels: Iterable[Any]) -> list[str]:
    """One warning that lists the labels that differ only in spaces or case, if there are any."""
    alike: dict[str, list[str]] = {}
    for label in dict.fromkeys(str(label) for label in labels if isinstance(label, str)):
        alike.setdefault("".join(label.split()).casefold(), []).append(label)
    groups = [" and ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    if not groups:
        return []
    return [f"Some labels differ only in spaces or case but count as different classes ({_first(groups)}): spell them alike."]


def _empty_texts(texts: Sequence[str]) -> list[str]:
    """One warning that counts the texts without words and lists the first ones, if there are any."""
    empty = [str(position) for position, text in enumerate(texts) if not text.strip()]
    if not empty:
        return []
    are, examples = ("is", "example") if len(empty) == 1 else ("are", "examples")
    counted = f"{len(empty)} of {len(texts)} texts {are} empty ({examples} {_first(empty)})"
    return [f"{counted}: remove such texts, or fill them in."]


def _first(named: Sequence[str]) -> str:
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more
