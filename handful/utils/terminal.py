"""Text for people: data is shown as it is, except for characters that would control the terminal."""

from __future__ import annotations

import re
from errno import EPIPE
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# Control characters except tabs and line breaks, other line ends, changes of writing direction, and unpaired surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with each character that would control the terminal, or that it cannot show, replaced by one other character.

    >>> printable("a bell\\x07 and a line\\n")
    'a bell� and a line\\n'
    """
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(value: object) -> str:
    """The printable text on one line, for names, cells and messages."""
    return printable(re.sub("\r?\n", " ", str(value)))


def console(**options: Any) -> Console:
    """Rich's console, except that a closed pipe raises an error in the code that prints, instead of ending the process."""
    from rich.console import Console

    class Printing(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(EPIPE, "Broken pipe")

    return Printing(highlight=False, **options)
