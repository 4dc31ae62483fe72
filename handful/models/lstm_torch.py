"""The bidirectional LSTM for training: two compiled loops over each document, so nothing is padded, sorted or packed.

PyTorch's own LSTM needs padded batches, and its backward pass over packed ones is several times slower on a CPU. Here each
document is a loop over its words, chunks of documents run on several threads, and the compiler turns the inner loops into
vector instructions. Values agree with `torch.nn.LSTM` to single precision (tested).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
import torch

from ..errors import MissingExtraError
from ..utils.functional import Offsets
from ..utils.parallel import available_threads
from .lstm import Vectors, project

try:
    from numba import njit
except ImportError as error:  # the extra contains more than torch
    raise MissingExtraError("Training", "train") from error

ONE, TWO, HALF = np.float32(1), np.float32(2), np.float32(0.5)
LIMIT = np.float32(80)  # exp(±80) still fits single precision
LOG2_E = np.float32(1 / np.log(2))
LN2_HIGH = np.float32(np.round(np.log(2) * 512) / 512)  # few bits, so that n · LN2_HIGH is exact
LN2_LOW = np.float32(np.log(2) - float(LN2_HIGH))
TAYLOR_2, TAYLOR_3, TAYLOR_4, TAYLOR_5, TAYLOR_6 = (np.float32(1 / factorial(k)) for k in range(2, 7))
EXPONENT_BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)
CHUNK = 4096  # words per job
WIDE = 8  # inputs beyond which a matrix product beats the loop

compiled: Callable[..., Any] = njit(fastmath=True, error_model="numpy", nogil=True, cache=True)


@njit(fastmath=True, error_model="numpy", inline="always")
def _sigmoid(x):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x)) in plain arithmetic, which the compiler can vectorise, unlike a call to exp."""
    x = min(max(-x, -LIMIT), LIMIT)
    n = np.floor(x * LOG2_E + HALF)
    r = x - n * LN2_HIGH - n * LN2_LOW  # exp(x) = 2ⁿ exp(r), |r| < 0.35
    series = ONE + r * (ONE + r * (TAYLOR_2 + r * (TAYLOR_3 + r * (TAYLOR_4 + r * (TAYLOR_5 + r * TAYLOR_6)))))
    power = np.int32((np.int32(n) + EXPONENT_BIAS) << MANTISSA_BITS).view(np.float32)
    return ONE / (ONE + series * power)


@njit(fastmath=True, error_model="numpy", inline="always")
def _tanh(x):  # type: ignore[no-untyped-def]
    return TWO * _sigmoid(TWO * x) - ONE


@compiled
def _forward(inputs, weight, bias, recurrent, offsets, backwards, gates, cells, states):  # type: ignore[no-untyped-def]
    """Process all documents of a chunk in one direction. Fills `states`, and `gates` and `cells` unless they are empty.

    `inputs` (words, inputs) are multiplied by `weight`; with an empty `weight`, they already have been: (words, 4 hidden).
    """
    hidden, keep, projected = recurrent.shape[0], len(gates) > 0, len(weight) == 0
    now = np.empty(4 * hidden, np.float32)
    state, cell = np.empty(hidden, np.float32), np.empty(hidden, np.float32)
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        state[:] = 0
        cell[:] = 0
        for step in range(end - begin):
            word = end - 1 - step if backwards else begin + step
            if projected:
                now[:] = inputs[word]
            else:
                now[:] = bias
            for i in range(weight.shape[0]):
                for j in range(4 * hidden):
                    now[j] += inputs[word, i] * weight[i, j]
            for k in range(0, hidden - hidden % 5, 5):  # five rows at a time, so that `now` is loaded less often
                a, b, c, d, e = state[k], state[k + 1], state[k + 2], state[k + 3], state[k + 4]
                for j in range(4 * hidden):
                    now[j] += (
                        a * recurrent[k, j]
                        + b * recurrent[k + 1, j]
                        + c * recurrent[k + 2, j]
                        + d * recurrent[k + 3, j]
                        + e * recurrent[k + 4, j]
                    )
            for k in range(hidden - hidden % 5, hidden):
                for j in range(4 * hidden):
                    now[j] += state[k] * recurrent[k, j]
            for j in range(3 * hidden):
                now[j] = _sigmoid(now[j])
            for j in range(3 * hidden, 4 * hidden):
                now[j] = _tanh(now[j])
            for j in range(hidden):
                cell[j] = now[hidden + j] * cell[j] + now[j] * now[3 * hidden + j]
                state[j] = now[2 * hidden + j] * _tanh(cell[j])
                states[word, j] = state[j]
            if keep:
                for j in range(4 * hidden):
                    gates[word, j] = now[j]
                for j in range(hidden):
                    cells[word, j] = cell[j]


@compiled
def _backward(gradient, recurrent, offsets, backwards, gates, cells):  # type: ignore[no-untyped-def]
    """Apply the chain rule along the same loops; overwrites `gates` with the gradient before the activations."""
    hidden = recurrent.shape[0]
    state, cell, before = np.empty(hidden, np.float32), np.empty(hidden, np.float32), np.empty(hidden, np.float32)
    now = np.empty(4 * hidden, np.float32)
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        state[:] = 0
        cell[:] = 0
        for step in range(end - begin - 1, -1, -1):
            word = end - 1 - step if backwards else begin + step
            if step > 0:
                previous = word + 1 if backwards else word - 1
                for j in range(hidden):
                    before[j] = cells[previous, j]
            else:
                before[:] = 0
            for j in range(hidden):
                write, keep = gates[word, j], gates[word, hidden + j]
                show, candidate = gates[word, 2 * hidden + j], gates[word, 3 * hidden + j]
                squashed = _tanh(cells[word, j])
                to_state = gradient[word, j] + state[j]
                to_cell = cell[j] + to_state * show * (ONE - squashed * squashed)
                now[j] = to_cell * candidate * write * (ONE - write)
                now[hidden + j] = to_cell * before[j] * keep * (ONE - keep)
                now[2 * hidden + j] = to_state * squashed * show * (ONE - show)
                now[3 * hidden + j] = to_cell * write * (ONE - candidate * candidate)
                cell[j] = to_cell * keep
            for j in range(4 * hidden):
                gates[word, j] = now[j]
            for k in range(hidden):
                total = np.float32(0)
                for j in range(4 * hidden):
                    total += recurrent[k, j] * now[j]
                state[k] = total


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _for_each_chunk(work: Callable[[int, Offsets, slice], None], offsets: Offsets) -> None:
    """Call `work(direction, offsets of a chunk, its words)` for chunks of whole documents, on several threads."""
    cuts = np.unique(np.searchsorted(offsets, np.arange(0, offsets[-1] + CHUNK, CHUNK)).clip(max=len(offsets) - 1))
    jobs = []
    for first, last in itertools.pairwise(cuts):
        begin, end = int(offsets[first]), int(offsets[last])
        jobs += [(direction, offsets[first : last + 1] - begin, slice(begin, end)) for direction in (0, 1)]
    threads = available_threads() if offsets[-1] > CHUNK else 1  # a small batch is finished before another thread would start
    run = map if threads == 1 else _pool(threads).map
    for _ in run(lambda job: work(*job), jobs):
        pass


class _BiLSTM(torch.autograd.Function):
    """The LSTM of inputs (words, inputs), weight and bias; if these two are None, of projected inputs (2, words, 4 hidden)."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        recurrent: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        offsets: Offsets,
    ) -> torch.Tensor:
        words, hidden = int(offsets[-1]), recurrent.shape[1]
        kept = words if any(ctx.needs_input_grad) else 0
        gates, cells = np.empty((2, kept, 4 * hidden), np.float32), np.empty((2, kept, hidden), np.float32)
        states = np.empty((2, words, hidden), np.float32)
        x, r = inputs.detach().numpy(), recurrent.detach().numpy()
        nothing = np.empty((2, 0, 4 * hidden), np.float32), np.empty((2, 4 * hidden), np.float32)
        w, b = nothing if weight is None or bias is None else (weight.detach().numpy(), bias.detach().numpy())

        def work(direction: int, offsets: Offsets, words: slice) -> None:
            mine = x[direction, words] if weight is None else x[words]
            kept = gates[direction, words], cells[direction, words]
            _forward(mine, w[direction], b[direction], r[direction], offsets, direction == 1, *kept, states[direction, words])

        _for_each_chunk(work, offsets)
        result = torch.from_numpy(states)
        ctx.save_for_backward(inputs, recurrent, result)
        ctx.gates, ctx.cells, ctx.offsets, ctx.projected = gates, cells, offsets, weight is None
        return result

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        inputs, recurrent, states = ctx.saved_tensors
        rows, slopes = recurrent.numpy(), gradient.contiguous().numpy()
        gates, ctx.gates = ctx.gates, None  # overwritten below by the gradient, so valid for one pass only
        if gates is None:
            raise RuntimeError("The compiled LSTM supports one backward pass: run it forward again before another one.")

        def work(direction: int, offsets: Offsets, words: slice) -> None:
            kept = gates[direction, words], ctx.cells[direction, words]
            _backward(slopes[direction, words], rows[direction], offsets, direction == 1, *kept)

        _for_each_chunk(work, ctx.offsets)
        to_gates = torch.from_numpy(gates)  # (2, words, 4 hidden)
        before = _previous(states, ctx.offsets)  # (2, words, hidden)
        if ctx.projected:
            return to_gates, torch.bmm(before.mT, to_gates), None, None, None
        seen = torch.cat([inputs.expand(2, -1, -1), before, torch.ones(2, len(inputs), 1)], dim=-1)
        to_weights = torch.bmm(seen.mT, to_gates)  # (2, inputs + hidden + 1, 4 hidden), all three gradients in one product
        width = inputs.shape[1]
        return None, to_weights[:, width:-1], to_weights[:, :width], to_weights[:, -1], None


def _previous(states: torch.Tensor, offsets: Offsets) -> torch.Tensor:
    """The previous state of each word: that of the word before it in its direction, 0 at the start of a document."""
    before = torch.zeros_like(states)
    before[0, 1:], before[1, :-1] = states[0, :-1], states[1, 1:]
    filled = np.diff(offsets) > 0
    before[0, torch.from_numpy(offsets[:-1][filled])] = 0
    before[1, torch.from_numpy(offsets[1:][filled] - 1)] = 0
    return before


def bilstm_torch(
    parameters: Mapping[str, torch.Tensor], inputs: torch.Tensor, offsets: Offsets, vectors: Vectors | None
) -> torch.Tensor:
    """Hidden states (words, 2 hidden), once differentiable in the parameters and the inputs."""
    weight, recurrent, bias = (parameters[name] for name in ("input", "recurrent", "bias"))
    if vectors is not None or inputs.shape[1] > WIDE or inputs.requires_grad:
        states = _BiLSTM.apply(project(parameters, inputs, vectors), recurrent, None, None, offsets)  # type: ignore[no-untyped-call]
    else:
        states = _BiLSTM.apply(inputs, recurrent, weight, bias, offsets)  # type: ignore[no-untyped-call]
    return torch.cat([states[0], states[1]], dim=-1)  # (words, 2 hidden)
