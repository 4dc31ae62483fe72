"""Heads: they turn labelled vectors into a scorer, which turns vectors into logits. Any way, any shot, unbalanced."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from ..utils.functional import (
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
from ..utils.settings import option
from .attention import Parameters, drop_out
from .representations import Noise
from .settings import ModelSettings

Scorer = Callable[[Array], Array]  # vectors (..., queries, width) to logits (..., queries, classes)
Distance = Literal["euclidean", "squared", "cosine"]
LARGEST_EXPONENT = 20.0  # of a scale: beyond it logits overflow


class Head(Protocol):
    """A method that learns a classifier from a few labelled vectors."""

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        """Initial meta-parameters for vectors of length `width`."""
        ...

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        """Fit a scorer to support vectors (..., examples, width) and one-hot labels (..., examples, classes)."""
        ...


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Ŷ = a Φ W (Eq. 7). The paper's offset b is omitted: it is the same for every class, so it cancels in the softmax."""

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

    The solution is differentiable, so the loss on the queries also trains the representation. The penalty λ and the scale a are
    meta-learned in log space, so that they stay positive.
    """

    penalty: float = 0.1
    scale: float = 5.0

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Ridge:
        return cls(scale=settings.ridge_scale)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return _logarithms(penalty=self.penalty, scale=self.scale)

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        exp = array_namespace(vectors).exp
        weights = ridge_weights(vectors, targets, exp(parameters["log_penalty"]))
        return LinearScorer(weights, exp(parameters["log_scale"]))


@dataclass(frozen=True, eq=False)
class CentredScorer:
    """Logits linear in the unit vector minus the centre of the examples; a zero vector has logits of 0."""

    centre: Array  # (..., 1, width)
    weights: Array  # (..., width, classes)
    scale: Array

    def __call__(self, vectors: Array) -> Array:
        return self.scale * (self.centred(vectors) @ self.weights)

    def centred(self, vectors: Array) -> Array:
        """Unit vectors minus the centre."""
        xp = array_namespace(vectors)
        present = xp.astype(xp.any(vectors != 0, axis=-1, keepdims=True), vectors.dtype)
        return (unit_length(vectors) - self.centre) * present


@dataclass(frozen=True)
class UnitRidge:
    """Ridge regression for tasks of any shape, on unit vectors, with an intercept.

    The penalty is the mean squared distance of the examples' vectors from their mean. The scale depends on the number of
    classes and of examples per class: its logarithm is linear in theirs, with meta-learned coefficients. Classes are balanced:
    one with many examples counts no more than the others.
    """

    scale: float = 10.0

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return {"scale": np.array([np.log(self.scale), 0, 0], np.float32)}

    def fit(
        self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None, weights: Array | None = None
    ) -> CentredScorer:
        """Fit a scorer; an example of weight 2 counts like two identical examples."""
        xp, classes = array_namespace(vectors), targets.shape[-1]
        weights = xp.ones_like(targets[..., :1]) if weights is None else weights[..., None]  # (..., examples, 1)
        sizes = xp.clip(xp.sum(targets * weights, axis=-2, keepdims=True), TINY, None)  # (..., 1, classes): some may be empty
        balanced = xp.mean(sizes, axis=-1, keepdims=True) / sizes
        shares = weights * xp.sum(targets * balanced, axis=-1, keepdims=True)  # (..., examples, 1)
        unit = unit_length(vectors)
        centre = xp.sum(unit * shares, axis=-2, keepdims=True) / xp.sum(shares, axis=-2, keepdims=True)  # (..., 1, width)
        shots = float(xp.sum(weights[..., 0], axis=-1).reshape(-1)[0]) / classes
        return CentredScorer(centre, self.weights(unit - centre, targets, shares), self.scale_of(parameters, classes, shots))

    def fit_independent(self, parameters: Parameters, vectors: Array, targets: Array, weights: Array) -> CentredScorer:
        """Fit a scorer for classes that are not mutually exclusive: each against the rest."""
        xp, shares = array_namespace(vectors), weights[..., None]
        unit, total = unit_length(vectors), xp.sum(weights)
        centre = xp.sum(unit * shares, axis=-2, keepdims=True) / total
        goals = targets - xp.sum(targets * shares, axis=-2, keepdims=True) / total
        scale = 2 * self.scale_of(parameters, 2, float(total) / 2)  # as for two classes
        return CentredScorer(centre, self.ridge(unit - centre, goals, shares), scale)

    def weights(self, centred: Array, targets: Array, shares: Array = 1.0) -> Array:
        """W for mean-free support vectors (..., examples, width), each weighted by its share."""
        return self.ridge(centred, targets, shares)

    def ridge(self, centred: Array, targets: Array, shares: Array = 1.0) -> Array:
        """The weights of ridge regression; this head needs no others."""
        root = shares**0.5
        return ridge_weights(centred * root, targets * root, self.penalty_of(centred, shares))

    def penalty_of(self, centred: Array, shares: Array = 1.0) -> Array:
        """λ for mean-free support vectors (..., examples, width)."""
        xp = array_namespace(centred)
        lengths = xp.sum(centred * centred, axis=-1, keepdims=True) * shares  # (..., examples, 1)
        total = xp.sum(shares * xp.ones_like(lengths), axis=-2, keepdims=True)
        return xp.sum(lengths, axis=-2, keepdims=True) / total + TINY

    def scale_of(self, parameters: Parameters, classes: int, shots: float) -> Array:
        """The factor that turns ridge scores into logits: an inverse temperature."""
        scale = parameters["scale"]
        exponent = scale[0] + scale[1] * math.log(classes) + scale[2] * math.log(shots)
        xp = array_namespace(scale)
        return xp.exp(xp.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT))


@dataclass(frozen=True)
class RefinedRidge(UnitRidge):
    """Ridge regression on unit vectors, refined by a softmax regression over all classes.

    Regression onto one-hot labels masks classes that lie between others (Hastie, Tibshirani and Friedman, 2009, 4.2): with many
    classes it misclassifies even its own examples. The refined weights stay near the scaled ridge weights and correct this.
    """

    anchor: float = option(3.0, "Where the weights start, as a factor of the ridge weights.", at_least=0)
    pull: float = option(0.2, "How strongly the weights are pulled back to where they start.", above=0)
    steps: int = 25

    def weights(self, centred: Array, targets: Array, shares: Array = 1.0) -> Array:
        start = self.anchor * self.ridge(centred, targets, shares)
        return softmax_refined(centred, targets, shares, start, self.pull, self.steps)


@dataclass(frozen=True, eq=False)
class ReadyHead:
    """A unit ridge with its meta-learned parameters, ready to be fitted.

    With `damping`, probabilities depend less on how widely the scores of a text are spread over the classes. `doubt` is the
    certainty below which answers learned from label words alone say nothing about unlabelled texts.
    """

    head: UnitRidge
    parameters: Parameters
    damping: float = 0.0
    doubt: float = 0.1

    def fit(self, vectors: Array, targets: Array, weights: Array, exclusive: bool) -> CentredScorer:
        """Fit a scorer to the vectors, targets and weights of examples, for classes that exclude one another or do not."""
        if exclusive:
            return self.head.fit(self.parameters, vectors, targets, weights=weights)
        return self.head.fit_independent(self.parameters, vectors, targets, weights)


@dataclass(frozen=True)
class Logistic:
    """LR: one-vs-all logistic regression by a few Newton steps (Bertinetto et al., 2019).

    Each step is a weighted ridge regression in closed form, so the solution is differentiable. The penalty and the scale are
    meta-learned. Five steps come close to the optimum.
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

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Nearest:
        return cls(settings.distance)

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
    """The class with the nearest mean, directly on the vectors: a prototypical network without the network.

    Only a scale for the distances is learned, if anything (`scaled`). It replaces the ridge when the paper combines attention
    with prototypes.
    """

    distance: Distance = "squared"
    scaled: bool = True
    scale: float = 5.0

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Centroid:
        return cls(settings.distance, not settings.parameter_free)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return _logarithms(scale=self.scale) if self.scaled else {}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        scale = array_namespace(vectors).exp(parameters["log_scale"]) if self.scaled else 1.0
        prototypes = class_means(vectors, targets)
        return lambda queries: -scale * distances(queries, prototypes, self.distance)


def class_means(vectors: Array, targets: Array) -> Array:
    """The mean of each class's vectors: (..., classes, width)."""
    xp = array_namespace(vectors)
    counts = xp.clip(xp.sum(targets, axis=-2), 1, None)[..., None]  # the mean of an empty class is 0, without a division by 0
    return xp.matrix_transpose(targets) @ vectors / counts


@dataclass(frozen=True)
class Prototype:
    """PROTO: a network maps vectors to a space where texts lie near the mean of their class (Snell et al., 2017).

    It has one hidden layer of 300 ReLU units with dropout and 300 outputs, meta-learned together with the representation. The
    logit of a class is minus the distance to its mean: the Euclidean distance in the paper, its square in Snell et al.
    """

    distance: Distance = "euclidean"
    hidden: int = 300
    dropout: float = 0.1

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Prototype:
        return cls(settings.distance)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return initial_layers(rng, (width, self.hidden, self.hidden))

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        def embed(vectors: Array) -> Array:
            return perceptron(parameters, vectors, self.dropout, noise)

        prototypes = class_means(embed(vectors), targets)
        return lambda queries: -distances(embed(queries), prototypes, self.distance)


def part_of(parameters: Parameters, part: str) -> dict[str, Array]:
    """The parameters of one part of a model, `head` or `representation`, by their names within that part."""
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
    """A perceptron: layers of ReLU units with dropout, if any, and a linear output."""
    for number in range(last_layer(parameters)):
        units = array_namespace(vectors).clip(vectors @ parameters[f"weight{number}"] + parameters[f"bias{number}"], 0, None)
        vectors = drop_out(units, dropout, noise)
    return vectors @ parameters[f"weight{last_layer(parameters)}"] + parameters[f"bias{last_layer(parameters)}"]


def last_layer(parameters: Parameters) -> int:
    """The number of the output layer."""
    return max(int(name.removeprefix("weight")) for name in parameters if name.startswith("weight"))


@dataclass(frozen=True)
class Routing:
    """The class with the nearest prototype, computed by dynamic routing over its examples (Geng et al., 2019).

    Vectors and prototypes are squashed to lengths below 1, so that they can be compared, and a scale for the distances is
    learned; without `scaled`, queries are compared as they are, and nothing is learned (as in the authors' code). This is the
    induction module alone, used when the paper combines attention with an induction network.
    """

    distance: Distance = "squared"
    scaled: bool = True
    iterations: int = 3
    scale: float = 5.0

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Routing:
        return cls(settings.distance, not settings.parameter_free)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return _logarithms(scale=self.scale) if self.scaled else {}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        prototypes = routed_means(squash(vectors), targets, self.iterations)
        if not self.scaled:
            return lambda queries: -distances(queries, prototypes, self.distance)
        scale = array_namespace(vectors).exp(parameters["log_scale"])
        return lambda queries: -scale * distances(squash(queries), prototypes, self.distance)


@dataclass(frozen=True)
class Induction:
    """INDUCT: the induction and relation modules of an induction network (Geng et al., 2019).

    Vectors pass through a learned map and a squash; dynamic routing then computes a prototype per class. A neural tensor layer
    with 100 slices (Socher et al., 2013) scores each query against each prototype. A bias, the same for all classes, matters
    only if a sigmoid follows.
    """

    biased: bool = False
    iterations: int = 3
    slices: int = 100

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Induction:
        return cls(biased=settings.loss == "squared")

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        bound = width**-0.5
        tensor = rng.uniform(-bound, bound, (self.slices, width, width)).astype(np.float32) * bound
        layers = initial_layers(rng, (width, width))
        out = initial_layers(rng, (self.slices, 1))
        bias = {"out_bias": out["bias0"]} if self.biased else {}
        return {"map": layers["weight0"], "map_bias": layers["bias0"], "tensor": tensor, "out": out["weight0"], **bias}

    def fit(self, parameters: Parameters, vectors: Array, targets: Array, noise: Noise = None) -> Scorer:
        mapped = squash(vectors @ parameters["map"] + parameters["map_bias"])
        prototypes = routed_means(mapped, targets, self.iterations)  # (..., classes, width)
        halves = prototypes[..., None, :, :] @ parameters["tensor"]  # c · M: (..., slices, classes, width)
        return lambda queries: self._relate(parameters, halves, queries)

    def _relate(self, parameters: Parameters, halves: Array, queries: Array) -> Array:
        xp = array_namespace(queries)
        slices = queries[..., None, :, :] @ xp.matrix_transpose(halves)  # q · M · c: (..., slices, queries, classes)
        active = xp.clip(slices, 0, None)
        scores = xp.sum(active * parameters["out"][:, :, None], axis=-3)  # (..., queries, classes)
        return scores + parameters["out_bias"] if self.biased else scores
