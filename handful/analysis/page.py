"""The report: every figure that applies to a run, on one self-contained page."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .. import __version__
from ..bench.grid import without_folders
from ..errors import SettingError
from ..meta.settings import RunSettings
from ..utils.files import write_atomic
from ..utils.settings import flat_settings, settings_to_flat
from ..utils.wording import counted
from . import ANALYSES, InspectedRun, NotApplicableError
from .figures import Figure

LARGEST_PAGE = 5_000_000  # bytes
LARGEST_DRAWING = 600_000  # bytes of an SVG: beyond it, as with thousands of points, a PNG is smaller
NARROWEST = "34rem"  # width at which a drawing is shown
MOST_ROWS = 200  # in a table of numbers; the CSV has all
PAGE_STYLE = """
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
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; margin: 1rem 0; }
dt { color: var(--soft); }
dd { margin: 0; }
code { font: .85rem/1.5 ui-monospace, monospace; }
.name { margin: -.9rem 0 1rem; }
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
# Nothing is downloaded and nothing runs, whatever a text contains.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True, eq=False)
class AnalysisOutcome:
    """The outcome of one analysis: figures, or the reason why there are none."""

    name: str
    figures: Sequence[Figure]
    reason: str = ""

    def __str__(self) -> str:
        made = ", ".join(figure.name for figure in self.figures)
        return f"{self.name}: skipped. {self.reason}" if self.reason else f"{self.name}: {made}."


def analyse(inspected: InspectedRun, only: Sequence[str] = ()) -> Iterator[AnalysisOutcome]:
    """Run the requested analyses, or all of them; an outcome without figures says why it does not apply to the run.

    An analysis may be requested by its own name, or by that of one of its figures.
    """
    by_figure = {figure: name for name, analysis in ANALYSES.items() for figure in (name, *analysis.also)}
    unknown = [name for name in only if name not in by_figure]
    if unknown:
        raise SettingError(f"There is no analysis {', '.join(unknown)}: choose from {', '.join(ANALYSES)}.")
    for name in dict.fromkeys(by_figure[name] for name in only) or ANALYSES:
        try:
            yield AnalysisOutcome(name, ANALYSES[name].figures(inspected))
        except NotApplicableError as error:
            yield AnalysisOutcome(name, (), str(error))


def write_report(path: Path, inspected: InspectedRun, outcomes: Sequence[AnalysisOutcome]) -> None:
    """Write one page with all figures."""
    title = f"{inspected.name}: what it learned, and how"
    page = render(title, _about(inspected), outcomes, run_facts(inspected)).encode("utf-8", "replace")
    if len(page) > LARGEST_PAGE:
        raise SettingError(
            f"The report would have {len(page) / 1e6:.1f} MB, more than {LARGEST_PAGE / 1e6:.0f}: "
            "write several reports with some analyses each (--only)."
        )
    write_atomic(path, page)


def _about(inspected: InspectedRun) -> str:
    settings = inspected.settings
    split = inspected.inputs.dataset.split
    episode = settings.episode
    return (
        f"A model trained on {len(split.train)} classes of {inspected.inputs.dataset.name} to learn new classes from a few "
        f"examples, and inspected on {len(split.test)} other classes: {episode.way} at a time, with {episode.shot} labelled "
        f"example{'s' * (episode.shot > 1)} each."
    )


def run_facts(inspected: InspectedRun) -> dict[str, str]:
    """The method of a run, its data, its accuracy, and how to train it again."""
    settings = shareable(replace(inspected, data=None).settings)  # as it was trained, whatever data is inspected
    dataset, episode, score = inspected.inputs.dataset, settings.episode, inspected.score
    classes = "/".join(str(len(getattr(dataset.split, part))) for part in ("train", "val", "test"))
    shape = f"{episode.way} classes, {counted(episode.shot, 'labelled text')} per class"
    changed = changed_options(settings)
    return {
        "Method": f"{inspected.method}, word vectors {inspected.vectors}",
        "Data": f"{dataset.name}: {len(dataset.corpus):,} texts, {classes} classes for training, validation and testing",
        "Accuracy": f"{100 * score.mean:.1f} % ± {100 * score.ci95:.1f} (95 % interval) on {score.episodes} tasks of test "
        f"classes ({shape})",
        "Settings": ", ".join(f"{name.replace('_', ' ')} {_spoken(value)}" for name, value in changed.items())
        or "all defaults",
        "Version": f"Handful {__version__}",
        "Command": train_command(settings, inspected.name),
    }


def shareable(settings: RunSettings) -> RunSettings:
    """The settings without the folders of this machine, as reports are shown to others."""
    vectors = replace(settings.model.vectors, names=without_folders(settings.model.vectors.names))
    data, split = (name and re.sub(r"^(hf:)?/.*/", r"\1", name) for name in (settings.data, settings.split))
    return replace(settings, data=data or "", split=split, model=replace(settings.model, vectors=vectors))


def changed_options(settings: RunSettings) -> dict[str, Any]:
    """The command-line options that differ from their defaults, by name."""
    default, known = settings_to_flat(type(settings)()), flat_settings(type(settings))
    return {name: value for name, value in settings_to_flat(settings).items() if known[name].help and value != default[name]}


def train_command(settings: RunSettings, out: str) -> str:
    """The command that trains such a run."""
    words = ["handful", "train"]
    for name, value in changed_options(settings).items():
        option = name.replace("_", "-")
        words += [f"--{'no-' * (value is False)}{option}", *([] if isinstance(value, bool) else [_spoken(value)])]
    return shlex.join([*words, "--out", out])


def _spoken(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def render(title: str, about: str, outcomes: Sequence[AnalysisOutcome], facts: Mapping[str, str] = MappingProxyType({})) -> str:
    """The page as HTML, with all text from the data escaped; it begins with facts, each under its name."""
    figures = [figure for outcome in outcomes for figure in outcome.figures]
    contents = "".join(f'<li><a href="#{escape(figure.name)}">{escape(figure.title)}</a></li>' for figure in figures)
    left_out = "".join(f"<li>{escape(str(outcome))}</li>" for outcome in outcomes if outcome.reason)
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{PAGE_STYLE}</style></head><body>",
        f'<header><h1>{escape(title)}</h1><p class="about">{escape(about)}</p>{_facts(facts)}</header>',
        f"<nav aria-label='Contents'><ol>{contents}</ol></nav><main>",
        *(_article(figure) for figure in figures),
        "</main><footer>",
        f"<h2>Skipped analyses</h2><ul>{left_out}</ul>" if left_out else "",
        f"<p>Made by Handful {escape(__version__)}.</p></footer></body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{_fact(name, value)}</dd>" for name, value in facts.items())
    return f"<dl>{rows}</dl>" if rows else ""


def _fact(name: str, value: str) -> str:
    return f"<code>{escape(value)}</code>" if name == "Command" else escape(value)


def _article(figure: Figure) -> str:
    alt = escape(figure.alt)
    picture = f'<div role="group" aria-label="{alt}">{figure.html}</div>' if figure.html else _image(figure, alt)
    return (
        f'<article id="{escape(figure.name)}"><h2>{escape(figure.title)}</h2>'
        f'<p class="name"><small>--only {escape(figure.name)}</small></p><figure>{picture}'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>{_numbers(figure)}</article>"
    )


def _image(figure: Figure, alt: str) -> str:
    """A drawing as wide as the page; on a narrow page it keeps a readable width, and scrolls in its own frame."""
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
