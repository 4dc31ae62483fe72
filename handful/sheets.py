"""Formats of answers, and files of them that grow beside their place.

A file appears in its place when it is whole. Beside it is noted how far it is, and of which run, so that an interrupted one
goes on where it stood.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from .errors import MissingExtraError, SettingError
from .rows import DELIMITERS, ENDINGS
from .storage import write_json

Cells = tuple[Any, ...]


# The formats of answers


@dataclass(frozen=True)
class Layout:
    """The columns of the answers."""

    kept: tuple[str, ...]
    own: tuple[str, ...]
    types: tuple[Any, ...] = ()  # of the columns that are kept, where the input says so, otherwise None
    labels: tuple[Any, ...] = ()
    several: bool = False  # labels a text

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.kept, *self.own)


class Sheet(Protocol):
    """A format of answers: bytes that can be appended, and what is to be done when they are complete."""

    def header(self) -> bytes:
        """How a file begins."""
        ...

    def encode(self, rows: Sequence[Cells]) -> bytes:
        """Some rows more."""
        ...

    def finish(self, pending: Path, out: Path) -> None:
        """Put the complete file in its place."""
        ...


class _Appended:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def finish(self, pending: Path, out: Path) -> None:
        pending.replace(out)


class Delimited(_Appended):
    """CSV; a value that is no string is written as JSON."""

    delimiter = DELIMITERS["csv"]

    def header(self) -> bytes:
        return self.encode([self.layout.columns])

    def encode(self, rows: Sequence[Cells]) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows([as_text(v) for v in row] for row in rows)
        return text.getvalue().encode("utf-8", "replace")


class TabDelimited(Delimited):
    """TSV."""

    delimiter = DELIMITERS["tsv"]


class JsonLines(_Appended):
    """An object a line, in ASCII, so that any text can be written."""

    def header(self) -> bytes:
        return b""

    def encode(self, rows: Sequence[Cells]) -> bytes:
        columns = self.layout.columns
        return "".join(json.dumps(dict(zip(columns, row, strict=True)), default=str) + "\n" for row in rows).encode()


class Parquet:
    """Parquet cannot be appended to: until it is complete, the answers are a stream of Arrow's messages."""

    def __init__(self, layout: Layout) -> None:
        try:
            import pyarrow
        except ImportError as error:
            raise MissingExtraError("Parquet", "files") from error
        self._arrow = pyarrow
        label, share = pyarrow.array(layout.labels).type, pyarrow.float64()
        if layout.several:
            label, share = pyarrow.list_(label), pyarrow.list_(share)
        kept = [kind or pyarrow.string() for kind in layout.types]
        own = [label, share, *[pyarrow.float64()] * (len(layout.own) - 2)]
        self._schema = pyarrow.schema(list(zip(layout.columns, [*kept, *own], strict=True)))
        self._as_text = {i for i, kind in enumerate(layout.types) if kind is None}

    def header(self) -> bytes:
        return bytes(self._schema.serialize())

    def encode(self, rows: Sequence[Cells]) -> bytes:
        columns = [
            self._arrow.array([_sound(as_text(v)) if i in self._as_text and v is not None else v for v in column], field.type)
            for i, (column, field) in enumerate(zip(zip(*rows, strict=True), self._schema, strict=True))
        ]
        return bytes(self._arrow.record_batch(columns, schema=self._schema).serialize())

    def finish(self, pending: Path, out: Path) -> None:
        from pyarrow.parquet import ParquetWriter

        made = pending.with_suffix(".parquet")
        with (
            pending.open("rb") as stream,
            self._arrow.ipc.open_stream(stream) as batches,
            ParquetWriter(made, self._schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        made.replace(out)
        pending.unlink()


SHEETS: dict[str, Callable[[Layout], Sheet]] = {
    "csv": Delimited,
    "tsv": TabDelimited,
    "jsonl": JsonLines,
    "parquet": Parquet,
}


def output_format(out: Path | IO[bytes]) -> str:
    """The format that the ending of a file says; CSV for a stream."""
    if not isinstance(out, Path):
        return "csv"
    form = ENDINGS.get(out.suffix.lower())
    if form not in SHEETS or ":/" in str(out):
        raise SettingError(
            f"Answers cannot be written to {out}: give a local file that ends in .csv, .tsv, .jsonl or .parquet."
        )
    return form


def as_text(value: Any) -> str:
    """A value in a format that knows only text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    plain = isinstance(value, (bool, int, float, list, dict))
    return json.dumps(value, default=str) if plain else str(value)


def _sound(text: str) -> str:
    """Without halves of characters, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


# Files that grow beside their place


class Pending:
    """A file that grows beside its place; `rows` and bytes of it that are safe are noted after every addition."""

    def __init__(self, out: Path, sheet: Sheet, run: str | None) -> None:
        self._out, self._sheet, self._run = out, sheet, run
        self._path, self._note = (out.with_name(f".{out.name}.{ending}") for ending in ("pending", "pending.json"))
        out.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch()
        self._stream = self._path.open("r+b")
        self._locked = _lock(self._stream, self._path, out)
        self.rows, size = self._progress()
        self._stream.seek(size)
        self._stream.truncate()
        if not size:
            self.add(sheet.header(), 0)

    def _progress(self) -> tuple[int, int]:
        """Rows and bytes that an earlier run of the same kind left, or none."""
        try:
            note = json.loads(self._note.read_bytes())
            rows, size = int(note["rows"]), int(note["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0
        fits = self._run is not None and note["run"] == self._run and 0 <= size <= os.fstat(self._stream.fileno()).st_size
        return (rows, size) if fits else (0, 0)

    def add(self, content: bytes, rows: int) -> None:
        """Append some rows, and note it once they are on the disk."""
        self._stream.write(content)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.rows += rows
        if self._run is not None:
            write_json(self._note, {"run": self._run, "rows": self.rows, "bytes": self._stream.tell()})

    def close(self, whole: bool) -> None:
        """Put the file in its place if it is whole; otherwise leave it for the next run, which may go on with it."""
        if not self._locked:
            self._stream.close()  # where files cannot be locked, those that are open cannot be moved
        if whole:
            self._sheet.finish(self._path, self._out)
            self._note.unlink(missing_ok=True)
        elif self._run is None:
            self._path.unlink(missing_ok=True)
        self._stream.close()


class Streamed:
    """An open stream, such as standard output."""

    def __init__(self, stream: IO[bytes], sheet: Sheet) -> None:
        self._stream, self.rows = stream, 0
        self.add(sheet.header(), 0)

    def add(self, content: bytes, rows: int) -> None:
        """Write some rows."""
        self._stream.write(content)
        self._stream.flush()
        self.rows += rows


@contextmanager
def destination(out: Path | IO[bytes], sheet: Sheet, run: str | None) -> Iterator[Pending | Streamed]:
    """Where answers are written to: a stream, or a file that can be gone on with by the same run."""
    if not isinstance(out, Path):
        yield Streamed(out, sheet)
        return
    pending, whole = Pending(out, sheet, run), False
    try:
        yield pending
        whole = True
    finally:
        pending.close(whole)


def _lock(stream: IO[bytes], path: Path, out: Path) -> bool:
    """Keep the file to this run for as long as it is open; False where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not path.exists() or not os.path.samestat(os.fstat(stream.fileno()), path.stat()):
            raise BlockingIOError
    except BlockingIOError as error:
        stream.close()
        raise SettingError(f"Another run is writing {out}: wait for it, or choose another --out.") from error
    return True
