"""The split of a corpus's classes into training, validation and test classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..utils.files import read_json
from .corpus import Corpus

PARTS = ("train", "val", "test")


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether all labels are whole numbers."""
    return all(label.lstrip("-").isdigit() for label in labels)


@dataclass(frozen=True)
class ClassSplit:
    """The classes for meta-training, validation and meta-testing; no class is in two of them."""

    train: tuple[int, ...]
    val: tuple[int, ...]
    test: tuple[int, ...]

    def __post_init__(self) -> None:
        everything = self.train + self.val + self.test
        if len(set(everything)) < len(everything):
            raise DataError("A class is in two parts of the split: list each class in only one of train, val and test.")


def read_split(path: str | Path, corpus: Corpus, name: str = "") -> ClassSplit:
    """Read a split from a JSON object with train, val and test, each a list of class names or labels.

    A file with the splits of several data sets is an object of such objects; `name` selects one.
    """
    path = Path(path)
    parts = read_json(path)
    if "train" not in parts:
        if name not in parts:
            raise DataError(f"{path} has no split for {name!r}: it has {', '.join(parts) or 'none'}.")
        parts = parts[name]
    return make_split(parts, corpus, str(path))


def make_split(parts: Mapping[str, Any], corpus: Corpus, place: str) -> ClassSplit:
    """A split from lists of class names or labels; a number is a label, or a position if the labels are names.

    >>> from handful.data.corpus import make_corpus
    >>> corpus = make_corpus(["x", "y", "z"], ["7", "3", "5"])
    >>> make_split({"train": [3], "val": ["5"], "test": [7]}, corpus, "here")
    ClassSplit(train=(1,), val=(2,), test=(0,))
    """
    missing = set(PARTS) - set(parts)
    if missing:
        raise DataError(f"{place} lacks {', '.join(sorted(missing))}: a split must have train, val and test.")
    if not all(isinstance(parts[part], list) and all(isinstance(label, (str, int)) for label in parts[part]) for part in PARTS):
        raise DataError(f"{place} has a part that is not a list of class names or labels: make train, val and test such lists.")
    numbered = are_numbers(corpus.written)
    known: dict[str | int, int] = {}
    for number, (label, name) in enumerate(zip(corpus.written, corpus.classes, strict=True)):
        known |= {label: number, name: number, int(label) if numbered else number: number}
    unknown = [str(label) for part in PARTS for label in parts[part] if label not in known]
    if unknown:
        raise DataError(f"{place} lists classes that the data does not have ({', '.join(unknown)}): correct the split.")
    return ClassSplit(*(tuple(known[label] for label in parts[part]) for part in PARTS))
