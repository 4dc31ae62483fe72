"""Distributional signatures: statistics that tell how much a word may matter without revealing the word.

s(x) = ε / (ε + P(x)): how rare a word is in the source pool.
t(x) = 1 / H(P(y | x)): how unevenly it is spread over the classes of the support set.

Three further signals express the same on scales that are independent of the corpus, the number of classes and the vectors, so
that a generator trained on them once can be used anywhere: `frequency`, the level of log P(x); `unevenness`, over the classes,
from counts; and `reach`, how far a word's vector points towards a class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from ..data.corpus import Texts
from ..data.frequencies import SourcePool
from ..utils.functional import TINY, Array, Floats, Ints, entropy, one_hot, ridge_weights, softmax, weighted_bag
from .settings import Signal, SignatureSettings

MOST_STEPS = 10_000  # of the softmax classifier
SMALLEST_ENTROPY = 1e-3  # keeps 1 / H finite if one class is certain


# s(x), idf(x): from the source pool


def general_importance(pool: SourcePool, ids: Ints, epsilon: float) -> Floats:
    """s(x) = ε / (ε + P(x)) (Eq. 1); 1 for a word that is not in the pool."""
    return (epsilon / (epsilon + pool.probabilities(ids))).astype(np.float32)


def inverse_document_frequency(pool: SourcePool, ids: Ints) -> Floats:
    """log((1 + N) / (1 + n)) + 1, where n of the N documents in the pool contain the word."""
    return (np.log((1 + pool.size) / (1 + pool.documents[ids])) + 1).astype(np.float32)


def local_mutual_information(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """P(x, y) log(P(x, y) / (P(x) P(y))) of each word and class (Evert, 2005), from counts (classes, vocabulary).

    It is high for a word that is frequent in a class and less so elsewhere, and 0 if the word does not occur; in nats.
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
    """W of a softmax classifier without bias: mean cross-entropy plus penalty · |W|², by gradient descent from zero.

    With the relative rule, vectors are measured in units of their spread, so that x W does not depend on the scale of the
    vectors. W stays in the span of the few support vectors, W = Ψᵀ A, so every step works on A and the small Gram matrix ΨΨᵀ.
    The step size is the inverse of the gradient's Lipschitz constant, so the norm falls and the result is deterministic.
    """
    examples = len(vectors)
    unit = np.float32(_spread(vectors) if stop == "relative" else 1)
    vectors = vectors / unit
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
    return vectors.T @ coefficients / unit  # (dim, classes), for vectors on their own scale


def _spread(vectors: Floats) -> float:
    """The root-mean-square distance of vectors from their mean; 1 if they are all the same."""
    apart = float(np.sqrt(np.mean(np.sum((vectors - vectors.mean(axis=0)) ** 2, axis=1))))
    return apart if apart > TINY else 1.0


Conditional = tuple[Floats, Ints]  # P(y | x) of distinct words (distinct, classes), and the place of each word among them


def _softmax_conditional(support: Texts, targets: Floats, queries: Texts, settings: SignatureSettings) -> Conditional:
    weights = softmax_weights(mean_vectors(support), targets, settings.penalty, settings.tolerance, settings.stop)
    distinct, places = _places(queries.rows, len(queries.table))
    return softmax(queries.table[distinct] @ weights), places[queries.rows]


def _ridge_conditional(support: Texts, targets: Floats, queries: Texts, settings: SignatureSettings) -> Conditional:
    weights = ridge_weights(mean_vectors(support), targets, settings.penalty)
    distinct, places = _places(queries.rows, len(queries.table))
    return softmax(queries.table[distinct] @ weights), places[queries.rows]


def _count_conditional(support: Texts, targets: Floats, queries: Texts, settings: SignatureSettings) -> Conditional:
    """(#(x, y) + smoothing) / (Σ #(x, y') + classes · smoothing): uniform for a word that is not in the support set."""
    known, places = _places(support.ids, int(max(support.ids.max(initial=0), queries.ids.max(initial=0))) + 1)
    counts = np.zeros((len(known) + 1, targets.shape[1]), np.float32)  # the last row is for all other words
    np.add.at(counts, places[support.ids], np.repeat(targets, support.lengths, axis=0))
    smoothed = counts + np.float32(settings.smoothing)
    return smoothed / smoothed.sum(axis=1, keepdims=True), places[queries.ids]


ESTIMATORS: dict[str, Callable[[Texts, Floats, Texts, SignatureSettings], Conditional]] = {
    "softmax": _softmax_conditional,
    "ridge": _ridge_conditional,
    "count": _count_conditional,
}


def _places(values: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct ones of whole numbers below `size`, and the place of each number among them; absent ones come last."""
    present = np.zeros(size, bool)
    present[values] = True
    distinct = np.flatnonzero(present)
    places = np.full(size, len(distinct))
    places[distinct] = np.arange(len(distinct))
    return distinct, places  # (distinct,), (size,)


def _by_row(texts: Texts, function: Callable[[Floats], Floats]) -> Floats:
    """Apply a function of word vectors once per distinct vector, and give its value to every occurrence."""
    distinct, places = _places(texts.rows, len(texts.table))
    return function(texts.table[distinct])[places[texts.rows]]


def class_importance(support: Texts, labels: Ints, classes: int, texts: Texts, settings: SignatureSettings) -> Floats:
    """t(x) (Eq. 2) for each word of `texts`, estimated on the labelled support set."""
    targets = one_hot(labels, classes)
    if settings.measure == "max":
        weights = ridge_weights(mean_vectors(support), targets, settings.penalty)
        return _by_row(texts, lambda vectors: np.abs(vectors @ weights).max(axis=1))
    conditional, place = ESTIMATORS[settings.estimator](support, targets, texts, settings)
    t: Floats = (1 / np.maximum(entropy(conditional), SMALLEST_ENTROPY)).astype(np.float32)  # of distinct words
    return t[place]  # (words,)


T_SIGNALS: dict[str, dict[str, Any]] = {  # signals named after their estimator, and what they change in the settings
    "t": {},
    "t-count": {"estimator": "count", "measure": "entropy"},
    "t-softmax": {"estimator": "softmax", "measure": "entropy"},
    "t-ridge": {"estimator": "ridge", "measure": "max"},
}


def variation(values: Floats) -> float:
    """The standard deviation of a positive signal as a share of its mean: 0 if it is constant."""
    return float(np.std(values, dtype=np.float64) / max(float(np.mean(values, dtype=np.float64)), TINY))


# frequency, unevenness, reach: for a generator that can be used anywhere

RAREST = 1e-9  # added to P(x), so that an unseen word is rare but not infinitely rare
USUAL, SPREAD = -4.5, 2.0  # of log10 P(x): they make the level a small number
SPREAD_COUNT = 0.5  # added occurrences, spread evenly over the classes, whatever their number
SMALLEST_SHARE = 0.01  # of the largest entropy, and of the mean score: keeps logarithms finite
WORD_PENALTY = 0.1  # of the ridge regression for reach, relative to the mean squared length of its vectors
PORTABLE_SIGNALS: tuple[Signal, ...] = ("frequency", "unevenness", "reach")


def frequency_level(frequencies: np.ndarray[Any, Any]) -> Floats:
    """The signal `frequency`: log10 P(x), shifted and scaled."""
    return ((np.log10(frequencies + RAREST) - USUAL) / SPREAD).astype(np.float32)


def rarity(levels: Array, epsilon: float = 1e-3) -> Array:
    """ε / (ε + P(x)), like s(x), computed from the signal `frequency`."""
    return epsilon / (epsilon + 10 ** (levels * SPREAD + USUAL))


def unevenness(counts: Floats) -> Floats:
    """-log of the entropy of P(y | x) as a share of its maximum, from counts (words, classes); 0 for uniform counts."""
    classes = counts.shape[1]
    smoothed = counts + np.float32(SPREAD_COUNT / classes)
    share = entropy(smoothed / smoothed.sum(axis=1, keepdims=True)) / np.log(classes)
    return -np.log(np.clip(share, SMALLEST_SHARE, 1)).astype(np.float32)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence of a support set about words, from their counts and from their vectors."""

    words: Ints  # ids of the support set's words, ascending
    uneven: Floats  # the unevenness of each of them
    directions: Floats  # (dim, classes): turn a vector into a score per class
    usual: Floats  # (2,): the mean unevenness, and the mean largest score, over the words of the support texts

    @classmethod
    def of(cls, support: Texts, targets: Floats, weights: Floats | None = None) -> Evidence:
        """The evidence of a support set with targets (examples, classes); an example of weight 2 counts like two equal ones."""
        weights = np.ones(len(support), np.float32) if weights is None else weights
        counts, words, place = class_counts(support, targets * weights[:, None])
        uneven = unevenness(counts)
        directions = _word_directions(mean_vectors(support), targets, weights)
        reach = _by_row(support, lambda vectors: np.abs(vectors @ directions).max(axis=1))
        shares = np.repeat(weights, support.lengths)
        usual = [np.average(values, weights=shares) for values in (uneven[place], reach)] if len(place) else [0, 0]
        return cls(words, uneven, directions, np.array(usual, np.float32))

    def signal(self, name: str, texts: Texts, frequencies: np.ndarray[Any, Any]) -> Floats:
        """One of the PORTABLE_SIGNALS for each word of the texts, given the general frequency of each word: (words,)."""
        if name == "frequency":
            return frequency_level(frequencies)
        if name == "unevenness":
            return self._uneven_of(texts.ids) - self.usual[0]  # type: ignore[no-any-return]
        return _by_row(texts, self._reach)

    def _uneven_of(self, ids: Ints) -> Floats:
        """The unevenness of words, given by their ids; 0 for a word that is not in the support set."""
        place = np.searchsorted(self.words, ids)
        words, uneven = np.append(self.words, -1), np.append(self.uneven, np.float32(0))
        return np.where(words[place] == ids, uneven[place], np.float32(0))

    def _reach(self, vectors: Floats) -> Floats:
        """The log of each word vector's largest class score, relative to the mean over the support set: (words,)."""
        highest = np.abs(vectors @ self.directions).max(axis=1)
        return np.log(highest / max(float(self.usual[1]), TINY) + SMALLEST_SHARE)  # type: ignore[no-any-return]


def _word_directions(means: Floats, targets: Floats, weights: Floats) -> Floats:
    """Ridge regression from the mean vectors of the examples to their classes: (dim, classes)."""
    root = np.sqrt(weights)[:, None]
    goals = targets - np.average(targets, axis=0, weights=weights)
    penalty = np.float32(WORD_PENALTY * np.average(np.sum(means**2, axis=1), weights=weights) + TINY)
    directions: Floats = ridge_weights(means * root, (goals * root).astype(np.float32), penalty)
    return directions


def class_counts(support: Texts, targets: Floats) -> tuple[Floats, Ints, Ints]:
    """The counts of each word in each class, as if classes had equal size; the words; the word of each occurrence."""
    words, place = np.unique(support.ids, return_inverse=True)
    shares, classes = balanced(targets), targets.shape[1]
    documents, labels = np.nonzero(shares)  # pairs: one for each label of a document
    lengths = support.lengths[documents]
    firsts = support.offsets[documents] - (np.cumsum(lengths) - lengths)
    occurrences = np.arange(lengths.sum()) + np.repeat(firsts, lengths)
    cells = place[occurrences] * classes + np.repeat(labels, lengths)
    counts = np.bincount(cells, np.repeat(shares[documents, labels], lengths), len(words) * classes)
    return counts.reshape(len(words), classes).astype(np.float32), words, place


def balanced(targets: Floats) -> Floats:
    """Targets (examples, classes), scaled to the same sum for every class."""
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
    """The named statistics for each word of `texts`: (words, names). `training` is the pool of all training examples."""
    evidence = cache(lambda: Evidence.of(support, one_hot(labels, classes)))
    measures: dict[str, Callable[[], Floats]] = {
        "s": lambda: general_importance(pool, texts.ids, settings.epsilon),
        "idf": lambda: inverse_document_frequency(training, texts.ids),
    }

    def estimated(own: dict[str, Any]) -> Floats:
        return class_importance(support, labels, classes, texts, replace(settings, **own))

    measures |= {name: partial(estimated, own) for name, own in T_SIGNALS.items()}
    measures |= {name: partial(_portable, evidence, name, texts, pool) for name in PORTABLE_SIGNALS}
    columns = [measures[name]() for name in names]
    return np.stack(columns, axis=1) if columns else np.empty((len(texts.ids), 0), np.float32)


def _portable(evidence: Callable[[], Evidence], name: str, texts: Texts, pool: SourcePool) -> Floats:
    return evidence().signal(name, texts, pool.probabilities(texts.ids))
