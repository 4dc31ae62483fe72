"""The examples of a classifier: labels of several types, tables given by mistake, examples changed later, warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from handful import FewShotClassifier
from handful.errors import DataError, HandfulWarning

TEXTS = ["lost card", "my card is gone", "refund please", "I want my money back", "book a flight", "a flight to Rome"]
LABELS = ["card", "card", "money", "money", "travel", "travel"]
QUERIES = ["where is my card", "give me a refund", "flights to Paris", "hello"]


def same(first: FewShotClassifier, second: FewShotClassifier) -> bool:
    equal = first.classes_.tolist() == second.classes_.tolist()
    return equal and np.allclose(first.predict_proba(QUERIES), second.predict_proba(QUERIES), atol=1e-6)


@pytest.mark.parametrize("first", [object, str])
def test_labels_may_come_as_a_column_of_objects_first_and_as_a_list_later(first: type) -> None:
    other = str if first is object else object
    clf = FewShotClassifier().fit(TEXTS[:3], np.array(LABELS[:3], first))
    clf.partial_fit(TEXTS[3:], np.array(LABELS[3:], other))
    assert same(clf, FewShotClassifier().fit(TEXTS, LABELS))


def test_numbers_after_strings_are_refused() -> None:
    clf = FewShotClassifier().fit(TEXTS, LABELS)
    with pytest.raises(DataError, match="another kind"):
        clf.partial_fit(["more"], [3])


class Table:
    """As much of a data frame as tells that it is one."""

    columns = ("body", "queue")
    shape = (2, 2)

    def __iter__(self):
        return iter(self.columns)


def test_a_table_is_not_taken_for_texts() -> None:
    clf = FewShotClassifier().fit(TEXTS, LABELS)
    for call in (clf.predict, clf.suggest, clf.transform, lambda table: FewShotClassifier().fit(table, ["a", "b"])):
        with pytest.raises(DataError, match=r"columns body, queue: pass the column .* table\['text'\]"):
            call(Table())


# Changing examples


def test_removed_examples_are_forgotten() -> None:
    clf = FewShotClassifier().fit(TEXTS, LABELS).remove_examples([1, 4, 5])
    rest = [TEXTS[i] for i in (0, 2, 3)], [LABELS[i] for i in (0, 2, 3)]
    assert same(clf, FewShotClassifier().fit(*rest))
    assert clf.examples_.texts == rest[0]


def test_relabelled_examples_are_learned_anew_in_their_places() -> None:
    clf = FewShotClassifier().fit(TEXTS, LABELS).relabel([5, 0], ["holiday", "travel"])
    labels = ["travel", "card", "money", "money", "travel", "holiday"]
    assert same(clf, FewShotClassifier().fit(TEXTS, labels))
    assert clf.examples_.labels.values.tolist() == labels


def test_relabelling_lists_of_labels() -> None:
    lists = [[label] for label in LABELS]
    clf = FewShotClassifier().fit(TEXTS, lists).relabel([2], [["money", "card"]])
    assert clf.examples_.labels.values[2] == ["card", "money"]
    assert same(clf, FewShotClassifier().fit(TEXTS, [*lists[:2], ["card", "money"], *lists[3:]]))


@pytest.mark.parametrize(
    ("positions", "sentence"), [([9], "no example at position 9"), ([-1], "no example at position -1"), ([1, 1], "given twice")]
)
def test_positions_that_cannot_be(positions: list[int], sentence: str) -> None:
    clf = FewShotClassifier().fit(TEXTS, LABELS)
    with pytest.raises(DataError, match=sentence):
        clf.remove_examples(positions)
    with pytest.raises(DataError, match=sentence):
        clf.relabel(positions, ["card"] * len(positions))


def test_a_classifier_without_its_examples_says_so(tmp_path) -> None:
    FewShotClassifier().fit(TEXTS, LABELS).save(tmp_path / "m")
    loaded = FewShotClassifier.load(tmp_path / "m")
    with pytest.raises(DataError, match="`keep_examples=True` to remove"):
        loaded.remove_examples([0])


# Many texts


def test_many_texts_are_explained_one_by_one() -> None:
    clf = FewShotClassifier().fit(TEXTS, LABELS)
    assert clf.explain(QUERIES) == [clf.explain(text) for text in QUERIES]
    assert clf.explain([]) == []


def test_transform_gives_the_vectors_that_scores_are_linear_in() -> None:
    clf = FewShotClassifier().fit(TEXTS, LABELS)
    vectors, fitted = clf.transform(QUERIES), clf.fitted_
    assert vectors.shape == (4, 384)
    scores = fitted.calibration.logits(fitted.scorer.scale * (vectors @ fitted.scorer.weights))
    np.testing.assert_allclose(scores, clf.decision_function(QUERIES), atol=1e-4)


# Warnings


def test_examples_in_another_language_are_warned_of() -> None:
    german = ["meine Karte ist verloren gegangen", "ich möchte mein Geld zurück", "wo bleibt mein Paket seit zwei Wochen"]
    with pytest.warns(HandfulWarning, match=r"\d+ % of the words|\d+% of the words .* set `language` and `vectors`"):
        FewShotClassifier().fit(german, ["a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FewShotClassifier().fit(TEXTS, LABELS)


def test_texts_that_are_cut_are_counted() -> None:
    with pytest.warns(HandfulWarning, match="2 texts are longer than 3 words: only the first 3"):
        FewShotClassifier(max_words=3).fit(["a b c d", "e f g", "h i j k l"], [0, 1, 2])


def test_labels_that_differ_by_spaces_or_case_and_empty_texts_are_warned_of() -> None:
    with pytest.warns(HandfulWarning) as caught:
        FewShotClassifier().fit(["lost card", "", "a flight"], ["card", "Card ", "travel"])
    sentences = [str(warning.message) for warning in caught]
    assert any("'card' and 'Card '" in sentence for sentence in sentences)
    assert any("1 of 3 texts is empty" in sentence for sentence in sentences)
    assert all(warning.filename == __file__ for warning in caught)


def test_a_blank_label_is_refused() -> None:
    with pytest.raises(DataError, match="Label 1 is blank"):
        FewShotClassifier().fit(["lost card", "a flight"], ["card", " "])
