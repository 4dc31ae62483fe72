"""Labels of any kind to targets and back: one a text, lists of several, or an indicator matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .errors import DataError, ModelError
from .functional import Floats

Kind = Literal["one", "lists", "matrix"]
Array = np.ndarray[Any, Any]
PLAIN = (str, bool, int, float)  # what an object array may hold to be saved


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of some texts, checked: `values` is an array (texts,), a list of lists, or a matrix (texts, classes)."""

    kind: Kind
    values: Any

    @classmethod
    def of(cls, y: Any, texts: int) -> Labels:
        """From what a caller gave for so many texts."""
        if y is None:
            raise DataError("There are no labels: this classifier requires y to be passed, but the target y is None.")
        y = y.toarray() if hasattr(y, "toarray") else y
        if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
            raise DataError(f"The labels are {type(y).__name__}, not a list: give one label (or list of labels) a text.")
        if len(y) != texts:
            raise DataError(f"There are {texts} texts and {len(y)} labels, inconsistent numbers of samples: give one each.")
        if len(y) and all(isinstance(labels, (list, tuple, set, frozenset)) for labels in y):
            _check_one([label for labels in y for label in labels])
            return cls("lists", [sorted(set(labels)) for labels in y])
        array = _array(y)
        if array.ndim == 2 and array.shape[1] > 1:
            if not np.isin(array, (0, 1)).all():
                raise DataError("A matrix of labels should hold 0 and 1 only: a row a text, a column a class.")
            return cls("matrix", array.astype(np.int64))
        return cls("one", _check_one(y if array.ndim == 1 else array.ravel()))

    def __len__(self) -> int:
        return len(self.values)

    def joined(self, more: Labels) -> Labels:
        """These labels and then others of the same kind."""
        if self.kind == "lists" and more.kind == "lists":
            return Labels("lists", [*self.values, *more.values])
        if self.kind == more.kind == "matrix" and self.values.shape[1] != more.values.shape[1]:
            raise DataError(
                f"The matrix of labels has {more.values.shape[1]} columns, that of the first examples {self.values.shape[1]}."
            )
        if self.kind != more.kind or (self.values.dtype.kind == "U") != (more.values.dtype.kind == "U"):
            raise DataError("The labels are of another kind than those of the first examples: give labels of the same kind.")
        return Labels(self.kind, np.concatenate([self.values, more.values]))

    def classes(self, named: Sequence[Any] = ()) -> Array:
        """The classes in order, also those that are only named; a matrix has its columns' numbers."""
        if self.kind == "matrix":
            return np.arange(self.values.shape[1])
        labels = [label for row in self.values for label in row] if self.kind == "lists" else self.values
        parts = [_check_one(part) for part in (labels, list(named)) if len(part)]
        if len({part.dtype.kind in "UO" for part in parts}) > 1:
            raise DataError("class_names has labels of another kind than the examples: give labels of the same kind.")
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def targets(self, classes: Array) -> Floats:
        """(texts, classes): 1 where a text has a class."""
        if self.kind == "matrix":
            return self.values.astype(np.float32)  # type: ignore[no-any-return]
        rows = self.values if self.kind == "lists" else [[label] for label in self.values]
        place = {label: number for number, label in enumerate(classes.tolist())}
        targets = np.zeros((len(rows), len(classes)), np.float32)
        for number, row in enumerate(rows):
            unknown = [label for label in row if _plain(label) not in place]
            if unknown:
                raise DataError(f"There is no class {_plain(unknown[0])!r}: the classes are {', '.join(map(str, place))}.")
            targets[number, [place[_plain(label)] for label in row]] = 1
        return targets


@dataclass(frozen=True, eq=False)
class Examples:
    """What a classifier was given: kept for `partial_fit`."""

    texts: list[str]
    labels: Labels
    named: dict[Any, str]  # classes in words
    counts: dict[str, int]  # of words in unlabelled texts


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _array(y: Any) -> Array:
    try:
        return np.asarray(y)
    except ValueError as error:  # rows of different lengths
        raise DataError("The labels are neither one for each text nor a list for each: make all one, or all lists.") from error


def _check_one(y: Any) -> Array:
    """One label a text, each a number or a string, all of one kind."""
    for position, label in enumerate(y):
        if not isinstance(label, (*PLAIN, np.generic)):
            raise DataError(f"Label {position} is {label!r}: a label is a string or a number.")
    if len({isinstance(label, str) for label in y}) > 1:
        raise DataError("Some labels are strings and others are not: make them all strings, or all numbers.")
    array = np.asarray(y)
    if array.dtype.kind not in "OUbiuf":
        raise DataError(f"Unknown label type: {array.dtype}. A label is a string or a number.")
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.floor(array)).all()):
        raise DataError("Unknown label type: continuous. Labels name classes: give strings or whole numbers.")
    return array


def answers(kind: Kind, classes: Array, scores: Floats) -> Any:
    """The labels that scores (texts, classes) stand for, as they were given."""
    if kind == "one":
        return classes[scores.argmax(axis=1)]
    chosen = scores > 0
    return chosen.astype(np.int64) if kind == "matrix" else [classes[row].tolist() for row in chosen]


def classes_to_json(classes: Array) -> dict[str, Any]:
    """Classes as JSON types, with what makes them the same again."""
    kind = "object" if classes.dtype.kind == "O" else classes.dtype.str
    return {"type": kind, "values": classes.tolist()}


def classes_from_json(value: Any, place: str) -> Array:
    """The classes that `classes_to_json` wrote."""
    try:
        values, kind = value["values"], np.dtype(value["type"])
        if kind.kind not in "OUbiuf" or not all(isinstance(label, PLAIN) for label in values):
            raise ValueError("labels are strings or numbers")
        classes = np.array(values, kind)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{place} has classes that cannot be read ({error}): make the model again.") from error
    if classes.ndim != 1 or classes.tolist() != values or len(set(values)) != len(values) or len(values) < 2:
        raise ModelError(f"{place} has classes that are not two different labels at least: make the model again.")
    return classes


def class_texts(class_names: Mapping[Any, str] | Sequence[Any] | None) -> dict[Any, str]:
    """The words that describe each class, from {label: words} or from labels that are words themselves."""
    if class_names is None:
        return {}
    if isinstance(class_names, Mapping):
        named = dict(class_names)
    elif isinstance(class_names, str):
        raise DataError("class_names is one string: give {label: words}, or a list of labels that are words.")
    else:
        named = {_plain(label): str(label).replace("_", " ").replace("-", " ") for label in class_names}
    if not all(isinstance(words, str) for words in named.values()):
        raise DataError("class_names should map labels to words: give {label: words}, or a list of labels that are words.")
    return named
