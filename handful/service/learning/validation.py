"""How good a project's model is: on labels that are left out, or on a random test set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from ...classifier.fitted import FittedClassifier, fit_classifier, labelled_documents
from ...classifier.labels import Examples
from ...models.learning import learn
from ...utils.functional import Floats, Ints, softmax
from .models import ProjectModel

FEW = 60  # examples up to which each is left out alone
FOLDS = 20  # otherwise
LEAST_TESTS = 10  # labelled texts of a test set, from which it is used
CURVE_POINTS, CURVE_FOLDS = 8, 5
CONFIDENCE = 1.96  # standard deviations of a 95 % interval


@dataclass(frozen=True)
class Interval:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Validation:
    """Answers to labelled texts that the answering model had not learned from."""

    method: str  # leave-one-out, 20-fold cross-validation or test set
    numbers: Ints  # (texts,)
    truth: Ints  # (texts,): numbers of classes
    found: Ints  # (texts,)
    probabilities: Floats  # (texts, classes)
    classes: Ints  # (classes,): their numbers

    @property
    def right(self) -> Ints:
        """1 where the answer is right: (texts,)."""
        right: Ints = (self.truth == self.found).astype(np.int64)
        return right


def wilson(right: int, total: int) -> Interval:
    """The share of successes with Wilson's 95 % interval (1927), which is honest for small numbers.

    >>> interval = wilson(9, 10)
    >>> f"{interval.value:.2f}, from {interval.low:.2f} to {interval.high:.2f}"
    '0.90, from 0.60 to 0.98'
    """
    share, square = right / total, CONFIDENCE**2 / total
    middle = (share + square / 2) / (1 + square)
    half = CONFIDENCE * sqrt(share * (1 - share) / total + square / (4 * total)) / (1 + square)
    return Interval(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def validate(model: ProjectModel) -> Validation | None:
    """On the test set if enough of it is labelled, otherwise on examples left out; None where there is nothing to ask."""
    fitted = model.fitted
    if fitted is None:
        return None
    known = set(model.numbers.tolist())
    tests = [one for one in model.tests if one.label in known]
    if len(tests) >= LEAST_TESTS:
        found = fitted.probabilities(fitted.scores([one.text for one in tests]))
        return _validation("test set", [one.number for one in tests], [one.label for one in tests], found, model.numbers)
    count = len(model.sources)
    if count < 2:
        return None
    folds = count if count <= FEW else FOLDS
    method = "leave-one-out" if folds == count else f"{folds}-fold cross-validation"
    found = left_out(fitted, model.examples, folds)
    numbers, truth = [one.number for one in model.sources], [one.label for one in model.sources]
    return _validation(method, numbers, truth, found, model.numbers)


def _validation(method: str, numbers: list[int], truth: list[int], found: Floats, classes: Ints) -> Validation:
    return Validation(method, np.array(numbers), np.array(truth), classes[found.argmax(axis=1)], found, classes)


def left_out(fitted: FittedClassifier, examples: Examples, folds: int) -> Floats:
    """Probabilities of each example by a model that learned without its part of the examples: (examples, classes).

    A class that the rest does not know has probability 0. Names of classes stay.
    """
    count, encoder = len(examples.texts), fitted.encoder.encoder
    documents = labelled_documents(encoder, examples, fitted.classes)
    parts = np.concatenate([spread(examples.labels.values.tolist(), folds), np.full(documents.names.sum(), -1)])
    found = np.zeros((count, len(fitted.classes)), np.float32)
    for part in range(folds):
        asked, rest = np.flatnonzero(parts == part), np.flatnonzero(parts != part)
        known = documents.targets[rest].sum(axis=0) > 0
        if not len(asked) or not known.any():
            continue
        narrow = replace(documents, targets=documents.targets[:, known]).select(rest)
        if known.sum() == 1:
            found[asked[:, None], np.flatnonzero(known)] = 1.0
            continue
        learned = learn(encoder, fitted.head, narrow)
        vectors = learned.encoder.vectors(documents.select(asked).documents).astype(np.float64)
        calibration = replace(fitted.calibration, shift=learned.labelled.prior)
        found[asked[:, None], np.flatnonzero(known)] = softmax(calibration.logits(learned.scorer(vectors)))
    return found


def spread(labels: list[Any], folds: int) -> Ints:
    """A fold for each example, so that those of a class are in different ones, and all folds are about as large."""
    order = sorted(range(len(labels)), key=lambda position: (str(labels[position]), position))
    parts = np.empty(len(labels), np.int64)
    parts[order] = np.arange(len(labels)) % folds
    return parts


# What the answers say


def accuracy_facts(validation: Validation, names: dict[int, str]) -> dict[str, Any]:
    """The estimate of accuracy, overall and for each class, with what is confused with what."""
    interval = wilson(int(validation.right.sum()), len(validation.truth))
    pairs = Counter(zip(validation.truth.tolist(), validation.found.tolist(), strict=True))
    confused = [
        {"class": truth, "predicted": found, "count": count} for (truth, found), count in pairs.most_common() if truth != found
    ]
    return {
        "method": validation.method,
        "texts": len(validation.truth),
        "accuracy": vars(interval),
        "classes": [_class_facts(validation, number, name) for number, name in names.items()],
        "confusion": confused,
    }


def _class_facts(validation: Validation, number: int, name: str) -> dict[str, Any]:
    mine, answered = validation.truth == number, validation.found == number
    right = int((mine & answered).sum())
    place = np.flatnonzero(validation.classes == number)
    sure = float(validation.probabilities[mine][:, place].mean()) if mine.any() and len(place) else None
    return {
        "class": number,
        "name": name,
        "texts": int(mine.sum()),
        "recall": vars(wilson(right, int(mine.sum()))) if mine.any() else None,
        "precision": vars(wilson(right, int(answered.sum()))) if answered.any() else None,
        "mean_probability": sure,
    }


def learning_curve(model: ProjectModel) -> list[dict[str, Any]]:
    """Accuracy after the first labels, then after more of them: on the test set, or cross-validated on those labels."""
    fitted, total = model.fitted, len(model.sources)
    if fitted is None or total < 4:
        return []
    known = set(model.numbers.tolist())
    tests = [one for one in model.tests if one.label in known]
    sizes = np.unique(np.geomspace(min(4, total), total, CURVE_POINTS).round().astype(int))
    points = []
    for size in sizes.tolist():
        part = model.examples.select(np.arange(size))
        if len(part.classes) >= 2:
            points.append({"labels": size, **vars(_score(model, fitted, part, tests, size))})
    return points


def _score(model: ProjectModel, fitted: FittedClassifier, part: Examples, tests: list[Any], size: int) -> Interval:
    then = fit_classifier(fitted.encoder.encoder, fitted.head, part)
    if len(tests) >= LEAST_TESTS:
        truth = np.array([model.names[one.label] for one in tests])
        return wilson(int((then.predict([one.text for one in tests]) == truth).sum()), len(tests))
    found = then.classes[left_out(then, part, min(CURVE_FOLDS, size)).argmax(axis=1)]
    return wilson(int((found == part.labels.values).sum()), size)
