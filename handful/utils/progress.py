"""Progress bars on standard error for long operations; without a terminal, plain lines or nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .terminal import one_line

Item = TypeVar("Item")


@contextmanager
def progress_bar(description: str, total: float | None, quiet: bool = False, lines: bool = False) -> Iterator[_Bar]:
    """A bar that counts to `total`; with `lines`, its descriptions are printed as plain lines if there is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield _Lines() if lines and not quiet else _Bar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, progress.add_task(one_line(description), total=total))


class _Bar:
    def __init__(self, progress: Any = None, task: Any = None) -> None:
        self._progress, self._task = progress, task

    def update(self, done: float, description: str | None = None) -> None:
        """Set the bar to `done`."""
        if self._progress:
            self._progress.update(self._task, completed=done, description=description and one_line(description))


class _Lines(_Bar):
    def update(self, done: float, description: str | None = None) -> None:
        if description:
            sys.stderr.write(f"{one_line(description)}\n")


def track(items: Iterable[Item], description: str, total: int, quiet: bool = False) -> Iterator[Item]:
    """Yield the items while a bar counts them."""
    with progress_bar(description, total, quiet) as bar:
        for done, item in enumerate(items, 1):
            yield item
            bar.update(done)
