"""Imports: rows are written in small steps, so that labels need not wait, and become visible at once at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from ..errors import TooLargeError
from ..settings import Limits
from ..store.classes import insert_class, live_classes
from ..store.database import Database
from ..store.projects import begin_import, finish_import, read_row, remove_unfinished
from ..store.texts import insert_labels, insert_texts, new_text
from .uploads import Upload, UploadedRow, UploadedRows

Progress = Callable[[int, int | None], None]  # raises if the job was cancelled
STEP = 100  # rows in one transaction: a few milliseconds
BREATH = 0.001  # seconds between two of them, so that others get their turn
IMPORTED = "import"  # the annotator of labels that came with a file


def import_upload(
    database: Database, limits: Limits, project: str, job: str, upload: Upload, progress: Progress
) -> dict[str, Any]:
    """Import the rows of an uploaded file; after an error or a cancellation nothing of it is left."""
    rows = UploadedRows(upload)
    counts = import_rows(database, limits, project, job, rows, lambda: progress(rows.done, rows.total))
    facts = {"skipped": rows.skipped, "problem": rows.problem.replace(str(upload.path), "The file"), "empty": rows.empty}
    return counts | facts | {"replaced": rows.replaced}


def import_rows(
    database: Database, limits: Limits, project: str, job: str, rows: Iterable[UploadedRow], step: Callable[[], None]
) -> dict[str, Any]:
    """Import rows into a project."""
    try:
        with database.writing() as connection:
            number = start = begin_import(connection, read_row(connection, project, lock=True), job)
            classes = {row.name: row.number for row in live_classes(connection, project)}
        labelled = 0
        for part in _parts(rows):
            if number + len(part) > limits.texts_per_project:
                raise TooLargeError(f"The project would have more than {limits.texts_per_project:,} texts: import fewer.")
            fresh = [new_text(one.text, one.extra) for one in part]
            with database.writing() as connection:
                for name in dict.fromkeys(row.label for row in part if row.label is not None and row.label not in classes):
                    classes[name] = insert_class(connection, project, name, state="pending", most=limits.classes)
                texts = [
                    one if row.label is None else replace(one, label=classes[row.label])
                    for one, row in zip(fresh, part, strict=True)
                ]
                insert_texts(connection, project, number, texts)
                insert_labels(connection, project, number, texts, IMPORTED, time.time())
            number, labelled = number + len(part), labelled + sum(one.label is not None for one in texts)
            step()
            time.sleep(BREATH)
        with database.writing() as connection:
            finish_import(connection, project, job, number)
    except BaseException:
        undo_import(database, project, job)
        raise
    return {"texts": number - start, "labelled": labelled, "classes": len(classes)}


def undo_import(database: Database, project: str, job: str) -> None:
    """Remove all that an unfinished import wrote."""
    while True:
        with database.writing() as connection:
            if not remove_unfinished(connection, project, job):
                return
        time.sleep(BREATH)


def _parts(rows: Iterable[UploadedRow]) -> Iterator[list[UploadedRow]]:
    left = iter(rows)
    while part := list(islice(left, STEP)):
        yield part
