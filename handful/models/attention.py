"""The attention generator, which turns the signatures of a text's words into a weight for each word."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from array_api_compat import is_torch_array

from ..utils.functional import Array, Offsets, array_namespace, as_like, segment_means, segment_softmax
from .lstm import Vectors, bilstm, initial_bilstm

Parameters = Mapping[str, Array]
Kept = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class AttentionGenerator:
    """h = biLSTM([s; t]), αᵢ = softmax over the text of v·hᵢ (Bao et al., 2020, Eq. 3).

    It sees only statistics of words, not the words themselves, so what it learns also holds for unseen words. `network="mlp"`
    treats each word separately (the ablation without the biLSTM), `network="pooled"` shows it each word next to the mean of its
    text; `embeddings=True` also shows it the word vectors (the ablation with them).
    """

    signals: tuple[str, ...] = ("s", "t")
    network: Literal["bilstm", "mlp", "pooled"] = "bilstm"
    embeddings: bool = False
    positions: int = 0  # numbers for a word's position relative to the entities of its text, for relations
    hidden: int = 25  # units per direction
    dropout: float = 0.1

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        """Initial parameters for word vectors of length `dim`."""
        inputs = len(self.signals) + (dim if self.embeddings else 0) + self.positions
        bound = (2 * self.hidden) ** -0.5
        query = rng.uniform(-bound, bound, 2 * self.hidden).astype(np.float32)
        if self.network == "bilstm":
            return {"query": query, **initial_bilstm(rng, inputs, self.hidden)}
        inputs *= 2 if self.network == "pooled" else 1
        shapes = {"weight": (inputs, 2 * self.hidden), "bias": (2 * self.hidden,)}
        layer = {name: rng.uniform(-(inputs**-0.5), inputs**-0.5, shape).astype(np.float32) for name, shape in shapes.items()}
        return {"query": query, **layer}

    @property
    def word_wise(self) -> bool:
        """Whether the score of a word depends on its signals alone, so that equal words can share it."""
        return self.network == "mlp" and not self.embeddings and not self.positions

    def attention(
        self,
        parameters: Parameters,
        inputs: Array,
        offsets: Offsets,
        vectors: Vectors | None = None,
        noise: np.random.Generator | None = None,
    ) -> Array:
        """Attention (words,) from inputs (words, signals + positions) and word vectors; `noise` turns on dropout."""
        if self.network == "bilstm" and is_torch_array(inputs):
            from .lstm_torch import attention_torch

            kept = keep_some((len(inputs), 2 * self.hidden), self.dropout, noise)
            return attention_torch(parameters, inputs, offsets, vectors, kept, 1 if kept is None else 1 / (1 - self.dropout))
        return segment_softmax(self.scores(parameters, inputs, offsets, vectors, noise), offsets)

    def scores(
        self,
        parameters: Parameters,
        inputs: Array,
        offsets: Offsets,
        vectors: Vectors | None = None,
        noise: np.random.Generator | None = None,
    ) -> Array:
        """The logarithm of each word's attention, up to a constant for each text: (words,).

        `inputs` are (words, signals + positions); `noise` turns on dropout.
        """
        if self.network == "bilstm":
            hidden = bilstm(parameters, inputs, offsets, vectors)  # (words, 2 hidden)
        else:
            xp = array_namespace(inputs)
            if vectors is not None:
                inputs = xp.concat([inputs, vectors.distinct[as_like(vectors.rows, inputs)]], axis=1)
            if self.network == "pooled":
                inputs = xp.concat([inputs, segment_means(inputs, offsets)], axis=1)
            hidden = xp.clip(inputs @ parameters["weight"] + parameters["bias"], 0, None)  # (words, 2 hidden)
        return drop_out(hidden, self.dropout, noise) @ parameters["query"]


def keep_some(shape: tuple[int, ...], rate: float, noise: np.random.Generator | None) -> Kept | None:
    """Which values dropout keeps, each with probability 1 - rate; without `noise`, None: it keeps all."""
    if noise is None or not rate:
        return None
    count = math.prod(shape)
    pairs = noise.integers(0, 2**32, -(-count // 2), np.uint32)  # two random bytes per value are enough, and fast
    return (pairs.view(np.uint16)[:count] >= np.uint16(math.ceil(rate * 65536))).reshape(shape)


def drop_out(values: Array, rate: float, noise: np.random.Generator | None) -> Array:
    """Set values to 0 with probability `rate`, and scale the others by 1 / (1 - rate); without `noise`, change nothing."""
    kept = keep_some(tuple(values.shape), rate, noise)
    return values if kept is None else values * as_like(kept * np.float32(1 / (1 - rate)), values)
