"""The paper's tables, filled with results: each measured cell next to the paper's figure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from statistics import mean, stdev
from typing import Any

from ..errors import SettingError
from ..meta.presets import AS_IN_PAPER
from ..utils.paths import resource
from .grid import PAPER_DATA, whole_of
from .results import CellResult

PAPER = resource("paper.csv")
OUR, CNN_PROTO = "our", "cnn-proto"
MAIN = (
    *("avg-nn", "idf-nn", "cnn-ft", "avg-proto", "idf-proto", "cnn-proto"),
    *("avg-maml", "idf-maml", "cnn-maml", "avg-rr", "idf-rr", "cnn-rr", OUR),
)
REBUILT = "20newsgroups"  # the paper does not say how it tokenized posts
# the length of training, testing, texts and vectors: reported in a note to the cell
NOTED = {"episodes", "validation_episodes", "test_episodes", "epochs", "patience", "pretraining_epochs", "queries", "max_words"}
NOTED |= {"length", "train_vectors"}
IDLE = {"curve_episodes"}  # changes no number
Options = tuple[tuple[str, Any], ...]


# The paper's figures

PaperCell = tuple[str, str, int, bool]  # preset, data, shot, whether vectors were trained


@dataclass(frozen=True)
class PaperAccuracy:
    """An accuracy from the paper, in percent, with its standard deviation over seeds if given."""

    accuracy: float
    deviation: float | None


@cache
def paper_figures(embedding: str) -> dict[PaperCell, PaperAccuracy]:
    """All accuracies in the paper with fasttext or bert."""
    figures = {}
    with PAPER.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["embedding"] == embedding and row["table"] != "oracle_cosine":
                place = (_preset(row), row["dataset"], int(row["shot"]), row["embedding_training"] == "finetuned")
                figures[place] = PaperAccuracy(float(row["accuracy"]), float(row["std"]) if row["std"] else None)
    return figures


def _preset(row: Mapping[str, str]) -> str:
    """The preset that corresponds to a row of the paper."""
    if row["algorithm"] == "p-maml":
        return "p-maml"
    method = f"{row['representation']}-{row['algorithm']}".replace("our-rr", OUR)
    return f"{method}-{row['ablation']}".replace("_", "-").strip("-")


# The layout of tables


@dataclass(frozen=True)
class TableLayout:
    """The rows and columns of one of the paper's tables."""

    title: str
    presets: tuple[str, ...]
    data: tuple[str, ...] = PAPER_DATA
    shots: tuple[int, ...] = (1, 5)
    trained: tuple[bool, ...] = (False,)  # columns with fixed or trained vectors
    embeddings: tuple[str, ...] = ("fasttext",)  # for the paper's figures: the first that has one
    averages: bool = True
    only_measured: bool = False  # leave out rows without results

    @property
    def contextual(self) -> bool:
        return self.embeddings == ("bert",)

    def figure(self, preset: str, data: str, shot: int, trained: bool) -> PaperAccuracy | None:
        """The paper's figure; for part of a data set, that of the whole."""
        place = (preset.removesuffix(AS_IN_PAPER), whole_of(data), shot, trained)
        found = (paper_figures(embedding).get(place) for embedding in self.embeddings)
        return next((figure for figure in found if figure), None)


LETTER = tuple(
    name for preset in (*MAIN, "our-lr", "our-proto", "lstm-induct", "our-induct") for name in (preset, preset + AS_IN_PAPER)
)
LAYOUTS = {
    "main": TableLayout("Main results", MAIN),
    "ablation": TableLayout("Ablations", (OUR, "our-without-t", "our-without-s", "our-without-bilstm", "our-with-ebd")),
    "bert": TableLayout("Contextual words", MAIN, data=("huffpost", "fewrel"), embeddings=("bert",), averages=False),
    "rr_vs_lr": TableLayout(
        "Ridge and logistic regression", ("avg-rr", "avg-lr", "idf-rr", "idf-lr", "cnn-rr", "cnn-lr", OUR, "our-lr")
    ),
    "other_heads": TableLayout(
        "Other heads", ("avg-proto", "idf-proto", "cnn-proto", "our-proto", "lstm-induct", "our-induct")
    ),
    "other_baselines": TableLayout(
        "Other baselines", ("lstm-induct", "p-maml", OUR), embeddings=("fasttext", "bert"), averages=False
    ),
    "finetuned_embeddings": TableLayout(
        "Fixed and fine-tuned word vectors",
        tuple(preset for preset in MAIN if not preset.endswith(("-nn", "-ft"))),
        data=("reuters", "amazon"),
        shots=(5,),
        trained=(False, True),
        averages=False,
    ),
    "to_the_letter": TableLayout("As in the paper, and ours", LETTER, averages=False, only_measured=True),
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
    """One method in one column: the results over seeds, in percent, and the paper's figure."""

    results: tuple[CellResult, ...]  # one per seed
    paper: PaperAccuracy | None
    mark: str = ""  # refers to the note with the options of the measurement

    @property
    def accuracy(self) -> float | None:
        return mean(100 * result.accuracy for result in self.results) if self.results else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds."""
        return stdev(100 * result.accuracy for result in self.results) if len(self.results) > 1 else None

    @property
    def interval(self) -> float | None:
        """Half-width of the 95 % confidence interval over episodes, for all seeds together."""
        return pooled_interval([result.ci95 for result in self.results])

    @property
    def difference(self) -> float | None:
        """Measured accuracy minus the paper's."""
        return None if self.accuracy is None or self.paper is None else self.accuracy - self.paper.accuracy

    @property
    def gains(self) -> list[CellResult]:
        """The results that are paired with a reference."""
        return [result for result in self.results if result.over_reference is not None]

    def __str__(self) -> str:
        paper = f"{self.paper.accuracy:.1f}" if self.paper else ""
        if self.accuracy is None:
            return f"({paper})" if paper else ""
        spread = "" if self.deviation is None else f", σ {self.deviation:.1f}"
        text = f"{self.accuracy:.1f} ± {self.interval:.1f}{spread}{self.mark}"
        return f"{text} ({paper}, {self.difference:+.1f})" if paper else text


def pooled_interval(halves: Sequence[float]) -> float | None:
    """The confidence interval of the mean over seeds, from the interval of each seed, in percent."""
    return 100 * sum(half**2 for half in halves) ** 0.5 / len(halves) if halves else None


@dataclass(frozen=True)
class ResultTable:
    """One of the paper's tables for one choice of vectors and options."""

    name: str
    layout: TableLayout
    vectors: str
    options: Options
    columns: tuple[Column, ...]
    entries: dict[tuple[str, Column], Entry]  # by preset and column
    marks: Mapping[Options, str]  # by the options they denote

    def entry(self, preset: str, column: Column) -> Entry:
        return self.entries[preset, column]

    @property
    def title(self) -> str:
        return f"{self.layout.title}: {self.vectors or 'nothing measured'}" + (
            f", {spoken(self.options)}" if self.options else ""
        )

    @property
    def presets(self) -> tuple[str, ...]:
        """The paper's methods; with options or data that are not in the paper, the measured ones."""
        whole = not (self.options or (self.layout.only_measured and self.vectors))
        if whole and any(map(self.has_paper, self.columns)):
            return self.layout.presets
        return tuple(p for p in self.layout.presets if any(self.entry(p, column).results for column in self.columns))

    def of_paper(self, shot: int) -> list[Column]:
        """The columns that are also in the paper; part of a data set only if the whole is missing."""
        columns = [column for column in self.columns if column.shot == shot and self.has_paper(column)]
        whole = {column.data for column in columns}
        return [column for column in columns if column.data == whole_of(column.data) or whole_of(column.data) not in whole]

    def averaged(self, shot: int) -> list[Column]:
        """The ones of these with measurements, or all of them if there are none."""
        columns = self.of_paper(shot)
        measured = [column for column in columns if any(self.entry(preset, column).results for preset in self.layout.presets)]
        return measured or columns

    def has_paper(self, column: Column) -> bool:
        """Whether the paper has figures for the column."""
        return any(self.entry(preset, column).paper for preset in self.layout.presets)


@dataclass(frozen=True)
class Section:
    """A heading, a table of strings, and notes below it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]


# From results to tables


def make_tables(results: Sequence[CellResult], name: str | None = None) -> list[ResultTable]:
    """The table with this name for each choice of vectors and options, or every table that has its own results."""
    if name is not None and name not in LAYOUTS:
        raise SettingError(f"There is no table {name!r}: choose one of {', '.join(LAYOUTS)}.")
    tables = [table for each in ([name] if name else LAYOUTS) for table in _variants(each, results, bool(name))]
    return tables or [_table("main", (), "", ())]


def _variants(name: str, results: Sequence[CellResult], always: bool) -> list[ResultTable]:
    """One table per choice of vectors and options; only options reported in a note may differ within a table."""
    layout = LAYOUTS[name]
    groups: dict[tuple[str, Options], list[CellResult]] = {}
    for result in results:
        if result.preset in layout.presets and result.vectors.startswith("contextual") == layout.contextual:
            options = {option: value for option, value in result.options.items() if option not in NOTED | IDLE}
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
    """The cells of a table that no other table has: only their results are a reason to print it."""
    others = [layout for other, layout in LAYOUTS.items() if other != name and not layout.only_measured]
    elsewhere = {preset for layout in others for preset in layout.presets}
    if name == "finetuned_embeddings":
        return lambda preset, column: column.trained
    return lambda preset, column: name in ("main", "bert") or preset not in elsewhere | {OUR}


def _table(name: str, results: Iterable[CellResult], vectors: str, options: Options) -> ResultTable:
    layout = LAYOUTS[name]
    found: dict[tuple[str, Column], dict[Options, dict[int, CellResult]]] = {}
    for result in results:  # the last one counts if a cell was measured twice
        column = Column(result.data, result.shot, bool(result.options.get("train_vectors")))
        found.setdefault((result.preset, column), {}).setdefault(_noted(result), {})[result.seed] = result
    measured = {column for _, column in found}
    columns = tuple(column for column in _columns(layout, measured) if column in measured or not options)
    chosen = {place: min(variants, key=_shortness) for place, variants in found.items()}  # the most complete protocol
    marks = {noted: f" [{number}]" for number, noted in enumerate(dict.fromkeys(filter(None, chosen.values())), 1)}

    def entry(preset: str, column: Column) -> Entry:
        figure = layout.figure(preset, column.data, column.shot, column.trained)
        noted = chosen.get((preset, column))
        if noted is None:
            return Entry((), figure)
        return Entry(tuple(found[preset, column][noted].values()), figure, marks.get(noted, ""))

    entries = {(preset, column): entry(preset, column) for preset in layout.presets for column in columns}
    return ResultTable(name, layout, vectors, options, columns, entries, marks)


def _noted(result: CellResult) -> Options:
    """The options to report in a note; that vectors were trained is shown by the column."""
    told = {option: value for option, value in result.options.items() if option in NOTED - {"train_vectors"}}
    return tuple(sorted(told.items()))


def _shortness(noted: Options) -> tuple[float, ...]:
    """The distance of a protocol from the full one: by the number of options it changes, then by how little it runs."""
    told = dict(noted)
    return len(noted), *(-told.get(option, inf) for option in ("epochs", "episodes", "test_episodes", "validation_episodes"))


def spoken(options: Options) -> str:
    """Options as text, for a note."""
    return ", ".join(f"{name} {value}" for name, value in options)


def _columns(layout: TableLayout, measured: set[Column]) -> tuple[Column, ...]:
    """The paper's columns, with parts replacing wholes, then other data; or only other data."""
    present = sorted({column.data for column in measured})
    names = [data for place in layout.data for data in [n for n in present if whole_of(n) == place] or [place]]
    own = [data for data in present if whole_of(data) not in PAPER_DATA]
    if own and len(own) == len(present):
        names = []
    shots = dict.fromkeys(names, layout.shots) | {
        data: tuple(sorted({column.shot for column in measured if column.data == data})) for data in own
    }
    return tuple(Column(data, shot, trained) for data in shots for shot in shots[data] for trained in layout.trained)
