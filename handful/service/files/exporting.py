"""Exports of labels and predictions: CSV, JSON lines, Parquet, Label Studio and doccano."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from ...batch.output import ColumnLayout, CsvFormat
from ...errors import MissingExtraError
from ..learning.models import ProjectModel
from ..store.classes import live_classes
from ..store.database import Database
from ..store.projects import ProjectRow
from ..store.texts import labels_by_text, text_batch, texts_by_number

Form = Literal["csv", "tsv", "jsonl", "parquet", "label-studio", "doccano"]
PredictionForm = Literal["csv", "jsonl", "parquet"]
BATCH = 1_000  # texts at once
MEDIA = {
    "csv": ("text/csv; charset=utf-8", "csv"),
    "tsv": ("text/tab-separated-values; charset=utf-8", "tsv"),
    "jsonl": ("application/x-ndjson", "jsonl"),
    "parquet": ("application/vnd.apache.parquet", "parquet"),
    "label-studio": ("application/json", "json"),
    "doccano": ("application/x-ndjson", "jsonl"),
}
Record = dict[str, Any]


# Records


def labelled_records(database: Database, project: ProjectRow, every: bool) -> Iterator[list[Record]]:
    """Texts with their labels, some at a time: those that have a label, or all."""
    with database.reading() as connection:
        names = {row.number: row.name for row in live_classes(connection, project.id)}
    for numbers in _numbers(database, project):
        with database.reading() as connection:
            texts = texts_by_number(connection, project, numbers)
            labels = labels_by_text(connection, project.id, numbers)
        yield [_record(text, labels[text.number], names) for text in texts if every or labels[text.number]]


def _record(text: Any, labels: list[Any], names: dict[int, str]) -> Record:
    given = [
        {"annotator": one.annotator, "mark": one.mark, "label": names.get(one.label), "final": one.final, "made": one.made}
        for one in labels
    ]
    return {
        "id": text.number,
        "text": text.text,
        "label": names.get(text.label),
        "state": text.state,
        "annotators": [one["annotator"] for one in given],
        "labels": given,
        "extra": json.loads(text.extra) if text.extra else {},
    }


def predicted_records(database: Database, project: ProjectRow, model: ProjectModel) -> Iterator[list[Record]]:
    """All texts with the present model's answers, some at a time."""
    fitted, last = model.require(), -1
    while True:
        with database.reading() as connection:
            some = text_batch(connection, project, last, BATCH)
        if not some:
            return
        last = some[-1].number
        found = fitted.probabilities(fitted.scores([one.text for one in some]))
        best = found.argmax(axis=1)
        yield [
            {
                "id": one.number,
                "text": one.text,
                "label": str(fitted.classes[place]),
                "probability": round(float(row[place]), 6),
            }
            for one, row, place in zip(some, found, best, strict=True)
        ]


def _numbers(database: Database, project: ProjectRow) -> Iterator[list[int]]:
    last = -1
    while True:
        with database.reading() as connection:
            some = [row.number for row in text_batch(connection, project, last, BATCH)]
        if not some:
            return
        yield some
        last = some[-1]


# Formats


def encoded(form: str, records: Iterator[list[Record]]) -> Iterator[bytes]:
    """Records as bytes of a format that can be sent piece by piece."""
    if form in ("csv", "tsv"):
        yield from _delimited(records, "," if form == "csv" else "\t")
    elif form == "label-studio":
        yield from _tasks(records)
    else:
        convert = _doccano if form == "doccano" else _line
        for some in records:
            yield "".join(json.dumps(convert(one)) + "\n" for one in some).encode()


def _delimited(records: Iterator[list[Record]], delimiter: str) -> Iterator[bytes]:
    sheet: CsvFormat | None = None
    columns: list[str] = ["id", "text", "label"]
    for some in records:
        if sheet is None:
            columns = [name for name in (some[0] if some else {}) if name not in ("labels", "extra")] or columns
            sheet = CsvFormat(ColumnLayout((), tuple(columns), escape_formulas=True))
            sheet.delimiter = delimiter
            yield sheet.header()
        yield sheet.encode([tuple(_cell(one[name]) for name in columns) for one in some])


def _cell(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _line(record: Record) -> Record:
    extra = record.get("extra") or {}
    own = {name: value for name, value in record.items() if name != "extra"}
    return own | {name: value for name, value in extra.items() if name not in own}


def _doccano(record: Record) -> Record:
    return {"id": record["id"], "text": record["text"], "label": [record["label"]] if record["label"] is not None else []}


def _tasks(records: Iterator[list[Record]]) -> Iterator[bytes]:
    before = b"["
    for some in records:
        for one in some:
            yield before + json.dumps(_task(one)).encode()
            before = b",\n"
    yield b"]\n" if before != b"[" else b"[]\n"


def _task(record: Record) -> Record:
    choices = [one for one in record["labels"] if one["mark"] == "class"]
    annotations = [
        {
            "result": [{"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [one["label"]]}}],
            "completed_by": {"email": one["annotator"]},
        }
        for one in choices
    ]
    return {"id": record["id"], "data": {**record["extra"], "text": record["text"]}, "annotations": annotations}


def write_parquet(path: Path, records: Iterator[list[Record]], predictions: bool) -> None:
    """Records as a Parquet file, which cannot be sent piece by piece."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError as error:
        raise MissingExtraError("Parquet", "files") from error
    text, whole = pyarrow.string(), pyarrow.int64()
    own = {"probability": pyarrow.float64()} if predictions else {"state": text, "annotators": pyarrow.list_(text)}
    schema = pyarrow.schema(list({"id": whole, "text": text, "label": text, **own}.items()))
    choose: Callable[[Record], Record] = lambda one: {name: one[name] for name in schema.names}  # noqa: E731
    with ParquetWriter(path, schema) as writer:
        for some in records:
            writer.write_table(pyarrow.Table.from_pylist([choose(one) for one in some], schema))
