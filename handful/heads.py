"""Heads: from labelled vectors to a scorer, and from vectors to logits. Any way, any shot, unbalanced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace

from .attention import Parameters
from .functional import Array, ridge_weights


class Scorer(Protocol):
    """What a head learned from one support set."""

    def __call__(self, vectors: Array) -> Array:
        """Logits (..., queries, classes) of vectors (..., queries, dim)."""
        ...


class Head(Protocol):
    """A way to learn a classifier from a few labelled vectors."""

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        """Fresh meta-parameters."""
        ...

    def fit(self, parameters: Parameters, vectors: Array, targets: Array) -> Scorer:
        """A scorer from support vectors (..., examples, dim) and one-hot labels (..., examples, classes)."""
        ...


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Ŷ = a Φ W (Eq. 7). The paper's offset b is the same for every class, so the softmax does not see it: left out."""

    weights: Array  # (..., dim, classes)
    scale: Array

    def __call__(self, vectors: Array) -> Array:
        return self.scale * (vectors @ self.weights)


@dataclass(frozen=True)
class Ridge:
    """RR: ridge regression onto the one-hot labels, in closed form (Bertinetto et al., 2019).

    The solution is differentiable, so the loss on the queries reaches whatever made the vectors. The penalty λ and the scale a
    are meta-learned, in log space, so that they stay positive.
    """

    penalty: float = 0.1
    scale: float = 5.0

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return {
            "log_penalty": np.array(np.log(self.penalty), np.float32),
            "log_scale": np.array(np.log(self.scale), np.float32),
        }

    def fit(self, parameters: Parameters, vectors: Array, targets: Array) -> LinearScorer:
        exp = array_namespace(vectors).exp
        weights = ridge_weights(vectors, targets, exp(parameters["log_penalty"]))
        return LinearScorer(weights, exp(parameters["log_scale"]))
