"""How sure to be: examples that are left out and answered again say by which factor the scores should be scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..models.heads import CentredScorer, ReadyHead
from ..models.text_encoders import FittedEncoder, TextEncoder
from ..utils.functional import TINY, Floats, Ints, softmax

FACTORS = np.geomspace(1 / 4, 4, 33)  # by which examples left out may correct the scale
CAUTION = 80.0  # trust in the scale that was meta-learned, in examples that would speak against it
MOST_ROUNDS, MOST_LEARNED_AGAIN = 2, 400  # of leaving examples out, and examples: it takes as long as learning them first


@dataclass(frozen=True, eq=False)
class LabelledDocuments:
    """Documents with targets (documents, classes), 1 where one has a class, and weights (documents,)."""

    documents: Any
    targets: Floats
    weights: Floats
    exclusive: bool  # a document has one class, and scores are logits of a softmax; otherwise of a sigmoid each

    @property
    def sizes(self) -> Floats:
        """How many examples each class has."""
        return self.weights @ self.targets

    @property
    def prior(self) -> Floats:
        """The logits of how frequent the classes are."""
        if self.exclusive:
            return np.log(self.sizes / self.sizes.sum()).astype(np.float32)  # type: ignore[no-any-return]
        share = (self.sizes + 0.5) / (self.weights.sum() + 1)  # never 0 nor 1
        return np.log(share / (1 - share)).astype(np.float32)  # type: ignore[no-any-return]

    def select(self, positions: Ints) -> LabelledDocuments:
        """Some of the documents."""
        chosen = self.documents.select(positions), self.targets[positions], self.weights[positions]
        return LabelledDocuments(*chosen, self.exclusive)

    def without(self, left_out: Ints) -> LabelledDocuments:
        """With one example less at each of these places: an example of weight 2 stays, with weight 1."""
        weights = self.weights.copy()
        weights[left_out] -= np.minimum(weights[left_out], 1)
        rest = LabelledDocuments(self.documents, self.targets, weights, self.exclusive)
        return rest.select(np.flatnonzero(weights > 0))


def learn(encoder: TextEncoder, head: ReadyHead, examples: LabelledDocuments) -> tuple[FittedEncoder, CentredScorer]:
    """What the examples say: about texts, and about vectors."""
    fitted = encoder.fit(examples.documents, examples.targets, examples.weights)
    vectors = fitted.vectors(examples.documents)  # (examples, dim)
    return fitted, head.fit(vectors, examples.targets, examples.weights, examples.exclusive)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What makes logits of a head's scores, factor · score + shift, and the probability from which a text gets a label."""

    factor: float
    shift: Floats  # (classes,): the logits of a text without words
    threshold: float


def calibrate(encoder: TextEncoder, head: ReadyHead, examples: LabelledDocuments) -> Calibration:
    """How sure to be, by examples that are left out."""
    if examples.exclusive:
        return Calibration(scale_factor(encoder, head, examples), examples.prior, 0.0)
    scores, truth, weights = _left_out_scores(encoder, head, examples)
    slope, offset = _logistic_fit(scores, truth, weights) if truth.any() else (USUAL_SLOPE, USUAL_OFFSET)
    threshold = best_threshold(1 / (1 + np.exp(-slope * (scores - offset))), weights) if truth.any() else USUAL_THRESHOLD
    return Calibration(slope, np.full(examples.targets.shape[1], -slope * offset, np.float32), threshold)


# Classes that exclude one another


def scale_factor(encoder: TextEncoder, head: ReadyHead, examples: LabelledDocuments) -> float:
    """How much larger than meta-learned the scale should be, by the likelihood of examples that were left out.

    One example of each class is left out at a time, so that the others are a task of the same kind with one example less.
    """
    likelihood = -CAUTION / 2 * np.log(FACTORS) ** 2
    for left_out in _rounds(examples):
        rest, asked = examples.without(left_out), examples.select(left_out)
        fitted, scorer = learn(encoder, head, rest)
        scores = scorer(fitted.vectors(asked.documents).astype(np.float64))  # (classes, classes)
        logits = FACTORS[:, None, None] * scores + rest.prior
        found = (softmax(logits) * asked.targets).sum(axis=-1)  # (factors, classes)
        likelihood = likelihood + np.log(np.maximum(found, TINY)).sum(axis=-1)
    return float(FACTORS[np.argmax(likelihood)])


def _rounds(examples: LabelledDocuments) -> Iterator[Ints]:
    """One example of each class, then another of each if that takes no time; none where a class has no second one."""
    if not examples.exclusive or examples.sizes.min() < 2:
        return
    ends = [np.cumsum(examples.weights * column) for column in examples.targets.T]
    for number in range(min(MOST_ROUNDS, max(1, int(MOST_LEARNED_AGAIN // examples.weights.sum())))):
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
        fitted, scorer = learn(encoder, head, rest)
        found = scorer(fitted.vectors(asked.documents).astype(np.float64))  # (examples, classes)
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
