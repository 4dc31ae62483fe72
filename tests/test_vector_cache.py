"""Vectors that are remembered are those that the encoder gives, and each text is encoded once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from onnx_files import write_encoder

from handful.embeddings.onnx_encoder import OnnxEncoder
from handful.embeddings.vector_cache import CachedEncoder
from handful.errors import DataError, SettingError

TEXTS = ["red", "green blue", "", "red red blue", "blue"]


class Counted:
    """A real encoder that notes which texts it was given."""

    def __init__(self, encoder: OnnxEncoder) -> None:
        self.encoder, self.dim, self.identity = encoder, encoder.dim, encoder.identity
        self.texts: list[str] = []

    def encode(self, texts):
        self.texts.extend(texts)
        return self.encoder.encode(texts)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> OnnxEncoder:
    return OnnxEncoder(write_encoder(tmp_path_factory.mktemp("tiny")), threads=1)


@pytest.fixture
def counted(encoder: OnnxEncoder) -> Counted:
    return Counted(encoder)


def test_a_text_is_encoded_once(counted: Counted) -> None:
    cached = CachedEncoder(counted)
    expected = counted.encoder.encode(TEXTS)
    np.testing.assert_array_equal(cached.encode(TEXTS), expected)
    np.testing.assert_array_equal(cached.encode([*TEXTS[::-1], "red"]), [*expected[::-1], expected[0]])
    assert counted.texts == TEXTS
    assert (cached.dim, cached.identity) == (counted.dim, counted.identity)


def test_equal_texts_of_one_call_are_encoded_once(counted: Counted) -> None:
    vectors = CachedEncoder(counted).encode(["red", "blue", "red"])
    assert counted.texts == ["red", "blue"]
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert CachedEncoder(counted).encode([]).shape == (0, counted.dim)


def test_what_was_asked_for_last_is_remembered(counted: Counted) -> None:
    cached = CachedEncoder(counted, most=2)
    np.testing.assert_array_equal(cached.encode(TEXTS), counted.encoder.encode(TEXTS))  # more than it can remember
    cached.encode(["red"])
    cached.encode(["blue"])
    cached.encode(["red"])
    cached.encode(["green"])  # in the place of blue
    before = len(counted.texts)
    cached.encode(["red"])
    assert len(counted.texts) == before
    cached.encode(["blue"])
    assert counted.texts[before:] == ["blue"]
    assert len(cached._vectors) == 2
    assert all(vector.base is None for vector in cached._vectors.values())  # none holds the memory of its whole batch


def test_a_caller_cannot_change_what_is_remembered(counted: Counted) -> None:
    cached = CachedEncoder(counted)
    cached.encode(["red"])[:] = 7
    np.testing.assert_array_equal(cached.encode(["red"]), counted.encoder.encode(["red"]))


def test_at_least_one_is_remembered(counted: Counted) -> None:
    with pytest.raises(SettingError, match="is 0: it must be at least 1"):
        CachedEncoder(counted, most=0)


@given(
    calls=some.lists(some.lists(some.sampled_from([*TEXTS, "\ud800", "\ud801", "?"]), max_size=6), max_size=6),
    most=some.integers(1, 4),
)
def test_any_calls_give_the_encoders_vectors(encoder: OnnxEncoder, calls: list[list[str]], most: int) -> None:
    cached = CachedEncoder(encoder, most)
    for texts in calls:
        np.testing.assert_array_equal(cached.encode(texts), encoder.encode(texts))
        assert len(cached._vectors) <= most


def test_threads(counted: Counted) -> None:
    cached = CachedEncoder(counted, most=3)
    calls = [[TEXTS[(i + j) % 5] for j in range(i % 4)] for i in range(200)]
    with ThreadPoolExecutor(8) as pool:
        for texts, vectors in zip(calls, pool.map(cached.encode, calls), strict=True):
            np.testing.assert_array_equal(vectors, counted.encoder.encode(texts))


# The file


def test_a_file_outlives_the_process_that_wrote_it(counted: Counted, tmp_path: Path) -> None:
    file = tmp_path / "new" / "vectors.sqlite"
    expected = CachedEncoder(counted, file=file).encode(TEXTS)
    again = Counted(counted.encoder)
    np.testing.assert_array_equal(CachedEncoder(again, file=file).encode([*TEXTS, "green"])[:5], expected)
    assert again.texts == ["green"]


def test_more_texts_than_one_query_takes(counted: Counted, tmp_path: Path) -> None:
    texts = [f"red {'blue ' * (i % 7)}{i}" for i in range(1234)]
    expected = CachedEncoder(counted, file=tmp_path / "v").encode(texts)
    again = Counted(counted.encoder)
    np.testing.assert_array_equal(CachedEncoder(again, most=10, file=tmp_path / "v").encode(texts), expected)
    assert not again.texts


def test_encoders_share_a_file_but_no_vectors(counted: Counted, tmp_path: Path) -> None:
    first = Counted(OnnxEncoder(counted.encoder.folder, "cls"))
    CachedEncoder(first, file=tmp_path / "v").encode(["red"])
    vectors = CachedEncoder(counted, file=tmp_path / "v").encode(["red"])
    assert counted.texts == ["red"]
    np.testing.assert_array_equal(vectors, counted.encoder.encode(["red"]))


@pytest.mark.parametrize("content", [b"short", np.full(6, np.nan, "<f4").tobytes(), "letters", None], ids=repr)
def test_a_damaged_vector_is_encoded_again(counted: Counted, tmp_path: Path, content: object) -> None:
    expected = CachedEncoder(counted, file=tmp_path / "v").encode(["red"])
    with sqlite3.connect(tmp_path / "v") as connection:
        connection.execute("UPDATE vectors SET vector = ?", (content,))
    connection.close()
    for times in (2, 2):  # encoded once more, and repaired
        np.testing.assert_array_equal(CachedEncoder(counted, file=tmp_path / "v").encode(["red"]), expected)
        assert len(counted.texts) == times


def test_a_file_that_is_another_is_refused(counted: Counted, tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("Roses are red. " * 100)
    with pytest.raises(DataError, match=r"poem.txt cannot be used \(file is not a database\): remove it, or choose another"):
        CachedEncoder(counted, file=tmp_path / "poem.txt").encode(["red"])
    assert (tmp_path / "poem.txt").read_text().startswith("Roses")
    with sqlite3.connect(tmp_path / "other") as connection:
        connection.execute("CREATE TABLE vectors (a, b)")
    connection.close()
    with pytest.raises(DataError, match="other cannot be used"):
        CachedEncoder(counted, file=tmp_path / "other").encode(["red"])


def test_processes_share_a_file(counted: Counted, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from handful.embeddings.onnx_encoder import OnnxEncoder
from handful.embeddings.vector_cache import CachedEncoder
cached = CachedEncoder(OnnxEncoder(Path(sys.argv[1]), threads=1), file=Path(sys.argv[2]))
for i in range(60):
    cached.encode([f"red {j}" for j in range(i, i + 3)] + [f"blue {sys.argv[3]} {i}"])
"""
    place = (str(counted.encoder.folder), str(tmp_path / "v"))
    running = [
        subprocess.Popen([sys.executable, "-c", code, *place, str(i)], stderr=subprocess.PIPE, text=True) for i in range(4)
    ]
    for process in running:
        _, error = process.communicate()
        assert process.returncode == 0, error
    texts = [f"red {j}" for j in range(62)] + [f"blue {p} {i}" for p in range(4) for i in range(60)]
    vectors = CachedEncoder(counted, file=tmp_path / "v").encode(texts)
    assert not counted.texts
    np.testing.assert_array_equal(vectors, counted.encoder.encode(texts))
