from __future__ import annotations

import gzip
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pytest

from handful.embeddings import load_vectors
from handful.embeddings.blended import BlendedTable
from handful.embeddings.packed import PackedTable, pack_table
from handful.embeddings.tables import BLEND, MINILM, Preparation
from handful.embeddings.wordllama import WordLlama
from handful.errors import DataError, SettingError
from handful.meta.inputs import ExperimentData, load_experiment_data
from handful.meta.settings import RunSettings
from handful.models.settings import ModelSettings, VectorSettings

ROWS = {"the": [1.0, 0.0, 2.0], "cat": [0.0, 3.0, 4.0], "sat": [-1.0, 1.0, 0.5], "née": [0.1, 0.2, 0.3]}
WORD2VEC = "4 3\n" + "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items())
GLOVE = WORD2VEC.split("\n", 1)[1]


def write(path: Path, text: str) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode()))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside.txt", text)
    else:
        path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("ending", ["txt", "vec", "txt.gz", "txt.xz", "zip"])
@pytest.mark.parametrize("text", [WORD2VEC, GLOVE], ids=["word2vec", "glove"])
def test_text_files_in_every_wrapping(tmp_path: Path, ending: str, text: str) -> None:
    path = write(tmp_path / f"table.{ending}", text)
    vectors = load_vectors(f"{path}:raw")
    assert vectors.dim == 3
    rows = vectors.lookup(["cat", "unheard", "née"])
    assert rows.dtype == np.float32
    scale = np.sqrt(np.mean([np.sum(np.square(row)) for row in ROWS.values()]))
    np.testing.assert_allclose(rows * scale, [ROWS["cat"], [0, 0, 0], ROWS["née"]], rtol=1e-5)


def test_without_rescaling_a_raw_table_is_the_file_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "table.txt", GLOVE)
    rows = load_vectors(f"{path}:raw", rescaled=False).lookup(["cat", "unheard", "née"])
    np.testing.assert_allclose(rows, [ROWS["cat"], [0, 0, 0], ROWS["née"]], rtol=1e-6)
    own = load_vectors("wordllama:raw", rescaled=False).lookup(["the", "grandma"])
    scaled = load_vectors("wordllama").lookup(["the", "grandma"])
    assert np.linalg.norm(own, axis=1).max() > 2 * np.linalg.norm(scaled, axis=1).max()
    np.testing.assert_allclose(own / np.linalg.norm(own), scaled / np.linalg.norm(scaled), rtol=1e-5)


def test_a_file_in_the_cache_folder_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path))
    (tmp_path / "vectors").mkdir()
    write(tmp_path / "vectors" / "table.txt", GLOVE)
    assert load_vectors("wordllama+table.txt:unit").dim == 259
    with pytest.raises(DataError, match="There are no vectors 'other"):
        load_vectors("other.txt")


def test_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "table.npz", words=np.array(list(ROWS)), vectors=np.array(list(ROWS.values()), np.float16))
    rows = load_vectors(f"{tmp_path / 'table.npz'}:unit").lookup(["cat", "x"])
    np.testing.assert_allclose(rows, [[0, 0.6, 0.8], [0, 0, 0]], atol=1e-3)


def test_tables_side_by_side_fill_each_others_gaps(tmp_path: Path) -> None:
    path = write(tmp_path / "table.txt", GLOVE)
    vectors = load_vectors(f"wordllama+{path}:unit")
    rows = vectors.lookup(["cat", "unheard"])
    assert rows.shape == (2, 259)
    assert rows[:, :256].any(axis=1).all()
    np.testing.assert_allclose(rows[:, 256:], [[0, 0.6, 0.8], [0, 0, 0]], atol=1e-6)
    np.testing.assert_array_equal(rows[:, :256], load_vectors("wordllama").lookup(["cat", "unheard"]))


def test_wordllama_has_a_vector_for_every_word_the_sum_of_its_pieces() -> None:
    table, mean = WordLlama(), WordLlama("mean")
    words = ["the", "antidisestablishmentarianism", "日本", "☃", "n't"]
    assert table.lookup(words).any(axis=1).all()
    pieces = table._tokenizer.encode(words[1], add_special_tokens=False).ids
    assert len(pieces) > 3
    np.testing.assert_allclose(table.lookup(words)[1], table._table[pieces].astype(np.float32).sum(0), atol=1e-5)
    np.testing.assert_allclose(mean.lookup(words)[1], table._table[pieces].astype(np.float32).mean(0), atol=1e-5)
    assert table.lookup([]).shape == (0, 256)


def test_preparations() -> None:
    rng = np.random.default_rng(0)
    frequent = rng.normal(size=(500, 8)).astype(np.float32) + 3 * np.eye(8, dtype=np.float32)[0]
    for kind in ("raw", "unit", "centred"):
        prepared = Preparation.fit(kind, frequent)(frequent)
        assert np.mean(np.sum(prepared**2, axis=1)) == pytest.approx(1, rel=1e-3)
    np.testing.assert_allclose(prepared.mean(axis=0), 0, atol=1e-4)
    assert np.linalg.matrix_rank(prepared, tol=1e-2) == 6  # two common components are gone
    lengths = np.linalg.norm(Preparation.fit("raw", frequent)(frequent), axis=1)
    np.testing.assert_allclose(lengths / lengths[0], np.linalg.norm(frequent, axis=1) / np.linalg.norm(frequent[0]), rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", "the 1 2 3\ncat 1 x 3\n", "word 'cat'"),
        ("a.txt", "the 1 2 3\ncat 1 2\n", "has 2 numbers, but others have 3"),
        ("a.txt", "the 1 2 nan\n", "has a vector for 'the' that is not finite"),
        ("a.txt.gz", None, "cannot be read to the end"),
        ("a.npz", "not an archive", "is not a table of words and vectors"),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path: Path, name: str, content: str | None, sentence: str) -> None:
    path = tmp_path / name
    if content is None:
        path.write_bytes(gzip.compress(GLOVE.encode() * 50)[:-20])
    else:
        path.write_text(content)
    with pytest.raises(DataError, match=sentence):
        load_vectors(f"{path}:raw").lookup(["the", "cat"])


def test_unknown_names_and_preparations() -> None:
    with pytest.raises(DataError, match=r"no vectors 'nowhere\.txt'"):
        load_vectors("nowhere.txt")
    with pytest.raises(SettingError, match="no preparation 'boiled'"):
        load_vectors("wordllama:boiled")


def test_words_without_a_vector_are_neither_counted_nor_attended_to(tmp_path: Path, lines) -> None:
    data = lines('{"text": "the cat zzz", "label": 1}', '{"text": "sat zzz", "label": 2}')
    split = lines('{"train": [1], "val": [2], "test": []}', name="data.split.json")
    table = write(tmp_path / "table.txt", GLOVE)
    inputs = load_experiment_data(
        RunSettings(data=str(data), split=str(split), model=ModelSettings(vectors=VectorSettings(str(table))))
    )
    assert inputs.corpus.words(0) == ["the", "cat"]
    assert inputs.corpus.word_counts().sum() == 3


def test_a_model_says_how_long_its_vectors_are(demo: ExperimentData) -> None:
    longer = load_experiment_data(RunSettings(model=ModelSettings(vectors=VectorSettings(length=10))))
    np.testing.assert_allclose(longer.texts.table, 10 * demo.texts.table, rtol=1e-6)
    own = load_experiment_data(RunSettings(model=ModelSettings(vectors=VectorSettings(length=0))))
    words = demo.corpus.vocabulary.words
    np.testing.assert_array_equal(own.texts.table, load_vectors("wordllama", rescaled=False).lookup(words))
    with pytest.raises(SettingError, match="--length must be at least 0, not -1"):
        VectorSettings(length=-1)


def test_the_scale_of_a_packaged_table_is_the_one_that_would_be_computed() -> None:
    for table in (WordLlama(), PackedTable(MINILM), BlendedTable(BLEND, PackedTable(MINILM))):
        _, frequent = table.lookup_with_frequent([])
        assert Preparation.fit("raw", frequent).scale == pytest.approx(table.raw_scale, rel=1e-4)


def test_a_packed_table_keeps_its_vectors_to_a_hundredth(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32) * np.geomspace(1, 0.01, 16, dtype=np.float32)
    words = [f"word{i}" for i in range(200)]
    for name, content in pack_table(words, vectors).items():
        (tmp_path / name).write_bytes(content)
    found = PackedTable(tmp_path).lookup([*words, "unheard"])
    scaled = Preparation.fit("raw", vectors)(vectors)
    assert np.abs(found[:-1] - scaled).max() < 0.01 * np.abs(scaled).max()
    assert not found[-1].any()


def test_a_blended_table_maps_its_parts_and_guesses_the_vectors_of_other_words(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = ["good", "unheardofword", "parliament"]
    own = rng.normal(size=(3, 8)).astype(np.float32)
    for name, content in pack_table(words, own).items():
        (tmp_path / name).write_bytes(content)
    maps = rng.normal(size=(8 + 256 + 256 + 256, 5)).astype(np.float32)
    np.save(tmp_path / "maps.npy", maps)
    table = BlendedTable(tmp_path, PackedTable(MINILM))
    found = table.lookup([*words, "dog"])
    parts = [PackedTable(tmp_path).lookup(words), PackedTable(MINILM).lookup(words), WordLlama().lookup(words)]
    np.testing.assert_allclose(found[:3], np.concatenate(parts, axis=1) @ maps[:-256], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[3], WordLlama().lookup(["dog"])[0] @ maps[-256:], rtol=1e-3, atol=1e-3)
    assert table.knows(["dog", "good"]).tolist() == [False, True]
    assert table.lookup([]).shape == (0, 5)


def test_a_vector_does_not_depend_on_the_other_words() -> None:
    table, words = load_vectors("blend"), ["good", "unheardofword", "n't", ",", "parcel", "zzyzx"]
    together = table.lookup([*words, *(f"w{i}" for i in range(100))])[: len(words)]
    np.testing.assert_array_equal(together, np.concatenate([table.lookup([word]) for word in words]))


def test_which_words_tables_know(tmp_path: Path) -> None:
    words = ["good", "unheardofword"]
    for names, known in (("wordllama", [True, True]), ("blend", [True, False]), ("wordllama+minilm", [True, False])):
        assert load_vectors(names).knows(words).tolist() == known
    assert load_vectors("blend").lookup(words).any(axis=1).all()


@pytest.mark.parametrize("name", ["minilm", "blend"])
def test_tables_ship_with_the_package(name: str) -> None:
    table = load_vectors(name)
    cat, dog, parliament = table.lookup(["cat", "dog", "parliament"])
    assert table.dim == len(cat)
    assert cat @ dog > cat @ parliament


def test_words_that_are_no_text_have_vectors_all_the_same() -> None:
    rows = WordLlama().lookup(["\ud800", "x" * 1_000_000, "\x00", "😀"])
    assert np.isfinite(rows).all()
