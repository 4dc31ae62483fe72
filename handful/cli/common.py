"""Parts shared by all commands: errors, warnings, exit codes, options and tables."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from errno import EPIPE
from pathlib import Path
from typing import IO, Any, cast

import click

from ..errors import HandfulError, HandfulWarning
from ..utils.paths import DATA_VARIABLE
from ..utils.terminal import console, one_line, printable

QUOTES = "'\""
INTERRUPTED, PIPE_CLOSED = 130, 141  # exit codes: 128 plus the number of the signal

# Options for arguments of the library that the command line names differently
OPTIONS = {"`processes`": "--workers", "`n`": "--n", "`skip_broken=True`": "--on-error skip"}


class Command(click.Command):
    """A command whose errors and warnings name options instead of arguments; each warning is one line."""

    def invoke(self, context: click.Context) -> Any:
        parameters = self.get_params(context)
        try:
            with _warnings_as_lines(lambda text: with_options(text, parameters)):
                return super().invoke(context)
        except HandfulError as error:
            error.args = (with_options(str(error), parameters),)
            raise


class Commands(click.Group):
    """A group of related commands."""

    command_class = Command


class Group(Commands):
    """The group of all commands. Errors become one line and exit code 2; Ctrl-C and closed pipes become their exit codes."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        _open_closed_streams()
        return super().main(*arguments, **options)

    def invoke(self, context: click.Context) -> Any:
        try:
            return self._invoke_with_sentences(context)
        except KeyboardInterrupt as interrupt:
            say(" ".join(["Interrupted.", *getattr(interrupt, "__notes__", ())]), err=True)
            context.exit(INTERRUPTED)
        except OSError as error:
            if error.errno != EPIPE:
                raise
            _discard_output()  # its reader is gone
            context.exit(PIPE_CLOSED)

    def _invoke_with_sentences(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except HandfulError as error:
            say(f"Error: {error}", err=True)
            context.exit(2)
        except click.ClickException as error:
            vars(error)["message"] = one_line(error.message)
            raise
        except OSError as error:
            if error.errno == EPIPE:
                raise
            place = f"{error.filename}: " if error.filename else ""
            say(f"Error: {place}{error.strerror or error}: check the path, its permissions and the free space.", err=True)
            context.exit(2)


def _open_closed_streams() -> None:
    """Replace streams that were closed before the start (`>&-`) by empty ones; anything written to them is lost."""
    sys.stdin, sys.stdout, sys.stderr = (
        stream or open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - for as long as the process runs
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )


def _discard_output() -> None:
    """Redirect the output to nowhere, so that Python can still flush it when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def with_options(text: str, parameters: Sequence[click.Parameter]) -> str:
    """A message with options in place of arguments, such as --reject-below for `reject_below`; other names stay as they are."""
    known = {parameter.name: parameter.opts[0] for parameter in parameters if isinstance(parameter, click.Option)}

    def option(match: re.Match[str]) -> str:
        whole, name, value = match.group(0), match["name"], match["value"]
        found = OPTIONS.get(whole, known.get(name))
        if found is None or found.split()[0] not in known.values():
            return whole
        return found if value in (None, "True") or whole in OPTIONS else f"{found} {value.strip(QUOTES)}"

    return re.sub(r"`(?P<name>\w+)(?:=(?P<value>[^`]*))?`", option, text)


@contextmanager
def _warnings_as_lines(worded: Callable[[str], str]) -> Iterator[None]:
    """Print each of Handful's own warnings as one line."""
    with warnings.catch_warnings():
        show: Callable[..., None] = warnings.showwarning

        def show_line(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, HandfulWarning):
                say(f"Warning: {worded(str(message))}", err=True)
            else:
                show(message, category, *place, **more)

        warnings.showwarning = show_line
        warnings.simplefilter("always", HandfulWarning)
        yield


def say(text: object, err: bool = False) -> None:
    """Print a line for people, without characters that would control the terminal."""
    click.echo(one_line(text), err=err)


class _Terminal:
    """A binary stream that shows UTF-8 data on a terminal."""

    def write(self, content: bytes) -> None:
        sys.stdout.write(printable(content.decode("utf-8", "replace")))

    def flush(self) -> None:
        sys.stdout.flush()


def standard_output() -> IO[bytes]:
    """The stream for data: unchanged, or on a terminal without characters that would control it."""
    return cast("IO[bytes]", _Terminal()) if sys.stdout.isatty() else sys.stdout.buffer


def print_data(content: bytes) -> None:
    """Print data to standard output."""
    output = standard_output()
    output.write(content)
    output.flush()


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Several options as one decorator, in the order given."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def names_of(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(part for part in text.split(",") if part)


@contextmanager
def _data_folder(folder: Path) -> Iterator[None]:
    """Set the data folder while a command runs, in the environment, so that worker processes have it too."""
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
    help="Folder of data sets; by default HANDFUL_DATA, or else a folder in the user's cache.",
)


def _as_delimiter(_: click.Context, __: click.Parameter, written: str | None) -> str | None:
    r"""The delimiter, with `tab` or `\t` for a tab, which is hard to type."""
    return "\t" if written in ("\\t", "tab") else written


reading_options = options_of(
    click.option("--text", help="Column of the texts, if it is not obvious."),
    click.option(
        "--format",
        "form",
        help="File format, if the ending does not tell: csv, tsv, jsonl, parquet, xlsx or txt (one text per line).",
    ),
    click.option("--delimiter", callback=_as_delimiter, help="Delimiter of a CSV file, such as ; or tab; detected by default."),
    click.option("--encoding", help="Encoding of a text file that is not in UTF-8, such as windows-1252."),
)
label_option = click.option("--label", help="Column of the labels, if it is not obvious.")


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table as wide as its contents, so that nothing is cut off; numbers are aligned to the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name, cell in zip(header, rows[0], strict=True):
        table.add_column(Text(one_line(name)), justify="right" if isinstance(cell, int) else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else one_line(cell)) for cell in row))
    wide = console(width=10_000)
    wide.print(table, width=wide.measure(table).maximum)
