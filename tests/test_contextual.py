"""The packaged encoder, for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from scipy.sparse import csr_array

from handful.cli import main
from handful.data.episodes import EpisodeSpec
from handful.embeddings import contextual, load_vectors
from handful.embeddings.contextual import Encoder, contextual_table
from handful.errors import DataError
from handful.making.word_table import (
    blending,
    distill,
    distilled_file,
    fit_to_sentences,
    frequent_words,
    guessing,
    save_table,
    sparse_ridge,
)
from handful.meta.inputs import load_experiment_data
from handful.meta.settings import RunSettings
from handful.models.few_shot import FewShotModel
from handful.models.settings import ModelSettings, VectorSettings


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


def test_a_word_is_the_mean_of_its_pieces(encoder: Encoder) -> None:
    words = ["the", "antidisestablishmentarianism", "  ", "bank"]
    vectors = encoder.encode([words, ["river", "bank"], []])
    assert [v.shape for v in vectors] == [(4, 384), (2, 384), (0, 384)]
    tokenizer, model = encoder._parts
    pieces = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        hidden = model(**pieces).last_hidden_state[0].numpy()
    mine = [i for i, word in enumerate(pieces.word_ids(0)) if word == 1]
    assert len(mine) > 3
    np.testing.assert_allclose(vectors[0][1], hidden[mine].mean(0), atol=1e-4)
    assert not vectors[0][2].any()
    assert np.linalg.norm(vectors[0][3] - vectors[1][1]) > 0.1  # the same word in another place has another vector


def test_long_texts_are_read_in_windows_and_nothing_is_cut(encoder: Encoder) -> None:
    words = [f"word{i % 97}" for i in range(900)] + ["penguin"]
    texts = encoder._texts([words])
    windows, _, _ = encoder.windows(texts)
    assert len(windows) > 1
    kept = [position for _, _, keep_from, keep_to in windows for position in range(keep_from, keep_to)]
    assert kept == list(range(901))
    (vectors,) = encoder.encode([words])
    assert vectors.any(axis=1).all()
    begin, end, _, _ = windows[-1]
    np.testing.assert_allclose(vectors[-1], encoder.encode([words[begin:end]])[0][-1], atol=1e-4)


def test_vectors_are_cached_shared_and_safe_to_interrupt(encoder: Encoder, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(contextual, "BLOCK", 2)
    documents = [["a", "b"], ["c"], ["d", "e"], ["f"]]
    calls = []
    real = Encoder.encode

    def encode(self: Encoder, texts: list) -> list:
        calls.append(len(texts))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, texts)

    monkeypatch.setattr(Encoder, "encode", encode)
    with pytest.raises(KeyboardInterrupt):
        contextual_table(encoder, documents, tmp_path)
    table = contextual_table(encoder, documents, tmp_path)  # only the second block again
    assert calls == [2, 2, 2]
    assert table.shape == (6, 384)
    assert table.dtype == np.float16
    assert isinstance(table, np.memmap)
    np.testing.assert_array_equal(contextual_table(encoder, documents, tmp_path), table)
    assert len(calls) == 3
    assert len(list(tmp_path.iterdir())) == 1
    np.testing.assert_allclose(table[2], real(encoder, [["c"]])[0][0], atol=2e-3)


def test_a_distilled_table_is_a_table_like_any_other(tmp_path: Path, monkeypatch, encoder: Encoder) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path))
    path = distilled_file("minilm", words=300, dim=32)
    assert distilled_file("minilm", words=300, dim=32) == path
    vectors = load_vectors(f"wordllama+{path}:raw").lookup(["good", "great", "table", "unheardofword"])
    assert vectors.shape == (4, 256 + 32)
    assert not vectors[3, 256:].any()
    distilled = distill(encoder, ["good", "great", "bad", "table", "chair"], components=0)
    np.testing.assert_allclose(distilled.mean(0), 0, atol=1e-5)
    save_table(tmp_path / "own.npz", ["good", "bad"], distilled[[0, 2]])
    assert load_vectors(f"{tmp_path / 'own.npz'}:unit").lookup(["bad"]).any()


def test_a_table_is_fitted_so_that_means_of_words_are_like_sentences() -> None:
    rng, words = np.random.default_rng(0), [f"qqx{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]  # all of them as rare
    own, hidden = rng.normal(size=(2, 26, 4)).astype(np.float32)
    true = own @ rng.normal(size=(4, 4)) + hidden  # what words mean in sentences is not what they are alone
    documents = [[words[i] for i in rng.integers(0, 25, 6)] for _ in range(300)]  # never the last
    sentences = np.array([np.mean([true[words.index(word)] for word in document], axis=0) for document in documents])
    fitted = {pull: fit_to_sentences(words, own, documents, sentences, 4, pull) for pull in (0.01, 1e9)}

    def distances(vectors: np.ndarray) -> np.ndarray:  # whatever the axes that principal components chose
        means = np.array([np.mean([vectors[words.index(word)] for word in document], axis=0) for document in documents])
        return np.linalg.norm(means[:100, None] - means[None, 100:200], axis=-1)

    wanted = distances(true)
    errors = [np.abs(distances(fitted[pull]) - wanted).mean() / wanted.mean() for pull in fitted]
    assert errors[0] < 0.1 < errors[1]
    np.testing.assert_allclose(fitted[0.01][25], fitted[1e9][25], atol=1e-5)  # nothing is known of the last but the map
    with pytest.raises(DataError, match="at least 4 texts with known words, not 3"):
        fit_to_sentences(words, own, [[words[0]], [words[1]], [words[2]], ["ö"]], sentences[:4], 4)
    with pytest.raises(DataError, match="not 0"):
        fit_to_sentences(words, own, [["ö"]] * 4, sentences[:4], 4)


def test_a_fitted_table_from_the_command_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    texts = tmp_path / "inbox.txt"
    texts.write_text("".join(f"the {a} {b} is here\n" for a in ("good", "old", "new", "long") for b in ("day", "year", "work")))
    out = tmp_path / "ours.npz"
    command = ["vectors", "distill", "--words", "200", "--dim", "8", "--texts", str(texts), "--out", str(out)]
    assert CliRunner().invoke(main, command, catch_exceptions=False).exit_code == 0
    plain = distilled_file("minilm", words=200, dim=8)
    assert len(list(plain.parent.iterdir())) == 2  # the fitted one does not stand for the plain one
    vectors = [load_vectors(f"{path}:raw").lookup(["good", "year"]) for path in (out, plain)]
    assert vectors[0].shape == (2, 8)
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    texts.write_text("too little\n")
    assert "at least 8 texts" in CliRunner().invoke(main, command).output


def test_every_representation_runs_on_contextual_words(tmp_path: Path, monkeypatch, lines) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    rows = [f'{{"text": "text number {i} of {label}", "label": "{label}"}}' for label in "abcd" for i in range(4)]
    lines(*rows)
    lines('{"train": ["a", "b"], "val": [], "test": ["c", "d"]}', name="data.split.json")
    settings = RunSettings(data=str(tmp_path / "data.jsonl"), model=ModelSettings(vectors=VectorSettings("contextual:minilm")))
    inputs = load_experiment_data(settings)
    sampler = inputs.sampler("test", EpisodeSpec(2, 1, 2), 0)
    for representation in ("mean", "idf", "cnn", "attention"):
        chosen = ModelSettings(representation=representation, vectors=VectorSettings("contextual:minilm"))  # type: ignore[arg-type]
        model = FewShotModel.initial(chosen, 384)
        prepared = model.prepare(inputs.texts, [sampler[0], sampler[1]])
        logits = model.logits(prepared)
        assert logits.shape == (2, 4, 2)
        np.testing.assert_allclose(logits, np.asarray(model.to_torch().logits(prepared)), atol=1e-4)


def test_any_callable_can_give_the_vectors(lines, tmp_path: Path) -> None:
    lines('{"text": "b a", "label": "x"}', '{"text": "a", "label": "y"}')
    lines('{"train": ["x"], "val": [], "test": ["y"]}', name="data.split.json")
    inputs = load_experiment_data(
        RunSettings(data=str(tmp_path / "data.jsonl")), lambda words: np.array([[len(words), 1.0]] * len(words))
    )
    assert inputs.texts.table[inputs.texts.rows].tolist() == [[2, 1], [2, 1], [1, 1]]
    assert inputs.texts.ids.tolist() == [0, 1, 1]  # statistics still know the word


def test_an_encoder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no encoder"):
        Encoder(str(tmp_path)).encode([["a"]])


def test_a_sparse_ridge_is_a_ridge() -> None:
    rng = np.random.default_rng(0)
    bags = rng.random((60, 20)) * (rng.random((60, 20)) < 0.3)
    targets = rng.normal(size=(60, 3))
    wanted = np.linalg.solve(bags.T @ bags + 0.3 * np.eye(20), bags.T @ targets)
    np.testing.assert_allclose(sparse_ridge(csr_array(bags), targets, 0.3), wanted, atol=0.01)


def test_a_blend_keeps_the_directions_in_which_texts_differ() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 30, 4)).astype(np.float32)
    second[:, 1:] *= 0.01  # hardly any difference
    bags = csr_array(rng.dirichlet(np.ones(30), 50).astype(np.float32))
    together, directions = np.concatenate([first, second], axis=1), blending([first, second], bags, 5)
    blended = together @ directions
    assert directions.shape == (8, 5)
    np.testing.assert_allclose(blended @ blended.T, together @ together.T, atol=0.05)


def test_vectors_are_guessed_from_pieces() -> None:
    rng = np.random.default_rng(0)
    pieces, true = rng.normal(size=(50, 4)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)
    np.testing.assert_allclose(guessing(pieces, pieces @ true), true, atol=0.1)


def test_frequent_words_include_those_of_the_texts_that_lists_lack() -> None:
    words = frequent_words([["the", "n't", ",", "zzyzx"]] * 3 + [["oncezz"]], 1000)
    assert {"the", "good", "n't", ",", "zzyzx"} <= set(words)
    assert not {"oncezz", "don't"} & set(words)
    assert len(words) == 1000
    assert words.index("the") < words.index("good")
