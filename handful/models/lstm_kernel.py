"""The compiled loops of the bidirectional LSTM: 16 or 32 documents side by side in the lanes of vector registers.

Documents are sorted by length and processed in groups of as many as there are lanes, word by word. Each has its own lane, so it
never depends on its neighbours, and only the lanes of a group's shorter documents idle at the end. Vectors are values of a type
of their own, `Lanes`, so they stay in registers without any help from the compiler's search for loops to vectorise.

A record (rows, lanes) holds all that the backward pass needs of one word per document: the four gates of each unit, the cells
before the word, and what the gates have seen, which is the states before the word, the inputs, and 1 for the bias.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import MissingExtraError

try:
    from llvmlite import binding, ir
    from numba import njit, types
    from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
    from numba.extending import intrinsic, lower_builtin, models, register_model
    from numba.np.arrayobj import make_array
except ImportError as error:  # the extra contains more than torch
    raise MissingExtraError("Training", "train") from error

# Single-precision numbers in two registers: products of a weight with both cost little more than with one
LANES = 32 if binding.get_host_cpu_features().get("avx512f") else 16

compiled: Callable[..., Any] = njit(fastmath=True, error_model="numpy", nogil=True, cache=True)
primitive: Callable[..., Any] = intrinsic
part: Callable[..., Any] = njit(fastmath=True, error_model="numpy")  # of a loop that is compiled and cached as a whole


# Vectors


class LanesType(types.Type):  # type: ignore[misc]
    """numba's type of a vector of one number per lane."""


Lanes = LanesType("Lanes")
VECTOR, INTEGERS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _spread(builder: Any, value: Any) -> Any:
    """A number as a vector; a vector as it is."""
    if value.type == VECTOR:
        return value
    single = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(single, ir.Constant(VECTOR, ir.Undefined), ir.Constant(INTEGERS, [0] * LANES))


def _register(function: Any, instruction: str) -> None:
    """Let an operator accept vectors, or a vector and a number."""
    pairs = ((Lanes, Lanes), (Lanes, types.float32), (types.float32, Lanes))

    @infer_global(function)
    class Signatures(ConcreteTemplate):  # type: ignore[misc]
        cases = [signature(Lanes, *pair) for pair in pairs]  # noqa: RUF012 - as numba wants it

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second = (_spread(builder, value) for value in args)
        return getattr(builder, instruction)(first, second, flags=("fast",))

    for pair in pairs:
        lower_builtin(function, *pair)(lower)


for _function, _instruction in (("add", "fadd"), ("iadd", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
    _register(getattr(operator, _function), _instruction)


def _address(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    """Where row `row` of an array (rows, lanes) begins."""
    data = make_array(kind)(context, builder, array).data
    start = builder.gep(data, [builder.mul(row, ir.IntType(64)(LANES))])
    return builder.bitcast(start, VECTOR.as_pointer())


@primitive
def _load(typing: Any, array: Any, row: Any) -> Any:
    """Row `row` of a contiguous array (rows, lanes)."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, sig.args[0], *args), align=4)

    return Lanes(array, types.int64), code


@primitive
def _store(typing: Any, array: Any, row: Any, value: Any) -> Any:
    """Write a vector to row `row` of a contiguous array (rows, lanes)."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, sig.args[0], *args[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, Lanes), code


@primitive
def _vector(typing: Any, number: Any) -> Any:
    """A number in every lane."""
    return Lanes(types.float32), lambda context, builder, sig, args: _spread(builder, args[0])


@primitive
def _clip(typing: Any, value: Any, limit: Any) -> Any:
    """Limit a vector to ± limit."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        high = _spread(builder, args[1])
        low = builder.fneg(high)
        least = builder.select(builder.fcmp_ordered("<", args[0], low), low, args[0])
        return builder.select(builder.fcmp_ordered(">", least, high), high, least)

    return Lanes(Lanes, types.float32), code


ONE, HALF, ZERO = np.float32(1), np.float32(0.5), np.float32(0)
LIMIT = np.float32(9)  # beyond it tanh is ±1 in single precision
# tanh(x) = x P(x²) / Q(x²) up to it, with a relative error of 2e-8 before rounding
P_0, P_1, P_2, P_3, P_4 = map(np.float32, (1.0, 0.13380998, 3.4955528e-3, 2.060842e-5, 1.3353614e-8))
Q_1, Q_2, Q_3, Q_4 = map(np.float32, (0.46714313, 0.025876854, 3.2855734e-4, 7.7761554e-7))


@part
def _tanh(x):  # type: ignore[no-untyped-def]
    x = _clip(x, LIMIT)
    y = x * x
    over = x * (P_0 + y * (P_1 + y * (P_2 + y * (P_3 + y * P_4))))
    return over / (ONE + y * (Q_1 + y * (Q_2 + y * (Q_3 + y * Q_4))))


@part
def _sigmoid(x):  # type: ignore[no-untyped-def]
    return HALF + HALF * _tanh(HALF * x)


# Products


@part
def _multiply(matrix, values, result, add):  # type: ignore[no-untyped-def]
    """result = matrix (4 n, m) · values (m, lanes), or `result` plus it."""
    for j in range(0, len(matrix), 4):  # four rows at a time, so that a value is loaded less often
        a, b, c, d = _vector(ZERO), _vector(ZERO), _vector(ZERO), _vector(ZERO)
        if add:
            a, b, c, d = _load(result, j), _load(result, j + 1), _load(result, j + 2), _load(result, j + 3)
        for k in range(matrix.shape[1]):
            value = _load(values, k)
            a += matrix[j, k] * value
            b += matrix[j + 1, k] * value
            c += matrix[j + 2, k] * value
            d += matrix[j + 3, k] * value
        _store(result, j, a)
        _store(result, j + 1, b)
        _store(result, j + 2, c)
        _store(result, j + 3, d)


@part
def _add_products(values, turned, result):  # type: ignore[no-untyped-def]
    """result (4 n, columns) += values (4 n, lanes) · turned (lanes, columns); rows of columns are cut into vectors."""
    columns = len(turned) // LANES  # vectors per row
    for column in range(columns):
        for j in range(column, len(result), 4 * columns):
            a, b = _load(result, j), _load(result, j + columns)
            c, d = _load(result, j + 2 * columns), _load(result, j + 3 * columns)
            row = j // columns
            for lane in range(LANES):
                value = _load(turned, lane * columns + column)
                a += values[row, lane] * value
                b += values[row + 1, lane] * value
                c += values[row + 2, lane] * value
                d += values[row + 3, lane] * value
            _store(result, j, a)
            _store(result, j + columns, b)
            _store(result, j + 2 * columns, c)
            _store(result, j + 3 * columns, d)


@part
def _turn(values, rows, columns, result):  # type: ignore[no-untyped-def]
    """The transpose of values (rows, lanes), cut into vectors: (lanes · columns, lanes)."""
    for k in range(rows):
        for lane in range(LANES):
            result[lane * columns + k // LANES, k % LANES] = values[k, lane]


# Where the words of a group's documents are


@part
def _clear(rows, first, end):  # type: ignore[no-untyped-def]
    for row in range(first, end):
        _store(rows, row, _vector(ZERO))


@part
def _find_words(starts, lengths, step, backwards, words):  # type: ignore[no-untyped-def]
    """The word of each document that a direction reaches at a step; -1 past the end."""
    for lane in range(LANES):
        word = starts[lane] + (lengths[lane] - 1 - step if backwards else step)
        words[lane] = word if step < lengths[lane] else -1


@part
def _gather(source, words, columns, first, result):  # type: ignore[no-untyped-def]
    """Rows of `source` (words, columns) as lanes of `result`, from row `first`; 0 past the end of a document."""
    for lane in range(LANES):
        word = words[lane]
        for j in range(columns):
            result[first + j, lane] = source[word, j] if word >= 0 else ZERO


@part
def _scatter(source, first, words, columns, result):  # type: ignore[no-untyped-def]
    """The reverse of `_gather`."""
    for lane in range(LANES):
        word = words[lane]
        if word >= 0:
            for j in range(columns):
                result[word, j] = source[first + j, lane]


# Both passes over documents


@part
def _step_forward(hidden, now, after):  # type: ignore[no-untyped-def]
    """Replace what enters the gates by their values, and compute the cells and states after a word."""
    for j in range(hidden):
        write, keep, show = _sigmoid(_load(now, j)), _sigmoid(_load(now, hidden + j)), _sigmoid(_load(now, 2 * hidden + j))
        candidate = _tanh(_load(now, 3 * hidden + j))
        cell = keep * _load(now, 4 * hidden + j) + write * candidate
        _store(now, j, write)
        _store(now, hidden + j, keep)
        _store(now, 2 * hidden + j, show)
        _store(now, 3 * hidden + j, candidate)
        _store(after, 4 * hidden + j, cell)
        _store(after, 5 * hidden + j, show * _tanh(cell))


@part
def _step_backward(hidden, now, after, slopes, to_seen, to_cell):  # type: ignore[no-untyped-def]
    """Replace the gates by the gradient of what entered them, from the gradients of the states and cells after a word."""
    for j in range(hidden):
        write, keep, show = _load(now, j), _load(now, hidden + j), _load(now, 2 * hidden + j)
        candidate, squashed = _load(now, 3 * hidden + j), _tanh(_load(after, 4 * hidden + j))
        to_state = _load(slopes, j) + _load(to_seen, j)
        slope = _load(to_cell, j) + to_state * show * (ONE - squashed * squashed)
        _store(now, j, slope * candidate * write * (ONE - write))
        _store(now, hidden + j, slope * _load(now, 4 * hidden + j) * keep * (ONE - keep))
        _store(now, 2 * hidden + j, to_state * squashed * show * (ONE - show))
        _store(now, 3 * hidden + j, slope * write * (ONE - candidate * candidate))
        _store(to_cell, j, slope * keep)


@part
def _score(states, query, kept, first, words, drop, result):  # type: ignore[no-untyped-def]
    """The product of the query and the states that dropout has kept, if it is on: (1, lanes)."""
    _gather_kept(kept, first, words, drop)
    total = _vector(ZERO)
    for j in range(len(query)):
        total += query[j] * (_load(states, j) * _load(drop, j))
    _store(result, 0, total)


@part
def _score_backward(states, query, drop, slopes, to_query):  # type: ignore[no-untyped-def]
    """Turn the gradient of the scores, row 0 of `slopes`, into that of the states; add to that of the query."""
    slope = _load(slopes, 0)
    for j in range(len(query)):
        kept = slope * _load(drop, j)
        _store(to_query, j, _load(to_query, j) + kept * _load(states, j))
        _store(slopes, j, query[j] * kept)


@part
def _gather_kept(kept, first, words, drop):  # type: ignore[no-untyped-def]
    """1 for the states that dropout keeps, 0 for the others; `kept` (words, both directions) is empty without dropout."""
    if not len(kept):
        return
    for lane in range(LANES):
        word = max(words[lane], 0)  # past the end of a document, any will do
        for j in range(len(drop)):
            drop[j, lane] = np.float32(kept[word, first + j])


@compiled
def forward(inputs, projected, matrix, query, kept, groups, share, backwards, records, output):  # type: ignore[no-untyped-def]
    """Process a share of the groups in one direction.

    `inputs` (words, inputs) are seen by the gates; if `projected`, they are added to what enters them: (words, 4 hidden).
    Fills `records`, and writes the scores (words, 1) to `output`, or the states (words, hidden) if the query is empty.
    """
    starts, lengths, places, shares, period = groups
    hidden, rows = len(matrix) // 4, matrix.shape[1]
    words = np.empty(LANES, np.int64)
    drop, score = np.ones((hidden, LANES), np.float32), np.empty((1, LANES), np.float32)
    for group in range(share, len(places), shares):
        place, steps = places[group], lengths[group, 0]
        _clear(records[place], 4 * hidden, 6 * hidden)
        turns = period if period else steps + 1
        for step in range(steps):
            now, after = records[place + step % turns], records[place + (step + 1) % turns]
            _find_words(starts[group], lengths[group], step, backwards, words)
            _see(inputs, projected, words, hidden, now)
            _multiply(matrix, now[5 * hidden : 5 * hidden + rows], now, projected)
            _step_forward(hidden, now, after)
            states = after[5 * hidden :]
            if len(query):
                _score(states, query, kept, hidden * backwards, words, drop, score)
                _scatter(score, 0, words, 1, output)
            else:
                _scatter(states, 0, words, hidden, output)


@part
def _see(inputs, projected, words, hidden, now):  # type: ignore[no-untyped-def]
    """Write the inputs of a word to its record; what is left of the record is 1, for the bias, and 0."""
    columns = inputs.shape[1]
    if projected:
        _gather(inputs, words, columns, 0, now)
        _clear(now, 6 * hidden, len(now))
        return
    _gather(inputs, words, columns, 6 * hidden, now)
    _store(now, 6 * hidden + columns, _vector(ONE))
    _clear(now, 6 * hidden + columns + 1, len(now))


@compiled
def backward(gradient, matrix, query, kept, groups, share, backwards, records, to_inputs, to_matrix, to_query):  # type: ignore[no-untyped-def]
    """Apply the chain rule along the same loops, from the gradient of `output`; `matrix` is (rows, 4 hidden) here.

    Adds to the gradients of the matrix (4 hidden · columns, lanes) and of the query (hidden, lanes). Writes that of the inputs,
    those that the gates have seen or the projected ones, unless `to_inputs` has no columns.
    """
    starts, lengths, places, shares, _ = groups
    hidden, rows, columns = matrix.shape[1] // 4, len(matrix), len(to_matrix) // matrix.shape[1]
    words = np.empty(LANES, np.int64)
    drop, slopes = np.ones((hidden, LANES), np.float32), np.empty((hidden, LANES), np.float32)
    to_seen, to_cell = np.empty((rows, LANES), np.float32), np.empty((hidden, LANES), np.float32)
    turned = np.empty((LANES * columns, LANES), np.float32)
    _clear(turned, 0, len(turned))
    for group in range(share, len(places), shares):
        _clear(to_seen, 0, rows)
        _clear(to_cell, 0, hidden)
        for step in range(lengths[group, 0] - 1, -1, -1):
            now, after = records[places[group] + step], records[places[group] + step + 1]
            gates, seen = now[: 4 * hidden], now[5 * hidden :]
            _find_words(starts[group], lengths[group], step, backwards, words)
            _gather(gradient, words, gradient.shape[1], 0, slopes)
            if len(query):
                _gather_kept(kept, hidden * backwards, words, drop)
                _score_backward(after[5 * hidden :], query, drop, slopes, to_query)
            _step_backward(hidden, now, after, slopes, to_seen, to_cell)
            _multiply(matrix, gates, to_seen, False)
            _turn(seen, rows, columns, turned)
            _add_products(gates, turned, to_matrix)
            if to_inputs.shape[1] == 4 * hidden:
                _scatter(gates, 0, words, 4 * hidden, to_inputs)
            else:
                _scatter(to_seen, hidden, words, to_inputs.shape[1], to_inputs)


# The softmax over the words of each document


@compiled
def softmax(scores, offsets, attention):  # type: ignore[no-untyped-def]
    """Attention (words,) from the scores of both directions (2, words, 1)."""
    for document in range(len(offsets) - 1):
        highest, total = np.float32(-np.inf), ZERO
        for word in range(offsets[document], offsets[document + 1]):
            attention[word] = scores[0, word, 0] + scores[1, word, 0]
            highest = max(highest, attention[word])
        for word in range(offsets[document], offsets[document + 1]):
            attention[word] = np.exp(attention[word] - highest)
            total += attention[word]
        for word in range(offsets[document], offsets[document + 1]):
            attention[word] /= total


@compiled
def softmax_backward(gradient, offsets, attention, to_scores):  # type: ignore[no-untyped-def]
    """The gradient of the scores (words, 1) from that of the attention (words,)."""
    for document in range(len(offsets) - 1):
        mean = ZERO
        for word in range(offsets[document], offsets[document + 1]):
            mean += gradient[word] * attention[word]
        for word in range(offsets[document], offsets[document + 1]):
            to_scores[word, 0] = attention[word] * (gradient[word] - mean)
