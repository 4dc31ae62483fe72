"""Texts and labels from the cells of CSV, TSV and Excel files.

A cell may hold several labels, as a JSON list or with a separator, and formulas may be escaped.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..classifier.fitted import FittedClassifier
from ..data.formulas import unescape_formula
from ..data.reader import Row, Source
from ..errors import HandfulWarning, SettingError


@dataclass(frozen=True)
class CellReading:
    """How the cells of a file become texts and labels."""

    escaped: bool = False  # whether formulas may be escaped
    lists: bool = False  # whether a JSON list in a cell is read as several labels
    separator: str | None = None  # between several labels
    numbers: bool = False  # whether a label that looks like a whole number is read as one

    def row(self, row: Row) -> Row:
        """The row with its text unescaped, and its label or list of labels parsed."""
        return row._replace(text=unescape_formula(row.text), label=self._label(row.label)) if self.escaped else row

    def _label(self, cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        cell = unescape_formula(cell)
        if self.lists and (labels := _json_list(cell)) is not None:
            return labels
        if self.separator:
            return [self._one(part.strip()) for part in cell.split(self.separator) if part.strip()]
        return self._one(cell)

    def _one(self, label: str) -> Any:
        try:
            return int(label) if self.numbers else label
        except ValueError:
            return label


def find_cell_reading(
    source: Source, fitted: FittedClassifier | None, separator: str | None, cells: Sequence[Any] = ()
) -> CellReading:
    """How to read the cells of a source: by the labels of the fitted classifier or, for a new one, by all label cells."""
    if separator == "":
        raise SettingError("`label_separator` is empty: give a separator such as ;.")
    if not source.has_text_cells:
        if separator:
            raise SettingError(f"{source.name} stores several labels as lists, without a separator: remove `label_separator`.")
        return CellReading()
    if fitted is None:
        return CellReading(True, bool(separator) or _are_lists(cells), separator)
    several = fitted.label_format != "single"
    if separator and not several:
        raise SettingError("This classifier gives one label per text, so labels need no separator: remove `label_separator`.")
    return CellReading(True, several, separator, fitted.classes.dtype.kind in "iu")


def _are_lists(cells: Sequence[Any]) -> bool:
    """Whether every cell is a JSON list of labels; warns if only some are."""
    others = [cell for cell in cells if not isinstance(cell, str) or _json_list(cell) is None]
    if others and len(others) < len(cells):
        warnings.warn(
            f"Some label cells are JSON lists of labels, but {others[0]!r} is not, so each cell counts as one label.",
            HandfulWarning,
            stacklevel=4,
        )
    return bool(cells) and not others


def _json_list(cell: str) -> list[Any] | None:
    """The labels in a JSON list of strings or numbers; None if the cell is anything else."""
    try:
        labels = json.loads(cell) if cell.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None
    return labels if isinstance(labels, list) and all(type(label) in (str, int, float) for label in labels) else None
