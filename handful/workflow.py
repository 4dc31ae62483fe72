"""A classifier's work on files, a function a command: fit, score, suggest, inspect."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .answers import Model, Wanted, answer_cells, answered, batches_of
from .errors import DataError, HandfulWarning
from .estimator import CANDIDATES, FewShotClassifier, even_sample
from .labels import Labels
from .parallel import Pool
from .progress import progress_bar, track
from .rows import Row, Rows, Source, open_rows

FOLDS = 5


def fit_file(classifier: FewShotClassifier, source: Source, out: Path, keep_examples: bool = False) -> Rows:
    """Let a classifier, a fresh one or one that knows examples, learn the labelled rows of a source; save it to a folder."""
    with open_rows(source, labelled=True) as rows:
        examples = list(rows)
    labels = [row.label for row in examples]
    if any(isinstance(label, list) for label in labels):  # then one that stands alone is a list of one
        labels = [label if isinstance(label, list) else [label] for label in labels]
    classifier.partial_fit([row.text for row in examples], labels)
    classifier.save(out, keep_examples)
    return rows


# How well it does


@dataclass(frozen=True)
class Report:
    """Answers compared with labels; a label stands here as a string."""

    rows: int
    right: int
    labels: tuple[str, ...]
    found: Counter[str]  # of each label, texts that have it and got it
    missed: Counter[str]  # that have it and did not get it
    wrong: Counter[str]  # that got it and do not have it
    pairs: Counter[tuple[str, str]] | None  # (true, answered), where a text has one label

    @property
    def accuracy(self) -> float:
        """The share of texts whose labels are all right."""
        return self.right / self.rows

    def f1(self, label: str) -> float:
        """The harmonic mean of precision and recall of one label."""
        both = 2 * self.found[label]
        return both / (both + self.missed[label] + self.wrong[label] or 1)

    @property
    def macro_f1(self) -> float:
        """The mean over labels that occur, among the true ones or the answers."""
        return float(np.mean([self.f1(label) for label in self.labels]))

    def matrix(self) -> list[list[int]] | None:
        """How many texts of each label, a row, got each answer, a column."""
        if self.pairs is None:
            return None
        return [[self.pairs[true, answer] for answer in self.labels] for true in self.labels]

    def mistakes(self) -> list[tuple[tuple[str, str], int]]:
        """Pairs of a true label and another that was answered, the most frequent first."""
        return [(pair, times) for pair, times in (self.pairs or Counter()).most_common() if pair[0] != pair[1]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, by name."""
        scores = {label: round(self.f1(label), 6) for label in self.labels}
        figures = {"rows": self.rows, "accuracy": round(self.accuracy, 6), "macro_f1": round(self.macro_f1, 6)}
        return {**figures, "f1": scores, "labels": list(self.labels), "confusion": self.matrix()}


def compare(pairs: Iterable[tuple[Any, Any]], several: bool = False) -> Report:
    """True labels and answers, text by text; each a label, or a list of them where a text may have several."""
    found, missed, wrong, together = Counter[str](), Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    rows = right = 0
    for true, answer in pairs:
        if isinstance(true, list) and not several:
            raise DataError(f"A row has the labels {true}, and this classifier gives one label a text: give one label a row.")
        have, got = (_names(value) for value in (true, answer))
        rows, right = rows + 1, right + (have == got)
        found.update(have & got)
        missed.update(have - got)
        wrong.update(got - have)
        if not several:
            together[str(true), str(answer)] += 1
    if not rows:
        raise DataError("There is no row to compare: give one labelled text at least.")
    labels = tuple(sorted({*found, *missed, *wrong}))
    return Report(rows, right, labels, found, missed, wrong, None if several else together)


def _names(value: Any) -> set[str]:
    return {str(label) for label in (value if isinstance(value, list) else [value])}


def score_file(model: Model, source: Source, quiet: bool = False) -> tuple[Report, Rows]:
    """Answer the labelled rows of a source, and compare."""
    several = model.load().kind_ != "one"
    with open_rows(source, labelled=True) as rows:
        batches = answered(_tracked(rows, "Scoring", quiet), partial(answer_cells, model, Wanted()), Pool())
        pairs = ((row.label, answer) for batch, cells in batches for row, (answer, _) in zip(batch, cells, strict=True))
        return compare(pairs, several), rows


def _tracked(rows: Rows, description: str, quiet: bool) -> Iterator[list[Row]]:
    """Batches, with a bar that is moved when the next one is asked for."""
    with progress_bar(description, rows.total, quiet) as bar:
        for batch in batches_of(rows):
            yield batch
            bar.update(rows.done)


# What to label next


@dataclass(frozen=True)
class Suggestion:
    """A text to label, with what the classifier would answer now."""

    row: int  # the line it begins at
    text: str
    label: Any
    probability: Any


def suggest_rows(model: Model, source: Source, n: int = 10, quiet: bool = False) -> tuple[list[Suggestion], Rows]:
    """The n rows of a source to label next: the same as `suggest` gives for all texts, of which only a sample is kept."""
    classifier = model.load()
    with open_rows(source) as rows:
        candidates = even_sample((row for batch in _tracked(rows, "Looking", quiet) for row in batch), max(CANDIDATES, n))
    chosen = [candidates[i] for i in classifier.suggest([row.text for row in candidates], n)]
    cells = answer_cells(model, Wanted(), 0, [row.text for row in chosen]) if chosen else []
    return [Suggestion(row.number, row.text, *answer) for row, answer in zip(chosen, cells, strict=True)], rows


# What it is


@dataclass(frozen=True)
class Inspection:
    """What a saved classifier holds; counts and accuracy only where its examples were kept."""

    classes: dict[str, int | None]  # each with the number of its examples
    labels: str  # one, or several, a text
    settings: dict[str, Any]
    accuracy: float | None  # cross-validated, from two examples a class on
    folds: int


def inspect_model(model: Model, quiet: bool = False) -> Inspection:
    """Look into a saved classifier."""
    classifier = model.load()
    examples, names = classifier.examples_, [str(label) for label in classifier.classes_.tolist()]
    settings = {name: getattr(classifier, name) for name in ("vectors", "language", "longest")}
    labels = "one" if classifier.kind_ == "one" else "several"
    if examples is None or not len(examples.labels):
        return Inspection(dict.fromkeys(names, None), labels, settings, None, 0)
    sizes = examples.labels.targets(classifier.classes_).sum(axis=0).astype(int).tolist()
    folds = min(FOLDS, *sizes) if classifier.kind_ == "one" else 0
    accuracy = cross_validate(classifier, folds, quiet) if folds > 1 else None
    return Inspection(dict(zip(names, sizes, strict=True)), labels, settings, accuracy, folds if folds > 1 else 0)


def cross_validate(classifier: FewShotClassifier, folds: int, quiet: bool = False) -> float:
    """The share of its own examples that it answers right when it has learned without their part of them."""
    examples = classifier.examples_
    if examples is None:
        raise DataError("This classifier was saved without its examples: fit it with --keep-examples to test it on them.")
    parts, right = _folds(examples.labels.values, folds), 0
    blank = replace(examples, texts=[], labels=Labels("one", []))
    for part in track(range(folds), "Cross-validating", folds, quiet):
        fresh = copy.copy(classifier)
        fresh.examples_ = blank
        learn, test = np.flatnonzero(parts != part), np.flatnonzero(parts == part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HandfulWarning)  # repeated examples were named when it was fitted
            fresh.partial_fit([examples.texts[i] for i in learn], examples.labels.values[learn])
        answers = fresh.predict([examples.texts[i] for i in test])
        right += int((answers == examples.labels.values[test]).sum())
    return right / len(examples.texts)


def _folds(labels: np.ndarray[Any, Any], folds: int) -> np.ndarray[Any, Any]:
    """A fold for each example, so that the examples of a class are spread evenly."""
    seen: Counter[Any] = Counter()
    parts = []
    for label in labels.tolist():
        parts.append(seen[label] % folds)
        seen[label] += 1
    return np.array(parts)
