"""Tables in text files: CSV with any delimiter, JSON lines, a JSON array, plain lines."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from ..errors import DataError
from ..utils.files import parse_object
from .lines import LONGEST_LINE, Broken, Line

DELIMITERS = {"csv": ",", "tsv": "\t"}
OTHER_DELIMITERS = (";", "\t", "|")  # to try in CSV
MOST_LINES = 1000  # in one row of CSV: a quote that is still open then was never closed
SAMPLE_LINES, SAMPLE_CHARACTERS = 100, 1 << 20  # for finding the delimiter, whichever limit is reached first
JSON_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[][{},]')  # a string, or a character that opens, separates or closes

ParsedRow = tuple[int, "Sequence[Any] | Broken"]


@dataclass(frozen=True)
class ParsedFile:
    """A file as its reader presents it."""

    columns: tuple[str, ...]
    records: Callable[[Sequence[str]], Iterator[ParsedRow]]  # yields the values of these columns
    types: Mapping[str, Any] = field(default_factory=dict)  # of each column, if the file declares them
    total: int | None = None  # rows, if the file declares them
    unit: str = "line"
    may_have: Callable[[str], bool] = lambda column: False  # whether a row may have a list in this column


def plain_table(lines: Iterator[Line]) -> ParsedFile:
    """One text per line."""
    return ParsedFile(("text",), lambda _: ((n, x if isinstance(x, Broken) else [x.rstrip("\r\n")]) for n, x in lines))


# CSV


def delimited_table(lines: Iterator[Line], name: str, delimiter: str | None) -> ParsedFile:
    """CSV whose first line names the columns; a missing delimiter is detected from the first lines."""
    if delimiter is None:
        first = _first_lines(lines)
        delimiter = find_delimiter(first)
        lines = chain(first, lines)
    records = _delimited(lines, delimiter)
    number, header = next(records, (1, Broken("is missing")))
    if isinstance(header, Broken):
        raise DataError(f"{name}, line {number}, which must name the columns, {header.reason}: {header.remedy}.")

    def checked(columns: Sequence[str]) -> Iterator[ParsedRow]:
        places = [header.index(column) for column in columns]
        for number, fields in records:
            if isinstance(fields, Broken):
                yield number, fields
            elif len(fields) != len(header):
                yield number, Broken(f"has {len(fields)} fields, but the header has {len(header)}")
            else:
                yield number, [fields[place] for place in places]

    return ParsedFile(tuple(header), checked)


def _first_lines(lines: Iterator[Line]) -> list[Line]:
    first = list[Line]()
    size = 0
    for number, line in lines:
        first.append((number, line))
        size += 0 if isinstance(line, Broken) else len(line)
        if len(first) == SAMPLE_LINES or size >= SAMPLE_CHARACTERS:
            break
    return first


def find_delimiter(first: Sequence[Line]) -> str:
    """The delimiter of a CSV file, from its first lines: the one with which most rows have as many fields as the header.

    It is the comma if no delimiter suits at least half of the rows; the comma also wins a tie.

    >>> find_delimiter([(1, "text;label"), (2, "Hello, you; there"), (3, '"Good; bye, all";b')])
    ';'
    """
    comma = DELIMITERS["csv"]
    readable = [line for line in first if not isinstance(line[1], Broken)]
    shares = {delimiter: _consistent_share(readable, delimiter) for delimiter in (comma, *OTHER_DELIMITERS)}
    best = max(shares, key=lambda delimiter: shares[delimiter])
    return best if shares[best] >= 0.5 else comma


def _consistent_share(first: Sequence[Line], delimiter: str) -> float:
    """The share of rows with as many fields as the header; 0 if the header has only one."""
    rows = list(_whole_rows(first, delimiter))
    if not rows or isinstance(rows[0], Broken) or len(rows[0]) < 2:
        return 0.0
    fitting = [not isinstance(row, Broken) and len(row) == len(rows[0]) for row in rows[1:]]
    return sum(fitting) / len(fitting) if fitting else 1.0


class _SampleEndError(Exception):
    """The sample has no more lines."""


def _whole_rows(first: Sequence[Line], delimiter: str) -> Iterator[Sequence[Any] | Broken]:
    """The rows that end within these lines; the last row may extend beyond them."""

    def until_end() -> Iterator[Line]:
        yield from first
        raise _SampleEndError

    with suppress(_SampleEndError):
        for _, fields in _delimited(until_end(), delimiter):
            yield fields


def _delimited(lines: Iterator[Line], delimiter: str) -> Iterator[ParsedRow]:
    """The rows of CSV lines. After a broken row, reading continues at the line after its first."""
    csv.field_size_limit(LONGEST_LINE)
    again: deque[Line] = deque()

    def draw() -> Line | None:
        return again.popleft() if again else next(lines, None)

    while first := draw():
        taken = [first]
        try:
            fields = next(csv.reader(_lines_of_a_row(taken, draw), delimiter=delimiter, strict=True))
        except _BrokenLineError as error:
            again.extendleft(reversed(taken[1:]))
            yield first[0], error.broken
        except csv.Error as error:
            again.extendleft(reversed(taken[1:]))
            yield first[0], Broken(f"has quotes that do not match ({error})")
        else:
            if fields:  # an empty line has none
                yield first[0], fields


class _BrokenLineError(Exception):
    """A line within a row cannot be read."""

    def __init__(self, broken: Broken) -> None:
        super().__init__(broken.reason)
        self.broken = broken


def _lines_of_a_row(taken: list[Line], draw: Callable[[], Line | None]) -> Iterator[str]:
    """The first line and as many after it as the CSV reader requests; all are kept in `taken`."""
    while True:
        number, line = taken[-1]
        if isinstance(line, Broken):
            inside = Broken(f"begins a row in which line {number} {line.reason}", line.remedy)
            raise _BrokenLineError(line if len(taken) == 1 else inside)
        yield line
        following = draw() if len(taken) < MOST_LINES else None
        if following is None:
            return
        taken.append(following)


# JSON


def json_table(lines: Iterator[Line], name: str) -> ParsedFile:
    """One object per line, or an array of objects. The first object gives the columns; the others may lack some of them."""
    objects = _objects(lines)
    ahead = list[tuple[int, dict[str, Any] | Broken]]()
    for number, value in islice(objects, MOST_LINES):
        ahead.append((number, value))
        if not isinstance(value, Broken):
            break
    if not ahead:
        raise DataError(f"{name} is empty: give one JSON object per line, or an array of objects.")
    columns = () if isinstance(ahead[-1][1], Broken) else tuple(ahead[-1][1])
    if not columns:
        number, value = ahead[0]
        broken = value if isinstance(value, Broken) else Broken("has no columns")
        raise DataError(f"{name}, line {number} {broken.reason}: {broken.remedy}.")

    def records(wanted: Sequence[str]) -> Iterator[ParsedRow]:
        for number, value in chain(ahead, objects):
            yield number, value if isinstance(value, Broken) else [value.get(name) for name in wanted]

    return ParsedFile(columns, records, may_have=lambda column: True)


def _objects(lines: Iterator[Line]) -> Iterator[tuple[int, dict[str, Any] | Broken]]:
    first = next((line for line in lines if isinstance(line[1], Broken) or line[1].strip()), None)
    if first is None:
        return
    rest = chain([first], lines)
    is_array = isinstance(first[1], str) and first[1].lstrip().startswith("[")
    for number, text in _elements(rest) if is_array else rest:
        if isinstance(text, Broken):
            yield number, text
        elif text.strip():
            try:
                yield number, parse_object(text)
            except ValueError as error:
                yield number, Broken(str(error))


def _elements(lines: Iterator[Line]) -> Iterator[Line]:
    """The elements of a JSON array, each as text with its first line; only one is held in memory at a time."""
    depth = number = began = size = 0
    pieces: list[str] = []
    for number, line in lines:
        if isinstance(line, Broken):
            yield number, line
            continue
        for piece, depth_behind, is_end in _pieces(line, depth):
            depth = depth_behind
            if pieces or piece.strip():
                began, size = (began, size + len(piece)) if pieces else (number, len(piece))
                pieces.append(piece)
            if is_end and pieces:
                yield began, "".join(pieces)
                pieces = []
        if pieces and size > LONGEST_LINE:
            yield began, Broken(f"begins an object of more than {LONGEST_LINE:,} characters")
            return
    if pieces:
        yield began, "".join(pieces)
    if depth:
        yield number, Broken("ends before its JSON array does", "download or create the file again")


def _pieces(line: str, depth: int) -> Iterator[tuple[str, int, bool]]:
    """A line cut where elements of the array begin or end, with the bracket depth after each piece."""
    start = 0
    for mark in JSON_MARK.finditer(line):  # no string continues on the next line
        sign = mark.group()
        before = depth
        depth = max(0, depth + (sign in ("[", "{")) - (sign in ("]", "}")))
        if before == 0 or depth == 0 or (sign == "," and depth == 1):
            yield line[start : mark.start()], depth, True
            start = mark.end()
    yield line[start:], depth, False
