"""The fitted state of a classifier: one immutable record, which is used, saved and loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from ..models.examples import LabelledDocuments
from ..models.heads import CentredScorer, ReadyHead
from ..models.learning import Learned, learn
from ..models.text_encoders import FittedEncoder, TextEncoder
from ..utils.functional import Floats, softmax
from ..utils.parallel import single_blas_thread
from .calibration import Calibration, calibrate
from .labels import Array, Examples, LabelFormat, Labels, chosen_classes, labels_of

LEAST_COUNTED = 0.1  # examples that the words of a label are worth, to be named among the sources


@dataclass(frozen=True)
class Sources:
    """Which other sources than examples a classifier has learned from."""

    named: tuple[Any, ...] = ()  # classes whose label words counted
    name_weight: float = 0.0  # how many examples the words of a label counted for, on average over these classes
    unlabeled: int = 0  # unlabelled texts that were given
    pooled: int = 0  # and those that counted, because they are similar to the examples


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """Texts to scores for classes. Nothing in it changes, so any number of threads may use it."""

    classes: Array
    label_format: LabelFormat
    encoder: FittedEncoder
    head: ReadyHead  # for learning other examples
    scorer: CentredScorer
    calibration: Calibration
    sources: Sources = Sources()

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
        with single_blas_thread():
            for documents in self.encoder.batches(texts):
                parts.append(self._score(documents))
                cut += documents.cut
        return np.concatenate(parts), cut

    def _score(self, documents: Any) -> Floats:
        vectors = self.encoder.vectors(documents).astype(np.float64)  # so that other texts in the batch change no digit
        return self.logits(vectors).astype(np.float32)

    def logits(self, vectors: Array) -> Array:
        """Logits from vectors: (texts, classes)."""
        return self.calibration.logits(self.scorer(vectors))

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
    """Learn from examples, from the words of class labels, and from unlabelled texts."""
    classes = examples.classes
    if len(classes) < 2:
        found = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
        raise DataError(f"Found {found}; at least 2 are needed to tell texts apart.")
    single = examples.labels.format == "single"
    pool = encoder.read(examples.unlabeled) if examples.unlabeled and single else None
    with single_blas_thread():
        learned = learn(encoder, head, labelled_documents(encoder, examples.merged(), classes), pool)
        calibration = calibrate(encoder, head, learned, pool)
    sources = _sources(learned, classes, len(examples.unlabeled))
    return FittedClassifier(classes, examples.labels.format, learned.encoder, head, learned.scorer, calibration, sources)


def labelled_documents(encoder: TextEncoder, examples: Examples, classes: Array) -> LabelledDocuments:
    """Read the examples and the words of class labels."""
    words = examples.class_words()
    names = Labels("single", np.array(list(words))) if words else None
    targets = [examples.labels.targets(classes)] + ([names.targets(classes)] if names else [])
    weights = np.concatenate([examples.weights, np.ones(len(words), np.float32)])
    documents = encoder.read_examples(examples.texts, list(words.values()))
    named = np.arange(len(weights)) >= len(examples.texts)
    return LabelledDocuments(documents, np.concatenate(targets), weights, examples.labels.format == "single", named)


def _sources(learned: Learned, classes: Array, unlabeled: int) -> Sources:
    described = learned.labelled.targets[learned.labelled.names].any(axis=0)
    counted = described & (learned.name_weights >= LEAST_COUNTED)
    weight = float(learned.name_weights[counted].mean()) if counted.any() else 0.0
    return Sources(tuple(classes[counted].tolist()), weight, unlabeled, learned.pooled)
