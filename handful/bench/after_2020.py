"""The table "after 2020": methods that came after the paper, next to the published figures whose test classes agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

from ..meta.settings import OPEN_OPTIONS
from ..utils.files import read_json
from ..utils.paths import resource
from .results import CellResult
from .tables import LAYOUTS, OUR, Column, Entry, Section, paper_figures

AFTER_2020 = "after_2020"
COLUMNS = tuple(Column(data, shot) for data in ("huffpost", "reuters") for shot in (1, 5))
OF_PAPER = (OUR, "idf-rr")  # methods of the paper to compare with
HEADER = ["method", "vectors", "queries used", "class names"]

Row = tuple[str, str, tuple[tuple[str, Any], ...]]  # preset, vectors, options of episodes


def after_2020_sections(results: Sequence[CellResult], always: bool = False) -> list[Section]:
    """The table with published figures; below it unbalanced queries and queries of no class. Empty without own results."""
    found: dict[Row, dict[Column, dict[int, CellResult]]] = {}
    elsewhere = {preset for layout in LAYOUTS.values() for preset in layout.presets}
    for result in results:
        column, options = Column(result.data, result.shot), _open_options(result)
        if column in COLUMNS and (result.preset in OF_PAPER or result.preset not in elsewhere or options):
            row = result.preset, result.settings["model"]["vectors"]["names"], tuple(options.items())
            found.setdefault(row, {}).setdefault(column, {})[result.seed] = result
    if not always and all(preset in OF_PAPER and not options for preset, _, options in found):
        return []
    plain = {row: cells for row, cells in found.items() if not {"unbalanced", "none_share"} & set(dict(row[2]))}
    unbalanced = {row: cells for row, cells in found.items() if "unbalanced" in dict(row[2])}
    strange = {row: cells for row, cells in found.items() if "none_share" in dict(row[2])}
    sections = [
        _with_published(plain),
        _section("After 2020: unbalanced queries", unbalanced, str, [UNBALANCED_NOTE]),
        _section("After 2020: queries of no class", strange, _with_area, [NONE_NOTE]),
    ]
    return [section for section in sections if section.rows]


UNBALANCED_NOTE = "The shares of the classes among the queries are drawn from a Dirichlet distribution with concentration 2."
NONE_NOTE = (
    "Accuracy on the queries that belong to a class; after the semicolon, the area under the ROC curve of the largest score, "
    "which is meant to be lower for queries of no class."
)


def _open_options(result: CellResult) -> dict[str, Any]:
    """The additions to the episodes of a result, from its options or its preset."""
    episode: Mapping[str, Any] = result.settings["episode"]
    return {name: episode[name] for name in OPEN_OPTIONS if episode.get(name)}


def _with_published(rows: Mapping[Row, Mapping[Column, Mapping[int, CellResult]]]) -> Section:
    published = read_json(resource("after_2020.json"))
    measured = _section("After 2020", rows, str, [])
    figures = [_of_paper(), *published["figures"]]
    lines = [[*line, "measured"] for line in measured.rows] + [_published_row(figure) for figure in figures]
    spread = "the standard deviation over seeds, or with one seed the 95 % confidence interval over test episodes"
    notes = [f"Accuracy in percent ± {spread}.", *published["findings"]]
    return Section("After 2020", [*measured.header, "source"], lines, notes)


def _of_paper() -> dict[str, Any]:
    """The paper's own figures, in the form of the published ones."""
    figures = {column: paper_figures("fasttext")[OUR, column.data, column.shot, False] for column in COLUMNS}
    accuracy = {str(column): figure.accuracy for column, figure in figures.items()}
    return {"method": OUR, "vectors": "fastText", "source": "Bao et al., ICLR 2020", "accuracy": accuracy}


def _published_row(figure: Mapping[str, Any]) -> list[str]:
    values = [f"{figure['accuracy'][str(column)]:.1f}" if str(column) in figure["accuracy"] else "" for column in COLUMNS]
    return [figure["method"], figure["vectors"], _queries(figure), _yes(figure), *values, figure["source"]]


def _section(
    title: str,
    rows: Mapping[Row, Mapping[Column, Mapping[int, CellResult]]],
    write: Callable[[Entry], str],
    notes: list[str],
) -> Section:
    lines = []
    for (preset, vectors, options), cells in sorted(rows.items(), key=lambda item: _order(item[0])):
        entries = [Entry(tuple(cells.get(column, {}).values()), None) for column in COLUMNS]
        lines.append([preset, vectors, _queries(dict(options)), _yes(dict(options)), *map(write, entries)])
    return Section(title, [*HEADER, *map(str, COLUMNS)], lines, notes)


def _order(row: Row) -> tuple[bool, bool, bool, str]:
    """Inductive rows first, those without class names before those with them; the paper's methods first of all."""
    options = dict(row[2])
    return _queries(options) != "no", "class_names" in options, row[0] not in OF_PAPER, row[0]


def _queries(options: Mapping[str, Any]) -> str:
    if options.get("transductive"):
        return "yes (transductive)"
    return f"no, {options['unlabelled']} other texts" if options.get("unlabelled") else "no"


def _yes(options: Mapping[str, Any]) -> str:
    return "yes" if options.get("class_names") else "no"


def _with_area(entry: Entry) -> str:
    areas = [result.auroc for result in entry.results if result.auroc is not None]
    return f"{entry}; {mean(areas):.3f}" if areas else str(entry)
