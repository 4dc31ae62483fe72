"""Texts of a file to label next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..classifier.suggestion import CANDIDATES
from ..data.reader import Rows, Source, open_rows
from ..utils.sampling import even_sample
from .prediction import OutputOptions, answer_cells
from .saved import SavedClassifier
from .scoring import _tracked


@dataclass(frozen=True)
class Suggestion:
    """A text to label, with the classifier's current answer."""

    row: int  # the line at which it begins
    text: str
    label: Any
    probability: Any


def suggest_rows(model: SavedClassifier, source: Source, n: int = 10, quiet: bool = False) -> tuple[list[Suggestion], Rows]:
    """The n rows of a source to label next, as `suggest` chooses them; of a long source, only a sample is kept in memory."""
    classifier = model.load()
    with open_rows(source) as rows:
        candidates = even_sample((row for batch in _tracked(rows, "Looking", quiet) for row in batch), max(CANDIDATES, n))
    chosen = [candidates[i] for i in classifier.suggest([row.text for row in candidates], n)]
    cells = answer_cells(model, OutputOptions(), 0, [row.text for row in chosen]).cells if chosen else []
    return [Suggestion(row.number, row.text, *answer) for row, answer in zip(chosen, cells, strict=True)], rows
