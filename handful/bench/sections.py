"""Print tables of accuracies, gains, headline gaps and the order of methods, as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from ..data.registry import known_datasets
from ..errors import DataError, SettingError
from .after_2020 import AFTER_2020, after_2020_sections
from .grid import whole_of
from .results import read_results
from .tables import CNN_PROTO, OUR, REBUILT, Column, Entry, ResultTable, Section, make_tables, pooled_interval, spoken

LEAST_RANKED = 6  # methods, at least: with fewer, even a perfect order is likely enough to arise by chance


def sections_of(table: ResultTable) -> list[Section]:
    """The table itself, gains over the reference, headline gaps, and the agreement of the order of methods with the paper."""
    parts = [_accuracies(table), _gains(table)]
    if table.name == "main":
        parts.append(headline(table))
    if not table.layout.only_measured:  # which has each method twice
        parts.append(_ranks(table))
    return [part for part in parts if part.rows]


def _accuracies(table: ResultTable) -> Section:
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
    """The average over the data sets if all of them were measured, and the paper's over the same ones."""
    figures = [entry.paper.accuracy for entry in entries if entry.paper]
    measured = [entry.accuracy for entry in entries if entry.accuracy is not None]
    paper = f"{mean(figures):.1f}" if entries and len(figures) == len(entries) else ""
    if not entries or len(measured) < len(entries):
        return f"({paper})" if paper else ""
    return f"{mean(measured):.1f}" + (f" ({paper}, {mean(measured) - mean(figures):+.1f})" if paper else "")


def _notes(table: ResultTable) -> list[str]:
    seeds = {len(entry.results) for entry in table.entries.values() if entry.results}
    notes = [
        "Accuracy in percent ± its 95 % confidence interval over test episodes; σ: standard deviation over seeds, if there are "
        "several. In brackets, the paper's figure and the difference; brackets alone: not run."
    ]
    if seeds:
        notes.append(f"Seeds: {min(seeds)}" + (f" to {max(seeds)}" if len(seeds) > 1 else "") + ".")
    notes += [f"{mark.strip()} {spoken(noted)}." for noted, mark in table.marks.items()]
    others = sorted(
        {
            f"{result.preset}: with {names}."
            for entry in table.entries.values()
            for result in entry.results
            if (names := result.settings["model"]["vectors"]["names"]) != result.vectors
        }
    )
    measured = dict.fromkeys(column.data for (_, column), entry in table.entries.items() if entry.results)
    return notes + others + _variation_notes(table) + [note for data in measured if (note := _data_note(data))]


def _variation_notes(table: ResultTable) -> list[str]:
    """How much t varies, from the least to the most variable run of each method."""
    notes = []
    for preset in table.presets:
        shares = [
            share
            for column in table.columns
            for result in table.entry(preset, column).results
            for share in result.signal_variation.values()
        ]
        if shares:
            notes.append(f"{preset}: t deviates by {min(shares):.3f} to {max(shares):.3f} of its mean.")
    return notes


def _data_note(data: str) -> str:
    """A note on how data differs from the paper's."""
    if whole_of(data) != data:
        return f"{data}: {known_datasets()[data].note} The paper's figures are for the whole {whole_of(data)}."
    return f"{data}: tokenized again, so the texts are not exactly the paper's." if data == REBUILT else ""


def _gains(table: ResultTable) -> Section:
    """Differences from the reference, paired over the same episodes."""
    paired = {key: entry.gains[0].reference for key, entry in table.entries.items() if entry.gains}
    columns = [column for column in table.columns if any(column == known for _, known in paired)]
    presets = [preset for preset in table.presets if any(preset == known for known, _ in paired)]
    rows = [[preset, *(_gain(table, preset, column) for column in columns)] for preset in presets]
    note = (
        "Mean over seeds of the difference on the same test episodes ± its 95 % confidence interval; in brackets, the paper's."
    )
    title = f"Gain over {', '.join(sorted(map(str, set(paired.values()))))}, {table.title}"
    return Section(title, ["method", *map(str, columns)], rows, [note])


def _gain(table: ResultTable, preset: str, column: Column) -> str:
    entry = table.entry(preset, column)
    if not entry.gains:
        return ""
    value = mean(100 * (result.over_reference or 0) for result in entry.gains)
    half = pooled_interval([result.over_reference_ci95 or 0 for result in entry.gains])
    rival = table.layout.figure(str(entry.gains[0].reference), column.data, column.shot, column.trained)
    paper = f" ({entry.paper.accuracy - rival.accuracy:+.1f})" if entry.paper and rival else ""
    return f"{value:+.1f} ± {half:.1f}{paper}"


def headline(table: ResultTable) -> Section:
    """The method's average lead over data sets: in the paper, in the paper on the sets measured here, and measured."""
    baselines = [preset for preset in table.layout.presets if preset != OUR]
    rows, notes = [], []
    for shot in table.layout.shots:
        columns = table.of_paper(shot)
        measured = [column for column in table.averaged(shot) if table.entry(OUR, column).results]
        with_cnn = [column for column in measured if table.entry(CNN_PROTO, column).results]
        views, against_cnn = (
            [_Accuracies(table, columns, True), _Accuracies(table, some, True), _Accuracies(table, some, False)]
            for some in (measured, with_cnn)
        )
        leads = {
            "the best baseline on each data set": [view.lead_of_each(baselines) for view in views],
            "the baseline that is best on average": [view.lead_on_average(baselines) for view in views],
            CNN_PROTO: [view.lead_of_each([CNN_PROTO]) for view in against_cnn],
        }
        if columns:
            rows += [[f"{shot}-shot, over {rival}", *values] for rival, values in leads.items()]
        for column in measured:
            tried = [preset for preset in baselines if table.entry(preset, column).results]
            if len(tried) < len(baselines):
                notes.append(f"{column}: {len(tried)} of {len(baselines)} baselines measured.")
    header = ["lead of our", "paper, all sets", "paper, sets measured", "measured"]
    return Section(f"Headline gaps, {table.title}", header, rows, notes)


@dataclass(frozen=True)
class _Accuracies:
    """The paper's or the measured accuracies in some columns."""

    table: ResultTable
    columns: Sequence[Column]
    paper: bool

    def value(self, preset: str, column: Column) -> float | None:
        entry = self.table.entry(preset, column)
        figure = entry.paper.accuracy if entry.paper else None
        return figure if self.paper else entry.accuracy

    def lead_of_each(self, rivals: Sequence[str]) -> str:
        """The mean lead over the best rival on each data set."""
        leads = [lead for column in self.columns if (lead := self._lead(column, rivals)) is not None]
        return _mean_lead(leads)

    def lead_on_average(self, rivals: Sequence[str]) -> str:
        """The mean lead over the rival that is best on average, among those known for all columns."""
        known = [rival for rival in rivals if all(self.value(rival, column) is not None for column in self.columns)]
        leads = [[self._lead(column, [rival]) for column in self.columns] for rival in known]
        complete = [[lead for lead in each if lead is not None] for each in leads]
        return _mean_lead(min((each for each in complete if each), key=mean, default=[]))

    def _lead(self, column: Column, rivals: Sequence[str]) -> float | None:
        ours = self.value(OUR, column)
        others = [self.value(rival, column) for rival in rivals]
        known = [other for other in others if other is not None]
        return None if ours is None or not known else ours - max(known)


def _mean_lead(leads: Sequence[float]) -> str:
    return f"{mean(leads):+.1f} ({len(leads)} sets)" if leads else ""


def _ranks(table: ResultTable) -> Section:
    """Spearman's rank correlation between the measured order of methods and the paper's."""
    rows = []
    for column in table.columns:
        entries = [table.entry(preset, column) for preset in table.layout.presets]
        pairs = [(e.accuracy, e.paper.accuracy) for e in entries if e.accuracy is not None and e.paper]
        if len(pairs) >= LEAST_RANKED:
            rows.append([str(column), f"{rank_correlation(*zip(*pairs, strict=True)):.2f}", str(len(pairs))])
    header = ["column", "Spearman's ρ", "methods"]
    return Section(f"Order of methods compared with the paper, {table.title}", header, rows, [])


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ.

    >>> rank_correlation([1, 2, 3], [10, 30, 20])
    0.5
    """
    from scipy.stats import spearmanr

    return round(float(spearmanr(first, second).statistic), 6)


# Formats


def render_file(path: Path, name: str | None = None, form: str = "markdown") -> str:
    """The tables of a results file as text."""
    if not path.is_file():
        raise DataError(f"There is no file {path}: create it with handful benchmark GRID --out {path.name}.")
    results = read_results(path)
    if name == AFTER_2020:
        return _render(after_2020_sections(results, always=True), form)
    tables = make_tables(results, name)
    later = [] if name or form == "csv" else after_2020_sections(results)
    measured = [table for table in tables if table.vectors or not later]
    return "\n".join(filter(None, [render_tables(measured, form) if measured else "", _render(later, form)]))


def render_tables(tables: Sequence[ResultTable], form: str = "markdown") -> str:
    """The paper's tables as one text: markdown, latex or csv (one line per cell)."""
    return _csv(tables) if form == "csv" else _render([section for table in tables for section in sections_of(table)], form)


def _render(sections: Sequence[Section], form: str) -> str:
    writers = {"markdown": _markdown, "latex": _latex, "csv": _plain_csv}
    if form not in writers:
        raise SettingError(f"There is no format {form!r}: choose markdown, latex or csv.")
    return "\n".join(map(writers[form], sections))


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
        ("σ", r"$\sigma$"),
    ):
        text = text.replace(plain, written)
    return text


def _plain_csv(section: Section) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([section.header, *section.rows])
    return stream.getvalue()


def _csv(tables: Sequence[ResultTable]) -> str:
    stream = io.StringIO()
    rows = [row for table in tables for row in _csv_rows(table)]
    writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _csv_rows(table: ResultTable) -> list[dict[str, Any]]:
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
