"""Confidence: examples that are left out and answered again show by which factor the scores should be scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..models.examples import LabelledDocuments
from ..models.heads import ReadyHead
from ..models.learning import Learned, learn
from ..models.text_encoders import TextEncoder
from ..utils.functional import TINY, Floats, Ints, softmax

FACTORS = np.geomspace(1 / 4, 4, 33)  # by which examples left out may correct the scale
CAUTION = 10.0  # how many left-out examples it takes to outweigh the usual scale
MOST_ROUNDS = 2  # of leaving examples out,
MOST_LEARNED_AGAIN = 400  # with at most about this many examples in all rounds together
MOST_IN_ROUND = 800  # and at most about this many in one
MOST_CLASSES = 200  # in a round
MOST_POOLED_AGAIN = 2000  # unlabelled texts that are used in a round
USUAL_SPREAD = 1.7  # of scores over the classes: damping leaves the scores of such a text as they are


@dataclass(frozen=True, eq=False)
class Calibration:
    """Turns a head's scores into logits, factor · damped score + shift; labels above the threshold are given."""

    factor: float
    shift: Floats  # (classes,): the logits of a text without words
    threshold: float
    damping: float = 0.0

    def logits(self, scores: Floats) -> Floats:
        """Logits from scores: (texts, classes)."""
        return self.slopes(scores) * scores + self.shift

    def slopes(self, scores: Floats) -> Floats:
        """The factors that turn scores into logits without the shift: (texts, 1)."""
        return self.factor * _damping_factors(scores, self.damping)


def damped(scores: Floats, damping: float) -> Floats:
    """Scores (..., texts, classes), with those of a text divided by a power of how widely they are spread over the classes.

    Texts differ in how far their scores are spread, and only part of that is certainty: undamped probabilities are too extreme
    at both ends. With two classes the spread is all there is, so nothing is damped; the more classes, the more.
    """
    return scores * _damping_factors(scores, damping)


def _damping_factors(scores: Floats, damping: float) -> Floats:
    spread = np.maximum(scores.std(axis=-1, keepdims=True), TINY)
    return (USUAL_SPREAD / spread) ** (damping * (1 - 2 / scores.shape[-1]))  # type: ignore[no-any-return]


def calibrate(encoder: TextEncoder, head: ReadyHead, learned: Learned, pool: Any = None) -> Calibration:
    """How confident to be in what was learned, measured on examples that are left out."""
    examples = learned.labelled
    if examples.exclusive:
        return Calibration(scale_factor(encoder, head, learned, pool), examples.prior, 0.0, head.damping)
    scores, truth, weights = _left_out_scores(encoder, head, examples)
    slope, offset = _logistic_fit(scores, truth, weights) if truth.any() else (USUAL_SLOPE, USUAL_OFFSET)
    threshold = best_threshold(1 / (1 + np.exp(-slope * (scores - offset))), weights) if truth.any() else USUAL_THRESHOLD
    return Calibration(slope, np.full(examples.targets.shape[1], -slope * offset, np.float32), threshold)


# Classes that exclude one another


def scale_factor(encoder: TextEncoder, head: ReadyHead, learned: Learned, pool: Any = None) -> float:
    """How much larger than meta-learned the scale should be, by the likelihood of examples that were left out.

    One example of each class is left out at a time, so that the others are a task of the same kind with one example fewer.
    """
    likelihood = -CAUTION / 2 * np.log(FACTORS) ** 2
    sample, examples = _sample(pool), _thinned(learned.labelled)
    for left_out in _rounds(examples):
        asked = examples.select(left_out)
        rest = learn(encoder, head, examples.without(left_out), sample)
        scores = rest.scorer(rest.encoder.vectors(asked.documents).astype(np.float64))  # (classes, classes)
        scores = damped(scores, head.damping)
        logits = FACTORS[:, None, None] * scores + rest.labelled.prior  # (factors, classes, classes)
        found = (softmax(logits) * asked.targets).sum(axis=-1)  # (factors, classes)
        likelihood = likelihood + np.log(np.maximum(found, TINY)).sum(axis=-1)
    return float(FACTORS[np.argmax(likelihood)])


def _thinned(examples: LabelledDocuments) -> LabelledDocuments:
    """A smaller task with the same scale: classes that have more than one example, and some of their examples.

    The words of a class's label count as an example here. If there are many classes, only some are kept.
    """
    able = np.flatnonzero((examples.shots >= 1) & (examples.sizes >= 2))
    kept = able[np.unique(np.linspace(0, len(able) - 1, MOST_CLASSES).astype(np.int64))] if len(able) > 1 else able
    smaller = replace(examples, targets=examples.targets[:, kept])
    smaller = smaller.select(np.flatnonzero(smaller.targets.any(axis=1)))
    most = max(2, MOST_IN_ROUND // max(1, len(kept)))
    rank = (np.cumsum(smaller.targets, axis=0) * smaller.targets).max(axis=1, initial=0)  # 1 for the first of its class
    return smaller.select(np.flatnonzero((rank <= most) | smaller.names))


def _sample(pool: Any) -> Any:
    """An even sample of unlabelled documents, since they are assigned to classes again for every round."""
    if pool is None or len(pool) <= MOST_POOLED_AGAIN:
        return pool
    return pool.select(np.linspace(0, len(pool) - 1, MOST_POOLED_AGAIN).astype(np.int64))


def _rounds(examples: LabelledDocuments) -> Iterator[Ints]:
    """One example of each class, then another of each if that is quick; none if there is only one such class."""
    shots = examples.shots
    if len(shots) < 2:
        return
    ends = [np.cumsum(np.where(examples.names, 0, examples.weights) * column) for column in examples.targets.T]
    most = min(MOST_ROUNDS, int(shots.min()), max(1, int(MOST_LEARNED_AGAIN // examples.weights.sum())))
    for number in range(most):
        yield np.array([int(np.searchsorted(end, number, side="right")) for end in ends])


# Several labels per text

CROSS_FIT_FOLDS = 5
USUAL_SLOPE, USUAL_OFFSET, USUAL_THRESHOLD = 3.5, 0.3, 0.35  # on validation tasks; against what is measured they count as
TRUST = 10.0  # observations
NEWTON_STEPS = 30
LOWEST, HIGHEST = 0.05, 0.95  # of a threshold


def _left_out_scores(encoder: TextEncoder, head: ReadyHead, examples: LabelledDocuments) -> tuple[Floats, Floats, Floats]:
    """Scores of examples left out, for classes that the other examples know, with the truth and the weights: (pairs,) each."""
    fold = np.random.default_rng(0).permutation(len(examples.targets)) % CROSS_FIT_FOLDS
    parts = [np.empty((3, 0))]
    for number in range(CROSS_FIT_FOLDS):
        rest, asked = (examples.select(np.flatnonzero((fold == number) == left)) for left in (False, True))
        known = rest.sizes > 0 if len(rest.targets) else np.zeros(examples.targets.shape[1], bool)
        if known.sum() < 2 or not len(asked.targets):
            continue
        learned = learn(encoder, head, rest)
        found = learned.scorer(learned.encoder.vectors(asked.documents).astype(np.float64))  # (examples, classes)
        weights = np.repeat(asked.weights, known.sum())
        parts.append(np.stack([found[:, known].ravel(), asked.targets[:, known].ravel(), weights]))
    scores, truth, weights = np.concatenate(parts, axis=1)
    return scores, truth, weights


def _logistic_fit(scores: Floats, truth: Floats, weights: Floats) -> tuple[float, float]:
    """Slope a and offset t of P(label) = σ(a (score - t)) (Platt, 2000), drawn towards what is usual, by Newton steps."""
    usual = np.array([USUAL_SLOPE, -USUAL_SLOPE * USUAL_OFFSET])
    inputs = np.stack([scores, np.ones_like(scores)])  # (2, pairs)
    line = usual
    for _ in range(NEWTON_STEPS):
        found = 1 / (1 + np.exp(-np.clip(line @ inputs, -30, 30)))
        slope = inputs @ (weights * (found - truth)) + TRUST * (line - usual) / usual**2
        curvature = (inputs * (weights * found * (1 - found))) @ inputs.T + np.diag(TRUST / usual**2)
        line = line - np.linalg.solve(curvature, slope)
    steep = max(float(line[0]), 0.1)
    return steep, -float(line[1]) / steep


def best_threshold(probabilities: Floats, weights: Floats) -> float:
    """The threshold of the highest F1 to be expected, were the probabilities true (Lipton, Elkan and Naryanaswamy, 2014)."""
    order = np.argsort(-probabilities)
    right, answered = np.cumsum((probabilities * weights)[order]), np.cumsum(weights[order])
    expected = 2 * right / (answered + right[-1])
    return float(np.clip(expected.max() / 2, LOWEST, HIGHEST))
