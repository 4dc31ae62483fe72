"""A cache for the vectors of texts, in memory and, on request, in a file that several processes can share."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Protocol

import numpy as np

from ..data.download import make_folder
from ..errors import DataError, SettingError
from ..utils.functional import Floats

PATIENCE = 60.0  # seconds to wait while another process writes
KEYS_AT_ONCE = 500  # per query
TABLE = "CREATE TABLE IF NOT EXISTS vectors (encoder TEXT, text BLOB, vector BLOB, PRIMARY KEY (encoder, text)) WITHOUT ROWID"


class Encoder(Protocol):
    """Anything that turns texts into vectors."""

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    @property
    def identity(self) -> str:
        """A string that is equal for two encoders only if they give the same vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> Floats:
        """A vector for each text, (texts, dim)."""
        ...


class CachedEncoder:
    """An encoder that encodes each text once: it keeps the vectors of the `most` texts used last.

    With a `file`, every vector is also stored there, for other processes, now and later; nothing is ever removed from it.
    """

    def __init__(self, encoder: Encoder, most: int = 50_000, file: Path | None = None) -> None:
        if most < 1:
            raise SettingError(f"`most` is {most}: it must be at least 1.")
        self.encoder, self.most, self.file = encoder, most, file
        self._vectors: OrderedDict[bytes, Floats] = OrderedDict()  # the one used last comes last
        self._lock = Lock()

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.encoder.dim

    @property
    def identity(self) -> str:
        """The identity of the encoder behind the cache."""
        return self.encoder.identity

    def encode(self, texts: Sequence[str]) -> Floats:
        """A vector for each text, (texts, dim)."""
        keys = [_key(text) for text in texts]
        found = self._remembered(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            found |= self._filed_or_encoded(missing)
        self._remember(keys, found)
        return np.array([found[key] for key in keys], np.float32).reshape(len(keys), self.dim)

    def _remembered(self, keys: Iterable[bytes]) -> dict[bytes, Floats]:
        with self._lock:
            return {key: self._vectors[key] for key in keys if key in self._vectors}

    def _remember(self, keys: Iterable[bytes], vectors: Mapping[bytes, Floats]) -> None:
        with self._lock:
            for key in keys:
                self._vectors[key] = vectors[key]
                self._vectors.move_to_end(key)
            while len(self._vectors) > self.most:
                self._vectors.popitem(last=False)

    def _filed_or_encoded(self, texts: Mapping[bytes, str]) -> dict[bytes, Floats]:
        found = self._file.read(texts) if self._file else {}
        missing = {key: text for key, text in texts.items() if key not in found}
        if missing:
            vectors = self.encoder.encode(list(missing.values()))
            fresh = {key: vector.copy() for key, vector in zip(missing, vectors, strict=True)}  # a view would keep all of them
            if self._file:
                self._file.add(fresh)
            found |= fresh
        return found

    @cached_property
    def _file(self) -> _VectorFile | None:
        return _VectorFile(self.file, self.identity, self.dim) if self.file else None


@dataclass(frozen=True)
class _VectorFile:
    """An SQLite file of vectors, opened for each use, so that threads and forked processes share no connection."""

    path: Path
    encoder: str
    dim: int

    def read(self, keys: Iterable[bytes]) -> dict[bytes, Floats]:
        """The vectors found in the file; invalid ones are ignored."""
        found: dict[bytes, Floats] = {}
        remaining = iter(keys)
        with self._connection() as connection:
            while some := list(islice(remaining, KEYS_AT_ONCE)):
                marks = ", ".join("?" * len(some))
                query = f"SELECT text, vector FROM vectors WHERE encoder = ? AND text IN ({marks})"  # noqa: S608, only marks
                for key, content in connection.execute(query, (self.encoder, *some)):
                    if isinstance(content, bytes) and len(content) == 4 * self.dim:
                        found[key] = np.frombuffer(content, "<f4").astype(np.float32)
        return {key: vector for key, vector in found.items() if np.isfinite(vector).all()}

    def add(self, vectors: Mapping[bytes, Floats]) -> None:
        """Store these vectors."""
        rows = [(self.encoder, key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with self._connection() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        make_folder(self.path.parent)
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection, connection:
                with suppress(sqlite3.OperationalError):  # another process is doing the same right now
                    connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(TABLE)
                yield connection
        except sqlite3.Error as error:
            raise DataError(f"The vector file {self.path} cannot be used ({error}): remove it, or choose another.") from error


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
