"""Rows of uploaded files: tables, doccano's JSON lines and Label Studio's JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ...batch.output import as_text
from ...data.formulas import unescape_formula
from ...data.lines import Broken, numbered_lines
from ...data.reader import FORMATS, LABEL_NAMES, Source, find_columns, open_rows
from ...data.text_tables import json_table
from ...errors import DataError
from ...utils.files import reading_errors
from ..errors import InvalidError
from ..store.classes import LONGEST_CLASS_NAME

LABEL_STUDIO = "label-studio"
UPLOAD_FORMATS = (*FORMATS, "json", "doccano", LABEL_STUDIO)
THE_FILE = "The file"
PREVIEW_ROWS = 20


@dataclass(frozen=True)
class Upload:
    """An uploaded file, and how to read it."""

    path: Path
    form: str
    text: str | None = None  # the column of the texts; by default the obvious one
    label: str | None = None  # the column of the labels; by default one with a usual name; "" for none
    delimiter: str | None = None
    encoding: str | None = None
    skip_broken: bool = False
    characters: int = 100_000  # of a text, at most


@dataclass(frozen=True)
class UploadedRow:
    """A text, its label if it has one, and its other columns."""

    text: str
    label: str | None
    extra: dict[str, Any]


class UploadedRows:
    """The rows of an uploaded file; `skipped` counts those left out, and `problem` describes the first."""

    def __init__(self, upload: Upload) -> None:
        self.skipped, self.problem, self.replaced, self.empty, self.done = 0, "", 0, 0, 0
        self.total: int | None = None
        self.columns: tuple[str, ...] = ()
        self.text_column: str | None = None
        self.label_column: str | None = None
        self._upload = upload

    def __iter__(self) -> Iterator[UploadedRow]:
        with named_errors(self._upload.path):
            read = self._label_studio() if self._upload.form == LABEL_STUDIO else self._table()
            for place, row in read:
                problem = row if isinstance(row, str) else self._problem(row)
                if problem:
                    self._skip(f"{place} {problem}")
                elif isinstance(row, UploadedRow) and row.text.strip():
                    yield self._sound(row)
                else:
                    self.empty += 1

    def _problem(self, row: UploadedRow) -> str:
        if len(row.text) > self._upload.characters:
            return f"has a text of {len(row.text):,} characters, and the limit is {self._upload.characters:,}"
        if row.label is not None and len(row.label) > LONGEST_CLASS_NAME:
            return f"has a label of {len(row.label)} characters, and the limit is {LONGEST_CLASS_NAME}"
        return ""

    def _skip(self, problem: str) -> None:
        if not self._upload.skip_broken:
            raise DataError(f"{problem}: correct it, or skip such rows with skip_broken=true.")
        self.problem = self.problem or problem
        self.skipped += 1

    def _sound(self, row: UploadedRow) -> UploadedRow:
        """A row without what a database cannot hold: zero bytes and unpaired surrogates."""
        text, label = sound(row.text), None if row.label is None else sound(row.label)
        self.replaced += text != row.text
        return UploadedRow(text, label, {sound(name): _sound_value(value) for name, value in row.extra.items()})

    # Tables

    def _table(self) -> Iterator[tuple[str, UploadedRow | str]]:
        upload = self._upload
        form = "jsonl" if upload.form in ("json", "doccano") else upload.form
        source = Source(
            str(upload.path), form, upload.text, upload.label or None, upload.skip_broken, upload.delimiter, upload.encoding
        )
        with open_rows(source, whole=True) as rows:
            self.columns, self.total = rows.columns, rows.total
            self.text_column = find_columns(rows.columns, source, labelled=False)[0]
            self.label_column = self._find_label(rows.columns)
            for row in rows:
                self.done = rows.done
                values = dict(zip(rows.columns, row.values, strict=True))
                yield rows.place(row.number), self._row(values, source.has_text_cells)
            self.skipped, self.problem = self.skipped + rows.skipped, self.problem or rows.problem

    def _find_label(self, columns: tuple[str, ...]) -> str | None:
        if self._upload.label is not None:
            return self._upload.label or None
        usual = [column for column in columns if column.strip().lower() in LABEL_NAMES and column != self.text_column]
        return usual[0] if usual else None

    def _row(self, values: dict[str, Any], cells: bool) -> UploadedRow | str:
        text = values.pop(self.text_column or "")
        label = values.pop(self.label_column, None) if self.label_column else None
        if isinstance(label, list):
            if len(label) > 1:
                return "has several labels, and a text of a project has one"
            label = label[0] if label else None
        label = as_text(label)
        if cells:
            text, label = unescape_formula(text), unescape_formula(label)
        extra = {name: value for name, value in values.items() if value not in (None, "")}
        return UploadedRow(text, label.strip() or None, extra)

    # Label Studio

    def _label_studio(self) -> Iterator[tuple[str, UploadedRow | str]]:
        with reading_errors(self._upload.path), self._upload.path.open("rb") as stream:
            self.total = self._upload.path.stat().st_size
            table = json_table(numbered_lines(stream, self._upload.encoding), str(self._upload.path))
            self.columns, self.text_column, self.label_column = table.columns, "data", "annotations"
            for number, values in table.records(("data", "annotations")):
                self.done = stream.tell()
                place = f"{self._upload.path}, line {number}"
                yield place, values.reason if isinstance(values, Broken) else task_row(values[0], values[1], self._upload.text)


def task_row(data: Any, annotations: Any, text_name: str | None = None) -> UploadedRow | str:
    """A task of Label Studio as a row: its text, and the first choice of its first annotation that was not cancelled."""
    if not isinstance(data, dict):
        return "is not a task of Label Studio: it has no data"
    texts = [name for name in ("text", *data) if isinstance(data.get(name), str)]
    name = text_name or (texts[0] if texts else "")
    if not isinstance(data.get(name), str):
        return "has no text in its data"
    extra = {key: value for key, value in data.items() if key != name}
    return UploadedRow(data[name], first_choice(annotations), extra)


def first_choice(annotations: Any) -> str | None:
    """The first choice in annotations of Label Studio."""
    for annotation in annotations if isinstance(annotations, list) else []:
        if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
            for result in annotation.get("result") or []:
                choices = result.get("value", {}).get("choices") if isinstance(result, dict) else None
                if isinstance(choices, list) and choices and isinstance(choices[0], str):
                    return choices[0].strip() or None
    return None


def sound(text: str) -> str:
    """A text without zero bytes and unpaired surrogates."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode() if not is_sound(text) else text


def is_sound(text: str) -> bool:
    """Whether a database can hold a text."""
    try:
        return b"\x00" not in text.encode()
    except UnicodeEncodeError:
        return False


def _sound_value(value: Any) -> Any:
    return sound(value) if isinstance(value, str) else sound(as_text(value)) if isinstance(value, (list, dict)) else value


def check_form(form: str) -> str:
    """A format of uploads, or an error that lists them."""
    if form not in UPLOAD_FORMATS:
        raise InvalidError(f"There is no format {form!r}: choose one of {', '.join(UPLOAD_FORMATS)}.")
    return form


def preview(upload: Upload) -> dict[str, Any]:
    """The columns of a file, those that were taken for texts and labels, and its first rows."""
    rows = UploadedRows(upload)
    first = [{"text": row.text, "label": row.label, "extra": row.extra} for row in islice(rows, PREVIEW_ROWS)]
    return {"columns": list(rows.columns), "text": rows.text_column, "label": rows.label_column, "rows": first}


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Errors about a file without its place on this machine."""
    try:
        yield
    except DataError as error:
        raise InvalidError(str(error).replace(str(path), THE_FILE)) from error
