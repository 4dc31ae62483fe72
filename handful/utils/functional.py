"""Pure array functions that run on NumPy and on torch, including the formulas of the paper.

Ragged data is a flat array plus `offsets`, a NumPy array of n + 1 positions: document i is `flat[offsets[i]:offsets[i + 1]]`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from array_api_compat import array_namespace as compatible_namespace
from array_api_compat import is_torch_array

Array = Any  # a NumPy array or a torch tensor
Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Offsets = Ints

TINY = 1e-12
LARGEST_SCORE = 9.0  # of a logistic model: beyond it, rounding destroys the spread μ(1 - μ)
LARGE_BAG = 2048  # numbers per document: above it, one matrix product per document pays off
STANDARD_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # follows the array API standard by itself


def array_namespace(*arrays: Array) -> Any:
    """The array API namespace of these arrays: NumPy itself since version 2.1, as the compatibility layer is slow to import."""
    if STANDARD_NUMPY and all(isinstance(array, np.ndarray | np.generic) for array in arrays):
        return np
    return compatible_namespace(*arrays)


def as_like(values: Array, like: Array) -> Array:
    """Convert an array to the type of `like`, without copying."""
    if is_torch_array(values):
        return values if is_torch_array(like) else values.detach().numpy()
    return array_namespace(like).asarray(values)


def segments(offsets: Offsets) -> Ints:
    """The document that each word belongs to.

    >>> segments(np.array([0, 2, 2, 3]))
    array([0, 0, 2])
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def segment_sum(values: Array, offsets: Offsets) -> Array:
    """Sum of each document's values; 0 for an empty one."""
    xp = array_namespace(values)
    total = xp.zeros(len(offsets) - 1, dtype=values.dtype)
    where = as_like(segments(offsets), values)
    if is_torch_array(values):
        return total.index_add(0, where, values)
    np.add.at(total, where, values)
    return total


def segment_means(values: Array, offsets: Offsets) -> Array:
    """The mean over the words of each document, for values (words, columns), given to each of its words: (words, columns)."""
    xp, where = array_namespace(values), as_like(segments(offsets), values)
    sums = xp.stack([segment_sum(values[:, column], offsets) for column in range(values.shape[1])], axis=1)
    lengths = as_like(np.maximum(np.diff(offsets), 1)[:, None].astype(np.float32), values)
    return (sums / lengths)[where]


def segment_max(values: Array, offsets: Offsets) -> Array:
    """Maximum over the words of each document, for values (words,) or (words, columns); 0 for an empty document."""
    where = segments(offsets)
    if is_torch_array(values):
        index = as_like(where, values).reshape(-1, *[1] * (values.ndim - 1)).expand_as(values)
        zeros = values.new_zeros(len(offsets) - 1, *values.shape[1:])
        return zeros.scatter_reduce(0, index, values, "amax", include_self=False)
    best = np.zeros((len(offsets) - 1, *values.shape[1:]), values.dtype)
    filled = np.diff(offsets) > 0  # reduceat has no notion of an empty document
    if filled.any():
        best[filled] = np.maximum.reduceat(values, offsets[:-1][filled])
    return best


def segment_softmax(scores: Array, offsets: Offsets) -> Array:
    """Softmax over the words of each document (Eq. 3): the weights of a document sum to 1."""
    where = as_like(segments(offsets), scores)
    highest = segment_max(scores.detach() if is_torch_array(scores) else scores, offsets)  # avoids overflow; it cancels
    exponentials = array_namespace(scores).exp(scores - highest[where])
    return exponentials / segment_sum(exponentials, offsets)[where]


def softmax(logits: Array) -> Array:
    """Softmax over the last axis."""
    xp = array_namespace(logits)
    exponentials = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    return exponentials / xp.sum(exponentials, axis=-1, keepdims=True)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean cross-entropy of logits (..., classes) with one-hot labels of the same shape."""
    xp = array_namespace(logits)
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    log_probabilities = shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
    return -xp.mean(xp.sum(labels * log_probabilities, axis=-1))


def squared_error(logits: Array, labels: Array) -> Array:
    """The squared distance of the logits' sigmoids (..., classes) from one-hot labels, averaged over all but the last axis."""
    xp = array_namespace(logits)
    apart = 0.5 * (1 + xp.tanh(logits / 2)) - labels  # this form of the sigmoid cannot overflow
    return xp.mean(xp.sum(apart * apart, axis=-1))


def entropy(probabilities: Array) -> Array:
    """Shannon entropy in nats over the last axis; 0 log 0 is 0."""
    xp = array_namespace(probabilities)
    tiny = np.finfo(np.float32).tiny
    return -xp.sum(probabilities * xp.log(xp.clip(probabilities, tiny, None)), axis=-1)


def one_hot(labels: Ints, classes: int) -> Floats:
    """Labels (...,) as rows of the identity matrix (..., classes)."""
    rows: Floats = np.eye(classes, dtype=np.float32)[labels]
    return rows


def ridge_weights(vectors: Array, targets: Array, penalty: Array) -> Array:
    """W that minimises |ΦW - Y|² + λ|W|² (Eqs. 5 and 6), from the smaller of the two systems, for any leading batch axes."""
    xp = array_namespace(vectors)
    rows, columns = vectors.shape[-2:]
    transposed = xp.matrix_transpose(vectors)  # (..., columns, rows)
    if rows < columns:
        gram = vectors @ transposed + penalty * xp.eye(rows, dtype=vectors.dtype)
        return transposed @ xp.linalg.solve(gram, targets)  # (..., columns, classes)
    gram = transposed @ vectors + penalty * xp.eye(columns, dtype=vectors.dtype)
    return xp.linalg.solve(gram, transposed @ targets)  # (..., columns, classes)


def unit_length(vectors: Array) -> Array:
    """Vectors (..., width) divided by their lengths; zero stays zero."""
    xp = array_namespace(vectors)
    return vectors / xp.sqrt(xp.sum(vectors * vectors, axis=-1, keepdims=True) + TINY)


def softmax_refined(vectors: Array, targets: Array, shares: Array, start: Array, penalty: float, steps: int) -> Array:
    """W near `start` that minimises Σ shareᵢ · cross-entropy of softmax(φᵢW) + λ/2 |W - start|², for any leading batch axes.

    `start` has to be in the span of the vectors, as ridge weights are. Steps are Newton's with a fixed bound of the curvature
    (Böhning, 1992), accelerated (Beck and Teboulle, 2009).
    """
    xp = array_namespace(vectors)
    transposed = xp.matrix_transpose(vectors)  # (..., columns, rows)
    if vectors.shape[-2] < vectors.shape[-1]:  # fewer examples than dimensions: solve in their span
        basis, _ = xp.linalg.qr(transposed)  # (..., columns, rows)
        inside = xp.matrix_transpose(basis) @ start
        return basis @ softmax_refined(vectors @ basis, targets, shares, inside, penalty, steps)
    identity = xp.eye(vectors.shape[-1], dtype=vectors.dtype)
    step = xp.linalg.inv(transposed @ (shares * vectors) / 2 + penalty * identity)  # the curvature of a softmax is at most 1/2
    weights = ahead = start
    for number in range(steps):
        slope = transposed @ (shares * (softmax(vectors @ ahead) - targets)) + penalty * (ahead - start)
        former, weights = weights, ahead - step @ slope
        ahead = weights + number / (number + 3) * (weights - former)
    return weights


def newton_logistic(vectors: Array, targets: Array, penalty: Array, steps: int) -> Array:
    """W of one-vs-all logistic regression, Σ log(1 + exp(∓Φw)) + λ|w|²/2 for each class, by Newton steps from zero.

    w = Φᵀα stays in the span of the examples, so a step is a weighted ridge regression on their Gram matrix: with f = ΦΦᵀα,
    μ = σ(f) and S = μ(1 - μ), it solves (ΦΦᵀ + λS⁻¹) α = f + (Y - μ) / S. Any leading batch axes, differentiable.
    """
    xp = array_namespace(vectors)
    transposed, labels = xp.matrix_transpose(vectors), xp.matrix_transpose(targets)  # (..., dim, rows), (..., classes, rows)
    gram = (vectors @ transposed)[..., None, :, :]  # (..., 1, rows, rows)
    identity = xp.eye(vectors.shape[-2], dtype=vectors.dtype)
    scores = xp.zeros_like(labels)  # f: (..., classes, rows)
    for _ in range(steps):
        means = 1 / (1 + xp.exp(-xp.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)))
        spread = means * (1 - means)
        system = gram + identity * (penalty / spread)[..., None, :]  # (..., classes, rows, rows)
        coefficients = xp.linalg.solve(system, (scores + (labels - means) / spread)[..., None])  # (..., classes, rows, 1)
        scores = (gram @ coefficients)[..., 0]
    return transposed @ xp.matrix_transpose(coefficients[..., 0])  # (..., dim, classes)


def squash(vectors: Array) -> Array:
    """|v|² / (1 + |v|²) · v / |v|: keeps the direction and shrinks the length below 1."""
    lengths = _lengths(vectors)[..., None]
    return vectors * lengths / (1 + lengths**2)


def routed_means(vectors: Array, targets: Array, iterations: int) -> Array:
    """One prototype per class, by dynamic routing over its examples: (..., classes, width).

    Each round weights the examples (..., examples, width) of a class by how well they have agreed with its prototype so far.
    """
    xp = array_namespace(vectors)
    members, transposed = xp.matrix_transpose(targets), xp.matrix_transpose(vectors)
    agreement = xp.zeros_like(members)  # (..., classes, examples)
    for _ in range(iterations):
        shares = xp.exp(agreement - xp.max(agreement, axis=-1, keepdims=True)) * members
        shares = shares / xp.clip(xp.sum(shares, axis=-1, keepdims=True), TINY, None)
        prototypes = squash(shares @ vectors)  # (..., classes, width)
        agreement = agreement + prototypes @ transposed
    return prototypes


def distances(first: Array, second: Array, kind: str) -> Array:
    """Distances between the rows of (..., n, dim) and (..., m, dim): (..., n, m); kind is euclidean, squared or cosine."""
    xp = array_namespace(first)
    if kind == "cosine":
        first, second = (x / xp.clip(_lengths(x)[..., None], TINY, None) for x in (first, second))
        return 1 - first @ xp.matrix_transpose(second)
    products = first @ xp.matrix_transpose(second)
    squares = _lengths(first)[..., :, None] ** 2 + _lengths(second)[..., None, :] ** 2 - 2 * products
    squares = xp.clip(squares, TINY, None)  # rounding may make them negative, and the root has no derivative at 0
    return squares if kind == "squared" else xp.sqrt(squares)


def _lengths(vectors: Array) -> Array:
    xp = array_namespace(vectors)
    return xp.sqrt(xp.clip(xp.sum(vectors * vectors, axis=-1), TINY, None))


def weighted_bag(table: Array, rows: Ints, weights: Array, offsets: Offsets) -> Array:
    """φ(x) = Σ αᵢ f(xᵢ) (Eq. 4) for each document, without a (documents × words × dim) array; differentiable in `weights`."""
    if is_torch_array(weights):
        from torch.nn.functional import embedding_bag

        starts = as_like(offsets[:-1], weights)
        return embedding_bag(as_like(rows, weights), table, starts, mode="sum", per_sample_weights=weights)
    bags = np.zeros((len(offsets) - 1, table.shape[1]), dtype=np.float32)  # (documents, dim)
    if len(rows) * table.shape[1] > LARGE_BAG * len(bags):  # one product per document is many times faster
        for number, (first, last) in enumerate(itertools.pairwise(offsets.tolist())):
            if first < last:
                bags[number] = weights[first:last] @ table[rows[first:last]]
        return bags
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")  # longest first, so that the documents that have a next word come first
    starts, lengths = offsets[:-1][order], lengths[order]
    sums = np.zeros_like(bags)
    for step in range(int(lengths.max(initial=0))):
        words = starts[: int(np.searchsorted(-lengths, -step))] + step
        sums[: len(words)] += table[rows[words]] * weights[words, None]
    bags[order] = sums
    return bags


def ragged_convolution(vectors: Array, rows: Ints, offsets: Offsets, filters: Array) -> Array:
    """Apply filters (window, dim, maps) to the words of each document, with one window starting at every word: (words, maps).

    Words are given as rows of `vectors` (distinct words, dim), so each is multiplied once. Positions past the end of a document
    are zero, so neighbouring documents and padding never matter. If each of several tasks has its own filters, (tasks, window,
    dim, maps), then `vectors` is (tasks, distinct words, dim), and `rows` indexes the vectors of all tasks, task after task.
    """
    xp = array_namespace(vectors)
    window = filters.shape[-3]
    maps = filters.shape[-1]
    known = int(np.prod(vectors.shape[:-1]))
    nothing = xp.zeros((1, maps), dtype=vectors.dtype)
    later = np.arange(len(rows))[:, None] + np.arange(window)
    ends = np.repeat(offsets[1:], np.diff(offsets))[:, None]
    inside = np.where(later < ends, rows[np.minimum(later, len(rows) - 1)], known)  # (words, window)
    tables = [
        xp.concat([(vectors @ filters[..., step, :, :]).reshape(known, maps), nothing]) for step in range(window)
    ]  # (distinct words + 1, maps) each
    if is_torch_array(vectors) and filters.ndim == 3:  # tasks may need the second derivative, which embedding_bag lacks
        from torch.nn.functional import embedding_bag

        places = inside + np.arange(window) * (known + 1)
        return embedding_bag(as_like(places, vectors), xp.concat(tables), mode="sum")  # (words, maps)
    total = 0
    for step, table in enumerate(tables):
        total = total + xp.take(table, as_like(inside[:, step], vectors), axis=0)  # (words, maps)
    return total
