"""Embedding space, oracle attention, supervised networks: numbers against what is known or planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.analysis import fitting, oracle, space, supervised
from handful.analysis.inspected_run import InspectedRun, NotApplicableError
from handful.analysis.weighting import WEIGHTINGS, query_episode, word_weights
from handful.data.corpus import make_corpus
from handful.models.signatures import general_importance
from handful.utils.functional import segment_sum

PLANTED = ("alpha", "beta", "gamma")


@pytest.fixture(scope="module")
def planted():
    """Texts of noise with one word that gives their class away, at a random place."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for number in range(240):
        words = [f"noise{i}" for i in rng.integers(0, 40, 9)]
        words.insert(int(rng.integers(0, 10)), PLANTED[number % 3])
        texts.append(words)
        labels.append(f"class{number % 3}")
    corpus = make_corpus(texts, labels)
    table = np.random.default_rng(1).normal(size=(len(corpus.vocabulary), 12)).astype(np.float32)
    return corpus, corpus.texts(table)


def silhouettes_by_hand(vectors, labels):
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)
    found = []
    for i, label in enumerate(labels):
        own = distances[i, (labels == label) & (np.arange(len(labels)) != i)].mean()
        nearest = min(distances[i, labels == other].mean() for other in set(labels) - {label})
        found.append((nearest - own) / max(nearest, own))
    return np.array(found)


def test_silhouettes_and_the_plane_are_those_of_their_definition() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 10)
    vectors = rng.normal(size=(30, 6)) + 2 * np.eye(6)[labels]
    found = space.embedding_space("mean", vectors, labels)
    centred = vectors - vectors.mean(0)
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(np.abs(found.points), np.abs(centred @ directions[:2].T))
    assert found.variance == pytest.approx((spread[:2] ** 2).sum() / (spread**2).sum())
    assert np.allclose(found.silhouettes, silhouettes_by_hand(vectors, labels))
    assert np.allclose(found.flat_silhouettes, silhouettes_by_hand(found.points, labels))
    assert found.separation == pytest.approx(found.silhouettes.mean())


def test_the_weights_of_a_text_sum_to_one_and_are_what_they_say(curve_run: Path) -> None:
    inspected = InspectedRun(curve_run, quick=True, quiet=True)
    episode = query_episode(inspected)
    texts = inspected.texts.select(episode.query)
    weights = word_weights(inspected, episode, texts)
    assert list(weights) == list(WEIGHTINGS)
    for values in weights.values():
        assert np.allclose(segment_sum(values, texts.offsets), 1, atol=1e-5)
    first = slice(0, texts.offsets[1])
    s = general_importance(episode.pool, texts.ids[first], 1e-3)
    assert np.allclose(weights["s"][first], s / s.sum(), atol=1e-6)
    assert np.array_equal(weights["ours"], inspected.task(episode).weights(texts))


def test_the_picture_of_the_space_names_its_classes_and_deviations(curve_run: Path) -> None:
    inspected = InspectedRun(curve_run, quick=True, quiet=True)
    [figure] = space.figures(inspected)
    episode = query_episode(inspected)
    assert all(inspected.corpus.classes[number] in figure.caption for number in episode.classes)
    assert "The paper has 500 queries per class; this is a quick look." in figure.caption
    assert "trained on tasks with 1 labelled text per class" in figure.caption
    assert len(figure.rows) == 4 + 4 * len(episode.query)
    means = {row["weighting"]: row["silhouette"] for row in figure.rows[:4]}
    points = [row["silhouette"] for row in figure.rows[4:] if row["weighting"] == "ours"]
    assert means["ours"] == pytest.approx(np.mean(points), abs=1e-4)
    assert figure.svg.startswith("<svg")


def test_classes_can_be_asked_for_and_a_small_class_gives_what_it_has(curve_run: Path) -> None:
    whole = InspectedRun(curve_run, quiet=True)
    names = [whole.corpus.classes[number] for number in whole.inputs.dataset.split.test[:2]]
    episode = query_episode(replace(whole, classes=tuple(names)))
    sizes = [int(np.sum(whole.corpus.labels == number)) for number in episode.classes]
    assert np.bincount(episode.query_labels).tolist() == [min(500, size - 5) for size in sizes]
    assert not set(episode.query) & set(episode.support)


def test_a_run_without_attention_is_told_so(mean_run: Path) -> None:
    for module in (space, oracle, supervised):
        with pytest.raises(NotApplicableError, match="generates no attention: give a run"):
            module.figures(InspectedRun(mean_run, quiet=True))


def test_the_oracle_finds_the_planted_word(planted) -> None:
    corpus, texts = planted
    found = oracle.train_oracle(texts, corpus.labels, schedule=fitting.Schedule(rate=0.01, updates=150))
    weights = found.weights(texts)
    planted_ids = corpus.vocabulary.find(PLANTED)
    heaviest = [
        texts.ids[begin + weights[begin:end].argmax()] for begin, end in zip(texts.offsets, texts.offsets[1:], strict=False)
    ]
    assert np.mean(np.isin(heaviest, planted_ids)) > 0.95
    assert found.accuracy > 0.95
    assert np.allclose(segment_sum(weights, texts.offsets), 1, atol=1e-5)


def test_the_cosine_of_two_weightings(planted) -> None:
    _, texts = planted
    one = np.zeros(len(texts.ids), np.float32)
    one[texts.offsets[:-1]] = 1  # all attention on the first word of ten
    assert oracle.mean_cosine(one, one, texts) == pytest.approx(1)
    assert oracle.mean_cosine(one, np.full_like(one, 0.1), texts) == pytest.approx(10**-0.5)


def test_the_papers_cosines_stand_beside_ours(curve_run: Path) -> None:
    assert oracle.paper_cosines("huffpost") == {"mean": 0.51, "s": 0.59, "t": 0.7, "ours": 0.74}
    [figure] = oracle.figures(InspectedRun(curve_run, quick=True, quiet=True))
    assert [row["weighting"] for row in figure.rows] == list(WEIGHTINGS)
    assert all(0 < row["cosine"] <= 1 and row["paper"] is None for row in figure.rows)
    assert "The paper has no figures for this data set." in figure.caption
    assert figure.png.startswith(b"\x89PNG")


def test_a_network_learns_a_separable_task_from_enough_texts(planted) -> None:
    corpus, texts = planted
    members = [np.flatnonzero(corpus.labels == label) for label in range(3)]
    learned, tested = supervised.draw_task(members, 40, np.random.default_rng(0))
    assert [len(part) for part in learned + tested] == [40] * 6
    assert not set(np.concatenate(learned)) & set(np.concatenate(tested))
    many, one = (supervised.supervised_accuracy(texts, [part[:n] for part in learned], tested) for n in (40, 1))
    assert many > 0.85
    assert many > one


def test_the_curve_of_the_network_with_the_method_as_lines(curve_run: Path, monkeypatch) -> None:
    monkeypatch.setattr(supervised, "SIZES", (1, 5))
    monkeypatch.setattr(supervised, "QUICK_EPISODES", 8)
    monkeypatch.setattr(supervised, "SCHEDULE", fitting.Schedule(updates=10))
    [figure] = supervised.figures(InspectedRun(curve_run, quick=True, quiet=True))
    curve, lines = figure.rows[:2], figure.rows[2:]
    assert [row["examples_a_class"] for row in curve] == [1, 5]
    assert [(line["examples_a_class"], line["trained_at_shot"]) for line in lines] == [(1, 1), (5, 1)]
    assert all(0 <= row["accuracy"] <= 1 for row in figure.rows)
    assert "However, it was trained on tasks with 1 labelled text per class." in figure.caption
    assert figure.svg.startswith("<svg")


def test_the_frame_leaves_out_what_lies_far_away() -> None:
    points = np.random.default_rng(0).normal(size=(500, 2))
    low, high = space.frame(np.vstack([points, [[1000, 0]]]))
    assert high[0] < 10
    assert np.mean((points > low) & (points < high)) > 0.99
