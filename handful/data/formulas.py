"""Cells that a spreadsheet would run as a formula: escaped with a single quote, and back."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with quotes before it, so that reading gives back exactly what was written


def escape_formula(text: str) -> str:
    """The text with a single quote before it if a spreadsheet would run it as a formula.

    >>> escape_formula("=1+1"), escape_formula("1+1")
    ("'=1+1", '1+1')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """The text without the quote that `escape_formula` puts before a formula.

    >>> unescape_formula("'=1+1"), unescape_formula("'quoted'")
    ('=1+1', "'quoted'")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
