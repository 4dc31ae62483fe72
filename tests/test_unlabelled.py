"""Unlabelled texts: they help where they are like the examples, and cost nothing where they are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_label_words import draw, requests, texts_by_class  # noqa: F401 - a fixture

from handful import FewShotClassifier
from handful.errors import HandfulWarning
from handful.models.examples import _Known, _likeness, _moved_to, _near, scorer_from_vectors
from handful.models.heads import ReadyHead
from handful.models.sentence_encoder import SENTENCE_HEAD, SENTENCE_SCALE

FOREIGN = [
    f"The {animal} sat {place} and dreamt of {food}."
    for animal in ("cat", "hen", "cow", "fox", "owl", "dog")
    for place in ("on the moon", "by a river", "in a tree", "under the sea")
    for food in ("cheese", "worms", "grass", "honey")
]


def tasks(requests, shots: int = 1, ways: int = 20, seeds: int = 4):  # noqa: F811
    """Examples, labels, unlabelled texts of the same classes, queries and their labels."""
    for seed in range(seeds):
        texts, labels, others, truth = draw(requests, ways, shots, seed)
        pool = np.arange(len(others)) % 2 == 0
        pooled = [text for text, taken in zip(others, pool, strict=True) if taken]
        asked = [(text, label) for text, label, taken in zip(others, truth, pool, strict=True) if not taken]
        yield texts, labels, pooled, [text for text, _ in asked], [label for _, label in asked]


def test_texts_of_the_same_classes_help() -> None:
    gains = []
    for texts, labels, pool, queries, truth in tasks(texts_by_class("demo"), ways=10, seeds=8):
        alone, pooled = (FewShotClassifier().fit(texts, labels, class_names=False, unlabeled=more) for more in (None, pool))
        gains.append(pooled.score(queries, truth) - alone.score(queries, truth))
    assert np.mean(gains) > 0.05


def test_foreign_texts_do_not_hurt(requests) -> None:  # noqa: F811
    losses = []
    for texts, labels, _, queries, truth in tasks(requests, seeds=16):
        alone, pooled = (FewShotClassifier().fit(texts, labels, unlabeled=more) for more in (None, FOREIGN))
        losses.append(pooled.score(queries, truth) - alone.score(queries, truth))
    assert np.mean(losses) > -0.01


def test_learning_is_deterministic_and_ignores_repetitions(requests) -> None:  # noqa: F811
    texts, labels, pool, queries, _ = next(tasks(requests))
    first, second, doubled = (
        FewShotClassifier().fit(texts, labels, unlabeled=these).predict_proba(queries) for these in (pool, pool, pool * 2)
    )
    assert np.array_equal(first, second)
    assert np.array_equal(first, doubled)


def test_unlabelled_texts_go_on_counting_and_are_kept_only_with_the_examples(requests, tmp_path: Path) -> None:  # noqa: F811
    texts, labels, pool, queries, _ = next(tasks(requests, shots=2))
    whole = FewShotClassifier().fit(texts, labels, unlabeled=pool)
    half = len(texts) // 2
    grown = FewShotClassifier().fit(texts[:half], labels[:half], unlabeled=pool).partial_fit(texts[half:], labels[half:])
    np.testing.assert_allclose(grown.predict_proba(queries), whole.predict_proba(queries), atol=1e-5)
    private = "a very private text about my own bicycle"
    clf = FewShotClassifier().fit(texts, labels, unlabeled=[*pool, private])
    for keep in (False, True):
        clf.save(tmp_path / str(keep), keep_examples=keep)
        written = b"".join(path.read_bytes() for path in (tmp_path / str(keep)).iterdir())
        assert (private.encode() in written) == keep
        assert FewShotClassifier.load(tmp_path / str(keep)).fitted_.sources.unlabeled == len(pool) + 1
    again = FewShotClassifier.load(tmp_path / "True").partial_fit(["one more text"], labels[:1])
    assert again.fitted_.sources.unlabeled == len(pool) + 1


def test_a_large_pool_is_sampled_and_a_warning_says_so(requests, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr("handful.classifier.checks.MOST_UNLABELED", 20)
    texts, labels, pool, _, _ = next(tasks(requests))
    with pytest.warns(HandfulWarning, match=r"an even sample of 20 is used"):
        clf = FewShotClassifier().fit(texts, labels, unlabeled=pool)
    assert clf.fitted_.sources.unlabeled == 20


def test_texts_with_several_labels_cannot_use_them() -> None:
    with pytest.warns(HandfulWarning, match="they are ignored"):
        clf = FewShotClassifier().fit(["a good meal", "a late train"], [["food"], ["travel"]], unlabeled=["a text"])
    assert clf.fitted_.sources.unlabeled == 0


def test_far_texts_do_not_count() -> None:
    rng = np.random.default_rng(0)
    examples = np.eye(40)[:10].astype(np.float32) + 0.3 * np.eye(40)[30].astype(np.float32)
    examples /= np.linalg.norm(examples, axis=1, keepdims=True)
    similar = examples + 0.1 * rng.normal(size=examples.shape).astype(np.float32)
    different = np.eye(40)[11:20].astype(np.float32)
    nothing = np.zeros((2, 40), np.float32)
    near = _near(np.concatenate([similar / np.linalg.norm(similar, axis=1, keepdims=True), different, nothing]), examples)
    assert near.tolist() == [True] * 10 + [False] * 11


@pytest.mark.parametrize("classes", [5, 40])
def test_label_words_alone_move_towards_the_texts(classes: int) -> None:
    """What all texts have in common, and no label has, would otherwise speak for the class whose label is like it."""
    names, texts, truth = _labels_and_texts(classes)
    head = ReadyHead(SENTENCE_HEAD, {"scale": SENTENCE_SCALE})
    known = _Known(names, np.eye(classes, dtype=np.float32), np.ones(classes, np.float32))
    moved, trust = _moved_to(texts[:400], known, head)
    assert trust == 1

    def accuracy(scorer) -> float:
        return float(np.mean(scorer(texts[400:]).argmax(axis=1) == truth[400:]))

    pooled = scorer_from_vectors(head, names, known.targets, np.ones(classes, bool), texts[:400])
    assert accuracy(moved.scorer(head)) > accuracy(known.scorer(head)) + 0.02
    assert accuracy(pooled) > accuracy(known.scorer(head)) + 0.1


def test_label_words_alone_ignore_texts_that_none_of_them_answers() -> None:
    names, _, _ = _labels_and_texts(20)
    head = ReadyHead(SENTENCE_HEAD, {"scale": SENTENCE_SCALE})
    noise = np.eye(64, dtype=np.float32)[np.arange(400) % 40 + 24]  # along no label
    known = _Known(names, np.eye(20, dtype=np.float32), np.ones(20, np.float32))
    still, trust = _moved_to(noise, known, head)
    assert trust == 0
    assert np.array_equal(still.vectors, names)
    pooled, alone = (scorer_from_vectors(head, names, known.targets, np.ones(20, bool), pool) for pool in (noise, None))
    assert np.array_equal(pooled(noise), alone(noise))


def test_texts_count_less_the_farther_their_mean_is_from_that_of_the_examples() -> None:
    rng = np.random.default_rng(0)
    examples, texts = rng.normal(size=(20, 64)).astype(np.float32), rng.normal(size=(500, 64)).astype(np.float32)
    shifts = [np.float32(size) * np.eye(64, dtype=np.float32)[0] for size in (0, 2.5, 8)]
    same, other, far = (_likeness(texts + shift, examples) for shift in shifts)
    assert same > 0.9
    assert 0.4 < other < 0.7  # its squared distance is a tenth of the examples' variance
    assert far < 0.15
    assert _likeness(texts, examples[:1]) == 1


def _labels_and_texts(classes: int):
    rng = np.random.default_rng(0)
    names = np.eye(classes, 64, dtype=np.float32)
    truth = np.arange(800) % classes
    return names, names[truth] + names[0] + rng.normal(size=(800, 64)).astype(np.float32) / 8, truth
