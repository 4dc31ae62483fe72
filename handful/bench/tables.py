"""The paper's tables from a file of results: measured beside the paper's figure, the headline gaps, the order of methods."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ..catalogue import catalogue
from ..errors import DataError, SettingError
from .grid import PAPER_DATA, whole_of
from .results import CellResult, read_results

PAPER = Path(__file__).parent / "paper.csv"
OUR, CNN_PROTO = "our", "cnn-proto"
MAIN = (
    *("avg-nn", "idf-nn", "cnn-ft", "avg-proto", "idf-proto", "cnn-proto"),
    *("avg-maml", "idf-maml", "cnn-maml", "avg-rr", "idf-rr", "cnn-rr", OUR),
)
REBUILT = "20newsgroups"  # the paper does not say how it cut posts into words
LEAST_RANKED = 3  # methods from which an order says anything
# how long was trained and tested, and how long texts and vectors are: told in a note to the cell
NOTED = {"episodes", "validation_episodes", "test_episodes", "epochs", "patience", "pretraining_epochs", "queries", "longest"}
NOTED |= {"length", "train_vectors"}
Options = tuple[tuple[str, Any], ...]


# The paper's figures

Place = tuple[str, str, int, bool]  # preset, data, shot, whether vectors were trained


@dataclass(frozen=True)
class Figure:
    """An accuracy of the paper, in percent, with its deviation over seeds where it is given."""

    accuracy: float
    deviation: float | None


@cache
def paper_figures(embedding: str) -> dict[Place, Figure]:
    """All accuracies of the paper with fasttext or bert."""
    figures = {}
    with PAPER.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["embedding"] == embedding and row["table"] != "oracle_cosine":
                place = (_preset(row), row["dataset"], int(row["shot"]), row["embedding_training"] == "finetuned")
                figures[place] = Figure(float(row["accuracy"]), float(row["std"]) if row["std"] else None)
    return figures


def _preset(row: Mapping[str, str]) -> str:
    """A row of the paper by the name of its preset."""
    if row["algorithm"] == "p-maml":
        return "p-maml"
    method = f"{row['representation']}-{row['algorithm']}".replace("our-rr", OUR)
    return f"{method}-{row['ablation']}".replace("_", "-").strip("-")


# What a table has


@dataclass(frozen=True)
class Layout:
    """The rows and columns of one of the paper's tables."""

    title: str
    presets: tuple[str, ...]
    data: tuple[str, ...] = PAPER_DATA
    shots: tuple[int, ...] = (1, 5)
    trained: tuple[bool, ...] = (False,)  # columns with fixed vectors, trained vectors
    embeddings: tuple[str, ...] = ("fasttext",)  # of the paper's figures, the first that has one
    averages: bool = True

    @property
    def contextual(self) -> bool:
        return self.embeddings == ("bert",)

    def figure(self, preset: str, data: str, shot: int, trained: bool) -> Figure | None:
        """The paper's, of the whole data set where this is a part."""
        place = (preset, whole_of(data), shot, trained)
        found = (paper_figures(embedding).get(place) for embedding in self.embeddings)
        return next((figure for figure in found if figure), None)


LAYOUTS = {
    "main": Layout("Main results", MAIN),
    "ablation": Layout("Ablations", (OUR, "our-without-t", "our-without-s", "our-without-bilstm", "our-with-ebd")),
    "bert": Layout("Contextual words", MAIN, data=("huffpost", "fewrel"), embeddings=("bert",), averages=False),
    "rr_vs_lr": Layout(
        "Ridge and logistic regression", ("avg-rr", "avg-lr", "idf-rr", "idf-lr", "cnn-rr", "cnn-lr", OUR, "our-lr")
    ),
    "other_heads": Layout("Other heads", ("avg-proto", "idf-proto", "cnn-proto", "our-proto", "lstm-induct", "our-induct")),
    "other_baselines": Layout(
        "Other baselines", ("lstm-induct", "p-maml", OUR), embeddings=("fasttext", "bert"), averages=False
    ),
    "finetuned_embeddings": Layout(
        "Fixed and fine-tuned word vectors",
        tuple(preset for preset in MAIN if not preset.endswith(("-nn", "-ft"))),
        data=("reuters", "amazon"),
        shots=(5,),
        trained=(False, True),
        averages=False,
    ),
}


@dataclass(frozen=True)
class Column:
    """One data set at one shot."""

    data: str
    shot: int
    trained: bool = False

    def __str__(self) -> str:
        return f"{self.data} {self.shot}-shot" + (", trained" if self.trained else "")


@dataclass(frozen=True)
class Entry:
    """One method in one column: what was measured over seeds, in percent, and the paper's figure."""

    results: tuple[CellResult, ...]  # one a seed
    paper: Figure | None
    mark: str = ""  # of the note that says with which options it was measured

    @property
    def accuracy(self) -> float | None:
        return mean(100 * result.accuracy for result in self.results) if self.results else None

    @property
    def deviation(self) -> float | None:
        """Over seeds."""
        return stdev(100 * result.accuracy for result in self.results) if len(self.results) > 1 else None

    @property
    def interval(self) -> float | None:
        """Half of the 95 % interval over episodes, of all seeds together."""
        return _interval([result.ci95 for result in self.results])

    @property
    def difference(self) -> float | None:
        """Measured less the paper's."""
        return None if self.accuracy is None or self.paper is None else self.accuracy - self.paper.accuracy

    @property
    def gains(self) -> list[CellResult]:
        """Those paired with a reference."""
        return [result for result in self.results if result.over_reference is not None]

    def __str__(self) -> str:
        paper = f"{self.paper.accuracy:.1f}" if self.paper else ""
        if self.accuracy is None:
            return f"({paper})" if paper else ""
        spread = self.interval if self.deviation is None else self.deviation
        text = f"{self.accuracy:.1f} ± {spread:.1f}{self.mark}"
        return f"{text} ({paper}, {self.difference:+.1f})" if paper else text


def _interval(halves: Sequence[float]) -> float | None:
    return 100 * sum(half**2 for half in halves) ** 0.5 / len(halves) if halves else None


@dataclass(frozen=True)
class Table:
    """One of the paper's tables for one choice of vectors and options."""

    name: str
    layout: Layout
    vectors: str
    options: Options
    columns: tuple[Column, ...]
    entries: dict[tuple[str, Column], Entry]  # by preset and column
    marks: Mapping[Options, str]  # by the options they stand for

    def entry(self, preset: str, column: Column) -> Entry:
        return self.entries[preset, column]

    @property
    def title(self) -> str:
        return f"{self.layout.title}: {self.vectors or 'nothing measured'}" + (
            f", {_spoken(self.options)}" if self.options else ""
        )

    @property
    def presets(self) -> tuple[str, ...]:
        """The paper's methods; with options or data that the paper has not, those that were measured."""
        if not self.options and any(map(self.has_paper, self.columns)):
            return self.layout.presets
        return tuple(p for p in self.layout.presets if any(self.entry(p, column).results for column in self.columns))

    def of_paper(self, shot: int) -> list[Column]:
        """Columns that the paper has too; a part of a data set only where the whole is missing."""
        columns = [column for column in self.columns if column.shot == shot and self.has_paper(column)]
        whole = {column.data for column in columns}
        return [column for column in columns if column.data == whole_of(column.data) or whole_of(column.data) not in whole]

    def averaged(self, shot: int) -> list[Column]:
        """Those of them that were measured at all; else all of them."""
        columns = self.of_paper(shot)
        measured = [column for column in columns if any(self.entry(preset, column).results for preset in self.layout.presets)]
        return measured or columns

    def has_paper(self, column: Column) -> bool:
        """Whether the paper has figures for the column."""
        return any(self.entry(preset, column).paper for preset in self.layout.presets)


# From results to tables


def make_tables(results: Sequence[CellResult], name: str | None = None) -> list[Table]:
    """The table of that name for each choice of vectors and options, or every table that has a line of its own."""
    if name is not None and name not in LAYOUTS:
        raise SettingError(f"There is no table {name!r}: choose one of {', '.join(LAYOUTS)}.")
    tables = [table for each in ([name] if name else LAYOUTS) for table in _variants(each, results, bool(name))]
    return tables or [_table("main", (), "", ())]


def _variants(name: str, results: Sequence[CellResult], always: bool) -> list[Table]:
    """Results with other vectors or options are never mixed, but for those that a note tells."""
    layout = LAYOUTS[name]
    groups: dict[tuple[str, Options], list[CellResult]] = {}
    for result in results:
        if result.preset in layout.presets and result.vectors.startswith("contextual") == layout.contextual:
            options = {option: value for option, value in result.options.items() if option not in NOTED}
            groups.setdefault((result.vectors, tuple(sorted(options.items()))), []).append(result)
    if always and not groups:
        return [_table(name, (), "", ())]
    own = _own_lines(name)
    tables = [
        _table(name, group, *key)
        for key, group in sorted(groups.items(), key=lambda item: (item[0][0], len(item[0][1]), str(item[0][1])))
    ]
    return [table for table in tables if always or any(e.results for key, e in table.entries.items() if own(*key))]


def _own_lines(name: str) -> Any:
    """Which cells of a table no other table has: they alone are a reason to print it."""
    elsewhere = {preset for other, layout in LAYOUTS.items() if other != name for preset in layout.presets}
    if name == "finetuned_embeddings":
        return lambda preset, column: column.trained
    return lambda preset, column: name in ("main", "bert") or preset not in elsewhere | {OUR}


def _table(name: str, results: Iterable[CellResult], vectors: str, options: Options) -> Table:
    layout = LAYOUTS[name]
    found: dict[tuple[str, Column], dict[Options, dict[int, CellResult]]] = {}
    for result in results:  # of a cell measured twice, the last
        column = Column(result.data, result.shot, bool(result.options.get("train_vectors")))
        found.setdefault((result.preset, column), {}).setdefault(_noted(result), {})[result.seed] = result
    measured = {column for _, column in found}
    columns = tuple(column for column in _columns(layout, measured) if column in measured or not options)
    chosen = {place: min(variants, key=len) for place, variants in found.items()}  # the fullest protocol
    marks = {noted: f" [{number}]" for number, noted in enumerate(dict.fromkeys(filter(None, chosen.values())), 1)}

    def entry(preset: str, column: Column) -> Entry:
        figure = layout.figure(preset, column.data, column.shot, column.trained)
        noted = chosen.get((preset, column))
        if noted is None:
            return Entry((), figure)
        return Entry(tuple(found[preset, column][noted].values()), figure, marks.get(noted, ""))

    entries = {(preset, column): entry(preset, column) for preset in layout.presets for column in columns}
    return Table(name, layout, vectors, options, columns, entries, marks)


def _noted(result: CellResult) -> Options:
    """The options that a note tells; a column says by itself that vectors were trained."""
    told = {option: value for option, value in result.options.items() if option in NOTED - {"train_vectors"}}
    return tuple(sorted(told.items()))


def _spoken(options: Options) -> str:
    return ", ".join(f"{name} {value}" for name, value in options)


def _columns(layout: Layout, measured: set[Column]) -> tuple[Column, ...]:
    """The paper's columns, a part in the place of its whole, then data the paper has not; or those alone."""
    present = sorted({column.data for column in measured})
    names = [data for place in layout.data for data in [n for n in present if whole_of(n) == place] or [place]]
    own = [data for data in present if whole_of(data) not in PAPER_DATA]
    if own and len(own) == len(present):
        names = []
    shots = dict.fromkeys(names, layout.shots) | {
        data: tuple(sorted({column.shot for column in measured if column.data == data})) for data in own
    }
    return tuple(Column(data, shot, trained) for data in shots for shot in shots[data] for trained in layout.trained)


# Sections: what is printed


@dataclass(frozen=True)
class Section:
    """A heading, a grid of words, and sentences below it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]


def sections_of(table: Table) -> list[Section]:
    """The table itself, gains over the reference, headline gaps, and how well the order of methods agrees with the paper's."""
    parts = [_accuracies(table), _gains(table)]
    if table.name == "main":
        parts.append(_headline(table))
    return [part for part in [*parts, _ranks(table)] if part.rows]


def _accuracies(table: Table) -> Section:
    shots = table.layout.shots if table.layout.averages and any(map(table.has_paper, table.columns)) else ()
    averages = {shot: table.averaged(shot) for shot in shots}
    header = ["method", *map(str, table.columns)]
    header += [f"Average {shot}-shot ({len(columns)} sets)" for shot, columns in averages.items()]
    rows = [
        [preset, *(str(table.entry(preset, column)) for column in table.columns)]
        + [_average([table.entry(preset, column) for column in columns]) for columns in averages.values()]
        for preset in table.presets
    ]
    return Section(table.title, header, rows, _notes(table))


def _average(entries: Sequence[Entry]) -> str:
    """Over the data sets, where all of them were measured; the paper's over the same ones."""
    figures = [entry.paper.accuracy for entry in entries if entry.paper]
    measured = [entry.accuracy for entry in entries if entry.accuracy is not None]
    paper = f"{mean(figures):.1f}" if entries and len(figures) == len(entries) else ""
    if not entries or len(measured) < len(entries):
        return f"({paper})" if paper else ""
    return f"{mean(measured):.1f}" + (f" ({paper}, {mean(measured) - mean(figures):+.1f})" if paper else "")


def _notes(table: Table) -> list[str]:
    seeds = {len(entry.results) for entry in table.entries.values() if entry.results}
    spread = "the deviation over seeds, or with one seed the 95 % interval over test episodes"
    notes = [f"Accuracy in percent ± {spread}; in brackets the paper's figure and the difference. Brackets alone: not run."]
    if seeds:
        notes.append(f"Seeds: {min(seeds)}" + (f" to {max(seeds)}" if len(seeds) > 1 else "") + ".")
    notes += [f"{mark.strip()} {_spoken(noted)}." for noted, mark in table.marks.items()]
    others = sorted(
        {
            f"{result.preset}: with {result.settings['model']['vectors']}."
            for entry in table.entries.values()
            for result in entry.results
            if result.settings["model"]["vectors"] != result.vectors
        }
    )
    measured = dict.fromkeys(column.data for (_, column), entry in table.entries.items() if entry.results)
    return notes + others + [note for data in measured if (note := _data_note(data))]


def _data_note(data: str) -> str:
    """What a reader must know of data beside the paper's figures."""
    if whole_of(data) != data:
        return f"{data}: {catalogue()[data].note} The paper's figures beside it are of the whole {whole_of(data)}."
    return f"{data}: cut into words anew, so not the paper's texts to the letter." if data == REBUILT else ""


def _gains(table: Table) -> Section:
    """Differences to the reference, paired over the same episodes."""
    paired = {key: entry.gains[0].reference for key, entry in table.entries.items() if entry.gains}
    columns = [column for column in table.columns if any(column == known for _, known in paired)]
    presets = [preset for preset in table.presets if any(preset == known for known, _ in paired)]
    rows = [[preset, *(_gain(table, preset, column) for column in columns)] for preset in presets]
    note = (
        "Mean over seeds of the difference on the same test episodes ± its 95 % interval; in brackets the paper's difference."
    )
    title = f"Gain over {', '.join(sorted(map(str, set(paired.values()))))}, {table.title}"
    return Section(title, ["method", *map(str, columns)], rows, [note])


def _gain(table: Table, preset: str, column: Column) -> str:
    entry = table.entry(preset, column)
    if not entry.gains:
        return ""
    value = mean(100 * (result.over_reference or 0) for result in entry.gains)
    half = _interval([result.over_reference_ci95 or 0 for result in entry.gains])
    rival = table.layout.figure(str(entry.gains[0].reference), column.data, column.shot, column.trained)
    paper = f" ({entry.paper.accuracy - rival.accuracy:+.1f})" if entry.paper and rival else ""
    return f"{value:+.1f} ± {half:.1f}{paper}"


def _headline(table: Table) -> Section:
    """How far the method is ahead, on average over data sets: in the paper, there on the sets measured here, and here."""
    baselines = [preset for preset in table.layout.presets if preset != OUR]
    rows, notes = [], []
    for shot in table.layout.shots:
        columns = table.of_paper(shot)
        measured = [column for column in table.averaged(shot) if table.entry(OUR, column).results]
        views = [_Accuracies(table, columns, True), _Accuracies(table, measured, True), _Accuracies(table, measured, False)]
        leads = {
            "the best baseline of each data set": [view.lead_of_each(baselines) for view in views],
            "the baseline that is best on average": [view.lead_on_average(baselines) for view in views],
            CNN_PROTO: [view.lead_on_average([CNN_PROTO]) for view in views],
        }
        if columns:
            rows += [[f"{shot}-shot, over {rival}", *values] for rival, values in leads.items()]
        for column in measured:
            tried = [preset for preset in baselines if table.entry(preset, column).results]
            if len(tried) < len(baselines):
                notes.append(f"{column}: {len(tried)} of {len(baselines)} baselines measured.")
    header = ["how far our is ahead", "paper, all sets", "paper, sets measured", "measured"]
    return Section(f"Headline gaps, {table.title}", header, rows, notes)


@dataclass(frozen=True)
class _Accuracies:
    """The paper's or the measured accuracies of some columns."""

    table: Table
    columns: Sequence[Column]
    paper: bool

    def value(self, preset: str, column: Column) -> float | None:
        entry = self.table.entry(preset, column)
        figure = entry.paper.accuracy if entry.paper else None
        return figure if self.paper else entry.accuracy

    def lead_of_each(self, rivals: Sequence[str]) -> str:
        """Over the best rival of each data set."""
        leads = [lead for column in self.columns if (lead := self._lead(column, rivals)) is not None]
        return _mean_lead(leads)

    def lead_on_average(self, rivals: Sequence[str]) -> str:
        """Over the one rival that is best on average, of those known for all columns."""
        known = [rival for rival in rivals if all(self.value(rival, column) is not None for column in self.columns)]
        leads = [[self._lead(column, [rival]) for column in self.columns] for rival in known]
        complete = [[lead for lead in each if lead is not None] for each in leads]
        return _mean_lead(min((each for each in complete if each), key=mean, default=[]))

    def _lead(self, column: Column, rivals: Sequence[str]) -> float | None:
        ours, others = self.value(OUR, column), [self.value(rival, column) for rival in rivals]
        known = [other for other in others if other is not None]
        return None if ours is None or not known else ours - max(known)


def _mean_lead(leads: Sequence[float]) -> str:
    return f"{mean(leads):+.1f} ({len(leads)} sets)" if leads else ""


def _ranks(table: Table) -> Section:
    """Spearman's rank correlation of the measured order of methods with the paper's."""
    rows = []
    for column in table.columns:
        entries = [table.entry(preset, column) for preset in table.layout.presets]
        pairs = [(e.accuracy, e.paper.accuracy) for e in entries if e.accuracy is not None and e.paper]
        if len(pairs) >= LEAST_RANKED:
            rows.append([str(column), f"{rank_correlation(*zip(*pairs, strict=True)):.2f}", str(len(pairs))])
    header = ["column", "Spearman's ρ", "methods"]
    return Section(f"Order of methods beside the paper's, {table.title}", header, rows, [])


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ.

    >>> rank_correlation([1, 2, 3], [10, 30, 20])
    0.5
    """
    from scipy.stats import spearmanr

    return round(float(spearmanr(first, second).statistic), 6)


# Formats


def render_file(path: Path, name: str | None = None, form: str = "markdown") -> str:
    """The tables of a file of results."""
    if not path.is_file():
        raise DataError(f"There is no file {path}: handful benchmark GRID --out {path.name} writes one.")
    return render_tables(make_tables(read_results(path), name), form)


def render_tables(tables: Sequence[Table], form: str = "markdown") -> str:
    """All tables as one text: markdown, latex or csv (a line a cell)."""
    if form == "csv":
        return _csv(tables)
    if form not in ("markdown", "latex"):
        raise SettingError(f"There is no format {form!r}: choose markdown, latex or csv.")
    write = _markdown if form == "markdown" else _latex
    return "\n".join(write(section) for table in tables for section in sections_of(table))


def _markdown(section: Section) -> str:
    lines = [section.header, ["---"] * len(section.header), *section.rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"**{section.title}**\n\n{body}\n" + "".join(f"\n{note}" for note in section.notes) + "\n" * bool(section.notes)


def _latex(section: Section) -> str:
    lines = [" & ".join(map(_escape, line)) + r" \\" for line in [section.header, *section.rows]]
    caption = _escape(" ".join([f"{section.title}.", *section.notes]))
    columns = "l" + "c" * (len(section.header) - 1)
    return "\n".join(
        [
            r"\begin{table}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            r"\end{table}",
            "",
        ]
    )


def _escape(text: str) -> str:
    for plain, written in (
        ("\\", r"\textbackslash "),
        ("&", r"\&"),
        ("%", r"\%"),
        ("_", r"\_"),
        ("±", r"$\pm$"),
        ("ρ", r"$\rho$"),
    ):
        text = text.replace(plain, written)
    return text


def _csv(tables: Sequence[Table]) -> str:
    stream = io.StringIO()
    rows = [row for table in tables for row in _csv_rows(table)]
    writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _csv_rows(table: Table) -> list[dict[str, Any]]:
    return [
        {
            "table": table.name,
            "vectors": table.vectors,
            "options": " ".join(f"{name}={value}" for name, value in table.options),
            "method": preset,
            "data": column.data,
            "paper_data": whole_of(column.data),
            "shot": column.shot,
            "trained": column.trained,
            "accuracy": _number(entry.accuracy),
            "deviation": _number(entry.deviation),
            "ci95": _number(entry.interval),
            "seeds": len(entry.results),
            "paper": _number(entry.paper.accuracy if entry.paper else None),
            "paper_deviation": _number(entry.paper.deviation if entry.paper else None),
            "difference": _number(entry.difference),
        }
        for (preset, column), entry in table.entries.items()
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
