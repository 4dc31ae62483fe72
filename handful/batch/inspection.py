"""The contents of a saved classifier, and its accuracy on its own examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..classifier.fitted import FittedClassifier, fit_classifier
from ..classifier.labels import Examples
from ..utils.progress import track
from .saved import SavedClassifier

FOLDS = 5


@dataclass(frozen=True)
class Inspection:
    """The contents of a saved classifier; counts and accuracy are known only if its examples were kept."""

    classes: dict[str, int | None]  # the number of examples of each
    labels: str  # `one` or `several` per text
    settings: dict[str, Any]
    sources: dict[str, Any]  # label words and unlabelled texts that it learned from
    accuracy: float | None  # cross-validated, with at least two examples per class
    folds: int


def inspect_model(model: SavedClassifier, quiet: bool = False) -> Inspection:
    """Summarise a saved classifier."""
    classifier = model.load()
    examples = classifier.examples_
    names = [str(label) for label in classifier.classes_.tolist()]
    words = classifier.encoder == "words"
    settings = {name: getattr(classifier, name) for name in (("vectors", "language", "max_words") if words else ("encoder",))}
    sources = asdict(classifier.fitted_.sources)
    single = classifier.fitted_.label_format == "single"
    labels = "one" if single else "several"
    if examples is None or not len(examples.labels):
        return Inspection(dict.fromkeys(names, None), labels, settings, sources, None, 0)
    sizes = examples.labels.targets(classifier.classes_).sum(axis=0).astype(int).tolist()
    folds = min(FOLDS, *sizes) if single else 0
    accuracy = cross_validate(classifier.fitted_, examples, folds, quiet) if folds > 1 else None
    return Inspection(dict(zip(names, sizes, strict=True)), labels, settings, sources, accuracy, folds if folds > 1 else 0)


def cross_validate(fitted: FittedClassifier, examples: Examples, folds: int, quiet: bool = False) -> float:
    """The accuracy on the examples in each fold, of a classifier fitted to the other folds."""
    fold_of = _folds(examples.labels.values, folds)
    correct = 0
    for fold in track(range(folds), "Cross-validating", folds, quiet):
        rest = examples.select(np.flatnonzero(fold_of != fold))
        tested = examples.select(np.flatnonzero(fold_of == fold))
        answers = fit_classifier(fitted.encoder.encoder, fitted.head, rest).predict(tested.texts)
        correct += int((answers == tested.labels.values).sum())
    return correct / len(examples.texts)


def _folds(labels: np.ndarray[Any, Any], folds: int) -> np.ndarray[Any, Any]:
    """A fold for each example, with the examples of each class spread evenly over the folds."""
    seen: Counter[Any] = Counter()
    parts = []
    for label in labels.tolist():
        parts.append(seen[label] % folds)
        seen[label] += 1
    return np.array(parts)
