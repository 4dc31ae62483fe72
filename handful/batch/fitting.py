"""A classifier from a file of labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..classifier.estimator import FewShotClassifier
from ..data.reader import Rows, Source, open_rows
from ..errors import DataError
from ..utils.bundle import bundle_files
from ..utils.paths import check_not_input
from .cell_reading import find_cell_reading


def fit_file(
    classifier: FewShotClassifier,
    source: Source,
    out: Path,
    keep_examples: bool = False,
    label_separator: str | None = None,
    class_names: Source | str = "off",
) -> Rows:
    """Fit a new classifier to the labelled rows of a source, or add them to one that has examples; save it to a folder.

    `class_names` describes classes in words: `auto` uses the labels themselves, and a source has one row per class, with its
    label and its description.
    """
    for file in bundle_files(out):
        check_not_input(file, [given.path for given in (source, class_names) if isinstance(given, Source)])
    with open_rows(source, labelled=True) as rows:
        read = list(rows)
    fitted = classifier.fitted_ if classifier.__sklearn_is_fitted__() else None
    reading = find_cell_reading(source, fitted, label_separator, [row.label for row in read])
    examples = [reading.row(row) for row in read]
    labels = [row.label for row in examples]
    if any(isinstance(label, list) for label in labels) or (fitted and fitted.label_format == "lists"):
        labels = [label if isinstance(label, list) else [label] for label in labels]  # a single label is a list of one
    texts = [row.text for row in examples]
    if class_names == "off":
        classifier.partial_fit(texts, labels)
    else:
        classifier.fit(texts, labels, class_names=_class_names(class_names, labels))
    classifier.save(out, keep_examples)
    return rows


def _class_names(given: Source | str, labels: Sequence[Any]) -> dict[Any, str] | list[str]:
    """Words that describe classes: the labels that are strings, or the rows of a file."""
    if isinstance(given, Source):
        with open_rows(given, labelled=True) as rows:
            return {row.label: row.text for row in rows}
    every = [label for own in labels for label in (own if isinstance(own, list) else [own])]
    words = sorted({label for label in every if isinstance(label, str)})
    if not words:
        raise DataError("The labels are numbers, so they do not describe the classes: give a file with their descriptions.")
    return words
