"""Rows of texts, with labels or without, from files of any size: CSV, TSV, JSON lines, Parquet, plain lines, standard input.

Each format has a reader, which gives the rows one by one with the line they begin at; a row that is broken comes as the reason
why. Memory stays flat: a row is forgotten when the next one is asked for.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from .errors import DataError, MissingExtraError, SettingError
from .streams import COMPRESSED, decompressed, reading_errors

ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "txt",
}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
DELIMITERS = {"csv": ",", "tsv": "\t"}
STANDARD_INPUT = "-"
TEXT_NAMES = frozenset({"text", "texts", "sentence", "message", "body", "title", "content", "utterance", "query", "document"})
LABEL_NAMES = frozenset({"label", "labels", "class", "category", "intent", "target", "topic"})
LONGEST_LINE = 1 << 26  # characters: what is longer is not a line, and would not fit memory
MOST_LINES = 1000  # of one row of CSV: a quote that is still open then was never closed
MEND = "mend it, or leave such rows out with --on-error skip"
PARQUET_ROWS = 1000  # read at once
URL_BUFFER = 1 << 23  # bytes asked of an object store at once


@dataclass(frozen=True)
class Source:
    """Where rows are, and how to read them."""

    path: str  # of a file, `-` for standard input, or a URL that pyarrow reads, such as s3://bucket/inbox.csv
    form: str | None = None  # one of FORMATS; by default by the ending
    text: str | None = None  # the column of the texts, by default an obvious one
    label: str | None = None  # the column of the labels, by default an obvious one
    skip_broken: bool = False

    def __post_init__(self) -> None:
        if self.form is not None and self.form not in FORMATS:
            raise SettingError(f"There is no format {self.form!r}: choose one of {', '.join(FORMATS)} (--format).")

    @property
    def name(self) -> str:
        """For people: without the keys that a URL may hold."""
        if self.path == STANDARD_INPUT:
            return "Standard input"
        return re.sub(r"(?<=://)[^/@]*@|\?.*", "", self.path) if self.is_url else self.path

    @property
    def is_url(self) -> bool:
        """Whether pyarrow has to open it."""
        return "://" in self.path


class Row(NamedTuple):
    """A text, its label if there is one, and the values of all columns that were asked for."""

    number: int  # of the line it begins at, or of the row
    text: str
    label: Any
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Broken:
    """Why a line or a row cannot be used, as the end of a sentence that begins with its place."""

    reason: str


class Stream(NamedTuple):
    """The bytes of a source, and how many there are where that is known."""

    raw: IO[bytes]
    size: int | None


Line = tuple[int, "str | Broken"]
Record = tuple[int, "Sequence[Any] | Broken"]


@dataclass(frozen=True)
class Table:
    """What a reader makes of a file."""

    columns: tuple[str, ...]
    records: Callable[[Sequence[str]], Iterator[Record]]  # the values of these columns
    types: Mapping[str, Any] = field(default_factory=dict)  # of each column, where the file says so
    total: int | None = None  # rows, where the file says so
    unit: str = "line"


class Rows:
    """The rows of an open source; `skipped` counts broken ones, and `problem` is the first.

    `done` of `total` says how far the reading is, in bytes of the file or in rows; the total of standard input is not known.
    """

    def __init__(self, source: Source, table: Table, stream: Stream, labelled: bool, whole: bool) -> None:
        self._source, self._table, self._stream, self._last = source, table, stream, 0
        text, label = find_columns(table.columns, source, labelled)
        self.columns = table.columns if whole else (text,) if label is None else (text, label)
        self.types = table.types
        self._text, self._label = self.columns.index(text), None if label is None else self.columns.index(label)
        self.skipped, self.problem = 0, ""
        self.total = table.total or stream.size

    @property
    def done(self) -> int:
        """As far as the last row that was given, or a little further."""
        return self._last if self._table.total or self.total is None else self._stream.raw.tell()

    def __iter__(self) -> Iterator[Row]:
        with reading_errors(self._source.name):
            for number, values in self._table.records(self.columns):
                self._last = number
                row = values if isinstance(values, Broken) else self._row(number, values)
                if isinstance(row, Broken):
                    self._skip(f"{self._source.name}, {self._table.unit} {number} {row.reason}")
                else:
                    yield row

    def _row(self, number: int, values: Sequence[Any]) -> Row | Broken:
        text, label = values[self._text], None
        if not isinstance(text, str):
            return Broken(f"has {_short(text)} as its {self.columns[self._text]}, not a text")
        if self._label is not None:
            name, label = self.columns[self._label], values[self._label]
            if label in (None, ""):
                return Broken(f"has no {name}")
            if not all(isinstance(one, (str, int, float)) for one in (label if isinstance(label, list) else [label])):
                return Broken(f"has {_short(label)} as its {name}, not a string or a number")
        return Row(number, text, label, tuple(values))

    def _skip(self, problem: str) -> None:
        if not self._source.skip_broken:
            raise DataError(f"{problem}: {MEND}.")
        self.problem = self.problem or problem
        self.skipped += 1


@contextmanager
def open_rows(source: Source, labelled: bool = False, whole: bool = False) -> Iterator[Rows]:
    """The rows of a source, with labels or without; `whole` ones have the values of all columns."""
    with ExitStack() as stack:
        with reading_errors(source.name):
            form, compression = _format(source)
            stream = _open(source, stack)
            if form == "parquet":
                table = _parquet(stream.raw, source)
            else:
                table = _text_table(form, _lines(stack.enter_context(decompressed(stream.raw, compression))), source)
        yield Rows(source, table, stream, labelled, whole)


def identity(source: Source) -> list[Any] | None:
    """What changes when the file does: its path, size and time; None for standard input, which cannot be read again."""
    if source.path == STANDARD_INPUT:
        return None
    with reading_errors(source.name):
        if source.is_url:
            system, path = _file_system(source)
            info = system.get_file_info(path)
            return [source.path, info.size, info.mtime_ns]
        status = Path(source.path).stat()
        return [str(Path(source.path).absolute()), status.st_size, status.st_mtime_ns]


# Opening


def _format(source: Source) -> tuple[str, str]:
    """The format, and the ending of a compressed file."""
    stem, ending = os.path.splitext(source.name)
    compression = ending.lower() if ending.lower() in COMPRESSED else ""
    form = source.form or ENDINGS.get(os.path.splitext(stem)[1].lower() if compression else ending.lower())
    if form is None:
        raise SettingError(f"{source.name} has no ending that says what it holds: give --format {', '.join(FORMATS)}.")
    if form == "parquet" and compression:
        raise SettingError(f"{source.name} is Parquet in a compressed file: unpack it, Parquet is compressed by itself.")
    return form, compression


def _open(source: Source, stack: ExitStack) -> Stream:
    if source.path == STANDARD_INPUT:
        return Stream(sys.stdin.buffer, None)
    if source.is_url:
        system, name = _file_system(source)
        remote = stack.enter_context(system.open_input_file(name))
        return Stream(cast("IO[bytes]", io.BufferedReader(remote, URL_BUFFER)), remote.size())
    path = Path(source.path)
    return Stream(stack.enter_context(path.open("rb")), path.stat().st_size)


def _file_system(source: Source) -> tuple[Any, str]:
    try:
        from pyarrow.fs import FileSystem
    except ImportError as error:
        raise MissingExtraError("Reading from a URL", "files") from error
    try:
        system, path = FileSystem.from_uri(source.path)
    except ValueError as error:
        reason = str(error).replace(source.path, source.name)
        raise SettingError(
            f"{source.name} is no URL that can be read ({reason}): give one such as s3://bucket/file."
        ) from error
    return system, path


# Lines


def _lines(stream: IO[bytes]) -> Iterator[Line]:
    """Numbered lines with their ends, in UTF-8, or in UTF-16 where a mark at the beginning says so."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))
    start = buffered.peek(3)[:3]
    if start == BOM_UTF8:
        buffered.read(3)
    wide = start[:2] in (BOM_UTF16_LE, BOM_UTF16_BE)
    source: Any = io.TextIOWrapper(buffered, "utf-16", "surrogatepass", newline="\n") if wide else buffered
    for number in count(1):
        line = source.readline(LONGEST_LINE)
        if not line:
            return
        if not _is_cut(line):
            yield number, _decoded(line)
            continue
        while _is_cut(line):
            line = source.readline(LONGEST_LINE)
        yield number, Broken(f"is longer than {LONGEST_LINE:,} characters")


def _is_cut(line: bytes | str) -> bool:
    return len(line) == LONGEST_LINE and line[-1] not in ("\n", ord("\n"))


def _decoded(line: bytes | str) -> str | Broken:
    try:
        if isinstance(line, bytes):
            return line.decode()
        line.encode()  # half of a pair of UTF-16 is no character
        return line
    except UnicodeError as error:
        return Broken(f"is not in {'UTF-8' if isinstance(line, bytes) else 'UTF-16'} ({error})")


# Text formats


def _text_table(form: str, lines: Iterator[Line], source: Source) -> Table:
    if form == "txt":
        return Table(("text",), lambda _: ((n, x if isinstance(x, Broken) else [x.rstrip("\r\n")]) for n, x in lines))
    if form == "jsonl":
        return _json_table(lines, source)
    records = _delimited(lines, DELIMITERS[form])
    number, header = next(records, (1, []))
    if isinstance(header, Broken) or not header:
        reason = header.reason if isinstance(header, Broken) else "is not there"
        raise DataError(f"{source.name}, line {number}, which should name the columns, {reason}: mend it.")

    def checked(columns: Sequence[str]) -> Iterator[Record]:
        places = [header.index(column) for column in columns]
        for number, fields in records:
            if isinstance(fields, Broken):
                yield number, fields
            elif len(fields) != len(header):
                yield number, Broken(f"has {len(fields)} fields, the header {len(header)}")
            else:
                yield number, [fields[place] for place in places]

    return Table(tuple(header), checked)


def _delimited(lines: Iterator[Line], delimiter: str) -> Iterator[Record]:
    """Rows of CSV or TSV. After a broken one, reading goes on at the line after that where it began."""
    csv.field_size_limit(LONGEST_LINE)
    again: deque[Line] = deque()

    def draw() -> Line | None:
        return again.popleft() if again else next(lines, None)

    while first := draw():
        taken = [first]
        try:
            fields = next(csv.reader(_lines_of_a_row(taken, draw), delimiter=delimiter, strict=True))
        except (csv.Error, _BrokenLineError) as error:
            again.extendleft(reversed(taken[1:]))
            reason = str(error) if isinstance(error, _BrokenLineError) else f"has quotes that do not match ({error})"
            yield first[0], Broken(reason)
            continue
        if fields:  # none in an empty line
            yield first[0], fields


class _BrokenLineError(Exception):
    """A line inside of a row that cannot be read."""


def _lines_of_a_row(taken: list[Line], draw: Callable[[], Line | None]) -> Iterator[str]:
    """The first line, and as many after it as the reader asks for, which are kept in `taken`."""
    while True:
        number, line = taken[-1]
        if isinstance(line, Broken):
            raise _BrokenLineError(line.reason if len(taken) == 1 else f"begins a row in which line {number} {line.reason}")
        yield line
        following = draw() if len(taken) < MOST_LINES else None
        if following is None:
            return
        taken.append(following)


def _json_table(lines: Iterator[Line], source: Source) -> Table:
    """The columns are those of the first object; an object may lack some of them."""
    objects, ahead, columns = _objects(lines), list[tuple[int, Any]](), tuple[str, ...]()
    for number, value in objects:
        ahead.append((number, value))
        if not isinstance(value, Broken):
            columns = tuple(value)
            break
        if not source.skip_broken:
            break
    if not columns and not ahead:
        raise DataError(f"{source.name} is empty: give one JSON object a line.")
    if not columns:
        number, value = ahead[0]
        raise DataError(f"{source.name}, line {number} {getattr(value, 'reason', 'has no columns')}: {MEND}.")

    def records(wanted: Sequence[str]) -> Iterator[Record]:
        for number, value in chain(ahead, objects):
            yield number, value if isinstance(value, Broken) else [value.get(name) for name in wanted]

    return Table(columns, records)


def _objects(lines: Iterator[Line]) -> Iterator[tuple[int, dict[str, Any] | Broken]]:
    for number, line in lines:
        if isinstance(line, Broken):
            yield number, line
        elif line.strip():
            try:
                value = json.loads(line)
                yield number, value if isinstance(value, dict) else Broken("is not a JSON object")
            except (ValueError, RecursionError) as error:
                yield number, Broken(f"is not JSON ({error})")


# Parquet


def _parquet(raw: IO[bytes], source: Source) -> Table:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError("Parquet", "files") from error
    try:
        file = ParquetFile(raw if raw.seekable() else io.BytesIO(raw.read()))
    except (ArrowException, OSError) as error:
        raise DataError(f"{source.name} is not a Parquet file ({error}): fetch or write it again.") from error
    schema, number = file.schema_arrow, count(1)

    def records(wanted: Sequence[str]) -> Iterator[Record]:
        try:
            for batch in file.iter_batches(PARQUET_ROWS, columns=list(wanted)):
                columns = [batch.column(name).to_pylist() for name in wanted]
                yield from ((next(number), values) for values in zip(*columns, strict=True))
        except (ArrowException, ValueError) as error:
            raise DataError(f"{source.name} cannot be read to its end ({error}): fetch or write it again.") from error

    return Table(
        tuple(schema.names), records, dict(zip(schema.names, schema.types, strict=True)), file.metadata.num_rows, "row"
    )


# Columns


def find_columns(columns: Sequence[str], source: Source, labelled: bool) -> tuple[str, str | None]:
    """The columns of texts and, if they are wanted, of labels: by name, or because they are obvious."""
    if len(set(columns)) < len(columns):
        raise DataError(f"{source.name} has two columns of the same name ({', '.join(columns)}): rename one.")
    label, text = _named(columns, source, source.label, LABEL_NAMES), _named(columns, source, source.text, TEXT_NAMES)
    if text is None:
        text = _only([column for column in columns if column != label])
    if label is None:
        label = _only([column for column in columns if column != text])
    if text is None:
        raise DataError(_unclear(source, columns, "texts", "--text"))
    if labelled and label is None:
        raise DataError(_unclear(source, columns, "labels", "--label"))
    return text, label if labelled else None


def _named(columns: Sequence[str], source: Source, name: str | None, usual: frozenset[str]) -> str | None:
    """The column of this name, or the only one with a usual name."""
    if name is not None and name not in columns:
        raise DataError(f"{source.name} has no column {name!r}: it has {', '.join(columns)}.")
    return name if name is not None else _only([column for column in columns if column.strip().lower() in usual])


def _only(columns: Sequence[str]) -> str | None:
    return columns[0] if len(columns) == 1 else None


def _unclear(source: Source, columns: Sequence[str], what: str, option: str) -> str:
    named = ", ".join(columns)
    return f"{source.name} has the columns {named}, and which one holds the {what} is not clear: name it with {option}."


def _short(value: Any) -> str:
    shown = "nothing" if value is None else repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
