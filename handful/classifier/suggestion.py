"""What to label next: texts that together stand for those that the classifier is unsure of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..utils.functional import Floats, Ints, unit_length
from ..utils.sampling import even_sample
from .fitted import FittedClassifier
from .labels import Array, LabelFormat

CANDIDATES = 2000  # texts that stand for all when some are to be suggested


def suggest_texts(fitted: FittedClassifier, texts: Sequence[str], n: int, labelled: Sequence[str] = ()) -> Ints:
    """Positions of the n texts to label next; of many, an even sample is looked at.

    `labelled` were labelled a moment ago: they stand for texts like them, so that texts chosen one at a time differ too.
    """
    candidates = np.array(even_sample(range(len(texts)), max(CANDIDATES, n)), np.int64)
    if not len(candidates):
        return candidates
    chosen = [texts[i] for i in candidates]
    unsure = uncertainty(fitted.probabilities(fitted.scores(chosen)), fitted.label_format)
    return candidates[representatives(fitted.vectors(chosen), unsure, n, fitted.vectors(labelled))]


def uncertainty(probabilities: Array, label_format: LabelFormat) -> Array:
    """0 where the answer is certain, 1 where it could as well be another."""
    if label_format != "single":
        return 1 - np.abs(2 * probabilities - 1).min(axis=1)  # type: ignore[no-any-return]
    best = np.partition(probabilities, -2, axis=1)
    return 1 - (best[:, -1] - best[:, -2])  # type: ignore[no-any-return]


def representatives(vectors: Floats, weights: Array, n: int, chosen_before: Floats | None = None) -> Ints:
    """Positions of n vectors, one after the other that which adds most to the likeness of every vector to its nearest one.

    The likeness of two vectors is their cosine, without their mean and not below 0; a vector counts by its weight. Vectors
    chosen before count as chosen.
    """
    mean = vectors.mean(axis=0)
    unit = unit_length(vectors - mean)
    alike = np.maximum(unit @ unit.T, 0)  # (vectors, vectors)
    weights, nearest = weights.astype(np.float32), np.zeros(len(unit), np.float32)
    if chosen_before is not None and len(chosen_before):
        nearest = np.maximum(unit @ unit_length(chosen_before - mean).T, 0).max(axis=1)
    left, chosen = np.ones(len(unit), bool), []
    for _ in range(min(n, len(unit))):
        gain = weights @ np.maximum(alike - nearest[:, None], 0)
        best = int(np.argmax(np.where(left, gain, -1)))
        chosen.append(best)
        left[best] = False
        nearest = np.maximum(nearest, alike[:, best])
    return np.array(chosen, np.int64)
