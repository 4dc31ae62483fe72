"""The classifier's word table: three tables side by side, reduced by a linear map when a word is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.functional import Floats
from .packed import PackedTable
from .wordllama import WordLlama

MAPS_FILE = "maps.npy"
PIECES = WordLlama()


@dataclass(frozen=True)
class BlendedTable:
    """Two packed tables and wordllama, which together give every word a vector.

    The folder also has a matrix (dims of all three + 256, dim). Its first rows map the three parts of a word's vector to the
    result. Its last 256 rows map wordllama's vector to that of a word which the first table lacks.
    """

    folder: Path
    other: PackedTable

    @property
    def name(self) -> str:
        return str(self.folder)

    @property
    def dim(self) -> int:
        return int(self._maps.shape[1])

    @property
    def raw_scale(self) -> float:
        """Always 1: the matrix is scaled so that frequent words have a root-mean-square length of 1."""
        return 1.0

    @cached_property
    def _own(self) -> PackedTable:
        return PackedTable(self.folder)

    @cached_property
    def _maps(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.load(self.folder / MAPS_FILE).astype(np.float64)  # type: ignore[no-any-return]

    def lookup(self, words: Sequence[str]) -> Floats:
        """One row per word: (words, dim)."""
        pieces = PIECES.lookup(words)  # (words, 256)
        parts = np.concatenate([self._own.lookup(words), self.other.lookup(words), pieces], axis=1)  # (words, dims of all)
        known, width = self._own.knows(words), parts.shape[1]
        vectors = np.empty((len(words), self.dim), np.float32)
        vectors[known] = parts[known].astype(np.float64) @ self._maps[:width]  # exact enough that other words change no digit
        vectors[~known] = pieces[~known].astype(np.float64) @ self._maps[width:]
        return vectors

    def knows(self, words: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which words the first table has: (words,)."""
        return self._own.knows(words)

    def lookup_with_frequent(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """The vectors of the words, and those of the most frequent words."""
        return self.lookup(words), self._frequent

    @cached_property
    def _frequent(self) -> Floats:
        return self.lookup(self._own.frequent)
