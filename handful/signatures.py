"""Distributional signatures: statistics of a word that say how much it may matter, without saying which word it is.

s(x) = ε / (ε + P(x)): how rare a word is in the source pool.
t(x) = 1 / H(P(y | x)): how unevenly it falls over the classes of the support set.

f, u and r say the same on scales that depend on neither the corpus, the number of classes nor the vectors, so that a generator
trained on them once can be used anywhere: f(x), the level of log P(x); u(x), the unevenness by counts; r(x), that by vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from .corpus import Texts
from .episodes import SourcePool
from .errors import SettingError
from .functional import TINY, Array, Floats, Ints, entropy, one_hot, ridge_weights, softmax, weighted_bag

MOST_STEPS = 10_000  # of the softmax classifier
SMALLEST_ENTROPY = 1e-3  # keeps 1 / H finite where one class is certain


@dataclass(frozen=True)
class SignatureSettings:
    """How s and t are measured.

    `estimator` of P(y | x): `softmax` (the paper's regularised linear classifier), `ridge` (closed form) or `count` (maximum
    likelihood with additive smoothing: what Theorem 1 is proved for). `measure`: `entropy` (its inverse, the paper's t) or,
    for `ridge`, `max` (largest absolute score over the classes, as in the released code). `penalty` is the weight of the
    squared norm (`softmax`, `ridge`), `smoothing` the count added to every class (`count`). The softmax classifier stops when
    its gradient's norm is below `tolerance` times the initial norm or, with `stop="absolute"`, below `tolerance` itself.
    """

    epsilon: float = 1e-3
    estimator: Literal["softmax", "ridge", "count"] = "count"
    measure: Literal["entropy", "max"] = "entropy"
    penalty: float = 0.01
    smoothing: float = 0.1
    tolerance: float = 0.1
    stop: Literal["relative", "absolute"] = "relative"

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise SettingError(f"There is no estimator {self.estimator!r}: choose one of {', '.join(ESTIMATORS)}.")
        if self.measure not in ("entropy", "max"):
            raise SettingError(f"There is no measure {self.measure!r}: choose entropy or max.")
        if self.measure == "max" and self.estimator != "ridge":
            raise SettingError(f"The measure max is for the estimator ridge, not {self.estimator}: choose entropy.")
        if self.stop not in ("relative", "absolute"):
            raise SettingError(f"There is no stopping rule {self.stop!r}: choose relative or absolute.")
        for name in ("epsilon", "penalty", "smoothing", "tolerance"):
            if not getattr(self, name) > 0:
                raise SettingError(f"{name} is {getattr(self, name)}: it must be above 0.")


# s(x), idf(x): from the source pool


def general_importance(pool: SourcePool, ids: Ints, epsilon: float) -> Floats:
    """s(x) = ε / (ε + P(x)) (Eq. 1); 1 for a word that the pool does not have."""
    probability = pool.counts[ids] / max(pool.total, 1)
    return (epsilon / (epsilon + probability)).astype(np.float32)


def inverse_document_frequency(pool: SourcePool, ids: Ints) -> Floats:
    """log((1 + N) / (1 + n)) + 1: n of the N documents of the pool have the word."""
    return (np.log((1 + pool.size) / (1 + pool.documents[ids])) + 1).astype(np.float32)


def local_mutual_information(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """P(x, y) log(P(x, y) / (P(x) P(y))) of each word and class (Evert, 2005), from counts (classes, vocabulary).

    High for a word that is frequent in a class and more so than elsewhere; 0 where it does not occur; in nats.
    """
    joint = counts / max(float(counts.sum()), TINY)  # (classes, vocabulary)
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return joint * np.log(np.divide(joint, apart, out=np.ones_like(joint), where=joint > 0))  # type: ignore[no-any-return]


# t(x): from the support set


def mean_vectors(texts: Texts) -> Floats:
    """ψ(x), the plain mean of each document's word vectors."""
    weights = np.repeat(1 / np.maximum(texts.lengths, 1), texts.lengths).astype(np.float32)
    bags: Floats = weighted_bag(texts.table, texts.rows, weights, texts.offsets)
    return bags


def softmax_weights(vectors: Floats, targets: Floats, penalty: float, tolerance: float, stop: str) -> Floats:
    """W of a softmax classifier without bias: mean cross-entropy plus penalty · |W|², gradient descent from zero.

    W stays in the span of the few support vectors, W = Ψᵀ A, so every step is done on A and the small Gram matrix ΨΨᵀ. The
    step is the inverse of the gradient's Lipschitz constant, so the norm falls and the result is deterministic.
    """
    examples = len(vectors)
    gram = vectors @ vectors.T  # (examples, examples)
    step = 1 / (np.linalg.eigvalsh(gram)[-1] / (2 * examples) + 2 * penalty)
    coefficients = np.zeros_like(targets)  # A: (examples, classes)
    limit = tolerance
    for iteration in range(MOST_STEPS):
        direction = (softmax(gram @ coefficients) - targets) / examples + 2 * penalty * coefficients
        norm = np.sqrt(np.sum(direction * (gram @ direction)))  # of Ψᵀ · direction, the gradient in W
        if iteration == 0 and stop == "relative":
            limit = tolerance * norm
        if norm <= limit:
            break
        coefficients -= step * direction
    return vectors.T @ coefficients  # (dim, classes)


def _softmax_conditional(support: Texts, targets: Floats, queries: Texts, settings: SignatureSettings) -> Floats:
    weights = softmax_weights(mean_vectors(support), targets, settings.penalty, settings.tolerance, settings.stop)
    return _by_row(queries, lambda vectors: softmax(vectors @ weights))


def _ridge_conditional(support: Texts, targets: Floats, queries: Texts, settings: SignatureSettings) -> Floats:
    weights = ridge_weights(mean_vectors(support), targets, settings.penalty)
    return _by_row(queries, lambda vectors: softmax(vectors @ weights))


def _count_conditional(support: Texts, targets: Floats, queries: Texts, settings: SignatureSettings) -> Floats:
    """(#(x, y) + smoothing) / (Σ #(x, y') + classes · smoothing): uniform for a word that the support set does not have."""
    counts = np.zeros((max(support.ids.max(initial=0), queries.ids.max(initial=0)) + 1, targets.shape[1]), np.float32)
    np.add.at(counts, support.ids, np.repeat(targets, support.lengths, axis=0))
    smoothed = counts[queries.ids] + np.float32(settings.smoothing)
    return smoothed / smoothed.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


ESTIMATORS: dict[str, Callable[[Texts, Floats, Texts, SignatureSettings], Floats]] = {
    "softmax": _softmax_conditional,
    "ridge": _ridge_conditional,
    "count": _count_conditional,
}


def _by_row(texts: Texts, function: Callable[[Floats], Floats]) -> Floats:
    """A function of word vectors, evaluated once for each distinct vector and handed to every occurrence."""
    table = texts.table
    present = np.zeros(len(table), bool)
    present[texts.rows] = True
    distinct = np.flatnonzero(present)
    position = np.empty(len(table), np.int64)
    position[distinct] = np.arange(len(distinct))
    return function(table[distinct])[position[texts.rows]]


def class_importance(support: Texts, labels: Ints, classes: int, texts: Texts, settings: SignatureSettings) -> Floats:
    """t(x) (Eq. 2) of each word of `texts`, estimated on the labelled support set."""
    targets = one_hot(labels, classes)
    if settings.measure == "max":
        weights = ridge_weights(mean_vectors(support), targets, settings.penalty)
        return _by_row(texts, lambda vectors: np.abs(vectors @ weights).max(axis=1))
    conditional = ESTIMATORS[settings.estimator](support, targets, texts, settings)  # (words, classes)
    t: Floats = (1 / np.maximum(entropy(conditional), SMALLEST_ENTROPY)).astype(np.float32)
    return t


# f(x), u(x), r(x): for a generator that is used anywhere

RAREST = 1e-9  # added to P(x), so that a word never seen is rare, not infinitely so
USUAL, SPREAD = -4.5, 2.0  # of log10 P(x): what makes f a small number
SPREAD_COUNT = 0.5  # occurrences that are spread evenly over the classes, whatever their number
SMALLEST_SHARE = 0.01  # of the largest entropy, and of the mean score: keeps logarithms finite
WORD_PENALTY = 0.1  # of the ridge regression for r, in the mean squared length of its vectors


def frequency_level(frequencies: np.ndarray[Any, Any]) -> Floats:
    """f(x): log10 P(x), moved and scaled."""
    return ((np.log10(frequencies + RAREST) - USUAL) / SPREAD).astype(np.float32)


def rarity(levels: Array, epsilon: float = 1e-3) -> Array:
    """ε / (ε + P(x)), as s(x), from f(x)."""
    return epsilon / (epsilon + 10 ** (levels * SPREAD + USUAL))


def unevenness(counts: Floats) -> Floats:
    """-log of the entropy of P(y | x) as a share of the largest possible, from counts (words, classes); 0 for even ones."""
    classes = counts.shape[1]
    smoothed = counts + np.float32(SPREAD_COUNT / classes)
    share = entropy(smoothed / smoothed.sum(axis=1, keepdims=True)) / np.log(classes)
    return -np.log(np.clip(share, SMALLEST_SHARE, 1)).astype(np.float32)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a support set says about words: by how they were counted, and by where their vectors lie."""

    words: Ints  # ids of the support set's words, ascending
    uneven: Floats  # the unevenness of each of them
    directions: Floats  # (dim, classes): how a vector scores for each class
    usual: Floats  # (2,): the mean unevenness, and the mean largest score, over the words of the support texts

    @classmethod
    def of(cls, support: Texts, targets: Floats) -> Evidence:
        """From a support set with targets (examples, classes): how much an example belongs to a class."""
        counts, words, place = class_counts(support, targets)
        uneven = unevenness(counts)
        means = mean_vectors(support)
        directions = ridge_weights(means, targets - targets.mean(axis=0), word_penalty(means))
        reach = _by_row(support, lambda vectors: np.abs(vectors @ directions).max(axis=1))
        usual = [uneven[place].mean(), reach.mean()] if len(place) else [0, 0]
        return cls(words, uneven, directions, np.array(usual, np.float32))

    def u(self, uneven: Floats) -> Floats:
        """u(x) from the unevenness of words."""
        return uneven - self.usual[0]  # type: ignore[no-any-return]

    def r(self, scores: Floats) -> Floats:
        """r(x) from the scores (words, classes) of words for the classes."""
        return np.log(np.abs(scores).max(axis=1) / max(float(self.usual[1]), TINY) + SMALLEST_SHARE)  # type: ignore[no-any-return]

    def uneven_of(self, ids: Ints) -> Floats:
        """The unevenness of words by their ids; a word that the support set lacks falls evenly, which is 0."""
        place = np.searchsorted(self.words, ids)
        words, uneven = np.append(self.words, -1), np.append(self.uneven, np.float32(0))
        return np.where(words[place] == ids, uneven[place], np.float32(0))


def word_penalty(means: Floats) -> Floats:
    """λ of the ridge regression for r."""
    return np.float32(WORD_PENALTY * np.mean(np.sum(means**2, axis=1)) + TINY)  # type: ignore[return-value]


def class_counts(support: Texts, targets: Floats) -> tuple[Floats, Ints, Ints]:
    """How often each word occurs in each class, were the classes equally large; the words; the word of each occurrence."""
    words, place = np.unique(support.ids, return_inverse=True)
    counts = np.zeros((len(words), targets.shape[1]), np.float32)
    np.add.at(counts, place, np.repeat(balanced(targets), support.lengths, axis=0))
    return counts, words, place


def balanced(targets: Floats) -> Floats:
    """Targets (examples, classes) that add up to the same for every class."""
    sizes = targets.sum(axis=0)
    shares: Floats = (sizes.mean() / np.maximum(sizes, TINY)).astype(np.float32)
    return targets * shares


def measure_signals(
    names: Sequence[str],
    support: Texts,
    labels: Ints,
    classes: int,
    pool: SourcePool,
    training: SourcePool,
    texts: Texts,
    settings: SignatureSettings,
) -> Floats:
    """The named statistics of each word of `texts`: (words, names). `training` is the pool of all training examples."""
    evidence = cache(lambda: Evidence.of(support, one_hot(labels, classes)))
    measures: dict[str, Callable[[], Floats]] = {
        "s": lambda: general_importance(pool, texts.ids, settings.epsilon),
        "t": lambda: class_importance(support, labels, classes, texts, settings),
        "idf": lambda: inverse_document_frequency(training, texts.ids),
        "f": lambda: frequency_level(pool.counts[texts.ids] / max(pool.total, 1)),
        "u": lambda: evidence().u(evidence().uneven_of(texts.ids)),
        "r": lambda: _by_row(texts, lambda vectors: evidence().r(vectors @ evidence().directions)),
    }
    columns = [measures[name]() for name in names]
    return np.stack(columns, axis=1) if columns else np.empty((len(texts.ids), 0), np.float32)
