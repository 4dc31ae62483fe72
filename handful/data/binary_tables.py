"""Tables in binary files: Parquet files and Excel workbooks."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import count, islice
from typing import IO, Any

from ..errors import DataError, MissingExtraError
from .text_tables import ParsedFile, ParsedRow

ROWS_AT_ONCE = 1000
LARGEST_WORKBOOK = 1 << 29  # bytes that a workbook may unpack to
LAST_ROW, LAST_COLUMN = 1 << 20, 1 << 14  # Excel's limits: cells beyond them, which a file may claim to have, are not read


def _seekable(raw: IO[bytes]) -> IO[bytes]:
    return raw if raw.seekable() else io.BytesIO(raw.read())


def parquet_table(raw: IO[bytes], name: str) -> ParsedFile:
    """A Parquet file, read a batch of rows at a time, with only the wanted columns."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError("Parquet", "files") from error
    try:
        file = ParquetFile(_seekable(raw))
    except (ArrowException, OSError) as error:
        raise DataError(f"{name} is not a Parquet file ({error}): download or create it again.") from error
    schema = file.schema_arrow
    number = count(1)

    def records(wanted: Sequence[str]) -> Iterator[ParsedRow]:
        try:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(wanted)):
                columns = [batch.column(name).to_pylist() for name in wanted]
                yield from ((next(number), values) for values in zip(*columns, strict=True))
        except (ArrowException, ValueError) as error:
            raise DataError(f"{name} cannot be read to the end ({error}): download or create it again.") from error

    types = dict(zip(schema.names, schema.types, strict=True))
    return ParsedFile(tuple(schema.names), records, types, file.metadata.num_rows, "row", types.__contains__)


# Excel


def excel_table(raw: IO[bytes], name: str) -> ParsedFile:
    """The first sheet of a workbook, whose first row names the columns; empty rows are skipped."""
    with _excel_errors(name):
        sheet = _first_sheet(_seekable(raw), name)
        [header] = _batch(sheet.iter_rows(1, 1, 1, LAST_COLUMN, values_only=True)) or [()]
    places = {place: str(_plain(value)) for place, value in enumerate(header) if value is not None}
    if not places:
        raise DataError(f"{name}: row 1 of the first sheet is empty, but it must name the columns: fill it in.")

    def records(wanted: Sequence[str]) -> Iterator[ParsedRow]:
        chosen = [next(place for place, column in places.items() if column == name) for name in wanted]
        rows = sheet.iter_rows(2, LAST_ROW, 1, max(places) + 1, values_only=True)
        number = count(2)
        with _excel_errors(name):
            while batch := _batch(rows):
                numbered = ((next(number), row) for row in batch)
                yield from ((n, [_plain(row[i]) for i in chosen]) for n, row in numbered if any(v is not None for v in row))

    return ParsedFile(tuple(places.values()), records, total=sheet.max_row, unit="row")


def _first_sheet(raw: IO[bytes], name: str) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtraError("Excel", "excel") from error
    with zipfile.ZipFile(raw) as archive:
        size = sum(member.file_size for member in archive.infolist())  # no member unpacks to more than it declares
    if size > LARGEST_WORKBOOK:
        raise DataError(f"{name} unpacks to more than {LARGEST_WORKBOOK >> 20} MB: save its first sheet as CSV.")
    with warnings.catch_warnings(action="ignore"):  # about parts of a workbook other than cells
        return load_workbook(raw, read_only=True, data_only=True, keep_links=False).worksheets[0]


def _batch(rows: Iterator[Sequence[Any]]) -> list[Sequence[Any]]:
    with warnings.catch_warnings(action="ignore"):  # about an invalid date, which is read as #VALUE!
        return list(islice(rows, ROWS_AT_ONCE))


@contextmanager
def _excel_errors(name: str) -> Iterator[None]:
    """Turn any error into a DataError: a damaged or malicious workbook can make openpyxl raise anything."""
    try:
        yield
    except (DataError, MissingExtraError):
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{name} is not a readable Excel workbook ({reason}): save it again as .xlsx, or as CSV.") from error


def _plain(value: Any) -> Any:
    """The value of a cell as text or number: "" for an empty cell, an int for a whole number, ISO format for a date."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, (date, time)):  # a datetime is a date
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else value
