from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as SklearnRidge

from handful.utils.functional import (
    cross_entropy,
    distances,
    entropy,
    newton_logistic,
    one_hot,
    ragged_convolution,
    ridge_weights,
    routed_means,
    segment_max,
    segment_means,
    segment_softmax,
    segment_sum,
    softmax,
    squared_error,
    squash,
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
@pytest.mark.parametrize("large", [0, 2048], ids=["one product each", "step by step"])
def test_weighted_bag_is_the_weighted_sum(kind, large: int, monkeypatch) -> None:
    monkeypatch.setattr("handful.utils.functional.LARGE_BAG", large)
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


@KINDS
def test_squared_error_of_sigmoids(kind) -> None:
    logits, labels = np.array([[500.0, -500.0], [0.0, np.log(3)]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    assert float(squared_error(kind(logits), kind(labels))) == pytest.approx((0 + 0.5**2 + 0.25**2) / 2)


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


@KINDS
def test_logistic_regression_is_scikit_learns(kind) -> None:
    """One-vs-all, no intercept; Newton's method has converged after eight steps, and is near after five."""
    from sklearn.linear_model import LogisticRegression

    vectors, labels = RNG.normal(size=(12, 20)), np.arange(12) % 3
    targets = one_hot(labels, 3).astype(float)
    expected = [
        LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=1000).fit(vectors, labels == k).coef_[0]
        for k in range(3)
    ]
    ours = np.asarray(newton_logistic(kind(vectors), kind(targets), 0.7, 8))
    np.testing.assert_allclose(ours.T, expected, atol=1e-5)
    np.testing.assert_allclose(np.asarray(newton_logistic(kind(vectors), kind(targets), 0.7, 5)).T, expected, atol=1e-3)
    batched = newton_logistic(kind(np.stack([vectors, -vectors])), kind(np.stack([targets, targets])), 0.7, 8)
    np.testing.assert_allclose(np.asarray(batched)[1], -ours, atol=1e-8)


@KINDS
@pytest.mark.parametrize("name", ["euclidean", "squared", "cosine"])
def test_distances_are_scikit_learns(kind, name: str) -> None:
    from sklearn.metrics import pairwise_distances

    first, second = RNG.normal(size=(4, 6)), RNG.normal(size=(3, 6))
    expected = pairwise_distances(first, second, {"squared": "sqeuclidean"}.get(name, name))
    np.testing.assert_allclose(np.asarray(distances(kind(first), kind(second), name)), expected, atol=1e-8)


@KINDS
def test_ragged_convolution_is_torchs_on_each_padded_document(kind) -> None:
    vectors, filters, rows = RNG.normal(size=(7, 4)), RNG.normal(size=(3, 4, 5)), RNG.integers(0, 7, 9)
    ours = np.asarray(ragged_convolution(kind(vectors), rows, OFFSETS, kind(filters)))
    for begin, end in itertools.pairwise(OFFSETS):
        if end > begin:
            padded = torch.from_numpy(np.concatenate([vectors[rows[begin:end]], np.zeros((2, 4))]).T[None])
            theirs = torch.nn.functional.conv1d(padded, torch.from_numpy(filters.transpose(2, 1, 0)))[0].T
            np.testing.assert_allclose(ours[begin:end], theirs, atol=1e-8)


@KINDS
def test_segment_max_down_the_words(kind) -> None:
    values = RNG.normal(size=(9, 2))
    expected = [values[a:b].max(0) if b > a else [0, 0] for a, b in itertools.pairwise(OFFSETS)]
    np.testing.assert_array_equal(np.asarray(segment_max(kind(values), OFFSETS)), expected)


@KINDS
def test_nearest_and_centroid_are_scikit_learns(kind) -> None:
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

    from handful.models.heads import Centroid, Nearest

    vectors, labels, queries = RNG.normal(size=(9, 5)), np.arange(9) % 3, RNG.normal(size=(40, 5))
    targets = kind(one_hot(labels, 3).astype(float))
    nearest = Nearest().fit({}, kind(vectors), targets)(kind(queries))
    assert (np.asarray(nearest).argmax(-1) == KNeighborsClassifier(1).fit(vectors, labels).predict(queries)).all()
    parameters = {"log_scale": kind(np.zeros(()))}
    centroid = Centroid().fit(parameters, kind(vectors), targets)(kind(queries))
    assert (np.asarray(centroid).argmax(-1) == NearestCentroid().fit(vectors, labels).predict(queries)).all()


@KINDS
def test_routing_by_hand(kind) -> None:
    """One class with examples (1, 0) and (0, 2), another with (3, 4) alone; two rounds worked out on paper."""
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    targets = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(np.asarray(squash(kind(np.array([3.0, 4.0])))), np.array([0.6, 0.8]) * 25 / 26)
    first = np.array([0.5, 1.0])  # the plain mean; its squared length is 1.25
    prototype = first / np.sqrt(1.25) * 1.25 / 2.25
    agreement = vectors[:2] @ prototype
    shares = np.exp(agreement) / np.exp(agreement).sum()
    second = shares @ vectors[:2]
    expected = second / np.linalg.norm(second) * (second @ second) / (1 + second @ second)
    ours = np.asarray(routed_means(kind(vectors), kind(targets), 2))
    np.testing.assert_allclose(ours, [expected, np.array([0.6, 0.8]) * 25 / 26], atol=1e-9)


def test_the_neural_tensor_layer_by_hand() -> None:
    from handful.models.heads import Induction

    rng = np.random.default_rng(0)
    parameters = Induction(slices=4).initial(rng, 3)
    assert parameters["tensor"].shape == (4, 3, 3)
    vectors, queries = rng.normal(size=(2, 3)), rng.normal(size=(5, 3))
    logits = Induction(slices=4).fit(parameters, vectors, np.eye(2))(queries)
    prototypes = routed_means(squash(vectors @ parameters["map"] + parameters["map_bias"]), np.eye(2), 3)
    for i, query in enumerate(queries):
        for j, prototype in enumerate(prototypes):
            slices = [max(0.0, prototype @ matrix @ query) for matrix in parameters["tensor"]]
            assert logits[i, j] == pytest.approx(slices @ parameters["out"][:, 0])


def test_segment_means_are_given_to_every_word() -> None:
    values, offsets = np.array([[1, 2], [3, 6], [5, 5]], np.float32), np.array([0, 2, 2, 3])
    wanted = [[2, 4], [2, 4], [5, 5]]
    np.testing.assert_allclose(segment_means(values, offsets), wanted)
    np.testing.assert_allclose(segment_means(torch.tensor(values), offsets), wanted)
    assert segment_means(values[:0], np.array([0, 0])).shape == (0, 2)
