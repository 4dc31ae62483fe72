"""What a saved classifier holds, and how well it does on its own examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..classifier.fitted import FittedClassifier, fit_classifier
from ..classifier.labels import Examples
from ..utils.progress import track
from .saved import SavedClassifier

FOLDS = 5


@dataclass(frozen=True)
class Inspection:
    """What a saved classifier holds; counts and accuracy only where its examples were kept."""

    classes: dict[str, int | None]  # each with the number of its examples
    labels: str  # one, or several, a text
    settings: dict[str, Any]
    accuracy: float | None  # cross-validated, from two examples a class on
    folds: int


def inspect_model(model: SavedClassifier, quiet: bool = False) -> Inspection:
    """Look into a saved classifier."""
    classifier = model.load()
    examples, names = classifier.examples_, [str(label) for label in classifier.classes_.tolist()]
    settings = {name: getattr(classifier, name) for name in ("vectors", "language", "max_words")}
    single = classifier.fitted_.label_format == "single"
    labels = "one" if single else "several"
    if examples is None or not len(examples.labels):
        return Inspection(dict.fromkeys(names, None), labels, settings, None, 0)
    sizes = examples.labels.targets(classifier.classes_).sum(axis=0).astype(int).tolist()
    folds = min(FOLDS, *sizes) if single else 0
    accuracy = cross_validate(classifier.fitted_, examples, folds, quiet) if folds > 1 else None
    return Inspection(dict(zip(names, sizes, strict=True)), labels, settings, accuracy, folds if folds > 1 else 0)


def cross_validate(fitted: FittedClassifier, examples: Examples, folds: int, quiet: bool = False) -> float:
    """The share of its own examples that a classifier answers right when it has learned without their part of them."""
    parts, right = _folds(examples.labels.values, folds), 0
    for part in track(range(folds), "Cross-validating", folds, quiet):
        rest, asked = (examples.select(np.flatnonzero(parts == part if left else parts != part)) for left in (False, True))
        answers = fit_classifier(fitted.encoder.encoder, fitted.head, rest).predict(asked.texts)
        right += int((answers == asked.labels.values).sum())
    return right / len(examples.texts)


def _folds(labels: np.ndarray[Any, Any], folds: int) -> np.ndarray[Any, Any]:
    """A fold for each example, so that the examples of a class are spread evenly."""
    seen: Counter[Any] = Counter()
    parts = []
    for label in labels.tolist():
        parts.append(seen[label] % folds)
        seen[label] += 1
    return np.array(parts)
