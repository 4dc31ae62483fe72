"""Results files: one line of JSON per finished cell, appended by any number of processes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError
from ..utils.files import parse_object, read_lines
from .grid import Cell, cell_key
from .old_names import upgrade_result


@dataclass(frozen=True)
class CellResult:
    """The measurements of a cell, and how they were made."""

    data: str
    shot: int
    vectors: str
    preset: str
    seed: int
    options: dict[str, Any]
    accuracy: float
    ci95: float
    episodes: int
    queries: int  # per class
    epochs: int
    reference: str | None  # a preset
    over_reference: float | None  # the mean difference over the same episodes
    over_reference_ci95: float | None
    auroc: float | None  # of the largest score, if some queries are of no class
    seconds: float
    resumed_from_epoch: int  # of an interrupted run; the seconds then count only the rest
    peak_memory_mb: float | None
    settings: dict[str, Any]
    versions: dict[str, str]
    signal_variation: dict[
        str, float
    ]  # of t, as a share of its mean; empty without t, and in lines from before it was measured

    @cached_property
    def key(self) -> str:
        """The key of its cell."""
        return cell_key(self.preset, self.episodes, self.settings)


def result_line(result: CellResult) -> str:
    """A result as one line of JSON."""
    return json.dumps(asdict(result), ensure_ascii=False) + "\n"


def parse_result(line: str, place: str) -> CellResult:
    """Parse a result from its line."""
    try:
        value = upgrade_result(parse_object(line))
        return CellResult(**{field.name: value[field.name] for field in fields(CellResult)})
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{place} is not a line of results ({error!r}): remove it.") from error


def read_results(path: Path) -> list[CellResult]:
    """All results of a file; if a cell occurs twice, the last one counts. A truncated last line is ignored."""
    if not path.is_file():
        return []
    whole = ((number, line) for number, line in read_lines(path, "replace") if line.endswith("\n") and line.strip())
    results = [parse_result(line, f"{path}, line {number}") for number, line in whole]
    return list({result.key: result for result in results}.values())


def check_writable(path: Path) -> None:
    """Raise a DataError if a file cannot be appended to, before any work is done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror}): choose another file (--out).") from error


def append_result(path: Path, result: CellResult) -> None:
    """Append a line atomically, unless it is there: another process may have read the same result in the cell's folder."""
    check_writable(path)
    line = result_line(result).encode()
    with locked(path.with_name(f".{path.name}.lock")):
        content = path.read_bytes()
        if line in content:
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.ftruncate(descriptor, content.rfind(b"\n") + 1)  # drop a line that a crash truncated
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """A lock between processes, even on several machines, released when its process ends.

    Without `wait`, it yields at once whether the lock was free.
    """
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise MissingExtraError("The benchmark", "bench") from error
    lock = FileLock(path)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def missing_cells(cells: Iterable[Cell], results: Iterable[CellResult]) -> Iterator[Cell]:
    """The cells without a result."""
    done = {result.key for result in results}
    yield from (cell for cell in cells if cell.key not in done)
