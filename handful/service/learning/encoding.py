"""Vectors of a project's texts by a sentence encoder, computed ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...classifier.estimator import WORDS
from ..store.database import Database
from ..store.projects import ProjectRow, read_row
from ..store.texts import text_batch
from .models import open_encoder

BATCH = 256  # texts between two notes about progress


def needs_encoding(project: ProjectRow) -> bool:
    """Whether reading its texts takes so long that it is done ahead of time."""
    return bool(project.encoder != WORDS and project.visible)


def encode_texts(database: Database, folder: Path, project: str, progress: Callable[[int, int | None], None]) -> dict[str, Any]:
    """Encode all texts of a project; the vectors are kept in a file, so that later readings are fast."""
    with database.reading() as connection:
        row = read_row(connection, project)
    encoder = open_encoder(row.encoder, row.language, folder)
    last, count = -1, 0
    while True:
        with database.reading() as connection:
            some = text_batch(connection, row, last, BATCH)
        if not some:
            return {"texts": count}
        encoder.read([one.text for one in some])
        last, count = some[-1].number, count + len(some)
        progress(last + 1, row.visible)
