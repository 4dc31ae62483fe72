"""What a classifier has learned: one immutable record, which is what is used, saved and loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..models.heads import CentredScorer, ReadyHead
from ..models.text_encoders import FittedEncoder, TextEncoder
from ..utils.functional import Floats, softmax
from .calibration import Calibration, LabelledDocuments, calibrate, learn
from .labels import Array, Examples, LabelFormat, Labels, chosen_classes, labels_of


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """Texts to scores for classes. Nothing in it changes: any number of threads may use it."""

    classes: Array
    label_format: LabelFormat
    encoder: FittedEncoder
    head: ReadyHead  # to learn other examples with
    scorer: CentredScorer
    calibration: Calibration

    @property
    def binary(self) -> bool:
        """Whether there are two classes that exclude one another: one score says it all."""
        return self.label_format == "single" and len(self.classes) == 2

    def scores(self, texts: Iterable[str]) -> Floats:
        """Logits: (texts, classes)."""
        return self.scores_and_cut(texts)[0]

    def scores_and_cut(self, texts: Iterable[str]) -> tuple[Floats, int]:
        """Logits, (texts, classes), and how many of the texts are longer than what is read of them."""
        parts, cut = [np.empty((0, len(self.classes)), np.float32)], 0
        for documents in self.encoder.batches(texts):
            parts.append(self._score(documents))
            cut += documents.cut
        return np.concatenate(parts), cut

    def _score(self, documents: Any) -> Floats:
        vectors = self.encoder.vectors(documents).astype(np.float64)  # so that company changes no digit
        return (self.calibration.factor * self.scorer(vectors) + self.calibration.shift).astype(np.float32)  # type: ignore[no-any-return]

    def vectors(self, texts: Iterable[str]) -> Floats:
        """The texts' vectors, of length 1 about the centre of the examples: (texts, dim)."""
        parts = [self.scorer.centred(self.encoder.vectors(documents)) for documents in self.encoder.batches(texts)]
        return np.concatenate(parts) if parts else np.empty((0, self.scorer.weights.shape[0]), np.float32)

    def probabilities(self, scores: Floats) -> Array:
        """The probability of each class: (texts, classes); those of a text sum to one, unless it may have several labels."""
        scores = scores.astype(np.float64)
        return softmax(scores) if self.label_format == "single" else 0.5 + 0.5 * np.tanh(scores / 2)

    def choose(self, probabilities: Array, threshold: float | None = None) -> Array:
        """Which classes each text gets: (texts, classes) of booleans."""
        least = self.calibration.threshold if threshold is None else threshold
        return chosen_classes(self.label_format, probabilities, least)

    def labels(self, chosen: Array) -> Any:
        """The labels that chosen classes stand for, as the examples gave theirs."""
        return labels_of(self.label_format, self.classes, chosen)

    def predict(self, texts: Iterable[str], threshold: float | None = None) -> Any:
        """The label of each text, or its labels."""
        return self.labels(self.choose(self.probabilities(self.scores(texts)), threshold))


def fit_classifier(encoder: TextEncoder, head: ReadyHead, examples: Examples) -> FittedClassifier:
    """Learn from examples, and from the names of classes as further examples."""
    classes = examples.classes
    if len(classes) < 2:
        found = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
        raise DataError(f"Found {found}; at least 2 are needed to tell texts apart.")
    labelled = _labelled(encoder, examples.merged(), classes)
    fitted, scorer = learn(encoder, head, labelled)
    return FittedClassifier(classes, examples.labels.format, fitted, head, scorer, calibrate(encoder, head, labelled))


def _labelled(encoder: TextEncoder, examples: Examples, classes: Array) -> LabelledDocuments:
    names = Labels("single", np.array(list(examples.named))) if examples.named else None
    targets = [examples.labels.targets(classes)] + ([names.targets(classes)] if names else [])
    weights = np.concatenate([examples.weights, np.ones(len(examples.named), np.float32)])
    documents = encoder.read([*examples.texts, *examples.named.values()])
    return LabelledDocuments(documents, np.concatenate(targets), weights, examples.labels.format == "single")
