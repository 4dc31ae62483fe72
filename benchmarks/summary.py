"""Write the summaries of all results in README.md and docs/results.md, from the results files: no number is copied by hand.

python benchmarks/summary.py            (print them)
python benchmarks/summary.py --write    (replace them in the pages)

A summary stands between the comments <!-- begin NAME --> and <!-- end NAME --> of a page.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import unlabelled
from _peers import EXAMPLES, INDUCTIVE, NAMES, OURS, PEERS, SETTINGS
from _tables import TIMING, Result, grid, interval, lines_of, read_results, section

from handful.bench.results import CellResult
from handful.bench.results import read_results as read_cells
from handful.bench.sections import headline
from handful.bench.tables import LAYOUTS, Entry, ResultTable, make_tables, paper_figures
from handful.utils.files import write_atomic

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
SHOTS = (0, 1, 5, 10)
QUERIES = 1000  # per draw
DATA_SETS = ("banking77", "clinc150", "huffpost:test", "20newsgroups:test")
ROWS = (*OURS, "tfidf", "potion", "minilm", "bge", "setfit")
WITH = {EXAMPLES: "examples alone", NAMES: "with label words", INDUCTIVE[2]: "and 5,000 unlabelled texts"}
METHODS = {"avg-rr": "mean", "idf-rr": "idf", "our": "ours"}
DATA = ("reuters", "huffpost")
GLOVE = "glove.840B.300d_filtered.txt"
LETTER = (
    ("our-paper", f"{GLOVE}:raw"),
    ("idf-rr-paper", f"{GLOVE}:raw"),
    ("our", f"{GLOVE}:raw"),
    ("our", f"wordllama+{GLOVE}"),
)


# The classifier


def classifier_table(data: str) -> list[str]:
    """Accuracy of all peers in all settings; the best of each column is bold."""
    results = read_results(RESULTS / "settings.jsonl")
    rows, values = [], []
    for peer in ROWS:
        for setting in INDUCTIVE:
            found = grid(ours_only(results, peer, setting), data, setting, TIMING).get(peer, {})
            numbers = [[one.accuracy for one in found.get(shots, {}).values()] for shots in SHOTS]
            if any(numbers):
                rows.append(title(peer, setting, max(map(len, numbers))))
                values.append(numbers)
    best = [max((mean(row[place]) for row in values if row[place]), default=0) for place in range(len(SHOTS))]
    cells = [[cell(numbers, most) for numbers, most in zip(row, best, strict=True)] for row in values]
    return lines_of(["", *map(str, SHOTS)], [[name, *row] for name, row in zip(rows, cells, strict=True)])


def ours_only(results: Iterable[Result], peer: str, setting: str) -> list[Result]:
    """The results of a peer in a setting that it can use; no default queries are left out."""
    return [one for one in results if one.peer == peer and one.setting == setting and one.queries == QUERIES]


def title(peer: str, setting: str, draws: int) -> str:
    """The name of a row: that of the peer in its first one."""
    if setting != EXAMPLES:
        return WITH[setting] + (" (the default)" if peer in OURS and setting == NAMES else "")
    name = PEERS[peer].title
    return f"**{name}**, {WITH[EXAMPLES]}" if peer in OURS else name + ", one draw" * (draws == 1)


def cell(numbers: list[float], best: float) -> str:
    """A mean with its interval, bold if it is the best."""
    if not numbers:
        return ""
    return f"**{interval(numbers)}**" if mean(numbers) == best else interval(numbers)


def mean(numbers: list[float]) -> float:
    """The mean, rounded as it is shown."""
    return round(100 * sum(numbers) / len(numbers), 1)


def settings_tables() -> list[str]:
    """All tables of all data sets and settings, without macro-F1."""
    results = [one for one in read_results(RESULTS / "settings.jsonl") if not one.data or one.queries == QUERIES]
    results.sort(key=lambda one: list(PEERS).index(one.peer))
    texts = [section(results, data, setting) for data in DATA_SETS for setting in SETTINGS]
    return [re.sub(r"Macro-F1 in percent:\n\n(?:\|.*\n)+\n?", "", text) for text in texts if text]


def pool_tables() -> list[str]:
    """The effect of suitable and unsuitable unlabelled texts, a table for each encoder."""
    lines = unlabelled.read(RESULTS / "pools.jsonl")
    titled = [[f"**`{name}`**", "", *unlabelled.table([line for line in lines if line.encoder == name]), ""] for name in OURS]
    return [row for table in titled for row in table][:-1]


def eight_table() -> list[str]:
    """Eight examples and 40 queries per class, next to each other by setting."""
    results = [one for one in read_results(RESULTS / "settings.jsonl") if one.per_class]
    rows = []
    for peer in (name for name in PEERS if any(one.peer == name for one in results)):
        found = [
            [one.accuracy for one in results if (one.peer, one.setting) == (peer, setting)] for setting in (EXAMPLES, NAMES)
        ]
        rows.append([PEERS[peer].title, *(interval(numbers) if numbers else "–" for numbers in found)])
    return lines_of(["", "examples alone", "with label words"], rows)


# The method


def method_tables() -> list[str]:
    """Ours and the two averages on Reuters and HuffPost, for each table of vectors, next to the paper."""
    lines: list[str] = []
    for table in main_tables():
        columns = [column for column in table.columns if column.data in DATA]
        rows = [
            [name, *(spoken(table.entry(preset, column)) for column in columns)]
            for preset, name in METHODS.items()
            if any(table.entry(preset, column).results for column in columns)
        ]
        if len(rows) == len(METHODS):
            lines += [f"**{table.vectors}**", "", *lines_of(["", *map(str, columns)], rows), ""]
    return lines


def one_vectors_table() -> list[str]:
    """Every method of the main table with the same vectors, and its difference from the paper."""
    table = one_vectors()
    columns = [column for column in table.columns if any(table.entry(preset, column).results for preset in table.presets)]
    rows = [[preset, *(against_paper(table.entry(preset, column)) for column in columns)] for preset in table.presets]
    return lines_of(["", *map(str, columns)], rows)


def against_paper(entry: Entry) -> str:
    """A measured accuracy, and its difference from the paper."""
    if entry.accuracy is None:
        return "–"
    difference = f" ({entry.difference:+.1f})" if entry.difference is not None else ""
    return f"{entry.accuracy:.1f}{entry.mark and ' *'}{difference}"


def gaps_table() -> list[str]:
    """The lead of the method over the best baselines and over CNN + PROTO."""
    gaps = headline(one_vectors())
    return [*lines_of(gaps.header, gaps.rows), "", *(f"- {note}" for note in gaps.notes)]


def one_vectors() -> ResultTable:
    """The main table with the vectors that most methods were measured with."""
    return next(table for table in main_tables() if table.vectors == f"wordllama+{GLOVE}")


def letter_table() -> list[str]:
    """The method as in the paper, with how much t varies, next to ours on the same vectors and on the best for it."""
    rows = []
    for data, shot in ((data, shot) for data in DATA for shot in (1, 5)):
        cells = [one for one in cells_of_grid() if (one.data, one.shot, one.options) == (data, shot, {})]
        found = [[one for one in cells if (one.preset, one.vectors) == column] for column in LETTER]
        varies = [one.signal_variation["t"] for one in found[0] if one.signal_variation]
        figure = paper_figures("fasttext")["our", data, shot, False]
        values = [f"{mean([one.accuracy for one in some]):.1f} ({len(some)})" if some else "–" for some in found]
        variation = f"{min(varies):.2f} to {max(varies):.2f}" if varies else "–"
        rows.append([f"{data} {shot}-shot", f"{figure.accuracy:.1f}", *values, variation])
    heads = [f"`{preset}`, {vectors.replace(GLOVE, 'GloVe').replace(':', ' ')}" for preset, vectors in LETTER]
    return lines_of(["", "paper", *heads, "variation of t in `our-paper`"], rows)


def main_tables() -> list[ResultTable]:
    """The main table with each choice of vectors, without options."""
    return [table for table in make_tables(cells_of_grid(), "main") if not table.options]


def spoken(entry: Entry) -> str:
    """A measured accuracy with its interval over episodes and its deviation over seeds, and the paper's."""
    paper = f" (paper {entry.paper.accuracy:.1f})" if entry.paper else ""
    if entry.accuracy is None:
        return paper.strip()
    spread = "" if entry.deviation is None else f", σ {entry.deviation:.1f} over {len(entry.results)} seeds"
    return f"{entry.accuracy:.1f} ± {entry.interval:.1f}{spread}{entry.mark and ' *'}{paper}"


def cells_of_grid() -> list[CellResult]:
    """All results of the grid."""
    return read_cells(RESULTS / "benchmark.jsonl")


def coverage_table() -> list[str]:
    """How many of the paper's figures of each table are measured, at full protocol, and with how many seeds."""
    rows = []
    for name, layout in LAYOUTS.items():
        if layout.only_measured:
            continue
        figures = {
            place
            for embedding in layout.embeddings
            for place in paper_figures(embedding)
            if place[0] in layout.presets
            and place[2] in layout.shots
            and place[1] in layout.data
            and place[3] in layout.trained
        }
        best: dict[tuple[str, str, int, bool], list[Entry]] = {place: [] for place in figures}
        for table in make_tables(cells_of_grid(), name):
            for (preset, column), entry in table.entries.items():
                place = (preset, column.data, column.shot, column.trained)
                if place in best and entry.results:
                    best[place].append(entry)
        full = {place: max((len(one.results) for one in some if not one.mark), default=0) for place, some in best.items()}
        if figures:
            counts = [
                len(figures),
                sum(map(bool, best.values())),
                *(sum(n >= least for n in full.values()) for least in (1, 3, 5)),
            ]
            rows.append([layout.title, *map(str, counts)])
    return lines_of(["table", "figures in the paper", "measured", "at full protocol", "3 seeds or more", "5 seeds"], rows)


# The service


def service_table() -> list[str]:
    """Latencies of the service."""
    found = json.loads((RESULTS / "service.json").read_text())
    rows = [
        [
            f"`{model}`, {name}" if model != "labels" else name,
            *(f"{one[key]:,.0f} ms" for key in ("p50_ms", "p95_ms", "p99_ms")),
        ]
        for model, parts in found.items()
        for name, one in parts.items()
        if isinstance(one, dict) and "p50_ms" in one
    ]
    return lines_of(["", "p50", "p95", "p99"], rows)


# The pages

SUMMARIES: dict[str, Callable[[], list[str]]] = {
    "banking77": lambda: classifier_table("banking77"),
    "clinc150": lambda: classifier_table("clinc150"),
    "huffpost": lambda: classifier_table("huffpost:test"),
    "20newsgroups": lambda: classifier_table("20newsgroups:test"),
    "settings": settings_tables,
    "pools": pool_tables,
    "eight": eight_table,
    "method": method_tables,
    "rows": one_vectors_table,
    "gaps": gaps_table,
    "letter": letter_table,
    "coverage": coverage_table,
    "service": service_table,
}
PAGES = (ROOT / "README.md", ROOT / "docs" / "results.md")


def replaced(page: str) -> str:
    """A page with its summaries made anew."""

    def fresh(match: re.Match[str]) -> str:
        name = match.group(1)
        body = "\n".join(SUMMARIES[name]()).strip()
        return f"<!-- begin {name} -->\n\n{body}\n\n<!-- end {name} -->"

    return re.sub(r"<!-- begin ([\w-]+) -->.*?<!-- end \1 -->", fresh, page, flags=re.DOTALL)


def main() -> None:
    """Print the summaries, or write them into the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="Replace them in README.md and docs/results.md.")
    if parser.parse_args().write:
        for page in PAGES:
            write_atomic(page, replaced(page.read_text("utf-8")).encode())
        return
    for name, lines in SUMMARIES.items():
        print("\n".join([f"## {name}", "", *lines(), ""]))


if __name__ == "__main__":
    main()
