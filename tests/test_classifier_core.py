"""One core: the classifier is the few-shot model, fitted to raw texts."""

from __future__ import annotations

import json
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields
from functools import cache

import numpy as np
import pytest

from handful import FewShotClassifier
from handful.data.corpus import Texts, make_corpus
from handful.data.datasets import find_data
from handful.data.frequencies import background_pool
from handful.embeddings import load_vectors
from handful.errors import DataError, HandfulWarning
from handful.models.few_shot import Task
from handful.models.generator import DEFAULT_VECTORS, load_generator
from handful.utils.files import read_lines
from handful.utils.parallel import _blas_controller, single_blas_thread

CLOSE = 1e-5


@cache
def requests() -> dict[str, list[str]]:
    """Texts by class."""
    found: dict[str, list[str]] = {}
    for _, line in read_lines(find_data("requests")[0]):
        row = json.loads(line)
        found.setdefault(row["label"], []).append(row["text"])
    return found


def task_of(shots: int, ways: int) -> tuple[list[str], list[str], list[str]]:
    """Examples, their labels, and queries."""
    chosen = [label for label, texts in requests().items() if len(texts) > shots + 2][:ways]
    assert len(chosen) == ways
    examples = [text for label in chosen for text in requests()[label][:shots]]
    queries = [text for label in chosen for text in requests()[label][shots : shots + 2]]
    return examples, [label for label in chosen for _ in range(shots)], queries


def corpus_task(examples: list[str], labels: list[str], queries: list[str]) -> tuple[Task, Texts]:
    """The task that the model learns from the examples, and the queries as it takes them."""
    corpus = make_corpus([*examples, *queries], [""] * (len(examples) + len(queries)))
    table = load_vectors(DEFAULT_VECTORS).lookup(corpus.vocabulary.words)
    corpus = corpus.keep_words((table != 0).any(axis=1))
    texts, pool = corpus.texts(table), background_pool(corpus.vocabulary)
    numbers = np.unique(labels, return_inverse=True)[1]
    task = load_generator().fit(texts.select(np.arange(len(examples))), numbers, pool)
    return task, texts.select(np.arange(len(examples), len(corpus)))


def centred(scores: np.ndarray) -> np.ndarray:
    """Without what is the same for all classes."""
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("ways", [5, 20])
@pytest.mark.parametrize("shots", [1, 2, 5])
def test_the_classifier_is_the_model_fitted_to_raw_texts(shots: int, ways: int) -> None:
    examples, labels, queries = task_of(shots, ways)
    clf = FewShotClassifier().fit(examples, labels, class_names=False)
    task, texts = corpus_task(examples, labels, queries)
    bag = clf.fitted_.encoder
    documents = bag.encoder.read(queries)
    np.testing.assert_allclose(bag.attention(documents), task.weights(texts), atol=CLOSE)
    np.testing.assert_allclose(bag.vectors(documents), task.model.represent(task.batch(texts)), atol=CLOSE)
    logits = centred(clf.fitted_.calibration.logits(task.score(texts)))
    np.testing.assert_allclose(centred(clf.decision_function(queries)), logits, atol=CLOSE * np.abs(logits).max())


# Threads


def test_threads_may_predict_while_another_learns() -> None:
    examples, labels, queries = task_of(5, 20)
    clf = FewShotClassifier().fit(examples[:50], labels[:50])
    states = [clf.fitted_]
    before = {clf.predict_proba(queries).tobytes()}
    stop = threading.Event()
    found: list[bytes] = []

    def ask() -> None:
        while not stop.is_set():
            found.append(clf.predict_proba(queries).tobytes())

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        for start in range(50, 100, 10):
            clf.partial_fit(examples[start : start + 10], labels[start : start + 10])
            states.append(clf.fitted_)
        stop.set()
        for future in asking:
            future.result()
    allowed = {state.probabilities(state.scores(queries)).tobytes() for state in states}
    assert before <= allowed
    assert found
    assert set(found) <= allowed


def test_nothing_that_was_learned_can_be_assigned_to() -> None:
    fitted = FewShotClassifier().fit(["a b", "c d"], [0, 1]).fitted_
    for record in (fitted, fitted.encoder, fitted.encoder.evidence, fitted.scorer):
        with pytest.raises(FrozenInstanceError):
            setattr(record, fields(record)[0].name, None)


# Weights


@pytest.mark.parametrize("several", [False, True])
def test_an_example_of_weight_k_is_k_equal_examples(several: bool) -> None:
    texts = ["my card is lost", "the card never came", "a refund please", "money back", "cannot log in"]
    labels = (
        [["card"], ["card", "money"], ["money"], ["money"], ["login"]] if several else ["card", "card", "money", "money", "x"]
    )
    weights = [3, 1, 2, 1, 2]
    repeated = [text for text, weight in zip(texts, weights, strict=True) for _ in range(weight)]
    their_labels = [label for label, weight in zip(labels, weights, strict=True) for _ in range(weight)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HandfulWarning)
        whole = FewShotClassifier().fit(repeated, their_labels)
    weighted = FewShotClassifier().fit(texts, labels, sample_weight=weights)
    queries = ["lost card", "I want my money", "password forgotten", ""]
    np.testing.assert_allclose(weighted.predict_proba(queries), whole.predict_proba(queries), atol=1e-5)
    plain = FewShotClassifier().fit(texts, labels)
    assert np.abs(weighted.predict_proba(queries) - plain.predict_proba(queries)).max() > 1e-3


@pytest.mark.parametrize(
    ("weights", "sentence"), [([1], "one weight per text"), ([1, 0], "not above 0"), ([1, float("nan")], "not above 0")]
)
def test_weights_that_cannot_be(weights: list[float], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        FewShotClassifier().fit(["a", "b"], [0, 1], sample_weight=weights)


def blas_threads() -> list[int]:
    """The number of threads of each BLAS library that was loaded when a limit was first set: NumPy's is."""
    return [pool["num_threads"] for pool in _blas_controller().info() if pool["user_api"] == "blas"]


def test_one_blas_thread_is_used_in_any_thread_and_then_as_many_as_before() -> None:
    def inside() -> list[int]:
        with single_blas_thread():
            return blas_threads()

    before = blas_threads()
    assert before
    with ThreadPoolExecutor(1) as other:
        for call in (inside, lambda: other.submit(inside).result(), inside):
            assert call() == [1] * len(before)
            assert blas_threads() == before
        with single_blas_thread():
            assert other.submit(inside).result() == [1] * len(before)
            assert blas_threads() == [1] * len(before)
    assert blas_threads() == before
