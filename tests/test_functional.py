from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as SklearnRidge

from handful.functional import (
    cross_entropy,
    entropy,
    one_hot,
    ridge_weights,
    segment_softmax,
    segment_sum,
    softmax,
    weighted_bag,
)

OFFSETS = np.array([0, 3, 3, 4, 9, 9])
RNG = np.random.default_rng(0)
KINDS = pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])


@KINDS
def test_segment_softmax_is_a_softmax_of_each_document(kind) -> None:
    scores = RNG.normal(size=9).astype(np.float32) * 100
    weights = np.asarray(segment_softmax(kind(scores), OFFSETS))
    for begin, end in itertools.pairwise(OFFSETS):
        np.testing.assert_allclose(weights[begin:end], softmax(scores[begin:end]) if end > begin else [], rtol=1e-5)


@KINDS
def test_segment_sum_gives_nothing_to_an_empty_document(kind) -> None:
    assert np.asarray(segment_sum(kind(np.ones(9, np.float32)), OFFSETS)).tolist() == [3, 0, 1, 5, 0]


@KINDS
def test_weighted_bag_is_the_weighted_sum(kind, monkeypatch) -> None:
    monkeypatch.setattr("handful.functional.BAG_CHUNK", 2)  # several chunks, some of empty documents
    table, rows, weights = RNG.normal(size=(7, 4)).astype("f"), RNG.integers(0, 7, 9), RNG.random(9).astype("f")
    bags = np.asarray(weighted_bag(kind(table), rows, kind(weights), OFFSETS))
    expected = [weights[a:b] @ table[rows[a:b]] for a, b in itertools.pairwise(OFFSETS)]
    np.testing.assert_allclose(bags, expected, atol=1e-6)


@KINDS
@pytest.mark.parametrize("shape", [(5, 20), (30, 8)], ids=["dual", "primal"])
def test_ridge_is_scikit_learns(kind, shape: tuple[int, int]) -> None:
    vectors, targets = RNG.normal(size=shape), RNG.normal(size=(shape[0], 3))
    expected = SklearnRidge(alpha=0.7, fit_intercept=False).fit(vectors, targets).coef_.T
    np.testing.assert_allclose(np.asarray(ridge_weights(kind(vectors), kind(targets), 0.7)), expected, atol=1e-8)


def test_ridge_solves_a_batch_as_one_by_one() -> None:
    vectors, targets = RNG.normal(size=(4, 5, 20)), RNG.normal(size=(4, 5, 3))
    together = ridge_weights(vectors, targets, 0.1)
    np.testing.assert_allclose(together, [ridge_weights(*pair, 0.1) for pair in zip(vectors, targets, strict=True)])


@KINDS
def test_cross_entropy_and_entropy(kind) -> None:
    logits, labels = RNG.normal(size=(6, 3)).astype("f") * 50, RNG.integers(0, 3, 6)
    expected = torch.nn.functional.cross_entropy(torch.from_numpy(logits), torch.from_numpy(labels))
    assert float(cross_entropy(kind(logits), kind(one_hot(labels, 3)))) == pytest.approx(float(expected), rel=1e-5)
    assert np.asarray(entropy(kind(np.array([[1, 0], [0.5, 0.5]])))).tolist() == pytest.approx([0, np.log(2)])


def test_gradients_agree_with_finite_differences() -> None:
    """Through attention weights, the bag, the ridge and the loss, in double precision."""
    table, rows = torch.from_numpy(RNG.normal(size=(7, 6))), RNG.integers(0, 7, 9)
    offsets = np.array([0, 2, 5, 7, 9])
    targets = torch.from_numpy(one_hot(np.array([0, 1]), 2)).double()

    def loss(scores: torch.Tensor, log_penalty: torch.Tensor) -> torch.Tensor:
        vectors = weighted_bag(table, rows, segment_softmax(scores, offsets), offsets)
        return cross_entropy(vectors[2:] @ ridge_weights(vectors[:2], targets, log_penalty.exp()), targets)

    inputs = torch.from_numpy(RNG.normal(size=9)).requires_grad_(), torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, inputs)
