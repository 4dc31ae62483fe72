"""Progress bars on standard error for anything long; silent where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")


@contextmanager
def progress_bar(description: str, total: float | None, quiet: bool = False) -> Iterator[_Bar]:
    """A bar that counts to `total`."""
    if quiet or not sys.stderr.isatty():
        yield _Bar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, progress.add_task(description, total=total))


class _Bar:
    def __init__(self, progress: Any = None, task: Any = None) -> None:
        self._progress, self._task = progress, task

    def update(self, done: float, description: str | None = None) -> None:
        """Set the bar to `done`."""
        if self._progress:
            self._progress.update(self._task, completed=done, description=description)


def track(items: Iterable[Item], description: str, total: int, quiet: bool = False) -> Iterator[Item]:
    """The items, with a bar."""
    with progress_bar(description, total, quiet) as bar:
        for done, item in enumerate(items, 1):
            yield item
            bar.update(done)
