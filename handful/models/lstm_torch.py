"""The bidirectional LSTM for training, differentiable by torch; its loops are in `lstm_kernel`.

PyTorch's own LSTM needs padded batches, and its backward pass over packed ones is several times slower on a CPU. Here documents
of similar length are processed side by side, on several threads, and attention is computed in the same pass as the states it
comes from. Values agree with `torch.nn.LSTM` to single precision (tested).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from ..utils.functional import Floats, Offsets
from ..utils.parallel import available_threads
from .lstm import Vectors, project
from .lstm_kernel import LANES, backward, forward, softmax, softmax_backward

Kept = np.ndarray[Any, np.dtype[np.bool_]]
SHARES = 4  # jobs per direction: fixed, so that results do not depend on the number of threads
SMALL = 4096  # words that are finished before another thread would start
WIDE = 8  # inputs beyond which a matrix product of its own beats the loop
SPARE: list[torch.Tensor] = []  # records that are no longer needed: fresh memory would cost as much as the arithmetic


@dataclass(frozen=True, eq=False)
class Groups:
    """As many documents each as there are lanes, longest first."""

    starts: Offsets  # (groups, lanes)
    lengths: Offsets  # (groups, lanes); 0 for a lane without a document
    places: Offsets  # (groups,): the first record of each
    period: int  # records after which a pass begins again, as it keeps none; 0 if it keeps all
    size: int  # number of records

    @classmethod
    def of(cls, offsets: Offsets, keep: bool) -> Groups:
        """All documents in groups, with records to keep for a backward pass or not."""
        lengths = np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
        count = -(-len(order) // LANES)
        table = np.zeros((2, count * LANES), np.int64)
        table[:, : len(order)] = offsets[:-1][order], lengths[order]
        starts, longest_first = table.reshape(2, count, LANES)
        ends = np.cumsum(longest_first[:, 0] + 1)  # one more record, for the last states
        if keep:
            return cls(starts, longest_first, ends - longest_first[:, 0] - 1, 0, int(ends[-1]) if count else 0)
        return cls(starts, longest_first, np.arange(count) % SHARES * 2, 2, 2 * SHARES)

    @property
    def plain(self) -> tuple[Any, ...]:
        """The arguments of the compiled loops."""
        return self.starts, self.lengths, self.places, SHARES, self.period


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def for_each_share(work: Callable[[int, int], None], words: int) -> None:
    """Call `work(direction, share)` for each share of the groups, on several threads."""
    jobs = [(direction, share) for share in range(SHARES) for direction in (0, 1)]
    threads = available_threads() if words > SMALL else 1
    run = map if threads == 1 else _pool(threads).map
    for _ in run(lambda job: work(*job), jobs):
        pass


class _BiLSTM(torch.autograd.Function):
    """Scores of words in each direction (2, words, 1), from a query (2, hidden); or states (2, words, hidden), without one.

    Inputs are (words, inputs), or (2, words, 4 hidden) if they are already multiplied; the matrix is (2, rows, 4 hidden).
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: torch.Tensor, matrix: torch.Tensor, query: torch.Tensor | None, kept: Kept, offsets: Offsets
    ) -> torch.Tensor:
        keep, hidden = any(ctx.needs_input_grad), matrix.shape[2] // 4
        groups = Groups.of(offsets, keep)
        memory, records = _borrow((2, groups.size, 5 * hidden + matrix.shape[1], LANES))
        x = inputs.detach().expand(2, *inputs.shape[-2:]).numpy()
        turned, q = matrix.detach().mT.contiguous().numpy(), _query_array(query)
        output = torch.empty(2, int(offsets[-1]), hidden if query is None else 1)
        y = output.numpy()

        def work(d: int, share: int) -> None:
            forward(x[d], inputs.ndim == 3, turned[d], q[d], kept, groups.plain, share, d == 1, records[d], y[d])

        for_each_share(work, int(offsets[-1]))
        ctx.save_for_backward(inputs, matrix, query)
        ctx.memory, ctx.records, ctx.groups, ctx.kept = memory, records, groups, kept
        return output

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        inputs, matrix, query = ctx.saved_tensors
        memory, ctx.memory = ctx.memory, None  # overwritten below by the gradient, so valid for one pass only
        if memory is None:
            raise RuntimeError("The compiled LSTM supports one backward pass: run it forward again before another one.")
        _, rows, gates = matrix.shape
        wanted = inputs.shape[-1] if ctx.needs_input_grad[0] else 0
        to_inputs = torch.empty(2, gradient.shape[1], wanted)
        to_matrix = torch.zeros(2, SHARES, gates * -(-rows // LANES), LANES)
        to_query = torch.zeros(2, SHARES, gates // 4, LANES)
        slopes, m, q = gradient.contiguous().numpy(), matrix.numpy(), _query_array(query)
        to = to_inputs.numpy(), to_matrix.numpy(), to_query.numpy()

        def work(d: int, share: int) -> None:
            own = to[0][d], to[1][d, share], to[2][d, share]
            backward(slopes[d], m[d], q[d], ctx.kept, ctx.groups.plain, share, d == 1, ctx.records[d], *own)

        for_each_share(work, gradient.shape[1])
        ctx.records = None
        SPARE[:] = [memory]
        return (
            (to_inputs if inputs.ndim == 3 else to_inputs.sum(0)) if wanted else None,
            to_matrix.sum(1).reshape(2, gates, -1)[:, :, :rows].mT,
            None if query is None else to_query.sum((1, 3)),
            None,
            None,
        )


def _query_array(query: torch.Tensor | None) -> Floats:
    return np.empty((2, 0), np.float32) if query is None else query.detach().numpy()


def _borrow(shape: tuple[int, ...]) -> tuple[torch.Tensor, Floats]:
    """Memory for records, that of an earlier pass if it is large enough, and its array; torch aligns it to cache lines."""
    size = int(np.prod(shape))
    try:
        memory = SPARE.pop()
    except IndexError:
        memory = torch.empty(0)
    if len(memory) < size:
        memory = torch.empty(size)
    return memory, memory[:size].reshape(shape).numpy()


class _Softmax(torch.autograd.Function):
    """Attention (words,) from the scores of both directions (2, words, 1)."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, offsets: Offsets) -> torch.Tensor:
        attention = torch.empty(scores.shape[1])
        softmax(scores.detach().numpy(), offsets, attention.numpy())
        ctx.attention, ctx.offsets = attention.numpy(), offsets
        return attention

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        to_scores = torch.empty(len(gradient), 1)
        softmax_backward(gradient.contiguous().numpy(), ctx.offsets, ctx.attention, to_scores.numpy())
        return to_scores.expand(2, -1, -1), None


def _run(
    parameters: Mapping[str, torch.Tensor],
    inputs: torch.Tensor,
    offsets: Offsets,
    vectors: Vectors | None,
    query: torch.Tensor | None,
    kept: Kept,
) -> torch.Tensor:
    weight, recurrent, bias = (parameters[name] for name in ("input", "recurrent", "bias"))
    parts = [recurrent, weight, bias[:, None]]  # what the gates see: states, inputs, and 1
    if vectors is not None or inputs.shape[1] > WIDE:
        inputs, parts = project(parameters, inputs, vectors), [recurrent]
    rows = sum(part.shape[1] for part in parts)
    matrix = torch.cat([*parts, recurrent.new_zeros(2, -rows % 4, recurrent.shape[2])], dim=1)  # (2, rows, 4 hidden)
    return _BiLSTM.apply(inputs.contiguous(), matrix, query, kept, offsets)  # type: ignore[no-untyped-call, no-any-return]


def bilstm_torch(
    parameters: Mapping[str, torch.Tensor], inputs: torch.Tensor, offsets: Offsets, vectors: Vectors | None
) -> torch.Tensor:
    """Hidden states (words, 2 hidden), once differentiable in the parameters and the inputs."""
    states = _run(parameters, inputs, offsets, vectors, None, np.empty((0, 0), bool))
    return torch.cat([states[0], states[1]], dim=-1)  # (words, 2 hidden)


def attention_torch(
    parameters: Mapping[str, torch.Tensor],
    inputs: torch.Tensor,
    offsets: Offsets,
    vectors: Vectors | None,
    kept: Kept | None,
    scale: float,
) -> torch.Tensor:
    """Attention (words,) = softmax of the query times the states that dropout has kept, once differentiable."""
    query = parameters["query"].reshape(2, -1) * scale  # (2, hidden)
    kept = np.empty((0, 0), bool) if kept is None else kept
    scores = _run(parameters, inputs, offsets, vectors, query, kept)  # (2, words, 1)
    return _Softmax.apply(scores, offsets)  # type: ignore[no-untyped-call, no-any-return]
