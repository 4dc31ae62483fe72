"""Word vectors from files: word2vec, GloVe and fastText text files (plain, gz, xz, zip), and `.npz`.

Text files are streamed: only the requested words and the first words of the file are kept.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..utils.files import read_lines
from ..utils.functional import Floats

FREQUENT = 20_000  # such files are sorted by frequency, so the first rows are the frequent words


@dataclass(frozen=True)
class FileTable:
    """Word vectors in one file. An `.npz` file holds `words` (n,) as strings and `vectors` (n, dim) as numbers."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    @cached_property
    def dim(self) -> int:
        if self.path.suffix == ".npz":
            return int(self.arrays[1].shape[1])
        return len(next(self._rows())[1].split())

    def lookup_with_frequent(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """The vectors of the words (zeros if the file lacks a word), and those of the first words of the file."""
        vectors = np.zeros((len(words), self.dim), np.float32)
        if self.path.suffix == ".npz":
            table = self.arrays[1]
            rows = np.array([self._row_of.get(word, -1) for word in words], np.int64)
            vectors[rows >= 0] = table[rows[rows >= 0]]
            return vectors, table[:FREQUENT].astype(np.float32)
        wanted = {word: number for number, word in enumerate(words)}
        frequent = []
        for number, (word, numbers) in enumerate(self._rows()):
            if number < FREQUENT or word in wanted:
                vector = self._parse(word, numbers)
                if number < FREQUENT:
                    frequent.append(vector)
                if word in wanted:
                    vectors[wanted[word]] = vector
        return vectors, np.stack(frequent)

    def _parse(self, word: str, numbers: str) -> Floats:
        try:
            vector = np.array(numbers.split(), np.float32)
        except ValueError as error:
            raise DataError(f"{self.path}, word {word!r} ({error}): use a word2vec, GloVe or fastText text file.") from error
        if len(vector) != self.dim:
            raise DataError(
                f"{self.path}, word {word!r} has {len(vector)} numbers, but others have {self.dim}: download the file again."
            )
        return vector

    def _rows(self) -> Iterator[tuple[str, str]]:
        """Each word with its numbers, unparsed; a word2vec header is skipped."""
        for number, line in read_lines(self.path, errors="replace"):
            word, _, numbers = line.rstrip().partition(" ")
            if numbers and not (number == 1 and numbers.isdigit()):
                yield word, numbers

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.arrays[0])}

    @cached_property
    def arrays(self) -> tuple[list[str], Floats]:
        """The words and vectors of an `.npz` file."""
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                words, vectors = arrays["words"], arrays["vectors"]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{self.path} is not a table of words and vectors ({error}): create it again.") from error
        if vectors.ndim != 2 or len(words) != len(vectors):
            raise DataError(f"{self.path} has {len(words)} words but vectors of shape {vectors.shape}: create it again.")
        return words.tolist(), vectors
