"""FewShotClassifier: scikit-learn's contract, exact explanations, every kind of label, hostile input, saving."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from bundles import (
    ENCODER,
    EXAMPLES,
    MODEL,
    change_array,
    change_bytes,
    change_config,
    change_facts,
    config_of,
    part,
    rewrite,
)
from safetensors.numpy import load
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_array

from handful import FewShotClassifier
from handful.classifier import storage
from handful.classifier.calibration import _rounds, _thinned, damped, scale_factor
from handful.classifier.suggestion import representatives
from handful.data.datasets import find_data
from handful.embeddings.words import WordLookup
from handful.errors import DataError, HandfulError, HandfulWarning, ModelError, SettingError
from handful.models.examples import LabelledDocuments
from handful.models.few_shot import FewShotModel
from handful.models.generator import DEFAULT_VECTORS, generator_facts, generator_settings, load_generator
from handful.models.learning import learn
from handful.models.text_encoders import AttentionBag
from handful.utils.functional import one_hot
from handful.utils.sampling import even_sample

ROWS = [json.loads(line) for line in find_data("demo")[0].read_text("utf-8").splitlines()]
CLASSES = ["clinic_bill", "flight_change", "lost_luggage", "prescription_refill", "test_results"]
TEXTS = {name: [row["text"] for row in ROWS if row["label"] == name] for name in CLASSES}


def examples(shots: int, start: int = 0, classes: list[str] = CLASSES) -> tuple[list[str], list[str]]:
    pairs = [(text, name) for name in classes for text in TEXTS[name][start : start + shots]]
    return [text for text, _ in pairs], [name for _, name in pairs]


@pytest.fixture(scope="module")
def fitted() -> FewShotClassifier:
    return FewShotClassifier().fit(*examples(4))


QUERIES, TRUTH = examples(4, 10)

# Learning and answering


def test_it_learns_from_one_example_a_class() -> None:
    clf = FewShotClassifier().fit(*examples(1))
    assert clf.score(QUERIES, TRUTH) > 0.6
    assert clf.classes_.tolist() == CLASSES


def test_more_examples_help_and_probabilities_agree_with_answers(fitted: FewShotClassifier) -> None:
    assert fitted.score(QUERIES, TRUTH) > 0.8
    probabilities = fitted.predict_proba(QUERIES)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (fitted.classes_[probabilities.argmax(1)] == fitted.predict(QUERIES)).all()
    assert (fitted.decision_function(QUERIES).argmax(1) == probabilities.argmax(1)).all()


def test_partial_fit_is_fit_on_all_of_them() -> None:
    texts, labels = examples(3)
    first, new = examples(2, classes=CLASSES[:3])
    rest = [(text, label) for text, label in zip(texts, labels, strict=True) if text not in first]
    grown = FewShotClassifier().partial_fit(first, new).partial_fit(*map(list, zip(*rest, strict=True)))
    whole = FewShotClassifier().fit(texts, labels)
    assert grown.classes_.tolist() == CLASSES
    np.testing.assert_allclose(grown.decision_function(QUERIES), whole.decision_function(QUERIES), atol=1e-4)


def test_unsure_answers_are_none(fitted: FewShotClassifier) -> None:
    sure = fitted.predict(QUERIES, reject_below=0.0)
    assert sure.tolist() == fitted.predict(QUERIES).tolist()
    best = fitted.predict_proba(QUERIES).max(axis=1)
    level = float(np.median(best))
    assert [label is None for label in fitted.predict(QUERIES, reject_below=level)] == (best < level).tolist()
    with pytest.raises(SettingError, match="a probability"):
        fitted.predict(QUERIES, reject_below=3)


def test_two_classes_have_one_score() -> None:
    clf = FewShotClassifier().fit(*examples(2, classes=CLASSES[:2]))
    scores, probabilities = clf.decision_function(QUERIES), clf.predict_proba(QUERIES)
    assert scores.shape == (len(QUERIES),)
    np.testing.assert_allclose(1 / (1 + np.exp(-scores.astype(float))), probabilities[:, 1], atol=1e-6)
    explained = clf.explain(QUERIES[0])
    total = explained.constants[1] + sum(word.contributions[1] for word in explained.words)
    assert total == pytest.approx(float(scores[0]), abs=1e-5)
    assert explained.scores[0] == -explained.scores[1]


def test_classes_of_many_examples_do_not_swallow_the_others() -> None:
    many, few = examples(15, classes=CLASSES[:1]), examples(2, classes=CLASSES[1:])
    clf = FewShotClassifier().fit(many[0] + few[0], many[1] + few[1])
    assert clf.score(*examples(4, 15)) > 0.6
    prior = clf.predict_proba([""])[0]
    np.testing.assert_allclose(prior, np.array([15, 2, 2, 2, 2]) / 23, atol=1e-6)


def test_a_hundred_and_fifty_classes() -> None:
    names = [f"class {i}" for i in range(150)]
    texts = [f"{row['text']} number{i}" for i, row in enumerate(ROWS[:150])]
    clf = FewShotClassifier().fit(texts, names)
    assert (clf.predict(texts) == names).mean() > 0.95


def test_class_names_alone_are_enough_and_help() -> None:
    names = {name: name.replace("_", " ") for name in CLASSES}
    zero_shot = FewShotClassifier().fit([], class_names=CLASSES)
    assert zero_shot.score(QUERIES, TRUTH) > 0.4
    assert FewShotClassifier().fit([], [], class_names=names).predict(QUERIES).tolist() == zero_shot.predict(QUERIES).tolist()
    both = FewShotClassifier().fit(*examples(1), class_names=names)
    alone = FewShotClassifier().fit(*examples(1), class_names=False)
    assert both.score(*examples(19, 1)) > alone.score(*examples(19, 1))
    more = FewShotClassifier().fit([], class_names=CLASSES).partial_fit(*examples(1))
    np.testing.assert_allclose(more.decision_function(QUERIES), both.decision_function(QUERIES), atol=1e-4)


def test_suggest_wants_what_it_does_not_know(fitted: FewShotClassifier) -> None:
    pool = [*TEXTS["lost_luggage"][:4], "The weather is mild.", "The weather is mild.", "A completely different matter"]
    chosen = fitted.suggest(pool, 2)
    assert len(set(chosen.tolist())) == 2
    assert not set(chosen.tolist()) & set(range(4))
    assert {4, 5} != set(chosen.tolist())
    assert fitted.suggest(pool, 50).shape == (7,)
    assert fitted.suggest([], 3).shape == (0,)
    with pytest.raises(SettingError, match="must be at least 1"):
        fitted.suggest(pool, 0)


def test_representatives_stand_for_all_and_count_by_weight() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), [40, 20, 10, 5])
    vectors = (10 * np.eye(4, 16)[groups] + rng.normal(size=(75, 16))).astype(np.float32)
    assert groups[representatives(vectors, np.ones(75), 4)].tolist() == [0, 1, 2, 3]
    assert groups[representatives(vectors, np.where(groups == 3, 100.0, 1.0), 1)].tolist() == [3]
    assert sorted(representatives(vectors, np.zeros(75), 100)) == list(range(75))
    before = np.stack([vectors[groups == group].mean(axis=0) for group in (0, 1)])
    assert groups[representatives(vectors, np.ones(75), 2, before)].tolist() == [2, 3]


def test_an_even_sample_is_of_all_in_order_and_always_the_same() -> None:
    assert even_sample("abc", 3) == ["a", "b", "c"]
    drawn = even_sample(range(10_000), 500)
    assert drawn == sorted(set(drawn)) == even_sample(iter(range(10_000)), 500)
    assert abs(np.mean(drawn) - 5000) < 400  # four standard deviations are 520


def test_a_large_pool_is_looked_at_in_a_sample(fitted: FewShotClassifier, monkeypatch) -> None:
    monkeypatch.setattr("handful.classifier.suggestion.CANDIDATES", 5)
    chosen = fitted.suggest(QUERIES, 3)
    assert len(set(chosen.tolist())) == 3
    assert set(chosen.tolist()) <= set(even_sample(range(len(QUERIES)), 5))
    assert sorted(fitted.suggest(QUERIES, 8)) == even_sample(range(len(QUERIES)), 8)


# Examples left out


LOOKUP = WordLookup(DEFAULT_VECTORS, "en", 500)


def labelled(texts: list[str], labels: list[int]) -> LabelledDocuments:
    documents, targets = LOOKUP.read(texts), one_hot(np.array(labels), max(labels) + 1)
    return LabelledDocuments(documents, targets, np.ones(len(labels), np.float32), True, np.zeros(len(labels), bool))


def test_one_example_of_each_class_is_left_out_at_a_time() -> None:
    labels = [0, 1, 0, 1, 1, 0, 1]
    rounds = _rounds(labelled(["word"] * 7, labels))
    assert [left.tolist() for left in rounds] == [[0, 1], [2, 3]]


def test_nothing_is_left_out_of_a_class_of_one() -> None:
    assert list(_rounds(_thinned(labelled(["a", "b", "c"], [0, 0, 1])))) == []
    three = _thinned(labelled(["a", "b", "c", "d", "e"], [0, 0, 1, 2, 2]))  # the other classes are measured without it
    assert [left.tolist() for left in _rounds(three)] == [[0, 2], [1, 3]]


def test_damping_draws_the_certainty_of_texts_together_and_changes_no_answer() -> None:
    scores = np.random.default_rng(0).normal(size=(40, 20)) * np.geomspace(0.1, 10, 40)[:, None]
    spread = damped(scores, 0.5).std(axis=1)
    assert (damped(scores, 0.5).argsort(axis=1) == scores.argsort(axis=1)).all()
    np.testing.assert_allclose(np.log(spread[-1] / spread[0]) / np.log(scores[-1].std() / scores[0].std()), 1 - 0.5 * 0.9)
    np.testing.assert_allclose(damped(scores, 0.0), scores)
    np.testing.assert_allclose(damped(scores[:, :2], 0.5), scores[:, :2])  # of two classes nothing is damped
    assert not damped(np.zeros((1, 20)), 0.5).any()


def test_scores_are_damped_where_a_text_has_one_label(tmp_path: Path) -> None:
    texts, labels = ["a good meal", "a late train", "a broken screen"], ["food", "travel", "repair"]
    words, lists = FewShotClassifier().fit(texts, labels), FewShotClassifier().fit(texts, [[label] for label in labels])
    encoder = FewShotClassifier(encoder="handful").fit(texts, labels)
    assert [clf.fitted_.calibration.damping for clf in (words, lists, encoder)] == [0.5, 0.0, 0.25]
    words.save(tmp_path / "model", keep_examples=True)
    again = FewShotClassifier.load(tmp_path / "model")
    assert (again.predict_proba(texts) == words.predict_proba(texts)).all()
    again.partial_fit(["a cold soup"], ["food"])
    afresh = FewShotClassifier().fit([*texts, "a cold soup"], [*labels, "food"])
    assert (again.predict_proba(texts) == afresh.predict_proba(texts)).all()


def test_a_classifier_of_the_format_without_damping_is_read(tmp_path: Path, monkeypatch) -> None:
    clf = FewShotClassifier().fit(["a good meal", "a late train", "a broken screen"], ["food", "travel", "repair"])
    state, whole = clf.fitted_, storage._arrays
    clf.fitted_ = replace(state, calibration=replace(state.calibration, damping=0.0))
    monkeypatch.setattr(storage, "CLASSIFIER_FORMAT", storage.UNDAMPED)
    monkeypatch.setattr(storage, "_arrays", lambda fitted: {k: v for k, v in whole(fitted).items() if k != "damping"})
    clf.save(tmp_path / "model")
    monkeypatch.undo()
    again = FewShotClassifier.load(tmp_path / "model")
    assert (again.predict_proba(["a tasty soup"]) == clf.predict_proba(["a tasty soup"])).all()


def test_one_label_that_says_nothing_leaves_the_others_calibrated() -> None:
    texts, labels = examples(1, classes=CLASSES)
    silent = ["w2" if label == "lost_luggage" else label for label in labels]
    factors = [FewShotClassifier().fit(texts, given)._fitted().calibration.factor for given in (labels, silent)]
    assert factors[0] != 1
    assert factors[1] == pytest.approx(factors[0], rel=0.35)
    assert factors[1] != 1


def test_many_examples_are_learned_again_once(monkeypatch) -> None:
    monkeypatch.setattr("handful.classifier.calibration.MOST_LEARNED_AGAIN", 20)
    assert len(list(_rounds(labelled(["word"] * 10, [0, 1] * 5)))) == 2
    assert len(list(_rounds(labelled(["word"] * 30, [0, 1] * 15)))) == 1


def test_examples_left_out_make_it_surer_where_they_agree_and_less_sure_where_they_do_not(monkeypatch) -> None:
    # all of them: a few say too little against what was meta-learned
    monkeypatch.setattr("handful.classifier.calibration.MOST_ROUNDS", 8)
    texts, labels = examples(8)
    numbers = [CLASSES.index(label) for label in labels]
    shuffled = np.random.default_rng(0).permutation(numbers).tolist()
    model = load_generator()
    encoder = AttentionBag(LOOKUP, model)
    head = model.ready_head
    learned = (learn(encoder, head, labelled(texts, those)) for those in (numbers, shuffled))
    agreeing, contradictory = (scale_factor(encoder, head, what) for what in learned)
    assert agreeing > 1 > contradictory


# Explaining


def test_an_explanation_adds_up_and_points_into_the_text(fitted: FewShotClassifier) -> None:
    for text in [*QUERIES[:5], "I DON'T want THAT flight… 😀 it's 5,000 U.S. dollars", "word"]:
        explained = fitted.explain(text)
        total = np.array(explained.constants) + np.sum([word.contributions for word in explained.words], axis=0)
        np.testing.assert_allclose(total, fitted.decision_function([text])[0], atol=1e-5)
        np.testing.assert_allclose(explained.probabilities, fitted.predict_proba([text])[0], atol=1e-6)
        assert sum(word.attention for word in explained.words) == pytest.approx(1, abs=1e-5)
        assert all(text[word.start : word.end] == word.text for word in explained.words)
        assert explained.answer == fitted.predict([text])[0]


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")  # of words cut or unknown
def test_words_without_a_vector_have_no_part(tmp_path: Path) -> None:
    path = tmp_path / "few.npz"
    np.savez(path, words=np.array(["bill", "flight"]), vectors=np.eye(2, 3, dtype=np.float32))
    clf = FewShotClassifier(vectors=f"{path}:raw").fit(["the bill", "a flight"], ["b", "f"])
    explained = clf.explain("What a flight, what a bill!")
    assert [word.text for word in explained.words if word.attention > 0] == ["flight", "bill"]
    assert len(explained.words) == 8
    total = explained.constants[1] + sum(word.contributions[1] for word in explained.words)
    assert total == pytest.approx(float(clf.decision_function(["What a flight, what a bill!"])[0]), abs=1e-5)


def test_an_explanation_shows_itself_safely(fitted: FewShotClassifier, capsys) -> None:
    text = "<script>alert('flight & bill')</script>\x1b[31m refund\ud800"
    explained = fitted.explain(text)
    html = explained._repr_html_()
    assert "<script" not in html
    seen: list[str] = []
    parser = HTMLParser()
    parser.handle_data = seen.append  # type: ignore[method-assign]
    parser.feed(html)
    assert "".join(seen).startswith("<script>alert('flight & bill')</script>")
    explained.show()
    shown = capsys.readouterr().out
    assert "\x1b[31m refund" not in shown
    assert "refund" in shown
    assert "%" in str(explained)
    back = json.loads(explained.to_json())
    assert back["text"] == text
    assert [word["word"] for word in back["words"]] == [word.text for word in explained.words]
    assert [entry["class"] for entry in back["classes"]] == CLASSES


# Labels of every kind


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "a"],
        [7, 3, 7, 3],
        [True, False, True, False],
        [2.0, 1.0, 2.0, 1.0],
        np.array([7, 3, 7, 3], np.int8),
        np.array(["b", "a", "b", "a"]),
        np.array(["b", "a", "b", "a"], object),
        np.array([[1], [0], [1], [0]]),
    ],
)
def test_label_types_survive_everything(labels, tmp_path: Path) -> None:
    texts = [TEXTS[name][i] for i in range(2) for name in CLASSES[:2]]
    clf = FewShotClassifier().fit(texts, labels)
    clf.save(tmp_path / "saved", keep_examples=True)
    loaded = FewShotClassifier.load(tmp_path / "saved")
    classes = np.unique(np.asarray(labels))
    for one in (clf, loaded):
        assert one.classes_.dtype == classes.dtype
        assert one.predict(texts).tolist() == np.asarray(labels).ravel().tolist()
        assert [type(label) for label in one.predict(texts)] == [type(label) for label in classes[[1, 0, 1, 0]]]
    more = loaded.partial_fit([TEXTS[CLASSES[0]][5]], classes[1:])
    assert more.classes_.dtype == classes.dtype


def test_several_labels_a_text(tmp_path: Path) -> None:
    texts, labels = examples(3)
    lists = [[label, "travel" if label in ("flight_change", "lost_luggage") else "health"] for label in labels]
    clf = FewShotClassifier().fit(texts, lists)
    assert clf.classes_.tolist() == sorted({*CLASSES, "travel", "health"})
    found = clf.predict(QUERIES)
    right = [
        ("travel" in labels) == (truth in ("flight_change", "lost_luggage")) for labels, truth in zip(found, TRUTH, strict=True)
    ]
    assert np.mean(right) > 0.8
    assert clf.score(texts, lists) > 0.8
    matrix = np.array([[name in row for name in clf.classes_] for row in lists]).astype(int)
    other = FewShotClassifier().fit(texts, matrix)
    assert other.predict(QUERIES).tolist() == [[int(name in row) for name in clf.classes_] for row in found]
    np.testing.assert_allclose(other.predict_proba(QUERIES), clf.predict_proba(QUERIES), atol=1e-6)
    for one in (clf, other):
        one.save(tmp_path / "several", keep_examples=True)
        loaded = FewShotClassifier.load(tmp_path / "several")
        assert (
            np.array_equal(loaded.predict(QUERIES), one.predict(QUERIES)) if one is other else loaded.predict(QUERIES) == found
        )
        explained = loaded.explain(QUERIES[0])
        total = np.array(explained.constants) + np.sum([word.contributions for word in explained.words], axis=0)
        np.testing.assert_allclose(total, one.decision_function(QUERIES[:1])[0], atol=1e-5)
    with pytest.raises(SettingError, match="one label each"):
        clf.predict(QUERIES, reject_below=0.5)


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        ("one string", ["a"], "not a list of strings"),
        (["a", None], ["a", "b"], "Text 1 is NoneType"),
        (["a", float("nan")], ["a", "b"], "Text 1 is float"),
        (["a", "b"], ["a"], "2 texts and 1 labels"),
        (["a", "b"], None, "no labels"),
        (["a", "b"], ["a", 1], "Some labels are strings"),
        (["a", "b"], [0.5, 1.2], "continuous"),
        (["a", "b"], [None, None], "Label 0 is None"),
        (["a", "b"], ["x", "x"], "Found 1 class;"),
        ([], [], "Found 0 classes;"),
        (["a", "b"], [[0, 2], [1, 0]], None),
        (["a", "b"], np.array([[0, 2], [1, 0]]), "0 and 1 only"),
        (["a", "b"], "ab", "not a list"),
        (["a", "b"], [["x", 1], ["y"]], "Some labels are strings"),
        (["a", "b"], [[["x"]], ["y"]], r"Label 0 is \['x'\]"),
        (["a", "b"], ["x", ["y"]], "neither one for each text nor a list for each"),
        (["a", "b"], [["x", "z"], "y"], "neither one for each text nor a list for each"),
        (["a", "b"], [np.array(["x"]), np.array(["y", "z"])], "neither one for each text nor a list for each"),
    ],
)
def test_bad_examples_get_a_sentence(texts, labels, sentence: str | None) -> None:
    if sentence is None:  # lists of labels
        assert FewShotClassifier().fit(texts, labels).classes_.tolist() == [0, 1, 2]
        return
    with pytest.raises(DataError, match=sentence):
        FewShotClassifier().fit(texts, labels)


def test_names_must_fit_the_labels() -> None:
    with pytest.raises(DataError, match="another kind than the examples"):
        FewShotClassifier().fit(["a", "b"], [0, 1], class_names={"x": "words"})
    with pytest.raises(DataError, match="no class 7"):
        FewShotClassifier().fit(["a", "b"], np.eye(2, dtype=int), class_names={7: "words"})
    with pytest.raises(DataError, match="one string"):
        FewShotClassifier().fit([], class_names="words")


def test_arrays_serve_as_lists() -> None:
    texts, labels = (np.array(part) for part in examples(1))
    clf = FewShotClassifier().fit(texts, labels, unlabeled=texts)
    assert clf.predict(np.array(QUERIES)).shape == (len(QUERIES),)


def test_labels_of_another_kind_are_refused_later(fitted: FewShotClassifier) -> None:
    one = clone(fitted).fit(*examples(1))
    with pytest.raises(DataError, match="another kind"):
        one.partial_fit(["a"], [3])
    with pytest.raises(DataError, match="another kind"):
        one.score(["a"], [["x"]])


def test_repeated_and_contradictory_examples_are_named() -> None:
    with pytest.warns(HandfulWarning, match=r"more than once: 'good' \(examples 0 and 2\)"):
        FewShotClassifier().fit(["good", "bad", "good "], [1, 0, 1])
    with pytest.warns(HandfulWarning, match=r"different labels: 'good' \(examples 0 and 2\)"):
        FewShotClassifier().fit(["good", "bad", "good"], [1, 0, 0])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"max_words": 0}, "must be at least 1"),
        ({"vectors": 3}, "must be a name"),
        ({"vectors": "nowhere.vec"}, "no vectors 'nowhere.vec'"),
        ({"language": "xx-nonsense"}, "no word frequencies"),
        ({"generator": "nowhere"}, "not a saved model"),
    ],
)
def test_bad_settings_get_a_sentence(parameters: dict, sentence: str) -> None:
    with pytest.raises(HandfulError, match=sentence):
        FewShotClassifier(**parameters).fit(["a", "b"], [0, 1])


# Hostile input

HOSTILE = {
    "empty": "",
    "space": " \n\t ",
    "large": "refund " * 1_500_000,
    "one long word": "x" * 1_000_000,
    "control characters": "".join(map(chr, range(32))) + " refund",
    "lone surrogates": "\ud800 refund \udfff\udc00",
    "emoji": "😀👍🏽🧑‍🤝‍🧑 refund",
    "right to left": "אני רוצה החזר كشف الحساب",
    "nul": "re\x00fund \x00\x00",
    "repeated": "again " * 100_000,
    "other scripts": "返金してください ขอเงินคืน मुझे धनवापसी Ελληνικά",
    "combining": "e" + "\u0301" * 5000,
}


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")  # of words cut or unknown
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_answered_explained_and_learned_from(fitted: FewShotClassifier, name: str) -> None:
    text = HOSTILE[name]
    probabilities = fitted.predict_proba([text, QUERIES[0]])
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities[1], fitted.predict_proba(QUERIES[:1])[0], atol=1e-5)
    json.loads(fitted.explain(text).to_json())
    assert np.isfinite(FewShotClassifier().fit([text, "refund please"], [0, 1]).predict_proba([text])).all()


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")  # of empty texts
def test_a_text_without_words_gets_the_prior(fitted: FewShotClassifier) -> None:
    np.testing.assert_allclose(fitted.predict_proba(["", "  "]), 0.2, atol=1e-6)
    assert fitted.explain("").words == ()
    np.testing.assert_allclose(FewShotClassifier().fit(["", " "], [0, 1]).predict_proba(["text"]), 0.5)


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")  # of words cut or unknown
def test_any_language_that_wordfreq_has() -> None:
    texts = ["ich möchte mein Geld zurück", "wann kommt mein Paket"]
    clf = FewShotClassifier(language="de").fit(texts, ["Geld", "Paket"])
    assert clf.predict(["Geld zurück bitte", "das Paket ist nicht da"]).tolist() == ["Geld", "Paket"]


# scikit-learn's contract


class OfNumbers(FewShotClassifier):
    """Reads a row of numbers as a text, so that the checks that want numbers can be run."""

    def fit(self, X, y=None):  # type: ignore[override]
        return super().fit(words_of_rows(X), y)

    def partial_fit(self, X, y, classes=None):  # type: ignore[override]
        return super().partial_fit(words_of_rows(X), y)

    def score(self, X, y, sample_weight=None):  # type: ignore[override]
        return super().score(words_of_rows(X), y, sample_weight)

    def predict(self, X, reject_below=None):  # type: ignore[override]
        self._fitted()
        return super().predict(words_of_rows(X), reject_below)

    def predict_proba(self, X):  # type: ignore[override]
        return super().predict_proba(words_of_rows(X))

    def decision_function(self, X):  # type: ignore[override]
        return super().decision_function(words_of_rows(X))

    def transform(self, X):  # type: ignore[override]
        return super().transform(words_of_rows(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array, tags.input_tags.string = False, True, False
        return tags


def words_of_rows(rows) -> list[str]:
    return [" ".join(f"c{place}v{round(2 * value)}x" for place, value in enumerate(row)) for row in check_array(rows)]


RUN = [
    "check_estimator_cloneable",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_regression_target",
    "check_decision_proba_consistency",
    "check_dict_unchanged",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_dont_overwrite_parameters",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_get_params_invariance",
    "check_methods_subset_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_pipeline_consistency",
    "check_requires_y_none",
    "check_set_params",
    "check_supervised_y_no_nan",
    "check_valid_tag_types",
]
NUMBERS = "it is about matrices of numbers, and the input is texts"
WEIGHTS = "fit takes no sample weights or class weights"
NOT_RUN = {
    "check_all_zero_sample_weights_error": WEIGHTS,
    "check_array_api_input": NUMBERS,
    "check_array_api_mixed_inputs": NUMBERS,
    "check_array_api_same_namespace": NUMBERS,
    "check_class_weight_balanced_linear_classifier": WEIGHTS,
    "check_class_weight_classifiers": WEIGHTS,
    "check_classifier_data_not_an_array": NUMBERS,
    "check_classifiers_one_label_sample_weights": WEIGHTS,
    "check_classifiers_train": "it asks for accuracy on points of a plane, whose coordinates are no words",
    "check_complex_data": NUMBERS,
    "check_dtype_object": NUMBERS,
    "check_estimator_sparse_array": NUMBERS,
    "check_estimator_sparse_matrix": NUMBERS,
    "check_estimator_sparse_tag": NUMBERS,
    "check_estimators_dtypes": NUMBERS,
    "check_estimators_empty_data_messages": NUMBERS,
    "check_estimators_nan_inf": NUMBERS,
    "check_estimators_partial_fit_n_features": NUMBERS,
    "check_f_contiguous_array_estimator": NUMBERS,
    "check_fit1d": "texts are one-dimensional",
    "check_fit2d_1feature": NUMBERS,
    "check_fit2d_1sample": NUMBERS,
    "check_fit2d_predict1d": NUMBERS,
    "check_methods_sample_order_invariance": "single precision: the order changes the seventh digit (tested below to 1e-5)",
    "check_n_features_in": "texts have no columns",
    "check_n_features_in_after_fitting": "texts have no columns",
    "check_non_transformer_estimators_n_iter": "the number of steps is fixed and no parameter",
    "check_positive_only_tag_during_fit": NUMBERS,
    "check_readonly_memmap_input": NUMBERS,
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    "check_sample_weights_list": WEIGHTS,
    "check_sample_weights_not_an_array": WEIGHTS,
    "check_sample_weights_not_overwritten": WEIGHTS,
    "check_sample_weights_pandas_series": WEIGHTS,
    "check_sample_weights_shape": WEIGHTS,
    "check_sparsify_coefficients": "there are no coefficients of columns",
    "check_supervised_y_2d": "it wants a warning for a column of labels, which is taken as it is meant",
}


def test_every_check_of_scikit_learn_is_run_or_has_a_reason() -> None:
    known = {
        getattr(check, "func", check).__name__ for _, check in estimator_checks.estimator_checks_generator(LogisticRegression())
    }
    assert known - set(RUN) - set(NOT_RUN) == set()
    assert not set(RUN) & set(NOT_RUN)


@pytest.mark.parametrize("name", RUN)
def test_check_estimator(name: str, monkeypatch) -> None:
    if name == "check_methods_subset_invariance":  # it allows 1e-7, but sums of single precision depend on the batch
        monkeypatch.setattr(estimator_checks, "assert_allclose", partial(np.testing.assert_allclose, rtol=1e-5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HandfulWarning)  # rows that round to the same words
        getattr(estimator_checks, name)("OfNumbers", OfNumbers())


def test_the_checks_that_scikit_learn_chooses_for_texts() -> None:
    with pytest.warns(Warning, match="Can't test estimator"):
        estimator_checks.check_estimator(FewShotClassifier())


def test_an_answer_does_not_depend_on_the_texts_beside_it(fitted: FewShotClassifier) -> None:
    scores = fitted.decision_function(QUERIES)
    np.testing.assert_allclose(fitted.decision_function(QUERIES[::-1])[::-1], scores, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([fitted.decision_function([text]) for text in QUERIES]), scores, atol=1e-5)


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")  # of words cut or unknown
def test_meta_estimators() -> None:
    texts, labels = examples(4, classes=CLASSES[:3])
    clf = FewShotClassifier(max_words=100)
    assert is_classifier(clf)
    assert repr(clone(clf)) == "FewShotClassifier(max_words=100)"
    assert cross_val_score(clf, texts, labels, cv=2).mean() > 0.6
    search = GridSearchCV(clf, {"max_words": [2, 100]}, cv=2).fit(texts, labels)
    assert search.best_params_ == {"max_words": 100}
    pipeline = make_pipeline(FunctionTransformer(lambda texts: [text.upper() for text in texts]), clf).fit(texts, labels)
    assert pipeline.score(texts, labels) == 1
    calibrated = CalibratedClassifierCV(clf, cv=2).fit(np.array(texts), labels)
    np.testing.assert_allclose(calibrated.predict_proba(texts).sum(axis=1), 1)


def test_before_fit_it_says_so() -> None:
    for ask in ("predict", "predict_proba", "decision_function", "explain", "suggest"):
        with pytest.raises(NotFittedError, match="not fitted yet") as caught:
            getattr(FewShotClassifier(), ask)("a" if ask == "explain" else ["a"])
        assert isinstance(caught.value, HandfulError)


def test_using_it_imports_neither_torch_nor_scikit_learn() -> None:
    code = (
        "import sys; from handful import FewShotClassifier as F; f = F().fit(['a b', 'c d'], [0, 1]); f.predict(['a']); "
        "f.explain('a'); f.suggest(['a'], 1); "
        "print([m for m in ('torch', 'sklearn', 'numba', 'joblib', 'scipy', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Saving


@pytest.fixture
def saved(fitted: FewShotClassifier, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_classifier_is_a_few_plain_files_and_gives_every_bit_back(fitted: FewShotClassifier, saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", part(saved, ENCODER).name, part(saved, MODEL).name]
    assert not any(text in path.read_text("utf-8", "replace") for path in saved.iterdir() for text in fitted.examples_.texts)
    loaded = FewShotClassifier.load(saved)
    assert np.array_equal(loaded.decision_function(QUERIES), fitted.decision_function(QUERIES))
    assert loaded.get_params() == fitted.get_params()


def test_examples_are_kept_only_if_asked(fitted: FewShotClassifier, saved: Path) -> None:
    assert EXAMPLES not in config_of(saved)["files"]
    loaded = FewShotClassifier.load(saved)
    with pytest.raises(DataError, match="keep_examples=True"):
        loaded.partial_fit(["more"], CLASSES[:1])
    with pytest.raises(ModelError, match="none to keep"):
        loaded.save(saved, keep_examples=True)
    fitted.save(saved, keep_examples=True)
    more = FewShotClassifier.load(saved).partial_fit(["I want my dog back"], ["dog"])
    texts, labels = examples(4)
    whole = FewShotClassifier().fit([*texts, "I want my dog back"], [*labels, "dog"])
    np.testing.assert_allclose(more.decision_function(QUERIES), whole.decision_function(QUERIES), atol=1e-4)


def test_unlabeled_counts_and_names_are_saved(tmp_path: Path) -> None:
    clf = FewShotClassifier().fit([], class_names={1: "lost luggage", 2: "clinic bill"}, unlabeled=["the bill \ud800"] * 50)
    clf.save(tmp_path / "named", keep_examples=True)
    loaded = FewShotClassifier.load(tmp_path / "named")
    assert np.array_equal(loaded.decision_function(QUERIES), clf.decision_function(QUERIES))
    texts = ["where is my suitcase", "this costs too much"]
    first, second = (one.partial_fit(texts, [1, 2]).decision_function(QUERIES) for one in (clf, loaded))
    assert np.array_equal(first, second)


def test_saving_replaces_a_classifier_and_nothing_else(fitted: FewShotClassifier, saved: Path, tmp_path: Path) -> None:
    fitted.save(saved, keep_examples=True)
    assert part(saved, EXAMPLES).exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("x")
    with pytest.raises(ModelError, match="not a saved classifier"):
        fitted.save(tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["precious.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other"]


def test_a_failed_save_leaves_the_old_one(fitted: FewShotClassifier, saved: Path, monkeypatch) -> None:
    before = {path.name: path.read_bytes() for path in saved.iterdir()}

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        fitted.save(saved)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def escape(folder: Path) -> None:
    path = part(folder, ENCODER)
    path.rename(folder.parent / path.name)
    path.symlink_to(folder.parent / path.name)


def name_elsewhere(folder: Path) -> None:
    files = config_of(folder)["files"]
    change_config(folder, files={**files, MODEL: {**files[MODEL], "file": "../" + files[MODEL]["file"]}})


def not_a_number(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.ravel()[0] = np.nan
    return array


def other_shape(folder: Path) -> None:
    rewrite(folder, model=part(folder, MODEL).read_bytes().replace(b"[384,5]", b"[384,9]"))


DAMAGES = {
    "truncated": (lambda folder: change_bytes(folder, MODEL, lambda content: content[:-10]), "checksum"),
    "truncated, with its checksum": (lambda folder: rewrite(folder, model=part(folder, MODEL).read_bytes()[:-10]), "damaged"),
    "oversized": (other_shape, "is damaged"),
    "larger": (
        lambda folder: change_array(folder, "weights", lambda a: np.zeros((384, 9), np.float32)),
        r"not float32 \(384, 5\)",
    ),
    "huge": (lambda folder: change_array(folder, "weights", lambda a: a * np.float32(1e30)), "too large"),
    "nan": (lambda folder: change_array(folder, "weights", not_a_number), "not finite"),
    "type": (lambda folder: change_array(folder, "encoder.usual", lambda a: a.astype(np.float64)), "as float64"),
    "extra": (lambda folder: change_array(folder, "more", lambda a: a), "see more"),
    "garbage": (lambda folder: rewrite(folder, model=b"\xff" * 99), "is damaged"),
    "missing": (lambda folder: part(folder, MODEL).unlink(), "is missing"),
    "newer": (lambda folder: change_config(folder, format=99), "format 99"),
    "older": (lambda folder: change_config(folder, format=1), "fit the classifier again"),
    "other": (lambda folder: change_config(folder, kind="run"), "not a saved classifier"),
    "config": (lambda folder: (folder / "config.json").write_text("{"), "is damaged"),
    "config deep": (lambda folder: (folder / "config.json").write_text('{"a":' * 100_000), "is damaged"),
    "no files": (lambda folder: change_config(folder, files=3), "is damaged"),
    "escaping": (escape, "is a link"),
    "elsewhere": (name_elsewhere, "not part of a model"),
    "vectors": (lambda folder: change_facts(folder, vectors="../../secret.npz"), "may not name files"),
    "no vectors": (lambda folder: change_facts(folder, vectors=None), "is damaged"),
    "max_words": (lambda folder: change_facts(folder, max_words=-1), "is damaged"),
    "max_words huge": (lambda folder: change_facts(folder, max_words=10**30), "is damaged"),
    "network": (lambda folder: change_facts(folder, generator={"signals": ["frequency"], "network": "x"}), "is damaged"),
    "signals": (lambda folder: change_facts(folder, generator={"signals": ["z"], "network": "mlp"}), "is damaged"),
    "encoder": (lambda folder: change_facts(folder, encoder="pickle"), "is damaged"),
    "labels": (lambda folder: change_config(folder, labels="none"), "is damaged"),
    "classes": (lambda folder: change_config(folder, classes={"type": "str", "values": ["a", "a"]}), "different labels"),
    "class type huge": (
        lambda folder: change_config(folder, classes={"type": "<U99999999", "values": ["a", "b"]}),
        "cannot be",
    ),
    "class type": (lambda folder: change_config(folder, classes={"type": "O", "values": [[1], [2]]}), "cannot be read"),
    "fewer classes": (lambda folder: change_config(folder, classes={"type": "str", "values": ["a", "b"]}), r"\(384, 2\)"),
    "words": (lambda folder: change_facts(folder, words=[1]), "different strings"),
    "words deep": (lambda folder: rewrite(folder, encoder=b"[" * 100_000), "is damaged"),
    "word count": (lambda folder: change_facts(folder, words=["a"]), r"not float32 \(1,\)"),
    "sources": (
        lambda folder: change_config(folder, sources={"named": [], "name_weight": 1, "unlabeled": -1, "pooled": 0}),
        "counted from 0",
    ),
    "named": (
        lambda folder: change_config(folder, sources={"named": [99], "name_weight": 1, "unlabeled": 0, "pooled": 0}),
        "damaged",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_classifier_is_refused_with_a_sentence(saved: Path, name: str) -> None:
    damage, sentence = DAMAGES[name]
    damage(saved)
    with pytest.raises(ModelError, match=sentence):
        FewShotClassifier.load(saved)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_largest_numbers_that_are_let_in_give_probabilities(saved: Path) -> None:
    for name in ("weights", "scale", "factor", "shift", "encoder.directions", "encoder.generator.head.scale"):
        change_array(saved, name, lambda a: np.full_like(a, 1e8))
    for name in ("representation.query", "representation.forward.input"):
        if f"encoder.generator.{name}" in load(part(saved, MODEL).read_bytes()):
            change_array(saved, f"encoder.generator.{name}", lambda a: np.full_like(a, 1e8))
    loaded = FewShotClassifier.load(saved)
    assert np.isfinite(loaded.predict_proba(QUERIES)).all()
    json.loads(loaded.explain(QUERIES[0]).to_json(), parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize(
    "content", ["{", '{"texts": ["a"], "labels": [], "named": []}', '{"texts": [1], "labels": ["x"], "named": []}']
)
def test_damaged_examples_are_refused(fitted: FewShotClassifier, saved: Path, content: str) -> None:
    fitted.save(saved, keep_examples=True)
    rewrite(saved, examples=content.encode())
    with pytest.raises(ModelError, match="damaged"):
        FewShotClassifier.load(saved)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a saved model"):
        FewShotClassifier.load(tmp_path / "nowhere")


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")  # of words cut or unknown
def test_own_vectors_are_named_by_who_loads(tmp_path: Path) -> None:
    path = tmp_path / "few.npz"
    np.savez(path, words=np.array(["bill", "flight"]), vectors=np.eye(2, 3, dtype=np.float32))
    clf = FewShotClassifier(vectors=f"{path}:raw").fit(["the bill", "a flight"], ["b", "f"])
    clf.save(tmp_path / "own")
    with pytest.raises(ModelError, match="may not name files"):
        FewShotClassifier.load(tmp_path / "own")
    loaded = FewShotClassifier.load(tmp_path / "own", vectors=f"{path}:raw")
    assert loaded.predict(["flight"]).tolist() == ["f"]
    np.savez(path.with_name("other.npz"), words=np.array(["bill", "flight"]), vectors=np.eye(2, 3, 1, dtype=np.float32))
    with pytest.raises(ModelError, match=r"word vectors other than the .*other.npz:raw' found here"):
        FewShotClassifier.load(tmp_path / "own", vectors=f"{path.with_name('other.npz')}:raw")


def test_a_classifier_with_the_former_table_and_network_is_still_read(tmp_path: Path) -> None:
    texts, labels = ["great food", "the train was late"], ["restaurant", "travel"]
    clf = FewShotClassifier(vectors="wordllama+minilm").fit(texts, labels)
    former = FewShotModel.initial(generator_settings({**generator_facts(load_generator().settings), "network": "bilstm"}), 512)
    encoder = replace(clf.fitted_.encoder, encoder=replace(clf.fitted_.encoder.encoder, model=former))
    clf.fitted_ = replace(clf.fitted_, encoder=encoder)
    clf.save(tmp_path / "model")
    loaded = FewShotClassifier.load(tmp_path / "model")
    assert loaded.vectors == "wordllama+minilm"
    np.testing.assert_array_equal(loaded.predict_proba(["a tasty dinner"]), clf.predict_proba(["a tasty dinner"]))
