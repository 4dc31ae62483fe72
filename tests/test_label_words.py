"""Labels that read as words: used by default, as far as the examples confirm them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from handful import FewShotClassifier
from handful.data.datasets import find_data
from handful.data.label_words import label_words
from handful.models.examples import NAME_WEIGHT
from handful.utils.files import read_lines

WAYS = 20


def texts_by_class(data: str) -> dict[str, list[str]]:
    """Texts of the classes whose label reads as words."""
    found: dict[str, list[str]] = {}
    for _, line in read_lines(find_data(data)[0]):
        row = json.loads(line)
        found.setdefault(row["label"], []).append(row["text"])
    return {label: texts for label, texts in found.items() if label_words(label) and len(texts) > 6}


@pytest.fixture(scope="module")
def requests() -> dict[str, list[str]]:
    return texts_by_class("requests")


def draw(requests: dict[str, list[str]], ways: int, shots: int, seed: int) -> tuple[list[str], list[str], list[str], list[str]]:
    """Examples, their labels, queries, and theirs."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(sorted(requests))[:ways].tolist()
    texts = {label: rng.permutation(requests[label]).tolist() for label in classes}
    examples = [(text, label) for label in classes for text in texts[label][:shots]]
    queries = [(text, label) for label in classes for text in texts[label][shots:]]
    return *map(list, zip(*examples, strict=True)), *map(list, zip(*queries, strict=True))


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("card_arrival", "card arrival"),
        ("cardArrival", "card arrival"),
        ("HTTPError", "http error"),
        ("sales/support", "sales support"),
        ("Sports & Leisure", "sports leisure"),
        ("top 10 lists", "top 10 lists"),
        ("rec.sport.hockey", "rec sport hockey"),
        ("b", ""),
        ("17", ""),
        ("Q4", ""),
        ("cls_07", ""),
        ("xqzt vrrk", ""),
        ("", ""),
        (3, ""),
        (None, ""),
    ],
)
def test_labels_are_read_as_words_or_not_at_all(label: object, words: str) -> None:
    assert label_words(label) == words


def test_words_are_those_of_the_language() -> None:
    assert label_words("Überweisung", "de") == "überweisung"
    assert label_words("Überweisung", "en") == ""


@pytest.mark.parametrize(("ways", "shots"), [(5, 1), (20, 1), (20, 5)])
def test_label_words_help_and_shuffled_ones_are_ignored(requests, ways: int, shots: int) -> None:
    scores: dict[str, list[float]] = {"alone": [], "true": [], "shuffled": []}
    weights: dict[str, list[float]] = {"true": [], "shuffled": []}
    for seed in range(8 if ways == 5 else 3):
        texts, labels, queries, truth = draw(requests, ways, shots, seed)
        classes = sorted(set(labels))
        others = dict(zip(classes, classes[1:] + classes[:1], strict=True))
        given = {"alone": False, "true": None, "shuffled": {label: label_words(other) for label, other in others.items()}}
        for name, class_names in given.items():
            clf = FewShotClassifier().fit(texts, labels, class_names=class_names)
            scores[name].append(clf.score(queries, truth))
            if name != "alone":
                weights[name].append(clf.fitted_.sources.name_weight)
    assert np.mean(scores["true"]) > np.mean(scores["alone"]) + (0.1 if shots == 1 else 0)
    assert np.mean(scores["shuffled"]) > np.mean(scores["alone"]) - 0.01
    assert np.median(weights["true"]) > 0.9 * NAME_WEIGHT
    assert np.median(weights["shuffled"]) == 0


def test_of_exchanged_label_words_only_those_count_less(requests) -> None:
    scores: dict[str, list[float]] = {"alone": [], "exchanged": []}
    kept, exchanged = [], []
    for seed in range(6):
        texts, labels, queries, truth = draw(requests, 10, 5, seed)
        classes = sorted(set(labels))
        words = {label: label_words(label) for label in classes}
        words |= {one: words[other] for one, other in zip(classes[:4], classes[1:4] + classes[:1], strict=True)}
        for name, given in (("alone", False), ("exchanged", words)):
            clf = FewShotClassifier().fit(texts, labels, class_names=given)
            scores[name].append(clf.score(queries, truth))
        kept.append(len({*clf.fitted_.sources.named} & {*classes[4:]}) / 6)
        exchanged.append(len({*clf.fitted_.sources.named} & {*classes[:4]}) / 4)
    assert np.mean(scores["exchanged"]) > np.mean(scores["alone"]) - 0.01
    assert np.mean(kept) > np.mean(exchanged) + 0.3


def test_codes_are_no_help_and_no_harm(requests) -> None:
    texts, labels, queries, _ = draw(requests, 5, 1, 0)
    codes = {label: f"q{number}" for number, label in enumerate(sorted(set(labels)))}
    coded = FewShotClassifier().fit(texts, [codes[label] for label in labels])
    alone = FewShotClassifier().fit(texts, labels, class_names=False)
    assert coded.fitted_.sources.named == ()
    np.testing.assert_allclose(coded.predict_proba(queries), alone.predict_proba(queries), atol=1e-6)


def test_sources_are_saved_and_examples_of_new_classes_bring_their_words(requests, tmp_path: Path) -> None:
    texts, labels, queries, _ = draw(requests, 5, 2, 1)
    clf = FewShotClassifier().fit(texts, labels)
    clf.save(tmp_path / "kept", keep_examples=True)
    loaded = FewShotClassifier.load(tmp_path / "kept")
    assert loaded.fitted_.sources == clf.fitted_.sources
    assert set(loaded.fitted_.sources.named) == set(labels)
    more = loaded.partial_fit(["my bicycle was stolen", "where can I park my bicycle"], ["bicycle", "bicycle"])
    whole = FewShotClassifier().fit([*texts, *more.examples_.texts[-2:]], [*labels, "bicycle", "bicycle"])
    assert "bicycle" in more.fitted_.sources.named
    np.testing.assert_allclose(more.predict_proba(queries), whole.predict_proba(queries), atol=1e-5)


def test_a_class_without_an_example_is_known_by_its_words(requests) -> None:
    texts, labels, _, _ = draw(requests, 5, 2, 2)
    clf = FewShotClassifier().fit(texts, labels, class_names={"weather": "weather forecast, rain and sunshine"})
    assert clf.predict(["will it rain tomorrow?"])[0] == "weather"


def test_words_given_for_a_class_replace_those_of_its_label(requests) -> None:
    texts, labels, queries, _ = draw(requests, 5, 1, 3)
    plain = FewShotClassifier().fit(texts, labels)
    fuller = FewShotClassifier().fit(texts, labels, class_names={labels[0]: "something else entirely, such as volcanoes"})
    silent = FewShotClassifier().fit(texts, labels, class_names={labels[0]: ""})
    assert labels[0] not in silent.fitted_.sources.named
    assert np.abs(fuller.predict_proba(queries) - plain.predict_proba(queries)).max() > 0.01
