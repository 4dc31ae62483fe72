"""The compact word tables that ship with the package: one byte per number, memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.functional import Floats, Ints

VECTORS_FILE, SCALES_FILE, WORDS_FILE = "vectors.npy", "scales.npy", "words.txt"
LARGEST_BYTE = 127  # of a signed byte
FREQUENT = 20_000  # words are sorted by frequency


@dataclass(frozen=True)
class PackedTable:
    """A folder with vectors (words, dim) as bytes, a scale for each of their columns (dim,), and one word per line."""

    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder)

    @property
    def dim(self) -> int:
        return int(self._vectors.shape[1])

    @property
    def raw_scale(self) -> float:
        """Always 1: the table is packed so that frequent words have a root-mean-square length of 1."""
        return 1.0

    @cached_property
    def _vectors(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        return np.load(self.folder / VECTORS_FILE, mmap_mode="r")  # type: ignore[no-any-return]

    @cached_property
    def _scales(self) -> Floats:
        return np.load(self.folder / SCALES_FILE)  # type: ignore[no-any-return]

    @cached_property
    def _rows(self) -> dict[str, int]:
        words = (self.folder / WORDS_FILE).read_text("utf-8").split("\n")[:-1]
        return dict(zip(words, range(len(words)), strict=True))

    def lookup(self, words: Sequence[str]) -> Floats:
        """One row per word, (words, dim); zeros for a word that the table lacks."""
        rows = self._rows_of(words)
        vectors = self._vectors[rows] * self._scales
        vectors[rows < 0] = 0
        return vectors

    def knows(self, words: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which words the table has: (words,)."""
        return self._rows_of(words) >= 0

    @property
    def frequent(self) -> list[str]:
        """The most frequent words."""
        return list(self._rows)[:FREQUENT]

    def _rows_of(self, words: Sequence[str]) -> Ints:
        return np.array([self._rows.get(word, -1) for word in words], np.int64)

    def lookup_with_frequent(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """The vectors of the words, and those of the most frequent words."""
        return self.lookup(words), self._vectors[:FREQUENT] * self._scales


def pack_table(words: Sequence[str], vectors: Floats) -> dict[str, bytes]:
    """The files of a packed table by name, from words in order of frequency."""
    steps = np.abs(vectors).max(axis=0) / LARGEST_BYTE
    packed = np.round(vectors / steps).astype(np.int8)
    lengths = np.linalg.norm(packed[:FREQUENT] * steps, axis=1)
    scales = (steps / np.sqrt(np.mean(lengths**2))).astype(np.float32)
    lines = "".join(f"{word}\n" for word in words)
    return {VECTORS_FILE: npy(packed), SCALES_FILE: npy(scales), WORDS_FILE: lines.encode()}


def npy(array: np.ndarray[Any, Any]) -> bytes:
    """An array as the content of an `.npy` file."""
    stream = BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()
