"""Figures: a picture with its words and its numbers, to be shown in a report or saved as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Figure:
    """One picture, understood from its caption alone."""

    name: str  # of its files
    title: str
    caption: str  # for a reader who has not read the paper
    alt: str  # for a reader who does not see the picture
    rows: Sequence[Mapping[str, Any]]  # its numbers, a row of the CSV each
    draw: Callable[[], Any]  # a matplotlib figure
    html: str = ""  # a picture made of text, shown in place of the drawing; escaped by who makes it
