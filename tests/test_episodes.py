from __future__ import annotations

import numpy as np
import pytest

from handful.data.corpus import make_corpus
from handful.data.episodes import EpisodeSampler, EpisodeSpec
from handful.errors import DataError, SettingError


def test_an_episode_is_what_it_says(sampler: EpisodeSampler, random_corpus) -> None:
    episode = sampler[7]
    assert len(set(episode.classes)) == 3
    assert np.bincount(episode.support_labels).tolist() == [2, 2, 2]
    assert np.bincount(episode.query_labels).tolist() == [5, 5, 5]
    documents = np.concatenate([episode.support, episode.query])
    assert len(set(documents)) == len(documents)
    labels = np.concatenate([episode.support_labels, episode.query_labels])
    assert (random_corpus.labels[documents] == episode.classes[labels]).all()


def test_episodes_are_reproducible_by_index_and_distinct(sampler: EpisodeSampler, random_corpus) -> None:
    again = EpisodeSampler(random_corpus, range(4), range(8), EpisodeSpec(3, 2, 5), seed=3)
    backwards = [again[i] for i in reversed(range(20))][::-1]
    supports = [tuple(sampler[i].support) for i in range(20)]
    assert supports == [tuple(episode.support) for episode in backwards]
    assert len(set(supports)) == 20
    other = EpisodeSampler(random_corpus, range(4), range(8), EpisodeSpec(3, 2, 5), seed=4)
    assert supports != [tuple(other[i].support) for i in range(20)]


def test_the_source_pool_of_training_leaves_the_episodes_classes_out(sampler: EpisodeSampler, random_corpus) -> None:
    episode = sampler[0]
    inside = ~np.isin(random_corpus.labels, episode.classes)
    words = np.repeat(inside, np.diff(random_corpus.offsets))
    expected = np.bincount(random_corpus.ids[words], minlength=len(random_corpus.vocabulary))
    assert (episode.pool.counts == expected).all()
    assert episode.pool.size == inside.sum()
    assert episode.pool.total == expected.sum()
    assert episode.training.size == len(random_corpus)


def test_the_source_pool_of_testing_is_all_training_examples(random_corpus) -> None:
    testing = EpisodeSampler(random_corpus, range(4), range(4, 8), EpisodeSpec(3, 2, 5))
    assert testing[0].pool is testing[1].pool is testing.training_pool
    assert testing[0].pool.size == 48
    documents = random_corpus.document_counts()[4:].sum(0)
    assert (testing[0].pool.documents == documents).all()


def test_background_frequencies_can_stand_in_for_the_pool(random_corpus) -> None:
    from handful.data.frequencies import background_pool
    from handful.data.text import Vocabulary

    pool = background_pool(Vocabulary(["the", "penguin", "qwzxv"]))
    assert pool.counts[0] > 1000 * pool.counts[1] > pool.counts[2] == 0
    assert 0.01 < pool.counts[0] / pool.total < 0.1
    sampler = EpisodeSampler(random_corpus, range(8), range(8), EpisodeSpec(3, 2, 5), pool=pool)
    assert sampler[0].pool is pool
    assert sampler[0].training.size == len(random_corpus)


def test_document_counts_by_hand() -> None:
    corpus = make_corpus([["a", "a", "b"], ["b"], ["a"]], ["x", "x", "y"])
    assert corpus.document_counts().tolist() == [[1, 2], [1, 0]]
    assert corpus.word_counts().tolist() == [[2, 2], [1, 0]]


def test_fewer_queries_than_asked_are_recorded() -> None:
    corpus = make_corpus([["a"]] * 9, ["x"] * 4 + ["y"] * 5)
    sampler = EpisodeSampler(corpus, [0, 1], [], EpisodeSpec(2, 1, 25))
    assert sampler.queries_used == 3
    assert np.sort(np.bincount(sampler[0].query_labels)).tolist() == [3, 4]


def test_too_few_documents_or_classes_is_an_error_that_says_so() -> None:
    corpus = make_corpus([["a"]] * 4, ["x", "x", "x", "y"])
    with pytest.raises(DataError, match=r"'y' has 1 documents, fewer than the 2"):
        EpisodeSampler(corpus, [0, 1], [], EpisodeSpec(2, 1, 5))
    with pytest.raises(DataError, match="1 classes are too few for 2-way"):
        EpisodeSampler(corpus, [0], [], EpisodeSpec(2, 1, 5))
    with pytest.raises(SettingError, match="at least"):
        EpisodeSpec(1, 1, 1)
