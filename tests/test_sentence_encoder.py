"""A classifier on vectors of a sentence encoder: any object with encode(texts), a folder, or a name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from handful import FewShotClassifier
from handful.data.text import words_of
from handful.errors import DataError, ModelError, SettingError
from handful.models.sentence_encoder import PHRASINGS

TEXTS = ["lost card", "my card is gone", "refund please", "I want my money back", "book a flight", "a flight to Rome"]
LABELS = ["card", "card", "money", "money", "travel", "travel"]
QUERIES = ["where is my card", "give me a refund", "a flight to Paris", "hello", ""]


class BagOfHashes:
    """An encoder of one's own: each word a random direction, decided by the word alone."""

    def __init__(self, dim: int = 64, salt: int = 0) -> None:
        self.dim, self.salt, self.calls = dim, salt, 0

    def encode(self, texts: list[str]) -> np.ndarray:
        self.calls += 1
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> np.ndarray:
        seeds = [[self.salt, *word.encode()] for word in words_of(text)]
        return np.sum([np.random.default_rng(seed).normal(size=self.dim) for seed in seeds] or [np.zeros(self.dim)], axis=0)


@pytest.fixture(scope="module")
def fitted() -> FewShotClassifier:
    return FewShotClassifier(encoder=BagOfHashes()).fit(TEXTS, LABELS)


def test_any_object_with_encode_will_do(fitted: FewShotClassifier) -> None:
    assert fitted.predict(QUERIES[:3]).tolist() == ["card", "money", "travel"]
    probabilities = fitted.predict_proba(QUERIES)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(probabilities[-1], 1 / 3)  # an empty text gets the prior
    assert fitted.transform(QUERIES).shape == (5, 64)
    assert len(fitted.suggest(QUERIES, 2)) == 2


def test_learning_more_is_learning_all(fitted: FewShotClassifier) -> None:
    more = FewShotClassifier(encoder=BagOfHashes()).fit(TEXTS[:4], LABELS[:4]).partial_fit(TEXTS[4:], LABELS[4:])
    np.testing.assert_allclose(more.predict_proba(QUERIES), fitted.predict_proba(QUERIES), atol=1e-6)


def test_several_labels_per_text() -> None:
    clf = FewShotClassifier(encoder=BagOfHashes()).fit(TEXTS, [[label] for label in LABELS])
    assert clf.predict(["my card is gone"]) == [["card"]]


def test_a_word_counts_for_what_leaving_it_out_takes_away(fitted: FewShotClassifier) -> None:
    text = "where is my card"
    explanation = fitted.explain(text)
    whole = fitted.decision_function([text])[0]
    for word in explanation.words:
        rest = text[: word.start] + text[word.end :]
        np.testing.assert_allclose(word.contributions, whole - fitted.decision_function([rest])[0], atol=1e-4)
    assert not explanation.additive
    assert "would lose without it" in explanation.to_dict()["note"]
    assert "would lose without it" in str(explanation)
    assert FewShotClassifier().fit(TEXTS, LABELS).explain(text).additive


def test_the_packaged_encoder_is_saved_by_its_name(tmp_path: Path) -> None:
    for name in ("handful", "words+handful"):
        clf = FewShotClassifier(encoder=name).fit(TEXTS[::2], LABELS[::2])
        clf.save(tmp_path / name)
        again = FewShotClassifier.load(tmp_path / name)
        assert again.get_params()["encoder"] == name
        np.testing.assert_allclose(again.predict_proba(QUERIES), clf.predict_proba(QUERIES), atol=1e-5)
        assert sum(path.stat().st_size for path in (tmp_path / name).iterdir()) < 1e6


def test_bge_small_by_its_folder_and_by_its_name(bge_small: Path, tmp_path: Path, monkeypatch) -> None:
    clf = FewShotClassifier(encoder=bge_small).fit(TEXTS[::2], LABELS[::2])
    queries = ["someone stole my credit card", "I demand reimbursement", "when does the plane leave"]
    assert clf.predict(queries).tolist() == ["card", "money", "travel"]
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    shutil.copytree(bge_small, tmp_path / "cache" / "encoders" / "bge-small")
    named = FewShotClassifier(encoder="bge-small").fit(TEXTS[::2], LABELS[::2])
    named.save(tmp_path / "m")
    assert FewShotClassifier.load(tmp_path / "m").predict(queries).tolist() == ["card", "money", "travel"]


# The words of labels


def test_the_words_of_a_label_are_read_in_several_phrasings() -> None:
    clf = FewShotClassifier(encoder=BagOfHashes()).fit([], class_names=["lost card", "refund"])
    encoder = clf.fitted_.encoder
    read = encoder.read_examples(["my card"], ["refund"]).vectors
    phrased = encoder.read([phrasing.format("refund") for phrasing in PHRASINGS]).vectors
    np.testing.assert_allclose(read[0], encoder.read(["my card"]).vectors[0])
    np.testing.assert_allclose(read[1], np.mean(phrased / np.linalg.norm(phrased, axis=1, keepdims=True), axis=0), atol=1e-6)
    assert clf.predict(["my card is lost", "I want a refund"]).tolist() == ["lost card", "refund"]


# Saving


@pytest.fixture
def both(bge_small: Path, tmp_path: Path, monkeypatch) -> FewShotClassifier:
    """Words and bge-small side by side."""
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    shutil.copytree(bge_small, tmp_path / "cache" / "encoders" / "bge-small")
    return FewShotClassifier(encoder="words+bge-small").fit(TEXTS, LABELS)


def test_words_and_an_encoder_side_by_side(both: FewShotClassifier, tmp_path: Path) -> None:
    assert both.predict(QUERIES[:3]).tolist() == ["card", "money", "travel"]
    np.testing.assert_allclose(both.predict_proba([""]), 1 / 3)  # neither knows anything of it
    alone = [FewShotClassifier(encoder=name).fit(TEXTS, LABELS).transform(QUERIES[:4]) for name in ("words", "bge-small")]
    joined = both.transform(QUERIES[:4])
    assert joined.shape[1] == alone[0].shape[1] + alone[1].shape[1]
    for part, whole in zip(np.split(joined, [alone[0].shape[1]], axis=1), alone, strict=True):
        cosines = (part * whole).sum(axis=1) / np.linalg.norm(part, axis=1) / np.linalg.norm(whole, axis=1)
        np.testing.assert_allclose(cosines, 1, atol=0.01)  # 8-bit vectors depend on the other texts in a batch
    both.save(tmp_path / "model", keep_examples=True)
    again = FewShotClassifier.load(tmp_path / "model")
    assert again.get_params()["encoder"] == "words+bge-small"
    np.testing.assert_allclose(again.predict_proba(QUERIES), both.predict_proba(QUERIES), atol=1e-6)
    more = again.partial_fit(["a hotel in Rome"], ["travel"]).predict_proba(QUERIES)
    afresh = FewShotClassifier(encoder="words+bge-small").fit([*TEXTS, "a hotel in Rome"], [*LABELS, "travel"])
    np.testing.assert_allclose(more, afresh.predict_proba(QUERIES), atol=0.02)  # other batches


def test_words_side_by_side_count_for_what_leaving_them_out_takes_away(both: FewShotClassifier) -> None:
    text = "where is my card"
    explanation = both.explain(text)
    without = both.decision_function([text])[0] - both.decision_function(["where is my "])[0]
    np.testing.assert_allclose(explanation.words[-1].contributions, without, atol=0.3)  # other batches
    assert max(explanation.words, key=lambda word: word.contributions[0]).text == "card"
    assert not explanation.additive


def test_only_a_known_encoder_stands_next_to_words() -> None:
    with pytest.raises(SettingError, match="There is no encoder 'none' to use next to words: choose handful, bge-small"):
        FewShotClassifier(encoder="words+none").fit(TEXTS, LABELS)


def test_ones_own_encoder_is_given_again(fitted: FewShotClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m", keep_examples=True)
    with pytest.raises(ModelError, match=r"an encoder of your own \(BagOfHashes\): give it again"):
        FewShotClassifier.load(tmp_path / "m")
    loaded = FewShotClassifier.load(tmp_path / "m", encoder=BagOfHashes())
    assert np.array_equal(loaded.predict_proba(QUERIES), fitted.predict_proba(QUERIES))
    loaded.partial_fit(["the hotel in Rome"], ["travel"])
    with pytest.raises(ModelError, match="another encoder"):
        FewShotClassifier.load(tmp_path / "m", encoder=BagOfHashes(salt=1))
    with pytest.raises(ModelError, match="has probe"):
        FewShotClassifier.load(tmp_path / "m", encoder=BagOfHashes(dim=32))


def test_word_vectors_and_encoders_are_not_mixed(fitted: FewShotClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    with pytest.raises(ModelError, match="remove `vectors`"):
        FewShotClassifier.load(tmp_path / "m", vectors="minilm")
    FewShotClassifier().fit(TEXTS, LABELS).save(tmp_path / "words")
    with pytest.raises(ModelError, match="remove `encoder`"):
        FewShotClassifier.load(tmp_path / "words", encoder=BagOfHashes())


def test_a_saved_model_may_not_name_a_folder(fitted: FewShotClassifier, tmp_path: Path) -> None:
    from bundles import change_facts

    fitted.save(tmp_path / "m")
    change_facts(tmp_path / "m", name="/etc", named=True)
    with pytest.raises(ModelError, match="with the encoder '/etc', but there is no encoder of this name: install the package"):
        FewShotClassifier.load(tmp_path / "m")


# What cannot be


class Odd:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def encode(self, texts: list[str]) -> object:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(np.zeros(3), "one vector per text"), (np.zeros((1, 3)), "one vector per text"), (np.full((6, 3), np.nan), "not finite")],
)
def test_answers_of_an_encoder_are_checked(answer: object, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        FewShotClassifier(encoder=Odd(answer)).fit(TEXTS, LABELS, class_names=False)


def test_settings_that_contradict_one_another() -> None:
    with pytest.raises(SettingError, match="`vectors` is for `encoder='words'`"):
        FewShotClassifier(encoder=BagOfHashes(), vectors="minilm").fit(TEXTS, LABELS)
    with pytest.raises(SettingError, match=r"an object with encode\(texts\)"):
        FewShotClassifier(encoder=3).fit(TEXTS, LABELS)
