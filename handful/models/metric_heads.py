"""Heads that later papers compare with: attention over examples, relations, a shared covariance, texts without labels, names.

Most have no parameters, so with vectors that are not trained either, they need no training at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..utils.functional import TINY, Array, array_namespace, distances, softmax, unit_length
from ..utils.settings import option
from .attention import Parameters, drop_out
from .heads import Head, Scorer, class_means, initial_layers
from .representations import Noise


@runtime_checkable
class OpenHead(Head, Protocol):
    """A head that tells the words of classes from examples, and learns from texts without labels."""

    def fit_open(self, parameters: Parameters, vectors: Array, targets: Array, names: int, unlabelled: Array) -> Scorer:
        """Fit a scorer; the first `names` vectors are the words of classes. `unlabelled`: (..., texts, width), none or more."""
        ...


@dataclass(frozen=True)
class Matching:
    """MATCH: attention over the examples, as in matching networks (Vinyals et al., 2016).

    The probability of a class is the attention to its examples: a softmax of their cosines with the query, times a sharpness.
    That is without the LSTMs that the paper adds to see the support set as a whole. It has no parameters.
    """

    sharpness: float = option(10.0, "Factor that turns cosines into logits of the attention.", above=0)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        def score(queries: Array) -> Array:
            attention = softmax(-self.sharpness * distances(queries, vectors, "cosine"))  # (..., queries, examples)
            return array_namespace(queries).log(attention @ targets + TINY)

        return score


@dataclass(frozen=True)
class Relation:
    """RELATION: a network that scores how a query relates to a class, as in relation networks (Sung et al., 2018).

    It reads the mean of the class's vectors and the query side by side, and has one hidden layer of 300 ReLU units with
    dropout. The scores are trained as logits, not as the paper's squared errors.
    """

    hidden: int = 300
    dropout: float = 0.1

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        inner, outer = initial_layers(rng, (2 * width, self.hidden)), initial_layers(rng, (self.hidden, 1))
        return {"weight": inner["weight0"], "bias": inner["bias0"], "out": outer["weight0"][:, 0]}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        xp, width, weight = array_namespace(vectors), vectors.shape[-1], parameters["weight"]
        ours = class_means(vectors, targets) @ weight[:width] + parameters["bias"]  # (..., classes, hidden)

        def score(queries: Array) -> Array:
            theirs = queries @ weight[width:]  # (..., queries, hidden)
            units = xp.clip(theirs[..., :, None, :] + ours[..., None, :, :], 0, None)  # (..., queries, classes, hidden)
            return drop_out(units, self.dropout, noise) @ parameters["out"]

        return score


@dataclass(frozen=True)
class Discriminant:
    """LDA: Gaussian classes with a shared covariance, from the examples of all classes (Fisher, 1936).

    The covariance is shrunk towards equal variance in all directions, without which a few examples have no inverse. With one
    example per class nothing else is left, and it is the nearest example. It has no parameters.
    """

    shrinkage: float = option(0.1, "Share of the examples' squared distance from their mean to add to each variance.", above=0)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        xp, examples = array_namespace(vectors), vectors.shape[-2]
        centre = xp.mean(vectors, axis=-2, keepdims=True)  # (..., 1, width)
        means, apart = class_means(vectors, targets) - centre, vectors - centre
        within = apart - targets @ means  # (..., examples, width)
        added = self.shrinkage * xp.sum(apart * apart, axis=(-2, -1))[..., None, None] + TINY  # (..., 1, 1)
        gram = within @ xp.matrix_transpose(within) + added * xp.eye(examples, dtype=vectors.dtype)

        def weigh(rows: Array) -> Array:
            """Rows times the inverse covariance, by way of the examples, which are fewer than the dimensions."""
            shares = xp.linalg.solve(gram, within @ xp.matrix_transpose(rows))  # (..., examples, rows)
            return (rows - xp.matrix_transpose(shares) @ within) * (examples / added)

        weighted = weigh(means)  # (..., classes, width)
        lengths = xp.sum(weighted * means, axis=-1)[..., None, :]  # (..., 1, classes)

        def score(queries: Array) -> Array:
            moved = queries - centre
            own = xp.sum(weigh(moved) * moved, axis=-1)[..., None]  # (..., queries, 1)
            return moved @ xp.matrix_transpose(weighted) - (own + lengths) / 2

        return score


@dataclass(frozen=True)
class SoftKMeans:
    """Prototypes refined by soft k-means over texts without labels (Ren et al., 2018); over the queries, it is transductive.

    A prototype starts as the mean of its class's unit vectors. Each round adds every text to each class by how probable the
    class is for it. Without such texts it is the nearest prototype. It has no parameters.
    """

    sharpness: float = option(20.0, "Factor that turns squared distances into logits.", above=0)
    rounds: int = option(5, "Rounds of assigning texts without labels to classes.", at_least=1)
    name_weight: float = option(1.0, "How many examples the words of a class's name count like.", above=0)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        return self.fit_open(parameters, vectors, targets, 0, vectors[..., :0, :])

    def fit_open(self, parameters: Parameters, vectors: Array, targets: Array, names: int, unlabelled: Array) -> Scorer:
        xp, unit, texts = array_namespace(vectors), unit_length(vectors), unit_length(unlabelled)
        if names:
            unit = _names_among_examples(unit, targets, names)
        known = xp.concat([targets[..., :names, :] * self.name_weight, targets[..., names:, :]], axis=-2)
        prototypes = class_means(unit, known)
        for _ in range(self.rounds if texts.shape[-2] else 0):
            shares = softmax(self._logits(texts, prototypes))  # (..., texts, classes)
            prototypes = class_means(xp.concat([unit, texts], axis=-2), xp.concat([known, shares], axis=-2))
        return lambda queries: self._logits(unit_length(queries), prototypes)

    def _logits(self, unit: Array, prototypes: Array) -> Array:
        return -self.sharpness * distances(unit, prototypes, "squared")


def _names_among_examples(vectors: Array, targets: Array, names: int) -> Array:
    """The vectors, with names, which come first, moved to where the examples of their classes are: words are not texts."""
    xp, own = array_namespace(vectors), targets[..., :names, :]
    examples = class_means(vectors[..., names:, :], targets[..., names:, :])  # (..., classes, width)
    words = vectors[..., :names, :]
    move = xp.mean(own @ examples - words, axis=-2, keepdims=True)  # (..., 1, width)
    return xp.concat([words + move, vectors[..., names:, :]], axis=-2)


@dataclass(frozen=True)
class LabelWords(SoftKMeans):
    """Prototypes of the words of a class's name and of its examples; the words count like two examples (Luo et al., 2021).

    Without names it is the nearest prototype; with texts without labels, prototypes are refined as by soft k-means.
    """

    name_weight: float = option(2.0, "How many examples the words of a class's name count like.", above=0)
