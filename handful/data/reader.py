"""Rows of texts, with labels or without, from files of any size: CSV, TSV, JSON, Parquet, Excel, plain lines, standard input.

Each format has a reader, which yields the rows one by one with the line they begin at; a broken row is replaced by the reason.
Memory use stays constant, because only the current row is kept.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypedDict, cast

from ..errors import DataError, MissingExtraError, SettingError
from ..utils.files import COMPRESSED, decompressed, reading_errors
from .binary_tables import excel_table, parquet_table
from .hub import hub_table, is_on_hub
from .lines import Broken, numbered_lines
from .text_tables import DELIMITERS, ParsedFile, delimited_table, json_table, plain_table

ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".txt": "txt",
}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
BINARY = {"parquet": (parquet_table, "Parquet"), "xlsx": (excel_table, "Excel")}
STANDARD_INPUT = "-"
TEXT_NAMES = ("text", "texts", "sentence", "message", "body", "title", "content", "utterance", "query", "document")
LABEL_NAMES = ("label", "labels", "class", "category", "intent", "target", "topic")
SPANS = ("head", "tail")  # the first and the last word of each entity of a relation
SKIP = ", or skip such rows with `skip_broken=True`"
URL_BUFFER = 1 << 23  # bytes requested from an object store at once


class Reading(TypedDict, total=False):
    """How to read a file: the keyword arguments of `Source`."""

    form: str | None
    text: str | None
    label: str | None
    delimiter: str | None
    encoding: str | None


@dataclass(frozen=True)
class Source:
    """Where rows are, and how to read them."""

    path: str  # a file, `-` for standard input, a URL that pyarrow reads, such as s3://bucket/inbox.csv, or `hf:NAME`
    form: str | None = None  # one of FORMATS; by default from the file name
    text: str | None = None  # the column of the texts; by default the obvious one
    label: str | None = None  # the column of the labels; by default the obvious one
    skip_broken: bool = False
    delimiter: str | None = None  # of CSV and TSV; by default detected from the first lines
    encoding: str | None = None  # of text formats; by default UTF-8, or UTF-16 if the file begins with its mark

    def __post_init__(self) -> None:
        if self.form is not None and self.form not in FORMATS:
            raise SettingError(f"There is no format {self.form!r}: choose one of {', '.join(FORMATS)} (`form`).")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise SettingError(f"The delimiter is {self.delimiter!r}: give one character, such as ; (`delimiter`).")
        try:
            "\n".encode("UTF-8" if self.encoding is None else self.encoding)
        except (LookupError, ValueError) as error:
            raise SettingError(
                f"There is no encoding {self.encoding!r}: give one such as utf-8 or windows-1252 (`encoding`)."
            ) from error

    @property
    def name(self) -> str:
        """The name for messages, without the keys that a URL may contain."""
        if self.path == STANDARD_INPUT:
            return "Standard input"
        return re.sub(r"(?<=://)[^/@]*@|\?.*", "", self.path) if self.is_url else self.path

    @property
    def is_url(self) -> bool:
        """Whether it is a URL, which pyarrow opens."""
        return "://" in self.path

    @property
    def has_text_cells(self) -> bool:
        """Whether its cells can hold only text or numbers, not lists."""
        return not is_on_hub(self.path) and _format(self)[0] in ("csv", "tsv", "xlsx")


class Row(NamedTuple):
    """A text, its label if it has one, and the values of all requested columns."""

    number: int  # of its first line, or of the row
    text: str  # or a list of words, if opened with `worded`
    label: Any
    values: tuple[Any, ...]


class Stream(NamedTuple):
    """The bytes of a source, and their number if known."""

    raw: IO[bytes]
    size: int | None


class Rows:
    """The rows of an open source; `skipped` counts the broken ones, and `problem` describes the first.

    `done` and `total` give the progress, in bytes of the file or in rows; the total of standard input is unknown.
    """

    def __init__(
        self, source: Source, table: ParsedFile, stream: Stream, labelled: bool, whole: bool = False, worded: bool = False
    ) -> None:
        self._source = source
        self._table = table
        self._stream = stream
        self._worded = worded
        self._last = 0
        text, label = find_columns(table.columns, source, labelled)
        spans = [name for name in SPANS if worded and table.may_have(name)]
        self.columns = table.columns if whole else (text, *([] if label is None else [label]), *spans)
        self.types = table.types
        self._text = self.columns.index(text)
        self._label = None if label is None else self.columns.index(label)
        self.skipped, self.problem = 0, ""
        self.total = table.total or stream.size

    @property
    def done(self) -> int:
        """The progress up to the last row yielded, or slightly beyond."""
        return self._last if self._table.total or self.total is None else self._stream.raw.tell()

    def place(self, number: int) -> str:
        """The place of a row, for messages."""
        return f"{self._source.name}, {self._table.unit} {number}"

    def __iter__(self) -> Iterator[Row]:
        with reading_errors(self._source.name):
            for number, values in self._table.records(self.columns):
                self._last = number
                row = values if isinstance(values, Broken) else self._row(number, values)
                if isinstance(row, Broken):
                    self._skip(f"{self.place(number)} {row.reason}", row.remedy)
                else:
                    yield row

    def _row(self, number: int, values: Sequence[Any]) -> Row | Broken:
        text = values[self._text]
        label = None
        if not isinstance(text, str) and not (self._worded and _are_words(text)):
            kind = "neither a text nor a list of words" if self._worded else "not a text"
            return Broken(f"has {_short(text)} as its {self.columns[self._text]}, {kind}")
        if self._label is not None:
            name = self.columns[self._label]
            label = values[self._label]
            if label is None or (isinstance(label, str) and not label.strip()):
                return Broken(f"has no {name}")
            if not all(isinstance(one, (str, int, float)) for one in (label if isinstance(label, list) else [label])):
                return Broken(f"has {_short(label)} as its {name}, not a string or a number")
        return Row(number, text, label, tuple(values))

    def _skip(self, problem: str, remedy: str) -> None:
        if not self._source.skip_broken:
            raise DataError(f"{problem}: {remedy}{'' if self._worded else SKIP}.")
        self.problem = self.problem or problem
        self.skipped += 1


def _are_words(text: Any) -> bool:
    return isinstance(text, list) and all(isinstance(word, str) for word in text)


@contextmanager
def open_rows(source: Source, labelled: bool = False, whole: bool = False, worded: bool = False) -> Iterator[Rows]:
    """Open the rows of a source, with labels if `labelled`, and with the values of all columns if `whole`.

    With `worded`, a text may also be a list of words, and a row has its head and tail if the file may have them.
    """
    with ExitStack() as stack:
        with reading_errors(source.name):
            table, stream = _table(source, stack)
        yield Rows(source, table, stream, labelled, whole, worded)


def _table(source: Source, stack: ExitStack) -> tuple[ParsedFile, Stream]:
    if is_on_hub(source.path):
        if source.form or source.delimiter or source.encoding:
            raise SettingError(f"{source.name} is not a file: remove `form`, `delimiter` and `encoding`.")
        return hub_table(source.path), Stream(io.BytesIO(), None)
    form, compression = _format(source)
    stream = _open(source, stack)
    if form in BINARY:
        return BINARY[form][0](stream.raw, source.name), stream
    return _text_table(form, stack.enter_context(decompressed(stream.raw, compression)), source), stream


def identity(source: Source) -> list[Any] | None:
    """Values that change when the file (path, size and time) or the way to read it changes; None for standard input."""
    if source.path == STANDARD_INPUT:
        return None
    with reading_errors(source.name):
        if is_on_hub(source.path):
            return [source.path]
        if source.is_url:
            system, path = _file_system(source)
            info = system.get_file_info(path)
            known = [source.path, info.size, info.mtime_ns]
        else:
            status = Path(source.path).stat()
            known = [str(Path(source.path).absolute()), status.st_size, status.st_mtime_ns]
        return [*known, source.delimiter, source.encoding]


# Opening


def ending_format(name: str) -> tuple[str | None, str]:
    """The format that a file name implies, if any, and the ending of a compressed file.

    >>> ending_format("inbox.csv.gz"), ending_format("inbox.doc")
    (('csv', '.gz'), (None, ''))
    """
    stem, ending = os.path.splitext(name)
    compression = ending.lower() if ending.lower() in COMPRESSED else ""
    return ENDINGS.get(os.path.splitext(stem)[1].lower() if compression else ending.lower()), compression


def _format(source: Source) -> tuple[str, str]:
    """The format, and the ending of a compressed file."""
    form, compression = ending_format(source.name)
    form = source.form or form
    if form is None:
        raise SettingError(f"{source.name} has no ending that tells its format: give `form`, one of {', '.join(FORMATS)}.")
    if form in BINARY and compression:
        kind = BINARY[form][1]
        raise SettingError(f"{source.name} is a compressed {kind} file, which cannot be read directly: unpack it first.")
    if source.delimiter and form not in DELIMITERS:
        raise SettingError(f"{source.name} is {form}, which has no delimiter: remove `delimiter`.")
    if source.encoding and form in BINARY:
        raise SettingError(f"{source.name} is {BINARY[form][1]}, which is not encoded text: remove `encoding`.")
    return form, compression


def _text_table(form: str, stream: IO[bytes], source: Source) -> ParsedFile:
    lines = numbered_lines(stream, source.encoding)
    if form == "txt":
        return plain_table(lines)
    if form == "jsonl":
        return json_table(lines, source.name)
    return delimited_table(lines, source.name, source.delimiter or (DELIMITERS["tsv"] if form == "tsv" else None))


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
        raise SettingError(f"{source.name} is not a readable URL ({reason}): give one such as s3://bucket/file.") from error
    return system, path


# Columns


def find_columns(columns: Sequence[str], source: Source, labelled: bool) -> tuple[str, str | None]:
    """The columns of the texts and, if `labelled`, of the labels: the named ones, or else the obvious ones."""
    if len(set(columns)) < len(columns):
        raise DataError(f"{source.name} has two columns with the same name ({', '.join(columns)}): rename one.")
    label = _named(columns, source, source.label, LABEL_NAMES)
    text = _named(columns, source, source.text, TEXT_NAMES)
    if text is None:
        text = _only([column for column in columns if column != label])
    if label is None:
        label = _only([column for column in columns if column != text])
    if text is None:
        raise DataError(_unclear(source, columns, "texts", "`text`"))
    if labelled and label is None:
        raise DataError(_unclear(source, columns, "labels", "`label`"))
    return text, label if labelled else None


def _named(columns: Sequence[str], source: Source, name: str | None, usual: Sequence[str]) -> str | None:
    """The column with this name, or else the one with the first usual name, or the only one with a usual name."""
    if name is not None and name not in columns:
        raise DataError(f"{source.name} has no column {name!r}: it has {', '.join(columns)}.")
    if name is not None:
        return name
    found = [column for column in columns if column.strip().lower() in usual]
    return _only([column for column in found if column.strip().lower() == usual[0]]) or _only(found)


def _only(columns: Sequence[str]) -> str | None:
    return columns[0] if len(columns) == 1 else None


def _unclear(source: Source, columns: Sequence[str], what: str, argument: str) -> str:
    named = ", ".join(columns)
    return f"{source.name} has the columns {named}, but it is not clear which one holds the {what}: name it with {argument}."


def _short(value: Any) -> str:
    shown = "nothing" if value is None else repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
