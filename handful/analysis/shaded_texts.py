"""Texts side by side with each word shaded by its weight, for a page, a terminal or a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils.shading import AGAINST, FOR, shade, shade_html, strengths
from ..utils.terminal import one_line
from .figures import INK, panels

if TYPE_CHECKING:
    from rich.table import Table


INCH = 72  # points
SIZE = 9.0  # of the font, in points
LEADING = 16.0  # from line to line, in points
MOST_WORDS_SHOWN = 60  # of a text
Weights = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Shaded:
    """A text with a weight for each word; a negative weight counts against."""

    words: Sequence[str]
    weights: Weights

    def __post_init__(self) -> None:
        if len(self.words) != len(self.weights):
            raise ValueError(f"the numbers of words ({len(self.words)}) and weights ({len(self.weights)}) differ")

    def shown(self) -> Shaded:
        """The beginning of a long text; shades are relative to what is shown."""
        if len(self.words) <= MOST_WORDS_SHOWN:
            return self
        return Shaded([*self.words[:MOST_WORDS_SHOWN], "…"], np.append(self.weights[:MOST_WORDS_SHOWN], 0))

    def spans(self) -> Iterator[tuple[int, int]]:
        """The start and end of each word in the text."""
        start = 0
        for word in self.words:
            yield start, start + len(word)
            start += len(word) + 1

    def html(self) -> str:
        """The text as HTML."""
        numbers = [f"{weight:.3g}" for weight in self.weights]
        return shade_html(" ".join(self.words), list(self.spans()), self.weights, numbers)


@dataclass(frozen=True, eq=False)
class ShadedTable:
    """Rows and columns of shaded texts."""

    corner: str  # the heading of the row names
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Shaded]]]  # a name, and one text per column

    def numbers(self) -> list[dict[str, Any]]:
        """All weights, one row per word."""
        return [
            {self.corner or "row": name, "shown by": column, "position": i, "word": word, "weight": float(weight)}
            for name, cells in self.rows
            for column, cell in zip(self.columns, cells, strict=True)
            for i, (word, weight) in enumerate(zip(cell.words, cell.weights, strict=True))
        ]

    def weights_by_word(self, columns: Sequence[str]) -> str:
        """All weights as lines with tabs: one line per word, and one of these columns per text of a row."""
        lines = [["text", self.corner, "word", *columns]]
        for number, (name, cells) in enumerate(self.rows, 1):
            for i, word in enumerate(cells[0].words):
                lines.append([str(number), name, word, *(f"{cell.weights[i]:.4f}" for cell in cells)])
        return "".join("\t".join(map(one_line, line)) + "\n" for line in lines)

    def html(self) -> str:
        """The table as HTML; on a narrow screen, the columns are stacked."""
        rows = []
        for name, cells in self.rows:
            texts = "".join(
                f"<div><small>{escape(column)}</small><p>{cell.shown().html()}</p></div>"
                for column, cell in zip(self.columns, cells, strict=True)
            )
            rows.append(f'<section><h4>{escape(name)}</h4><div class="columns">{texts}</div></section>')
        return f'<div class="shaded">{"".join(rows)}</div>'

    def terminal(self) -> Table:
        """The table for a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 1, 0))
        for column in (self.corner, *self.columns):
            table.add_column(Text(one_line(column)))
        for name, cells in self.rows:
            shown = [cell.shown() for cell in cells]
            texts = [shade(" ".join(cell.words), list(cell.spans()), cell.weights) for cell in shown]
            table.add_row(Text(one_line(name), style="bold"), *texts)
        return table

    def draw(self, width: float = 9.5) -> Any:
        """The table as a matplotlib figure, `width` inches wide."""
        margin = 8.0
        names = max([text_width(name, SIZE, bold=True) for name, _ in self.rows] + [40.0]) + 16
        column = (width * INCH - names - margin) / len(self.columns)
        heights = [max(_lines(cell.shown(), column - 14) for cell in cells) * LEADING + 10 for _, cells in self.rows]
        height = sum(heights) + 2.2 * LEADING
        axes = sheet(width * INCH, height)
        for number, title in enumerate(self.columns):
            axes.text(names + number * column, LEADING, title, fontsize=SIZE, weight="bold", va="baseline")
        top = 1.5 * LEADING
        for (name, cells), room in zip(self.rows, heights, strict=True):
            axes.plot([margin / 2, width * INCH - margin / 2], [top, top], color=INK, alpha=0.2, linewidth=0.7)
            axes.text(margin / 2, top + LEADING, name, fontsize=SIZE, weight="bold", va="baseline")
            for number, cell in enumerate(cells):
                draw_words(axes, cell.shown(), names + number * column, top + LEADING, column - 14)
            top += room
        return axes.figure


# Drawing in points


def sheet(width: float, height: float) -> Any:
    """Axes that fill a figure of this size in points, with the origin at the top left."""
    drawing, axes = panels(width / INCH, height / INCH)
    drawing.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    return axes


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of a text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def flow(words: Sequence[str], size: float, width: float) -> Iterator[tuple[str, float, int, float]]:
    """Words broken into lines of this width: each with its distance from the left, its line and its own width."""
    space = text_width("n", size)
    left = 0.0
    line = 0
    for word in words:
        own = text_width(word, size)
        if left and left + own > width:
            left, line = 0.0, line + 1
        yield word, left, line, own
        left += own + space


def _lines(cell: Shaded, width: float) -> int:
    return max((line for _, _, line, _ in flow(cell.words, SIZE, width)), default=0) + 1


def draw_words(axes: Any, cell: Shaded, left: float, baseline: float, width: float, size: float = SIZE) -> None:
    """Draw a shaded text, broken into lines."""
    from matplotlib.patches import FancyBboxPatch

    leading = LEADING * size / SIZE
    for (word, x, line, own), share in zip(flow(cell.words, size, width), strengths(cell.weights), strict=True):
        y = baseline + line * leading
        colour = tuple(c / 255 for c in (FOR if share >= 0 else AGAINST))
        box = FancyBboxPatch(
            (left + x, y - 0.82 * size), own, 1.1 * size, boxstyle="round,pad=1.6,rounding_size=2", linewidth=0
        )
        box.set(facecolor=(*colour, abs(float(share))), clip_on=False)
        axes.add_patch(box)
        axes.text(left + x, y, word, fontsize=size, va="baseline")
