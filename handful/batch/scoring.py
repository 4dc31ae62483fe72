"""A classifier's answers to a labelled file, compared with the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..data.reader import Row, Rows, Source, open_rows
from ..errors import DataError
from ..utils.parallel import Workers
from ..utils.progress import progress_bar
from .cell_reading import find_cell_reading
from .prediction import OutputOptions, answer_cells, answered, batches_of
from .saved import SavedClassifier


@dataclass(frozen=True)
class ScoreReport:
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


def compare(pairs: Iterable[tuple[Any, Any]], several: bool = False) -> ScoreReport:
    """True labels and answers, text by text; each a label, or a list of them where a text may have several."""
    found, missed, wrong, together = Counter[str](), Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    rows = right = 0
    for true, answer in pairs:
        if isinstance(true, list) and not several:
            raise DataError(
                f"A row has the labels {true}, and this classifier gives one label per text: give one label per row."
            )
        have, got = (_names(value) for value in (true, answer))
        rows, right = rows + 1, right + (have == got)
        found.update(have & got)
        missed.update(have - got)
        wrong.update(got - have)
        if not several:
            together[str(true), str(answer)] += 1
    if not rows:
        raise DataError("There is no row to compare: give at least one labelled text.")
    labels = tuple(sorted({*found, *missed, *wrong}))
    return ScoreReport(rows, right, labels, found, missed, wrong, None if several else together)


def _names(value: Any) -> set[str]:
    return {str(label) for label in (value if isinstance(value, list) else [value])}


def score_file(
    model: SavedClassifier, source: Source, quiet: bool = False, label_separator: str | None = None
) -> tuple[ScoreReport, Rows]:
    """Answer the labelled rows of a source, and compare."""
    fitted = model.load().fitted_
    reading = find_cell_reading(source, fitted, label_separator)
    with open_rows(source, labelled=True) as rows:
        labelled = ([reading.row(row) for row in batch] for batch in _tracked(rows, "Scoring", quiet))
        batches = answered(labelled, partial(answer_cells, model, OutputOptions()), Workers())
        pairs = ((row.label, answer) for batch, found in batches for row, (answer, _) in zip(batch, found.cells, strict=True))
        return compare(pairs, fitted.label_format != "single"), rows


def _tracked(rows: Rows, description: str, quiet: bool) -> Iterator[list[Row]]:
    """Batches, with a bar that is moved when the next one is asked for."""
    with progress_bar(description, rows.total, quiet) as bar:
        for batch in batches_of(rows):
            yield batch
            bar.update(rows.done)
