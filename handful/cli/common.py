"""What the commands share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from errno import EPIPE
from pathlib import Path
from typing import Any

import click

from ..errors import HandfulError, HandfulWarning
from ..folders import DATA_VARIABLE


class Group(click.Group):
    """Turns Handful's errors into one line and exit code 2, and its warnings into one line."""

    def invoke(self, context: click.Context) -> Any:
        try:
            with _warnings_as_lines():
                return super().invoke(context)
        except HandfulError as error:
            click.echo(f"Error: {error}", err=True)
            context.exit(2)
        except OSError as error:
            if error.errno == EPIPE:  # whoever read the output has gone: click ends quietly
                raise
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"Error: {place}{error.strerror or error}: check the place, its rights and its free space.", err=True)
            context.exit(2)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Handful's own warnings as one line each."""
    with warnings.catch_warnings():
        show: Callable[..., None] = warnings.showwarning

        def show_line(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, HandfulWarning):
                click.echo(f"Warning: {message}", err=True)
            else:
                show(message, category, *place, **more)

        warnings.showwarning = show_line
        warnings.simplefilter("always", HandfulWarning)
        yield


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Several options as one decorator, in the order they are written."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def names_of(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(part for part in text.split(",") if part)


@contextmanager
def _data_folder(folder: Path) -> Iterator[None]:
    """For the time of a command; in the environment, so that worker processes have it too."""
    before = os.environ.get(DATA_VARIABLE)
    os.environ[DATA_VARIABLE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(DATA_VARIABLE)
        if before is not None:
            os.environ[DATA_VARIABLE] = before


def _use_data_folder(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    if folder:
        context.with_resource(_data_folder(folder))


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=_use_data_folder,
    help="Folder of data sets; by default HANDFUL_DATA, or else one in the user's cache.",
)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table for people: as wide as it needs, so that nothing is cut; numbers to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name, cell in zip(header, rows[0], strict=True):
        table.add_column(Text(name), justify="right" if isinstance(cell, int) else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    console = Console(width=10_000)
    console.print(table, width=console.measure(table).maximum)
