"""Figures: a picture with its caption and its numbers, to be shown in a report or saved as files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError
from ..utils.files import write_atomic
from ..utils.paths import check_not_input
from ..utils.shading import FOR

INK, NIGHT_INK = "#1f2328", "#e6edf3"  # for text, axes and arrows; anything drawn in INK is legible on dark pages too
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")  # Okabe and Ito: safe for colour-blind readers
MARKERS = ("o", "s", "D", "^", "v", "P")  # a second cue, for print without colour
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
HEAVIEST = "#{:02x}{:02x}{:02x}".format(*FOR)  # the upper end of the weight scale; its lower end is the bare page
DOTS = 200  # per inch in a PNG
DRAWING_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so the picture is the same everywhere
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.alpha": 0.15,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
    "hatch.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a dollar sign in a text is just a dollar sign
    "svg.fonttype": "path",
    "svg.hashsalt": "handful",
    "pdf.fonttype": 42,  # text stays text, which can be searched and edited
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color", "patch.edgecolor"), INK
    ),
}


@dataclass(frozen=True, eq=False)
class Figure:
    """One picture that can be understood from its caption alone."""

    name: str  # of its files
    title: str
    caption: str  # for readers who have not read the paper
    alt: str  # for readers who cannot see the picture
    rows: Sequence[Mapping[str, Any]]  # its numbers, one CSV row each
    draw: Callable[[], Any]  # returns a matplotlib figure
    html: str = ""  # a picture made of text, shown instead of the drawing; must be escaped already

    @cached_property
    def _drawn(self) -> tuple[str, bytes]:
        with house_style():
            drawing = self.draw()
            vector, dots = io.StringIO(), io.BytesIO()
            drawing.savefig(vector, format="svg", metadata={"Date": None, "Creator": None})
            drawing.savefig(dots, format="png", dpi=DOTS, facecolor="white", metadata={"Software": None})
        return _for_any_paper(vector.getvalue(), self.alt), dots.getvalue()

    @property
    def svg(self) -> str:
        """The drawing as SVG, for light and dark screens."""
        return self._drawn[0]

    @property
    def png(self) -> bytes:
        """The drawing as PNG, on white."""
        return self._drawn[1]

    @cached_property
    def pdf(self) -> bytes:
        """The drawing as PDF, for print."""
        page = io.BytesIO()
        with house_style():
            self.draw().savefig(page, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
        return page.getvalue()

    @property
    def width(self) -> float:
        """Width of the drawing, in points."""
        found = re.search(r'width="([\d.]+)pt"', self.svg)
        return float(found[1]) if found else 0.0

    @property
    def columns(self) -> list[str]:
        """The column names of its numbers."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    @property
    def csv(self) -> str:
        """Its numbers as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def save(self, folder: Path, inputs: Sequence[Path] = ()) -> list[Path]:
        """Write the picture as SVG, PDF and PNG, and its numbers as CSV; none of these files may overwrite an input."""
        paths = [folder / f"{self.name}.{ending}" for ending in ("svg", "pdf", "png", "csv")]
        for path in paths:
            check_not_input(path, inputs)
        contents = self.svg.encode(), self.pdf, self.png, self.csv.encode("utf-8", "replace")
        for path, content in zip(paths, contents, strict=True):
            write_atomic(path, content)
        return paths


@contextmanager
def house_style() -> Iterator[None]:
    """Use the common style for everything drawn inside the context."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtraError("Drawing", "report") from error
    with mpl.rc_context():
        mpl.rcdefaults()  # ignore the user's own settings
        mpl.rcParams.update(DRAWING_STYLE)
        yield


def panels(width: float = 7.2, height: float = 4.0, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """An empty matplotlib figure of this size in inches, and its axes: one, or an array of them."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(width, height))
    return drawing, drawing.subplots(rows, columns, **options)


def weight_scale() -> Any:
    """A colour map for weights, from none (the bare page) to the heaviest, which stays ordered in greyscale and in print."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("weights", [(*(c / 255 for c in FOR), share) for share in (0, 1)])


def _for_any_paper(svg: str, alt: str) -> str:
    """A drawing that follows the reader's light or dark scheme, with a text for anyone who cannot see it."""
    style = f":root{{color-scheme:light dark;color:{INK}}}@media(prefers-color-scheme:dark){{:root{{color:{NIGHT_INK}}}}}"
    words = f'role="img" aria-label="{escape(_plain(alt))}"'
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    return re.sub(r"<svg ([^>]*)>", lambda tag: f"<svg {words} {tag[1]}>\n<style>{style}</style>", svg, count=1)


def _plain(text: str) -> str:
    """The text without characters that XML forbids."""
    return "".join(c if c.isprintable() else " " for c in text.encode("utf-8", "replace").decode())
