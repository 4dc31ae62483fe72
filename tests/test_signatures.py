from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import needs_real_data
from hypothesis import given, settings
from hypothesis import strategies as st

from handful.data.corpus import Texts, make_corpus
from handful.data.episodes import EpisodeSampler, EpisodeSpec
from handful.data.frequencies import SourcePool
from handful.errors import SettingError
from handful.meta.inputs import load_experiment_data
from handful.meta.settings import RunSettings
from handful.models.few_shot import FewShotModel
from handful.models.settings import ModelSettings, SignatureSettings
from handful.models.signatures import (
    class_importance,
    general_importance,
    inverse_document_frequency,
    mean_vectors,
    measure_signals,
    softmax_weights,
    variation,
)
from handful.utils.functional import one_hot, softmax

ALL_T = [
    SignatureSettings(estimator="softmax", measure="entropy", penalty=0.03),
    SignatureSettings(estimator="ridge", measure="entropy", penalty=0.01),
    SignatureSettings(estimator="ridge", measure="max"),
    SignatureSettings(estimator="count", measure="entropy"),
]


def test_s_by_hand() -> None:
    pool = SourcePool(np.array([3, 1, 0]), np.array([2, 1, 0]), 2, 4.0)
    s = general_importance(pool, np.array([0, 1, 2, 0]), 1e-3)
    assert s.tolist() == pytest.approx([1e-3 / 0.751, 1e-3 / 0.251, 1.0, 1e-3 / 0.751])


def test_an_empty_pool_gives_every_word_s_1() -> None:
    pool = SourcePool(np.zeros(3), np.zeros(3), 0, 0.0)
    assert general_importance(pool, np.arange(3), 1e-3).tolist() == [1, 1, 1]


def test_idf_is_scikit_learns() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["a b c", "a b", "a", "d d d"]
    corpus = make_corpus(texts, ["x"] * 4)
    pool = SourcePool(corpus.word_counts().sum(0), corpus.document_counts().sum(0), 4, 9.0)
    theirs = TfidfVectorizer(token_pattern=r"\w+").fit(texts)  # noqa: S106
    expected = [theirs.idf_[theirs.vocabulary_[word]] for word in corpus.vocabulary.words]
    assert inverse_document_frequency(pool, np.arange(4)).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("chosen", ALL_T, ids=lambda chosen: f"{chosen.estimator}-{chosen.measure}")
def test_t_is_finite_positive_and_varies(
    chosen: SignatureSettings, sampler: EpisodeSampler, random_corpus, random_table
) -> None:
    texts, episode = random_corpus.texts(random_table), sampler[0]
    t = class_importance(texts.select(episode.support), episode.support_labels, 3, texts, chosen)
    assert t.dtype == np.float32
    assert np.isfinite(t).all()
    assert (t >= 0).all()
    assert t.std() > 1e-3 * t.mean()


@pytest.mark.parametrize("chosen", ALL_T, ids=lambda chosen: f"{chosen.estimator}-{chosen.measure}")
def test_t_does_not_depend_on_the_order_of_labels_or_examples(
    chosen: SignatureSettings, sampler: EpisodeSampler, random_corpus, random_table
) -> None:
    texts, episode = random_corpus.texts(random_table), sampler[0]
    first = class_importance(texts.select(episode.support), episode.support_labels, 3, texts, chosen)
    order, relabel = np.array([4, 2, 0, 1, 5, 3]), np.array([2, 0, 1])
    labels = relabel[episode.support_labels[order]]
    second = class_importance(texts.select(episode.support[order]), labels, 3, texts, chosen)
    np.testing.assert_allclose(first, second, rtol=1e-4)


def test_count_by_hand() -> None:
    corpus = make_corpus([["a", "a", "b"], ["b", "c"], ["d"]], ["x", "y", "z"])
    texts = corpus.texts(np.eye(4, dtype=np.float32))
    chosen = SignatureSettings(estimator="count", measure="entropy", smoothing=1.0)
    t = class_importance(texts.select(np.array([0, 1])), np.array([0, 1]), 2, texts, chosen)
    p = np.array([3 / 4, 1 / 4])
    a, b, unseen = -1 / np.sum(p * np.log(p)), 1 / np.log(2), 1 / np.log(2)
    assert t[0] == pytest.approx(a)
    assert t[2] == pytest.approx(b)
    assert t[5] == pytest.approx(unseen)


def test_the_softmax_classifier_minimises_its_loss() -> None:
    """Run to the end, the gradient of cross-entropy + penalty · |W|² vanishes."""
    rng = np.random.default_rng(0)
    vectors, targets = rng.normal(size=(6, 10)).astype("f"), one_hot(np.array([0, 1, 2, 0, 1, 2]), 3)
    weights = softmax_weights(vectors, targets, 0.05, 1e-4, "absolute")
    gradient = vectors.T @ (softmax(vectors @ weights) - targets) / 6 + 2 * 0.05 * weights
    assert np.linalg.norm(gradient) < 1e-4


def test_the_papers_absolute_rule_can_leave_t_constant() -> None:
    """With short vectors the first gradient is below 0.1 already: nothing is learned. The relative rule learns."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, 200)).astype("f") / 200**0.5 / 10
    targets = one_hot(np.arange(5), 5)
    assert not softmax_weights(vectors, targets, 1e-3, 0.1, "absolute").any()
    assert softmax_weights(vectors, targets, 1e-3, 0.1, "relative").any()


@pytest.mark.parametrize("scale", [1e-3, 7.0, 300.0])
def test_the_relative_rule_does_not_depend_on_the_scale_of_the_vectors(
    scale: float, sampler: EpisodeSampler, random_corpus, random_table
) -> None:
    episode = sampler[0]
    chosen = SignatureSettings(estimator="softmax")

    def t_of(table: np.ndarray) -> np.ndarray:
        texts = random_corpus.texts(table)
        return class_importance(texts.select(episode.support), episode.support_labels, 3, texts, chosen)

    first = t_of(random_table)
    assert variation(first) > 0.1
    np.testing.assert_allclose(t_of(random_table * np.float32(scale)), first, rtol=2e-3)


def test_support_texts_that_are_all_the_same_give_a_constant_t() -> None:
    corpus = make_corpus([["a"], ["a"]], ["x", "y"])
    texts = corpus.texts(np.eye(1, dtype=np.float32))
    t = class_importance(texts, np.array([0, 1]), 2, texts, SignatureSettings(estimator="softmax"))
    assert t.tolist() == pytest.approx([1 / np.log(2)] * 2)
    assert variation(t) == 0


def test_several_estimators_of_t_are_several_signals(sampler: EpisodeSampler, random_corpus, random_table) -> None:
    """Each is what t would be with this estimator; settings for t that they cannot have do not matter."""
    texts, episode = random_corpus.texts(random_table), sampler[0]
    support = texts.select(episode.support)
    given = (support, episode.support_labels, 3)
    chosen = SignatureSettings(estimator="ridge", measure="entropy", penalty=0.05)
    names = ("t-count", "t-softmax", "t", "t-ridge")
    columns = measure_signals(names, *given, episode.pool, episode.training, texts, chosen).T
    alone = [("count", "entropy"), ("softmax", "entropy"), ("ridge", "entropy"), ("ridge", "max")]
    for column, (estimator, measure) in zip(columns, alone, strict=True):
        expected = class_importance(*given, texts, replace(chosen, estimator=estimator, measure=measure))
        np.testing.assert_array_equal(column, expected)


@needs_real_data
def test_t_varies_on_every_reuters_episode() -> None:
    inputs = load_experiment_data(RunSettings(data="reuters"))
    sampler = inputs.sampler("test", EpisodeSpec(5, 1, 5), 0)
    for chosen in ALL_T[:3]:
        for index in range(10):
            episode = sampler[index]
            support, queries = inputs.texts.select(episode.support), inputs.texts.select(episode.query)
            t = class_importance(support, episode.support_labels, 5, queries, chosen)
            assert t.std() > 0.01 * t.mean()


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimator": "bayes"},
        {"measure": "mean"},
        {"estimator": "count", "measure": "max"},
        {"stop": "never"},
        {"epsilon": 0.0},
        {"smoothing": -1.0},
    ],
)
def test_wrong_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(SettingError):
        SignatureSettings(**wrong)


# Theorem 1


@st.composite
def perturbed_episodes(draw):
    """An episode over words in groups of equal counts in the source pool, and a bijection within the groups."""
    groups = draw(st.lists(st.integers(2, 5), min_size=1, max_size=4))
    counts = np.repeat(np.arange(len(groups)) * 3, groups)
    bijection = np.concatenate([draw(st.permutations(list(np.flatnonzero(counts == 3 * g)))) for g in range(len(groups))])
    word = st.integers(0, len(counts) - 1)
    texts = draw(st.lists(st.lists(word, min_size=1, max_size=8), min_size=4, max_size=10))
    return counts, np.array(bijection), texts, draw(st.integers(0, 2**16))


def as_texts(documents: list[list[int]], table: np.ndarray) -> Texts:
    ids = np.concatenate([np.array(document) for document in documents])
    offsets = np.concatenate([[0], np.cumsum([len(d) for d in documents])])
    return Texts(ids, offsets, table, ids, np.empty((len(ids), 0), np.int64))


@settings(max_examples=60, deadline=None)
@given(perturbed_episodes())
def test_theorem_1_attention_is_invariant_to_word_substitution(case) -> None:
    """With counts for P(y | x), replacing words by others of the same unigram probability changes no attention weight."""
    counts, bijection, documents, seed = case
    table = np.random.default_rng(seed).normal(size=(len(counts), 6)).astype("f")
    pool = SourcePool(counts, counts, 10, float(counts.sum()))
    chosen = ModelSettings(signature=SignatureSettings(estimator="count", measure="entropy"))
    model, labels = FewShotModel.initial(chosen, 6, seed), np.array([0, 1, 0])
    original = as_texts(documents, table)
    perturbed = as_texts([[int(bijection[word]) for word in document] for document in documents], table)
    tasks = [model.fit(texts.select(np.arange(3)), labels, pool, classes=2) for texts in (original, perturbed)]
    np.testing.assert_array_equal(tasks[0].weights(original), tasks[1].weights(perturbed))


def test_mean_vectors_of_an_empty_text_are_zero() -> None:
    texts = Texts(np.array([0]), np.array([0, 0, 1]), np.ones((1, 2), np.float32), np.array([0]), np.empty((1, 0), np.int64))
    assert mean_vectors(texts).tolist() == [[0, 0], [1, 1]]
