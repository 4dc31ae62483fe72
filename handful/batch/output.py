"""Output formats for answers, and output files that can be resumed.

Answers are first written to a pending file next to the output, which replaces the output once it is complete. A note beside the
pending file records how far it is and which run wrote it, so that an interrupted run can be resumed.
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

from ..data.formulas import escape_formula
from ..data.reader import ENDINGS
from ..data.text_tables import DELIMITERS
from ..errors import MissingExtraError, SettingError
from ..utils.files import remove_abandoned, write_json

Cells = tuple[Any, ...]


# Output formats


@dataclass(frozen=True)
class ColumnLayout:
    """The columns of the output."""

    kept: tuple[str, ...]  # copied from the input
    own: tuple[str, ...]  # added by the classifier
    types: tuple[Any, ...] = ()  # of the kept columns; None if the input does not declare one
    labels: tuple[Any, ...] = ()
    several: bool = False  # whether a text can have several labels
    escape_formulas: bool = False  # in CSV and TSV

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in order."""
        return (*self.kept, *self.own)


class OutputFormat(Protocol):
    """An output format: bytes to append, and a final step once they are complete."""

    def header(self) -> bytes:
        """The bytes at the beginning of a file."""
        ...

    def encode(self, rows: Sequence[Cells]) -> bytes:
        """Rows as bytes to append."""
        ...

    def finish(self, pending: Path, out: Path) -> None:
        """Turn the complete pending file into the output."""
        ...


class _Appended:
    def __init__(self, layout: ColumnLayout) -> None:
        self.layout = layout

    def finish(self, pending: Path, out: Path) -> None:
        pending.replace(out)


class CsvFormat(_Appended):
    """CSV; a value that is not a string is written as JSON."""

    delimiter = DELIMITERS["csv"]

    def header(self) -> bytes:
        return self.encode([self.layout.columns])

    def encode(self, rows: Sequence[Cells]) -> bytes:
        text = io.StringIO()
        minimal, careful = (
            csv.writer(text, delimiter=self.delimiter, lineterminator="\n", quoting=quoting)
            for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )
        for cells in (list(map(self._cell, row)) for row in rows):
            (careful if any("\r" in cell for cell in cells) else minimal).writerow(cells)  # csv leaves a lone \r unquoted
        return text.getvalue().encode("utf-8", "replace")

    def _cell(self, value: Any) -> str:
        return escape_formula(value) if self.layout.escape_formulas and isinstance(value, str) else as_text(value)


class TsvFormat(CsvFormat):
    """TSV."""

    delimiter = DELIMITERS["tsv"]


class JsonLinesFormat(_Appended):
    """One object per line, in ASCII, so that any text can be written."""

    def header(self) -> bytes:
        return b""

    def encode(self, rows: Sequence[Cells]) -> bytes:
        columns = self.layout.columns
        return "".join(json.dumps(dict(zip(columns, row, strict=True)), default=str) + "\n" for row in rows).encode()


class ParquetFormat:
    """Parquet, which cannot be appended to: until the answers are complete, they are a stream of Arrow messages."""

    def __init__(self, layout: ColumnLayout) -> None:
        try:
            import pyarrow
        except ImportError as error:
            raise MissingExtraError("Parquet", "files") from error
        self._arrow = pyarrow
        label = pyarrow.array(_sound(list(layout.labels))).type
        share = pyarrow.float64()
        if layout.several:
            label, share = pyarrow.list_(label), pyarrow.list_(share)
        kept = [kind or pyarrow.string() for kind in layout.types]
        own = [label, share, *[pyarrow.float64()] * (len(layout.own) - 2)]
        self._schema = pyarrow.schema(list(zip(map(_sound, layout.columns), [*kept, *own], strict=True)))
        self._as_text = {i for i, kind in enumerate(layout.types) if kind is None}

    def header(self) -> bytes:
        return bytes(self._schema.serialize())

    def encode(self, rows: Sequence[Cells]) -> bytes:
        columns = [
            self._arrow.array([_sound(as_text(v) if i in self._as_text and v is not None else v) for v in column], field.type)
            for i, (column, field) in enumerate(zip(zip(*rows, strict=True), self._schema, strict=True))
        ]
        return bytes(self._arrow.record_batch(columns, schema=self._schema).serialize())

    def finish(self, pending: Path, out: Path) -> None:
        from pyarrow.parquet import ParquetWriter

        made = pending.with_suffix(".parquet")
        try:
            with (
                pending.open("rb") as stream,
                self._arrow.ipc.open_stream(stream) as batches,
                ParquetWriter(made, self._schema) as writer,
            ):
                for batch in batches:
                    writer.write_batch(batch)
            made.replace(out)
        finally:
            made.unlink(missing_ok=True)
        pending.unlink()


OUTPUT_FORMATS: dict[str, Callable[[ColumnLayout], OutputFormat]] = {
    "csv": CsvFormat,
    "tsv": TsvFormat,
    "jsonl": JsonLinesFormat,
    "parquet": ParquetFormat,
}


def output_format(out: Path | IO[bytes]) -> str:
    """The format that a file's ending implies; CSV for a stream."""
    if not isinstance(out, Path):
        return "csv"
    form = ENDINGS.get(out.suffix.lower())
    if form not in OUTPUT_FORMATS or ":/" in str(out):
        raise SettingError(
            f"Answers cannot be written to {out}: give a local file that ends in .csv, .tsv, .jsonl or .parquet."
        )
    if out.is_dir():
        raise SettingError(f"{out} is a folder: give the path of a file.")
    return form


def as_text(value: Any) -> str:
    """A value as text, for formats without types."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    plain = isinstance(value, (bool, int, float, list, dict))
    return json.dumps(value, default=str) if plain else str(value)


def _sound(value: Any) -> Any:
    """A value without unpaired surrogates, which UTF-8 cannot hold."""
    if isinstance(value, list):
        return [_sound(one) for one in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# Pending files


def pending_paths(out: Path) -> tuple[Path, Path]:
    """The pending file of an output, and the note beside it."""
    return out.with_name(f".{out.name}.pending"), out.with_name(f".{out.name}.pending.json")


class PendingFile:
    """A file next to the output that replaces it once complete; a note records the `rows` and bytes that are safely on disk."""

    def __init__(self, out: Path, sheet: OutputFormat, run: str | None) -> None:
        self._out, self._sheet, self._run = out, sheet, run
        self._path, self._note = pending_paths(out)
        self._stream = self._open()
        self._locked = _lock(self._stream, self._path, out)
        self.rows = 0

    def _open(self) -> IO[bytes]:
        try:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
            return self._path.open("r+b")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._out)) from error

    def begin(self) -> None:
        """Continue after the rows that an interrupted run of the same kind wrote, or write the header."""
        self.rows, size = self._progress()
        self._stream.seek(size)
        self._stream.truncate()
        if not size:
            self.add(self._sheet.header(), 0)

    def _progress(self) -> tuple[int, int]:
        """The numbers of rows and bytes that an interrupted run of the same kind wrote; zeros if there is none."""
        try:
            note = json.loads(self._note.read_bytes())
            rows, size = int(note["rows"]), int(note["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0
        fits = self._run is not None and note["run"] == self._run and 0 <= size <= os.fstat(self._stream.fileno()).st_size
        return (rows, size) if fits else (0, 0)

    def add(self, content: bytes, rows: int) -> None:
        """Append some rows, and record them in the note once they are on disk."""
        self._stream.write(content)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.rows += rows
        if self._run is not None:
            write_json(self._note, {"run": self._run, "rows": self.rows, "bytes": self._stream.tell()})

    @property
    def can_be_resumed(self) -> bool:
        """Whether there are rows that another run could keep."""
        return self._run is not None and self.rows > 0

    def close(self, whole: bool) -> None:
        """Turn the file into the output if it is whole; otherwise keep it if another run can resume it."""
        if not self._locked:
            self._stream.close()  # a system without these locks cannot move an open file either
        try:
            if whole:
                self._sheet.finish(self._path, self._out)
            elif not self.can_be_resumed:
                self._path.unlink(missing_ok=True)
            if whole or not self.can_be_resumed:
                self._note.unlink(missing_ok=True)
                remove_abandoned(self._note)
        finally:
            self._stream.close()


class OutputStream:
    """An open stream, such as standard output."""

    def __init__(self, stream: IO[bytes], sheet: OutputFormat) -> None:
        self._stream, self.rows = stream, 0
        self.add(sheet.header(), 0)

    def add(self, content: bytes, rows: int) -> None:
        """Write some rows to the stream."""
        self._stream.write(content)
        self._stream.flush()
        self.rows += rows


@contextmanager
def destination(out: Path | IO[bytes], sheet: OutputFormat, run: str | None) -> Iterator[PendingFile | OutputStream]:
    """The destination of the answers: a stream, or a file that the same run can resume."""
    if not isinstance(out, Path):
        yield OutputStream(out, sheet)
        return
    pending = PendingFile(out, sheet, run)
    whole = False
    try:
        pending.begin()
        yield pending
        whole = True
    except KeyboardInterrupt as interrupt:
        if pending.can_be_resumed:
            interrupt.add_note(f"{pending.rows:,} texts are answered: run the same command again to resume after them.")
        raise
    finally:
        pending.close(whole)


def _lock(stream: IO[bytes], path: Path, out: Path) -> bool:
    """Reserve the file for this run as long as it is open; returns False if the system has no such locks."""
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
        raise SettingError(f"Another run is writing {out}: wait for it, or choose another `out`.") from error
    return True
