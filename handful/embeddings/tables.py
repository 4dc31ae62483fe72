"""Word tables: their interface, the preparation of their vectors, and loading them by names such as `A+B:unit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import DataError, SettingError
from ..utils.functional import Floats
from ..utils.paths import cache_folder, resource
from .blended import BlendedTable
from .files import FileTable
from .packed import PackedTable
from .wordllama import WordLlama

MINILM, BLEND = resource("minilm"), resource("blend")
PACKAGED_TABLES = ("wordllama", "wordllama-mean", "minilm", "blend")
PREPARATIONS = ("raw", "unit", "centred")
COMMON_COMPONENTS = 2

Bools = np.ndarray[Any, np.dtype[np.bool_]]


class WordVectors(Protocol):
    """Anything that turns words into vectors."""

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def lookup(self, words: Sequence[str]) -> Floats:
        """One row per word, (words, dim); zeros for a word that the table lacks."""
        ...

    def knows(self, words: Sequence[str]) -> Bools:
        """Which words have vectors of their own, not only by their pieces: (words,)."""
        ...


@dataclass(frozen=True)
class Preparation:
    """A transformation of a whole table, fitted once on its frequent words, so that it does not depend on the corpus.

    `raw` keeps the lengths of the vectors, `unit` makes them 1, and `centred` also removes the mean and the leading common
    components (Mu and Viswanath, 2018). Unless `rescaled` is false, the table is then scaled so that its frequent words have a
    root-mean-square length of 1, which gives tables side by side the same weight.
    """

    unit: bool
    mean: Floats  # (dim,)
    components: Floats  # (components, dim)
    scale: float

    @classmethod
    def fit(cls, kind: str, frequent: Floats, rescaled: bool = True) -> Preparation:
        """Fit a preparation to the vectors of the table's frequent words."""
        dim = frequent.shape[1]
        mean, components = np.zeros(dim, np.float32), np.zeros((0, dim), np.float32)
        if kind == "centred":
            vectors = _unit_rows(frequent)
            mean = vectors.mean(axis=0, dtype=np.float32)
            _, directions = np.linalg.eigh((vectors - mean).T @ (vectors - mean))  # ascending
            components = directions[:, -COMMON_COMPONENTS:].T.astype(np.float32)
        unscaled = cls(kind != "raw", mean, components, 1.0)
        if not rescaled:
            return unscaled
        lengths = np.linalg.norm(unscaled(frequent), axis=1)
        return cls(kind != "raw", mean, components, float(1 / np.sqrt(np.mean(lengths**2))))

    def __call__(self, vectors: Floats) -> Floats:
        """Prepare vectors; zero rows stay zero."""
        centred = (_unit_rows(vectors) if self.unit else vectors) - self.mean
        centred = centred - (centred @ self.components.T) @ self.components
        centred[~(vectors != 0).any(axis=1)] = 0
        return (centred * self.scale).astype(np.float32)


def _unit_rows(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


@dataclass(frozen=True)
class Prepared:
    """One table with its preparation."""

    table: WordLlama | PackedTable | BlendedTable | FileTable
    kind: str
    rescaled: bool = True

    @property
    def dim(self) -> int:
        return self.table.dim

    def lookup(self, words: Sequence[str]) -> Floats:
        if self.kind == "raw" and not isinstance(self.table, FileTable) and self.table.raw_scale:
            scale = self.table.raw_scale if self.rescaled else 1  # known in advance, so there is nothing to fit
            return self.table.lookup(words) * np.float32(scale)
        vectors, frequent = self.table.lookup_with_frequent(words)
        if not np.isfinite(vectors).all():
            word = words[int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])]
            raise DataError(f"{self.table.name} has a vector for {word!r} that is not finite (NaN or infinite): fix the table.")
        return Preparation.fit(self.kind, frequent, self.rescaled)(vectors)

    def knows(self, words: Sequence[str]) -> Bools:
        if isinstance(self.table, (PackedTable, BlendedTable)):
            return self.table.knows(words)
        return (self.table.lookup_with_frequent(words)[0] != 0).any(axis=1)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SideBySide:
    """Several tables with their vectors concatenated; a word missing from one still has the others."""

    tables: tuple[WordVectors, ...]

    @property
    def dim(self) -> int:
        return sum(table.dim for table in self.tables)

    def lookup(self, words: Sequence[str]) -> Floats:
        return np.concatenate([table.lookup(words) for table in self.tables], axis=1)

    def knows(self, words: Sequence[str]) -> Bools:
        return np.all([table.knows(words) for table in self.tables], axis=0)  # type: ignore[no-any-return]


def load_vectors(names: str, rescaled: bool = True) -> WordVectors:
    """Load word tables: `blend`, `wordllama`, `minilm` or a path, joined by `+`, each with a preparation after a colon, if any.

    By default `wordllama` is raw, because its lengths carry importance, and so are the tables made from encoders that ship
    with the package, `minilm` and `blend`; a file is centred. Examples: `wordllama+minilm`, `glove.6B.100d.txt.gz`,
    `wordllama+wiki.en.vec:unit`. Frequent words then have length 1, unless `rescaled` is false. A file may also be given by
    its name in the folder `vectors` of the cache folder.
    """
    tables = [_one_table(name, rescaled) for name in names.split("+")]
    return tables[0] if len(tables) == 1 else SideBySide(tuple(tables))


@lru_cache
def _packaged(name: str) -> WordLlama | PackedTable | BlendedTable:
    """A packaged table, read once per process."""
    if name.startswith("wordllama"):
        return WordLlama("mean" if name.endswith("mean") else "sum")
    minilm = PackedTable(MINILM)
    return minilm if name == "minilm" else BlendedTable(BLEND, minilm)


def _one_table(name: str, rescaled: bool) -> WordVectors:
    source, colon, kind = name.rpartition(":")
    if not colon or "/" in kind or "\\" in kind:  # no preparation given; a Windows drive has a colon too
        source, kind = name, ""
    if kind and kind not in PREPARATIONS:
        raise SettingError(f"There is no preparation {kind!r} for vectors: choose one of {', '.join(PREPARATIONS)}.")
    if source in PACKAGED_TABLES:
        return Prepared(_packaged(source), kind or "raw", rescaled)
    path = next((path for path in (Path(source), cache_folder() / "vectors" / source) if path.is_file()), None)
    if path is None:
        raise DataError(f"There are no vectors {source!r}: give blend, wordllama, minilm, or the path of a vector file.")
    return Prepared(FileTable(path), kind or "centred", rescaled)
