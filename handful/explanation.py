"""Showing which words counted: a text with each word shaded by its weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.text import Text

LIGHT, DARK = np.array([255, 255, 255]), np.array([230, 120, 0])  # white to orange: an ordered scale in grey and in print too


def shade(text: str, spans: Sequence[tuple[int, int]], weights: np.ndarray[Any, Any]) -> Text:
    """The text for a terminal, the word at each span on a background as strong as its weight beside the heaviest one."""
    from rich.text import Text

    shaded = Text(text)
    for (start, end), share in zip(spans, weights / max(float(weights.max(initial=0)), 1e-12), strict=True):
        red, green, blue = (LIGHT + share * (DARK - LIGHT)).astype(int)
        shaded.stylize(f"black on rgb({red},{green},{blue})", start, end)
    return shaded
