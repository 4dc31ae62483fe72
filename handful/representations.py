"""Representations: from a text's words to one vector. Each is a weighted bag of word vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace

from .attention import AttentionGenerator, Parameters
from .corpus import Texts
from .functional import Array, as_like, segment_sum, segments, weighted_bag


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents with the statistics of their words: what a representation sees."""

    texts: Texts
    signals: Array  # (words, signals)


class Representation(Protocol):
    """A family of vectors for texts; `signals` names the statistics it wants."""

    @property
    def signals(self) -> tuple[str, ...]: ...

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        """Fresh parameters, for word vectors of `dim` numbers."""
        ...

    def weights(self, parameters: Parameters, batch: Batch, noise: np.random.Generator | None = None) -> Array:
        """A weight for each word; those of a document sum to one."""
        ...


def represent(
    representation: Representation, parameters: Parameters, batch: Batch, noise: np.random.Generator | None = None
) -> Array:
    """φ of each document: (documents, dim)."""
    texts, weights = batch.texts, representation.weights(parameters, batch, noise)
    return weighted_bag(as_like(texts.table, weights), texts.rows, weights, texts.offsets)


@dataclass(frozen=True)
class Mean:
    """AVG: the mean of the word vectors. Every word weighs the same, so common words drown the telling ones. No parameters."""

    signals: tuple[str, ...] = field(default=(), init=False)

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def weights(self, parameters: Parameters, batch: Batch, noise: np.random.Generator | None = None) -> Array:
        lengths = np.maximum(batch.texts.lengths, 1)
        return as_like(np.repeat(1 / lengths, batch.texts.lengths).astype(np.float32), batch.signals)


@dataclass(frozen=True)
class Idf:
    """IDF: the average of the word vectors weighted by inverse document frequency over the source pool (Spärck Jones, 1972).

    Words of few documents weigh more. The weights do not know the classes. No parameters.
    """

    signals: tuple[str, ...] = field(default=("idf",), init=False)

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def weights(self, parameters: Parameters, batch: Batch, noise: np.random.Generator | None = None) -> Array:
        idf, offsets = batch.signals[:, 0], batch.texts.offsets
        return idf / segment_sum(idf, offsets)[as_like(segments(offsets), idf)]


@dataclass(frozen=True)
class Attention:
    """OUR: word vectors weighted by attention generated from distributional signatures (Bao et al., 2020).

    The weights depend on the source pool and on the support set, so they fit the task at hand. The generator is learned over
    many tasks.
    """

    generator: AttentionGenerator = field(default_factory=AttentionGenerator)

    @property
    def signals(self) -> tuple[str, ...]:
        return self.generator.signals

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return self.generator.initial(rng, dim)

    def weights(self, parameters: Parameters, batch: Batch, noise: np.random.Generator | None = None) -> Array:
        texts, inputs = batch.texts, batch.signals
        if self.generator.embeddings:
            xp = array_namespace(inputs)
            inputs = xp.concat([inputs, as_like(texts.table[texts.rows], inputs)], axis=1)  # (words, signals + dim)
        return self.generator(parameters, inputs, texts.offsets, noise)
