"""A classifier from files: labelled texts, descriptions of classes, and unlabelled texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..classifier.checks import MOST_UNLABELED
from ..classifier.estimator import FewShotClassifier
from ..data.reader import Rows, Source, open_rows
from ..errors import SettingError
from ..utils.bundle import bundle_files
from ..utils.paths import check_not_input
from ..utils.sampling import even_sample
from .cell_reading import find_cell_reading


@dataclass(frozen=True)
class FitSources:
    """The files that a classifier learns from; examples may be missing if classes are described."""

    examples: Source | None
    class_names: Source | bool = True  # whether labels are read as words, or a file with a row per class
    unlabeled: Source | None = None

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [given.path for given in (self.examples, self.class_names, self.unlabeled) if isinstance(given, Source)]


def fit_file(
    classifier: FewShotClassifier,
    sources: FitSources,
    out: Path,
    keep_examples: bool = False,
    label_separator: str | None = None,
) -> Rows:
    """Fit a new classifier to files, or add the examples to one that has examples; save it to a folder."""
    for file in bundle_files(out):
        check_not_input(file, sources.paths)
    texts, labels, rows = _examples(classifier, sources, label_separator)
    if classifier.__sklearn_is_fitted__():
        classifier.partial_fit(texts, labels)
    else:
        names = _descriptions(sources.class_names) if isinstance(sources.class_names, Source) else sources.class_names
        classifier.fit(texts, labels, class_names=names, unlabeled=_unlabeled(sources.unlabeled))
    classifier.save(out, keep_examples)
    return rows


def _examples(
    classifier: FewShotClassifier, sources: FitSources, label_separator: str | None
) -> tuple[list[str], list[Any], Rows]:
    if sources.examples is None:
        if not isinstance(sources.class_names, Source):
            raise SettingError("There are no examples: give a file of labelled texts, or describe the classes in a file.")
        with open_rows(sources.class_names) as rows:
            return [], [], rows
    with open_rows(sources.examples, labelled=True) as rows:
        read = list(rows)
    fitted = classifier.fitted_ if classifier.__sklearn_is_fitted__() else None
    reading = find_cell_reading(sources.examples, fitted, label_separator, [row.label for row in read])
    examples = [reading.row(row) for row in read]
    labels = [row.label for row in examples]
    if any(isinstance(label, list) for label in labels) or (fitted and fitted.label_format == "lists"):
        labels = [label if isinstance(label, list) else [label] for label in labels]  # a single label is a list of one
    return [row.text for row in examples], labels, rows


def _descriptions(source: Source) -> dict[Any, str] | list[str]:
    """Descriptions of classes by label, or labels that describe themselves if the file has plain lines."""
    if (source.form or Path(source.path).suffix.lstrip(".")) == "txt":
        with open_rows(source) as rows:
            return [row.text for row in rows]
    with open_rows(source, labelled=True) as rows:
        return {row.label: row.text for row in rows}


def _unlabeled(source: Source | None) -> list[str]:
    """The texts of a file, or an even sample that the classifier can take."""
    if source is None:
        return []
    with open_rows(source) as rows:
        return even_sample((row.text for row in rows), MOST_UNLABELED + 1)  # one more, so that the classifier says so
