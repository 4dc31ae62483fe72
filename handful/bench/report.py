"""The report: every figure that applies to a run, on one page that needs nothing but itself."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import SettingError
from ..storage import write_atomic
from .analyses import ANALYSES, NotApplicableError, Subject
from .figures import Figure

LARGEST = 5_000_000  # bytes of a page
LARGEST_DRAWING = 600_000  # bytes of an SVG: beyond, as with thousands of points, dots are lighter
NARROWEST = "34rem"  # a drawing is shown
MOST_ROWS = 200  # of a table of numbers; the CSV has all
STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --link: #0050b3; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --link: #79b8ff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 1rem; }
h4 { font-size: .95rem; margin: 0 0 .25rem; }
a { color: var(--link); }
nav, figcaption, .about, footer { max-width: 44rem; }
.about, figcaption, footer, small { color: var(--soft); }
nav ol { padding-left: 1.4rem; }
article { border-top: 1px solid var(--line); padding-top: 1.5rem; margin-top: 2.5rem; }
figure { margin: 0; }
.picture { overflow-x: auto; }
.picture img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.picture .dots { background: white; border-radius: .4rem; }
figcaption { margin-top: 1rem; }
details { margin-top: 1rem; }
summary { cursor: pointer; color: var(--link); }
.scroll { overflow-x: auto; max-height: 26rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
.shaded section { padding: .6rem 0; border-top: 1px solid var(--line); }
.shaded section:first-child { border-top: 0; }
.shaded .columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(16rem, 100%), 1fr)); gap: .5rem 1.5rem; }
.shaded p { margin: 0; line-height: 1.7; }
.shaded span { border-radius: .2rem; padding: .05rem .15rem; }
.words { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: 1rem 1.5rem; }
.words ol { margin: 0; padding: 0; list-style: none; display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem; }
.words li:nth-child(even) { color: var(--soft); }
.words .both { font-weight: 600; color: inherit; }
@media print { details { display: none; } article { break-inside: avoid; } }
"""
# Nothing is fetched and nothing runs, whatever a text says.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of one analysis: figures, or the reason why there are none."""

    name: str
    figures: Sequence[Figure]
    reason: str = ""

    def __str__(self) -> str:
        made = ", ".join(figure.name for figure in self.figures)
        return f"{self.name}: left out. {self.reason}" if self.reason else f"{self.name}: {made}."


def analyse(subject: Subject, only: Sequence[str] = ()) -> Iterator[Outcome]:
    """The analyses asked for, or all of them, one after the other; what does not apply to the run says why."""
    unknown = [name for name in only if name not in ANALYSES]
    if unknown:
        raise SettingError(f"There is no analysis {', '.join(unknown)}: choose some of {', '.join(ANALYSES)}.")
    for name in only or ANALYSES:
        try:
            yield Outcome(name, ANALYSES[name].figures(subject))
        except NotApplicableError as error:
            yield Outcome(name, (), str(error))


def write_report(path: Path, subject: Subject, outcomes: Sequence[Outcome]) -> None:
    """One page of all figures."""
    page = render(f"{subject.name}: what it learned, and how", _about(subject), outcomes).encode("utf-8", "replace")
    if len(page) > LARGEST:
        raise SettingError(
            f"The report would have {len(page) / 1e6:.1f} MB, over {LARGEST / 1e6:.0f}: make several, each of some (--only)."
        )
    write_atomic(path, page)


def _about(subject: Subject) -> str:
    settings, split = subject.settings, subject.material.dataset.split
    episode = settings.episode
    return (
        f"A model ({subject.method}, word vectors {subject.vectors}) that was trained on {len(split.train)} classes of "
        f"{subject.material.dataset.name} to tell new classes apart from few examples, and is looked at on {len(split.test)} "
        f"other classes: {episode.way} at a time, {episode.shot} labelled example{'s' * (episode.shot > 1)} each."
    )


def render(title: str, about: str, outcomes: Sequence[Outcome]) -> str:
    """The page, all words of the data escaped."""
    figures = [figure for outcome in outcomes for figure in outcome.figures]
    contents = "".join(f'<li><a href="#{escape(figure.name)}">{escape(figure.title)}</a></li>' for figure in figures)
    left_out = "".join(f"<li>{escape(str(outcome))}</li>" for outcome in outcomes if outcome.reason)
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        f'<header><h1>{escape(title)}</h1><p class="about">{escape(about)}</p></header>',
        f"<nav aria-label='Contents'><ol>{contents}</ol></nav><main>",
        *(_article(figure) for figure in figures),
        "</main><footer>",
        f"<h2>What is left out</h2><ul>{left_out}</ul>" if left_out else "",
        f"<p>Made by Handful {escape(__version__)}.</p></footer></body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _article(figure: Figure) -> str:
    alt = escape(figure.alt)
    picture = f'<div role="group" aria-label="{alt}">{figure.html}</div>' if figure.html else _image(figure, alt)
    return (
        f'<article id="{escape(figure.name)}"><h2>{escape(figure.title)}</h2><figure>{picture}'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>{_numbers(figure)}</article>"
    )


def _image(figure: Figure, alt: str) -> str:
    """A drawing as wide as the page; on a narrow one it keeps a width at which it can be read, and moves in its own frame."""
    kind, style, content = "svg+xml", "", figure.svg.encode()
    if len(content) > LARGEST_DRAWING and len(figure.png) < len(content):
        kind, style, content = "png", ' class="dots"', figure.png
    data = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    narrowest = f"min-width:min({figure.width:.0f}pt,{NARROWEST})"
    return f'<div class="picture" tabindex="0"><img{style} style="{narrowest}" alt="{alt}" src="{data}"></div>'


def _numbers(figure: Figure) -> str:
    if not figure.rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in figure.columns)
    lines = (
        "<tr>" + "".join(f"<td>{escape(_cell(row.get(name, '')))}</td>" for name in figure.columns) + "</tr>"
        for row in figure.rows[:MOST_ROWS]
    )
    more = f", the first {MOST_ROWS} of {len(figure.rows):,} rows" if len(figure.rows) > MOST_ROWS else ""
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    return f"<details><summary>The numbers{more}</summary>{table}</details>"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
