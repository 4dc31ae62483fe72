"""Labels to targets and back: one label per text, a list of labels per text, or an indicator matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ..data.label_words import label_words, words_of_labels
from ..errors import DataError, ModelError
from ..utils.functional import Floats, Ints

LabelFormat = Literal["single", "lists", "indicator"]
Array = np.ndarray[Any, Any]
PLAIN = (str, bool, int, float)  # types of labels in an object array that can be saved
NUMBERS = ("|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
SAVED_TYPES = ("object", "str", "|b1", *NUMBERS)


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of some texts, checked: `values` is an array (texts,), a list of lists, or a matrix (texts, classes)."""

    format: LabelFormat
    values: Any

    @classmethod
    def of(cls, y: Any, texts: int) -> Labels:
        """From what a caller gave for this many texts."""
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
                raise DataError("A matrix of labels should hold 0 and 1 only, with one row per text and one column per class.")
            return cls("indicator", array.astype(np.int64))
        return cls("single", _check_one(y if array.ndim == 1 else array.ravel()))

    def __len__(self) -> int:
        return len(self.values)

    def joined(self, more: Labels) -> Labels:
        """These labels and then others of the same kind."""
        if self.format == "lists" and more.format == "lists":
            return Labels("lists", [*self.values, *more.values])
        if self.format == more.format == "indicator" and self.values.shape[1] != more.values.shape[1]:
            raise DataError(
                f"The matrix of labels has {more.values.shape[1]} columns, that of the first examples {self.values.shape[1]}."
            )
        if self.format != more.format or (self.values.dtype.kind in "UO") != (more.values.dtype.kind in "UO"):
            raise DataError("The labels are of another kind than those of the first examples: give labels of the same kind.")
        return Labels(self.format, np.concatenate([self.values, more.values]))

    def select(self, positions: Ints) -> Labels:
        """The labels of some texts."""
        lists = self.format == "lists"
        return Labels(self.format, [self.values[i] for i in positions] if lists else self.values[positions])

    def classes(self, named: Sequence[Any] = ()) -> Array:
        """The classes in order, including those that are only named; a matrix has its columns' numbers."""
        if self.format == "indicator":
            return np.arange(self.values.shape[1])
        labels = [label for row in self.values for label in row] if self.format == "lists" else self.values
        parts = [_check_one(part) for part in (labels, list(named)) if len(part)]
        if len({part.dtype.kind in "UO" for part in parts}) > 1:
            raise DataError("`class_names` has labels of another kind than the examples: give labels of the same kind.")
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def targets(self, classes: Array) -> Floats:
        """(texts, classes): 1 where a text has a class."""
        if self.format == "indicator":
            return self.values.astype(np.float32)  # type: ignore[no-any-return]
        rows = self.values if self.format == "lists" else [[label] for label in self.values]
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
    """All that a classifier learns from: kept for `partial_fit`."""

    texts: list[str]
    labels: Labels
    named: dict[Any, str]  # words that describe classes, as given
    weights: Floats  # (texts,): how many equal examples each one counts for
    label_language: str | None = None  # of labels that are read as words themselves; None if they are not
    unlabeled: list[str] = field(default_factory=list)

    @property
    def classes(self) -> Array:
        """The classes in order, including those that are only named."""
        return self.labels.classes(list(self.named))

    def class_words(self) -> dict[Any, str]:
        """The words that describe each class: those given, or else those of its label."""
        read = {}
        if self.label_language is not None and self.labels.format == "single":
            read = words_of_labels(self.classes.tolist(), self.label_language)
        return {label: words for label, words in {**read, **self.named}.items() if words.strip()}

    def joined(self, more: Examples) -> Examples:
        """These examples and then others."""
        labels = self.labels.joined(more.labels) if len(self.labels) else more.labels
        weights = np.concatenate([self.weights, more.weights])
        texts, named = [*self.texts, *more.texts], {**self.named, **more.named}
        return replace(self, texts=texts, labels=labels, named=named, weights=weights)

    def relabelled(self, positions: Ints, labels: Labels) -> Examples:
        """With other labels at these positions."""
        rest = np.setdiff1d(np.arange(len(self.texts)), positions)
        together = self.labels.select(rest).joined(labels) if len(rest) else labels
        return replace(self, labels=together.select(np.argsort(np.concatenate([rest, positions]))))

    def merged(self) -> Examples:
        """With equal examples as one, whose weight is the sum of theirs."""
        rows = self.labels.values if self.labels.format == "lists" else self.labels.values.tolist()
        keys = [(text, repr(row)) for text, row in zip(self.texts, rows, strict=True)]
        first: dict[tuple[str, str], int] = {}
        owners = np.array([first.setdefault(key, len(first)) for key in keys], np.int64)
        if len(first) == len(keys):
            return self
        positions = np.unique(owners, return_index=True)[1]
        return replace(self.select(positions), weights=np.bincount(owners, self.weights).astype(np.float32))

    def select(self, positions: Ints) -> Examples:
        """Some of the examples; the names of classes and the unlabelled texts stay."""
        texts = [self.texts[i] for i in positions]
        return replace(self, texts=texts, labels=self.labels.select(positions), weights=self.weights[positions])


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _array(y: Any) -> Array:
    try:
        return np.asarray(y)
    except ValueError as error:  # rows of different lengths
        raise DataError("The labels are neither one for each text nor a list for each: make all one, or all lists.") from error


def _check_one(y: Any) -> Array:
    """One label per text, each a number or a string, all of one kind."""
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


def chosen_classes(label_format: LabelFormat, probabilities: Array, threshold: float) -> Array:
    """Which classes each text gets, (texts, classes) of booleans, from their probabilities.

    Of single labels the most probable one, unless it is below the threshold; otherwise all that are above it.
    """
    if label_format != "single":
        return probabilities > threshold
    best = probabilities.argmax(axis=1)[:, None] == np.arange(probabilities.shape[1])
    sure: Array = best & (probabilities >= threshold)
    return sure


def labels_of(label_format: LabelFormat, classes: Array, chosen: Array) -> Any:
    """The labels that chosen classes stand for, as the examples gave theirs; None for a single label that is missing."""
    if label_format == "indicator":
        return chosen.astype(np.int64)
    if label_format == "lists":
        return [classes[row].tolist() for row in chosen]
    found, best = chosen.any(axis=1), classes[chosen.argmax(axis=1)]
    return best if found.all() else np.where(found, best.astype(object), None)


def classes_to_json(classes: Array) -> dict[str, Any]:
    """Classes as JSON types, with what makes them the same again."""
    kind = {"O": "object", "U": "str"}.get(classes.dtype.kind, classes.dtype.newbyteorder("<").str)
    return {"type": kind, "values": classes.tolist()}


def classes_from_json(value: Any, place: str) -> Array:
    """The classes that `classes_to_json` wrote."""
    try:
        values, kind = list(value["values"]), str(value["type"])
        if kind not in SAVED_TYPES or not all(isinstance(label, PLAIN) for label in values):
            raise ValueError("labels are strings or numbers")
        classes = np.array(values, kind)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{place} has classes that cannot be read ({error}): create the model again.") from error
    if classes.ndim != 1 or classes.tolist() != values or len(set(values)) != len(values) or len(values) < 2:
        raise ModelError(f"{place} has classes that are not at least two different labels: create the model again.")
    return classes


def class_texts(class_names: Mapping[Any, str] | Sequence[Any] | bool | None, language: str = "en") -> dict[Any, str]:
    """The words that describe each class, from {label: words} or from labels that are words themselves."""
    if class_names is None or isinstance(class_names, bool):
        return {}
    if isinstance(class_names, Mapping):
        named = dict(class_names)
    elif isinstance(class_names, str):
        raise DataError("`class_names` is one string: give {label: words}, or a list of labels that are words.")
    else:
        named = {_plain(label): label_words(label, language) or str(label) for label in class_names}
    if not all(isinstance(words, str) for words in named.values()):
        raise DataError("`class_names` should map labels to words: give {label: words}, or a list of labels that are words.")
    return named
