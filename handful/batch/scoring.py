"""A comparison of a classifier's answers with the labels of a file."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..data.reader import Row, Rows, Source, open_rows
from ..errors import DataError, HandfulWarning
from ..utils.parallel import Workers
from ..utils.progress import progress_bar
from .cell_reading import find_cell_reading
from .prediction import OutputOptions, answer_cells, answered, batches_of
from .saved import SavedClassifier


@dataclass(frozen=True)
class ScoreReport:
    """Answers compared with labels. Labels are given as strings."""

    rows: int
    right: int
    labels: tuple[str, ...]
    found: Counter[str]  # texts that have a label and got it
    missed: Counter[str]  # texts that have it but did not get it
    wrong: Counter[str]  # texts that got it but do not have it
    pairs: Counter[tuple[str, str]] | None  # (true, answered), if texts have one label each

    @property
    def accuracy(self) -> float:
        """The share of texts whose labels are all correct."""
        return self.right / self.rows

    def f1(self, label: str) -> float:
        """The harmonic mean of precision and recall of one label."""
        both = 2 * self.found[label]
        return both / (both + self.missed[label] + self.wrong[label] or 1)

    @property
    def macro_f1(self) -> float:
        """The mean F1 over the labels that occur in the file or in the answers."""
        return float(np.mean([self.f1(label) for label in self.labels]))

    def matrix(self) -> list[list[int]] | None:
        """The confusion matrix: one row per true label, one column per answer."""
        if self.pairs is None:
            return None
        return [[self.pairs[true, answer] for answer in self.labels] for true in self.labels]

    def mistakes(self) -> list[tuple[tuple[str, str], int]]:
        """Pairs of a true label and a different answer with their counts, the most frequent first."""
        return [(pair, times) for pair, times in (self.pairs or Counter()).most_common() if pair[0] != pair[1]]

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        scores = {label: round(self.f1(label), 6) for label in self.labels}
        figures = {"rows": self.rows, "accuracy": round(self.accuracy, 6), "macro_f1": round(self.macro_f1, 6)}
        return {**figures, "f1": scores, "labels": list(self.labels), "confusion": self.matrix()}


def compare(pairs: Iterable[tuple[Any, Any]], several: bool = False) -> ScoreReport:
    """Compare pairs of true label and answer; with `several`, each may be a list of labels."""
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    rows = right = 0
    for true, answer in pairs:
        if isinstance(true, list) and not several:
            raise DataError(
                f"A row has the labels {true}, but this classifier gives one label per text: give one label per row."
            )
        have, got = (_names(value) for value in (true, answer))
        rows += 1
        right += have == got
        found.update(have & got)
        missed.update(have - got)
        wrong.update(got - have)
        if not several:
            together[str(true), str(answer)] += 1
    if not rows:
        raise DataError("There are no rows to score: give at least one labelled text.")
    labels = tuple(sorted({*found, *missed, *wrong}))
    return ScoreReport(rows, right, labels, found, missed, wrong, None if several else together)


def _names(value: Any) -> set[str]:
    return {str(label) for label in (value if isinstance(value, list) else [value])}


def score_file(
    model: SavedClassifier, source: Source, quiet: bool = False, label_separator: str | None = None
) -> tuple[ScoreReport, Rows]:
    """Answer the labelled rows of a source, and compare the answers with the labels."""
    classifier = model.load()
    fitted = classifier.fitted_
    reading = find_cell_reading(source, fitted, label_separator)
    cut = 0

    def pairs(rows: Rows) -> Iterator[tuple[Any, Any]]:
        nonlocal cut
        labelled = ([reading.row(row) for row in batch] for batch in _tracked(rows, "Scoring", quiet))
        for batch, found in answered(labelled, partial(answer_cells, model, OutputOptions()), Workers()):
            cut += found.cut
            yield from ((row.label, answer) for row, (answer, _) in zip(batch, found.cells, strict=True))

    with open_rows(source, labelled=True) as rows:
        report = compare(pairs(rows), fitted.label_format != "single")
    if cut:
        texts, their = ("1 text is", "its") if cut == 1 else (f"{cut:,} texts are", "their")
        most = classifier.max_words
        warnings.warn(
            f"{texts} longer than {most} words: only {their} first {most} words were read.", HandfulWarning, stacklevel=2
        )
    return report, rows


def _tracked(rows: Rows, description: str, quiet: bool) -> Iterator[list[Row]]:
    """Batches of rows, with a bar that advances when the next one is requested."""
    with progress_bar(description, rows.total, quiet) as bar:
        for batch in batches_of(rows):
            yield batch
            bar.update(rows.done)
