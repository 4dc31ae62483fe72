"""A served classifier that learns from annotations: what it was told is kept in a file next to the model.

The model itself is never changed. The file has one line of JSON per annotation, appended and on the disk before the answer.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from errno import ENOSPC
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ...batch.saved import SavedClassifier
from ...classifier.fitted import FittedClassifier, fit_classifier
from ...classifier.labels import Examples, Labels
from ...errors import DataError, SettingError
from ..errors import ConflictError
from ..learning.models import open_encoder, spoken

ENDING = ".annotations.jsonl"


@dataclass(frozen=True)
class Annotation:
    """A text with its label; None takes an earlier one back."""

    id: str
    text: str
    label: str | None


class AnnotationFile:
    """Annotations that were acknowledged, in the order in which they came."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("a+b", buffering=0)
        self._lock()
        self.annotations = self._read()

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            return
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SettingError(f"Another server is learning into {self.path}: stop it, or serve with --no-learn.") from error

    def _read(self) -> dict[str, Annotation]:
        """All annotations by id; a line that was cut off when a process died was never acknowledged."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        self._stream.truncate(len(whole))
        found: dict[str, Annotation] = {}
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                values = json.loads(line)
                one = Annotation(str(values["id"]), str(values["text"]), values["label"])
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"{self.path}, line {number} is not an annotation: correct the line, or remove it.") from error
            found.pop(one.id, None)
            if one.label is not None:
                found[one.id] = one
        return found

    def add(self, annotation: Annotation) -> None:
        """Keep an annotation; it is durable when this returns."""
        line, size = (json.dumps(vars(annotation)) + "\n").encode(), os.fstat(self._stream.fileno()).st_size
        try:
            if self._stream.write(line) != len(line):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            os.fsync(self._stream.fileno())
        except OSError:
            self._stream.truncate(size)  # or else the next line would continue this one
            raise
        self.annotations.pop(annotation.id, None)
        if annotation.label is not None:
            self.annotations[annotation.id] = annotation

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class ServedModel:
    """A saved classifier, or an empty one, with what it has learned since."""

    def __init__(self, folder: Path, vectors: str | None = None, learns: bool = True, new: bool = False) -> None:
        self.name = folder.absolute().name
        self._base = None if new and not folder.exists() else SavedClassifier.at(folder, vectors).load()
        self._named: dict[str, str] = {}
        self._guard = Lock()
        able = self._base is None or (self._base.examples_ is not None and self._base.fitted_.label_format == "single")
        self.learns = learns and able
        self._file = AnnotationFile(folder.absolute().with_name(self.name + ENDING)) if self.learns else None
        self._fitted: FittedClassifier | None = None
        self.version = 0
        self._fit()

    @property
    def fitted(self) -> FittedClassifier | None:
        """The classifier as it stands."""
        return self._fitted

    def require(self) -> FittedClassifier:
        """The classifier, or a sentence that says what is missing."""
        if self._fitted is None:
            raise ConflictError("The model has fewer than two classes: annotate texts of at least two classes first.")
        return self._fitted

    def teach(self, annotation: Annotation) -> int:
        """Keep an annotation and learn from it; gives the new version."""
        with self._guard:
            if self._file is None:
                raise ConflictError("This model cannot learn: save it with its examples, and serve it without --no-learn.")
            self._file.add(annotation)
            self._fit()
            return self.version

    def forget(self, name: str) -> int:
        """Take an annotation back."""
        return self.teach(Annotation(name, "", None))

    def name_classes(self, names: list[str]) -> None:
        """Let classes be predicted by their names until they have examples."""
        with self._guard:
            fresh = {name: spoken(name) for name in names if name not in self._named}
            if self.learns and fresh:
                self._named |= fresh
                self._fit()

    def _fit(self) -> None:
        """Learn the base's examples and all annotations; readers keep the classifier that they have."""
        told = list(self._file.annotations.values()) if self._file else []
        if self._base is not None and not told and not self._named:
            self._fitted = self._base.fitted_
        else:
            self._fitted = self._learned(told)
        self.version += 1

    def _learned(self, told: list[Annotation]) -> FittedClassifier | None:
        examples = self._examples(told)
        if len(examples.classes) < 2:
            return None
        if self._base is not None:
            return fit_classifier(self._base.fitted_.encoder.encoder, self._base.fitted_.head, examples)
        encoder = open_encoder("words", "en", Path())
        return fit_classifier(encoder, encoder.ready_head(), examples)

    def _examples(self, told: list[Annotation]) -> Examples:
        known = self._base.examples_ if self._base else None
        pairs: dict[str, str] = {}
        if known is not None:
            pairs |= dict(zip(known.texts, map(str, known.labels.values.tolist()), strict=True))
        pairs |= {one.text: one.label for one in told if one.label is not None}
        named = {str(name): words for name, words in known.named.items()} if known else {}
        with_examples = set(pairs.values())
        named |= {name: words for name, words in self._named.items() if name not in with_examples}
        labels = Labels("single", np.array(list(pairs.values()), dtype=np.str_))
        weights = np.ones(len(pairs), np.float32)
        if known is None:
            return Examples(list(pairs), labels, dict(named), weights, label_language="en")
        return replace(known, texts=list(pairs), labels=labels, named=dict(named), weights=weights)

    def facts(self) -> dict[str, Any]:
        """All that others may know of it."""
        fitted = self._fitted
        classes = fitted.classes.tolist() if fitted else []
        return {
            "name": self.name,
            "version": str(self.version),
            "classes": [str(one) for one in classes],
            "learns": self.learns,
        }

    def close(self) -> None:
        """Close the file of annotations."""
        if self._file:
            self._file.close()
