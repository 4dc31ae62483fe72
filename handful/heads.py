"""Heads: from labelled vectors to a scorer, and from vectors to logits. Any way, any shot, unbalanced."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from .attention import Parameters, drop_out
from .functional import (
    TINY,
    Array,
    array_namespace,
    distances,
    newton_logistic,
    ridge_weights,
    routed_means,
    softmax_refined,
    squash,
    unit_length,
)
from .representations import Noise

Scorer = Callable[[Array], Array]  # vectors (..., queries, width) to logits (..., queries, classes)
Distance = Literal["euclidean", "squared", "cosine"]


class Head(Protocol):
    """A way to learn a classifier from a few labelled vectors."""

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        """Fresh meta-parameters, for vectors of `width` numbers."""
        ...

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        """A scorer from support vectors (..., examples, width) and one-hot labels (..., examples, classes)."""
        ...


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Ŷ = a Φ W (Eq. 7). The paper's offset b is the same for every class, so the softmax does not see it: left out."""

    weights: Array  # (..., width, classes)
    scale: Array

    def __call__(self, vectors: Array) -> Array:
        return self.scale * (vectors @ self.weights)


def _logarithms(**values: float) -> dict[str, np.ndarray[Any, Any]]:
    """Positive meta-parameters, learned in log space."""
    return {f"log_{name}": np.array(np.log(value), np.float32) for name, value in values.items()}


@dataclass(frozen=True)
class Ridge:
    """RR: ridge regression onto the one-hot labels, in closed form (Bertinetto et al., 2019).

    The solution is differentiable, so the loss on the queries reaches whatever made the vectors. The penalty λ and the scale a
    are meta-learned, in log space, so that they stay positive.
    """

    penalty: float = 0.1
    scale: float = 5.0

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return _logarithms(penalty=self.penalty, scale=self.scale)

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        exp = array_namespace(vectors).exp
        weights = ridge_weights(vectors, targets, exp(parameters["log_penalty"]))
        return LinearScorer(weights, exp(parameters["log_scale"]))


@dataclass(frozen=True)
class UniversalRidge:
    """Ridge regression for tasks of any shape, on vectors of length 1, with an intercept.

    The penalty is the mean squared length of the examples' vectors about their mean. The scale follows the numbers of classes
    and of examples a class: its logarithm is linear in theirs, with meta-learned coefficients.
    """

    scale: float = 10.0

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return {"scale": np.array([np.log(self.scale), 0, 0], np.float32)}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        examples, classes = targets.shape[-2:]
        unit = unit_length(vectors)
        centre = array_namespace(vectors).mean(unit, axis=-2, keepdims=True)
        weights = self.weights(unit - centre, targets)
        scorer = LinearScorer(weights, self.scale_of(parameters, classes, examples / classes))
        return lambda queries: scorer(unit_length(queries) - centre)

    def weights(self, centred: Array, targets: Array, shares: Array = 1.0) -> Array:
        """W for support vectors (..., examples, width) without their mean, each counting as much as its share."""
        return self.ridge(centred, targets, shares)

    def ridge(self, centred: Array, targets: Array, shares: Array = 1.0) -> Array:
        """The weights of ridge regression, which for this head are all."""
        root = shares**0.5
        return ridge_weights(centred * root, targets * root, self.penalty_of(centred * root))

    def penalty_of(self, centred: Array) -> Array:
        """λ for support vectors (..., examples, width) without their mean."""
        xp = array_namespace(centred)
        return xp.mean(xp.sum(centred * centred, axis=-1), axis=-1)[..., None, None] + TINY

    def scale_of(self, parameters: Parameters, classes: int, shots: float) -> Array:
        """What makes logits of ridge scores: the inverse of a temperature."""
        scale = parameters["scale"]
        return array_namespace(scale).exp(scale[0] + scale[1] * math.log(classes) + scale[2] * math.log(shots))


@dataclass(frozen=True)
class RefinedRidge(UniversalRidge):
    """The universal ridge regression, drawn towards the softmax regression of all classes together.

    Regression onto one-hot labels hides classes that lie between others (Hastie, Tibshirani and Friedman, 2009, 4.2): with many
    of them it has even its own examples wrong. The weights are those near the ridge's, scaled up, that have them right.
    """

    anchor: float = 3.0  # ridge scores times this are where it starts from, and is drawn back to
    pull: float = 0.2  # how much
    steps: int = 40

    def weights(self, centred: Array, targets: Array, shares: Array = 1.0) -> Array:
        start = self.anchor * self.ridge(centred, targets, shares)
        return softmax_refined(centred, targets, shares, start, self.pull, self.steps)


@dataclass(frozen=True)
class Logistic:
    """LR: one-vs-all logistic regression by a few Newton steps (Bertinetto et al., 2019).

    Each step is a weighted ridge regression in closed form, so the whole is differentiable. The penalty and the scale are
    meta-learned. Five steps are close to the optimum.
    """

    penalty: float = 0.1
    scale: float = 1.0
    steps: int = 5

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return _logarithms(penalty=self.penalty, scale=self.scale)

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        exp = array_namespace(vectors).exp
        weights = newton_logistic(vectors, targets, exp(parameters["log_penalty"]), self.steps)
        return LinearScorer(weights, exp(parameters["log_scale"]))


@dataclass(frozen=True)
class Nearest:
    """NN: the class of the nearest example (Cover and Hart, 1967).

    Nothing is learned. The logit of a class is minus the distance to its nearest example.
    """

    distance: Distance = "euclidean"

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        xp = array_namespace(vectors)
        elsewhere = xp.where(xp.matrix_transpose(targets) > 0, 0.0, xp.inf)[..., None, :, :]  # (..., 1, classes, examples)

        def score(queries: Array) -> Array:
            apart = distances(queries, vectors, self.distance)[..., None, :]  # (..., queries, 1, examples)
            return -xp.min(apart + elsewhere, axis=-1)  # (..., queries, classes)

        return score


@dataclass(frozen=True)
class Centroid:
    """The class of the nearest mean of its examples, straight on the vectors: a prototypical network without a network.

    Only a scale for the distances is learned. This is the end that the method's attention gets in place of the ridge.
    """

    distance: Distance = "squared"
    scale: float = 5.0

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return _logarithms(scale=self.scale)

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        scale = array_namespace(vectors).exp(parameters["log_scale"])
        prototypes = class_means(vectors, targets)
        return lambda queries: -scale * distances(queries, prototypes, self.distance)


def class_means(vectors: Array, targets: Array) -> Array:
    """The mean of each class's vectors: (..., classes, width)."""
    xp = array_namespace(vectors)
    counts = xp.clip(xp.sum(targets, axis=-2), 1, None)[..., None]  # a class without an example gets 0, not a division by it
    return xp.matrix_transpose(targets) @ vectors / counts


@dataclass(frozen=True)
class Prototype:
    """PROTO: a network maps vectors to a space in which a class is near the mean of its examples (Snell et al., 2017).

    One hidden layer of 300 ReLU units with dropout, and 300 outputs, are meta-learned together with the representation. The
    logit of a class is minus the distance to its mean; the paper's distance is the Euclidean one, Snell's its square.
    """

    distance: Distance = "euclidean"
    hidden: int = 300
    dropout: float = 0.1

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return initial_layers(rng, (width, self.hidden, self.hidden))

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        def embed(vectors: Array) -> Array:
            return perceptron(parameters, vectors, self.dropout, noise)

        prototypes = class_means(embed(vectors), targets)
        return lambda queries: -distances(embed(queries), prototypes, self.distance)


def part_of(parameters: Parameters, part: str) -> dict[str, Array]:
    """The parameters of one part of a model, `head` or `representation`, by their names inside it."""
    return {name.removeprefix(part + "."): value for name, value in parameters.items() if name.startswith(part + ".")}


def initial_layers(rng: np.random.Generator, widths: tuple[int, ...]) -> dict[str, np.ndarray[Any, Any]]:
    """Weights and biases of linear layers, uniform in ±1/√inputs."""
    parameters = {}
    for number, (before, after) in enumerate(pairwise(widths)):
        bound = before**-0.5
        parameters[f"weight{number}"] = rng.uniform(-bound, bound, (before, after)).astype(np.float32)
        parameters[f"bias{number}"] = rng.uniform(-bound, bound, after).astype(np.float32)
    return parameters


def perceptron(parameters: Parameters, vectors: Array, dropout: float, noise: Noise) -> Array:
    """Layers of ReLU units with dropout, if any, and a linear output."""
    for number in range(last_layer(parameters)):
        units = array_namespace(vectors).clip(vectors @ parameters[f"weight{number}"] + parameters[f"bias{number}"], 0, None)
        vectors = drop_out(units, dropout, noise)
    return vectors @ parameters[f"weight{last_layer(parameters)}"] + parameters[f"bias{last_layer(parameters)}"]


def last_layer(parameters: Parameters) -> int:
    """The number of the output layer."""
    return max(int(name.removeprefix("weight")) for name in parameters if name.startswith("weight"))


@dataclass(frozen=True)
class Routing:
    """The class of the nearest prototype, found by dynamic routing over its examples (Geng et al., 2019).

    Vectors and prototypes are squashed to lengths below 1, so that they can be compared. Only a scale for the distances is
    learned: this is the induction module alone, the end that the method's attention gets in an induction network.
    """

    distance: Distance = "squared"
    iterations: int = 3
    scale: float = 5.0

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return _logarithms(scale=self.scale)

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        scale = array_namespace(vectors).exp(parameters["log_scale"])
        prototypes = routed_means(squash(vectors), targets, self.iterations)
        return lambda queries: -scale * distances(squash(queries), prototypes, self.distance)


@dataclass(frozen=True)
class Induction:
    """INDUCT: induction and relation modules of an induction network (Geng et al., 2019).

    A learned map and a squash go before the routing that makes a prototype of each class. A neural tensor layer of 100 slices
    (Socher et al., 2013) then scores each query with each prototype.
    """

    iterations: int = 3
    slices: int = 100

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        bound = width**-0.5
        tensor = rng.uniform(-bound, bound, (self.slices, width, width)).astype(np.float32) * bound
        layers = initial_layers(rng, (width, width))
        out = initial_layers(rng, (self.slices, 1))
        return {"map": layers["weight0"], "map_bias": layers["bias0"], "tensor": tensor, "out": out["weight0"]}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        mapped = squash(vectors @ parameters["map"] + parameters["map_bias"])
        prototypes = routed_means(mapped, targets, self.iterations)  # (..., classes, width)
        halves = prototypes[..., None, :, :] @ parameters["tensor"]  # c · M: (..., slices, classes, width)
        return lambda queries: self._relate(parameters, halves, queries)

    def _relate(self, parameters: Parameters, halves: Array, queries: Array) -> Array:
        xp = array_namespace(queries)
        slices = queries[..., None, :, :] @ xp.matrix_transpose(halves)  # q · M · c: (..., slices, queries, classes)
        active = xp.clip(slices, 0, None)
        return xp.sum(active * parameters["out"][:, :, None], axis=-3)  # (..., queries, classes)
