"""The bidirectional LSTM over ragged documents: in NumPy here, for prediction; in `lstm_torch`, for training.

Gates are in the order input, forget, output, candidate; axis 0 of every parameter is the direction:
`input` (2, inputs, 4 hidden), `recurrent` (2, hidden, 4 hidden), `bias` (2, 4 hidden).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from ..utils.functional import Array, Ints, Offsets, array_namespace, as_like

DIRECTIONS = np.arange(2)[:, None]


def initial_bilstm(rng: np.random.Generator, inputs: int, hidden: int) -> dict[str, np.ndarray[Any, Any]]:
    """Initial parameters, uniform in ±1/√hidden, as is usual for an LSTM."""
    bound = hidden**-0.5
    shapes = {"input": (2, inputs, 4 * hidden), "recurrent": (2, hidden, 4 * hidden), "bias": (2, 4 * hidden)}
    return {name: rng.uniform(-bound, bound, shape).astype(np.float32) for name, shape in shapes.items()}


@dataclass(frozen=True, eq=False)
class Vectors:
    """Inputs shared by many words: the distinct ones (distinct, width), and the row of each word."""

    distinct: Array
    rows: Ints  # (words,)


def bilstm(parameters: Mapping[str, Array], inputs: Array, offsets: Offsets, vectors: Vectors | None = None) -> Array:
    """Hidden states of both directions (words, 2 hidden), for documents given as flat inputs (words, inputs).

    `vectors` are additional inputs; each distinct one is multiplied only once.
    """
    if is_torch_array(inputs):
        from .lstm_torch import bilstm_torch

        return bilstm_torch(parameters, inputs, offsets, vectors)
    return _numpy_bilstm(parameters["recurrent"], project(parameters, inputs, vectors), offsets)


def project(parameters: Mapping[str, Array], inputs: Array, vectors: Vectors | None = None) -> Array:
    """Wx + b for every word in both directions: (2, words, 4 hidden)."""
    weight, width = parameters["input"], inputs.shape[1]
    projected = inputs @ weight[:, :width] + parameters["bias"][:, None]
    if vectors is None:
        return projected
    xp = array_namespace(inputs)
    return projected + xp.take(vectors.distinct @ weight[:, width:], as_like(vectors.rows, inputs), axis=1)


def _numpy_bilstm(recurrent: Array, projected: Array, offsets: Offsets) -> Array:
    """Process all documents step by step, longest first, so that the batch only shrinks and nothing is padded."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = offsets[:-1][order], lengths[order]
    hidden = recurrent.shape[1]
    state = np.zeros((2, len(order), hidden), np.float32)
    cell = np.zeros_like(state)
    output = np.empty((2, offsets[-1], hidden), np.float32)
    for step in range(int(lengths.max(initial=0))):
        active = int(np.searchsorted(-lengths, -step))  # documents longer than `step`
        begin, end = starts[:active] + step, (starts + lengths)[:active] - 1 - step
        where = np.stack([begin, end])  # (2, active)
        gates = projected[DIRECTIONS, where] + state[:, :active] @ recurrent  # (2, active, 4 hidden)
        opened = 0.5 + 0.5 * np.tanh(0.5 * gates[..., : 3 * hidden])  # the sigmoid, without overflow
        write, keep, show = np.split(opened, 3, axis=-1)  # (2, active, hidden) each
        cell = keep * cell[:, :active] + write * np.tanh(gates[..., 3 * hidden :])
        state = show * np.tanh(cell)
        output[DIRECTIONS, where] = state
    return np.concatenate([output[0], output[1]], axis=-1)  # (words, 2 hidden)
