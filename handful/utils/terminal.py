"""What is shown to people: data as it is written, without what a terminal would obey."""

from __future__ import annotations

import re
from errno import EPIPE
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# Controls except for tabs and line breaks, other line ends, what turns the direction of writing, and unpaired surrogates.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """As many characters as the text, with a replacement character for each that a terminal would obey or cannot show.

    >>> printable("a bell\\x07 and a line\\n")
    'a bell� and a line\\n'
    """
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(value: object) -> str:
    """The same in one line: for names, cells and sentences."""
    return printable(re.sub("\r?\n", " ", str(value)))


def console(**options: Any) -> Console:
    """Rich's console, but a reader that has gone is an error for whoever prints, not the end of the process."""
    from rich.console import Console

    class Printing(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(EPIPE, "Broken pipe")

    return Printing(highlight=False, **options)
