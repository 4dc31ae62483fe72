"""Answers to an uploaded file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ...batch.output import OUTPUT_FORMATS, ColumnLayout, destination
from ..learning.models import ProjectModel
from .importing import Progress
from .uploads import Upload, UploadedRow, UploadedRows

BATCH = 1_000  # texts answered at once


def answer_upload(model: ProjectModel, upload: Upload, out: Path, form: str, progress: Progress) -> dict[str, Any]:
    """Write the text, the label and its probability for each row of an uploaded file; the file appears when it is complete."""
    fitted = model.require()
    labels = tuple(fitted.classes.tolist())
    sheet = OUTPUT_FORMATS[form](ColumnLayout(("text",), ("label", "probability"), (None,), labels, escape_formulas=True))
    rows, count = UploadedRows(upload), 0
    with destination(out, sheet, None) as written:
        for part in _parts(rows):
            found = fitted.probabilities(fitted.scores([one.text for one in part]))
            best = found.argmax(axis=1).tolist()
            cells = [
                (one.text, labels[place], round(float(row[place]), 6))
                for one, row, place in zip(part, found, best, strict=True)
            ]
            written.add(sheet.encode(cells), len(part))
            count += len(part)
            progress(rows.done, rows.total)
    return {"texts": count, "skipped": rows.skipped, "file": form}


def _parts(rows: Iterable[UploadedRow]) -> Iterator[list[UploadedRow]]:
    left = iter(rows)
    while part := list(islice(left, BATCH)):
        yield part
