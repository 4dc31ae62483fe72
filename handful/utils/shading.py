"""Show which words mattered: a text with each word shaded by its weight, for a terminal or a web page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .terminal import printable

if TYPE_CHECKING:
    from rich.text import Text


FOR = (190, 90, 0)  # orange: an ordered scale on white, in greyscale and in print too
AGAINST = (50, 120, 195)  # blue, for words that count against; black and white text are legible on both


def strengths(weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Each weight relative to the largest absolute weight, from -1 to 1."""
    shares: np.ndarray[Any, Any] = weights / max(float(np.abs(weights).max(initial=0)), 1e-12)
    return shares


def colours(weights: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """The red, green and blue values of each weight on a white background."""
    mixed = [255 + abs(share) * (np.array(FOR if share >= 0 else AGAINST) - 255) for share in strengths(weights)]
    return [(int(red), int(green), int(blue)) for red, green, blue in mixed]


def shade(text: str, spans: Sequence[tuple[int, int]], weights: np.ndarray[Any, Any]) -> Text:
    """The text for a terminal; the background of each word is as strong as its weight, orange above 0 and blue below."""
    from rich.text import Text

    shaded = Text(printable(text))
    for (start, end), (red, green, blue) in zip(spans, colours(weights), strict=True):
        shaded.stylize(f"black on rgb({red},{green},{blue})", start, end)
    return shaded


def shade_html(text: str, spans: Sequence[tuple[int, int]], weights: np.ndarray[Any, Any], numbers: Sequence[str]) -> str:
    """The same for a web page, light or dark; hovering over a word shows its numbers."""
    pieces, done = [], 0
    for (start, end), share, note in zip(spans, strengths(weights), numbers, strict=True):
        red, green, blue = FOR if share >= 0 else AGAINST
        style = f"background:rgba({red},{green},{blue},{abs(share):.2f})"
        pieces.append(_html(text[done:start]))
        pieces.append(f'<span style="{style}" title="{_html(note)}">{_html(text[start:end])}</span>')
        done = end
    return "".join([*pieces, _html(text[done:])])


def _html(text: str) -> str:
    return escape(text.encode("utf-8", "replace").decode())
