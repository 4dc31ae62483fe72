"""Results of benchmarks/classifier.py: lines of a file, and Markdown tables made from them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _peers import EXAMPLES, NAMES, OURS, PEERS, POOL, TRANSDUCTIVE

ACCURACY, TIMING, BOTH = "accuracy", "timing", "both"  # what a line measures
TITLES = {
    EXAMPLES: "examples alone",
    NAMES: "with label words",
    POOL: "with label words and unlabelled texts",
    TRANSDUCTIVE: "transductive: with label words and the queries as unlabelled texts",
}


@dataclass(frozen=True)
class Result:
    """The result of one draw, or of one cold process, which has no data."""

    peer: str
    threads: int
    data: str
    shots: int
    queries: int
    seed: int
    draw: int
    classes: int = 0
    accuracy: float = 0.0
    fit_seconds: float = 0.0
    texts_per_second: float = 0.0
    peak_megabytes: float = 0.0
    first_answer_seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    setting: str = EXAMPLES
    kind: str = BOTH  # what was measured
    macro_f1: float = 0.0  # 0 in lines from before it was measured
    per_class: int = 0  # queries of each class; if 0, they are of any class

    @property
    def key(self) -> tuple[Any, ...]:
        """The values that identify it."""
        place = (self.peer, self.threads, self.data, self.queries, self.per_class, self.seed)
        return *place, self.setting, self.shots, self.draw

    def __str__(self) -> str:
        if not self.data:
            return f"{self.peer}: first answer of a cold process after {self.first_answer_seconds:.1f} s"
        found = f"fit in {self.fit_seconds:.3g} s" if self.kind == TIMING else f"{100 * self.accuracy:.1f} %"
        return f"{self.peer} on {self.data}, {self.setting}, {self.shots}-shot, draw {self.draw}: {found}"


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a results file, if there is one; a truncated line is removed."""
    if not path.is_file():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        os.truncate(path, len(whole))
    return whole.splitlines()


def read_results(path: Path) -> list[Result]:
    """The results in a file."""
    return [Result(**json.loads(line)) for line in whole_lines(path)]


Grid = dict[str, dict[int, dict[int, Result]]]  # by peer, shots and draw


def grid(results: Iterable[Result], data: str, setting: str, without: str) -> Grid:
    """The results of a data set in a setting, without those in which only `without` was measured.

    A peer that cannot use unlabelled texts has the same results as with label words.
    """
    found: Grid = defaultdict(lambda: defaultdict(dict))
    for result in results:
        options = PEERS[result.peer].settings
        mine = NAMES if setting in (POOL, TRANSDUCTIVE) and setting not in options and NAMES in options else setting
        if result.data == data and result.setting == mine and result.kind != without:
            found[result.peer][result.shots][result.draw] = result
    return found


def quality_table(found: Grid, value: Callable[[Result], float]) -> list[str]:
    """Accuracy or macro-F1 in percent, by peer and shots."""
    shots = sorted({number for by_shots in found.values() for number in by_shots})
    most = max((len(draws) for by_shots in found.values() for draws in by_shots.values()), default=0)
    rows = []
    for peer, by_shots in found.items():
        fewer = max(len(draws) for draws in by_shots.values())
        title = PEERS[peer].title + f" ({fewer} draw{'s' * (fewer > 1)})" * (fewer < most)
        values = [[value(result) for result in by_shots.get(number, {}).values()] for number in shots]
        if any(map(any, values)):
            rows.append([title, *(interval(one) if any(one) else "–" for one in values)])
    if not rows:
        return []
    return lines_of([f"mean of {most} draw{'s' * (most > 1)}", *(f"{number}-shot" for number in shots)], rows)


def difference_table(found: Grid) -> list[str]:
    """FewShotClassifier's accuracy minus that of each peer, over the draws that both have."""
    shots = sorted({number for by_shots in found.values() for number in by_shots})
    rows = []
    for mine in (name for name in OURS if name in found):
        for other in (name for name in found if name not in OURS):
            both = [found[mine].get(number, {}).keys() & found[other].get(number, {}).keys() for number in shots]
            pairs = [
                [found[mine][number][one].accuracy - found[other][number][one].accuracy for one in draws]
                for number, draws in zip(shots, both, strict=True)
            ]
            rows.append([f"`{mine}` − {PEERS[other].title}", *(interval(one, sign="+") if one else "–" for one in pairs)])
    return lines_of(["difference", *(f"{number}-shot" for number in shots)], rows) if rows else []


def timing_table(found: Grid, results: Iterable[Result]) -> list[str]:
    """Median seconds, texts per second and peak memory, by peer."""
    shots = sorted({number for by_shots in found.values() for number in by_shots})
    cold = defaultdict(list)
    for result in results:
        if not result.data:
            cold[result.peer].append(result.first_answer_seconds)
    rows = []
    for peer, by_shots in found.items():
        fits = [[result.fit_seconds for result in by_shots.get(number, {}).values()] for number in shots]
        every = [result for draws in by_shots.values() for result in draws.values()]
        columns = [seconds(np.median(one)) if one else "–" for one in fits]
        columns += [f"{np.median([result.texts_per_second for result in every]):,.0f}"]
        columns += [f"{max(result.peak_megabytes for result in every):,.0f}"]
        rows.append([PEERS[peer].title, *columns, f"{np.median(cold[peer]):.1f}" if cold[peer] else "–"])
    heads = ["", *(f"fit {number}-shot, s" for number in shots), "texts/s", "memory, MB", "first answer, s"]
    return lines_of(heads, rows) if rows else []


def section(results: Sequence[Result], data: str, setting: str) -> str:
    """All tables of one data set in one setting; empty if nothing was measured."""
    right, timed = (grid(results, data, setting, without) for without in (TIMING, ACCURACY))
    tables = [
        ("Accuracy in percent, with its 95 % interval:", quality_table(right, lambda one: one.accuracy)),
        ("Paired difference in accuracy, in points:", difference_table(right)),
        ("Macro-F1 in percent:", quality_table(right, lambda one: one.macro_f1)),
        ("Time and memory:", timing_table(timed, results)),
    ]
    shown = [line for title, lines in tables if lines for line in (title, "", *lines, "")]
    if not shown:
        return ""
    one = next(
        result for peers in (right, timed) for by in peers.values() for draws in by.values() for result in draws.values()
    )
    same = " Classifiers that cannot use unlabelled texts are shown as with label words." * (setting in (POOL, TRANSDUCTIVE))
    queries = f"{one.per_class} queries per class" if one.per_class else f"at most {one.queries:,} queries per draw"
    about = f"All {one.classes} classes, {queries}, {one.threads} threads.{same}"
    return "\n".join([f"#### {data}, {TITLES[setting]}", "", about, "", *shown])


def interval(values: Sequence[float], sign: str = "") -> str:
    """The mean with the half-width of its 95 % interval by Student's t, in percent; for one value, only the value.

    >>> interval([0.5]), interval([0.25, 0.75], sign="+")
    ('50.0', '+50.0 ± 317.7')
    >>> interval([-0.5])
    '−50.0'
    """
    from scipy.stats import t

    mean = f"{100 * float(np.mean(values)):{sign}.1f}".replace("-", "−")
    if len(values) < 2:
        return mean
    width = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{mean} ± {100 * width:.1f}"


def seconds(value: float) -> str:
    """Seconds with three digits.

    >>> seconds(0.03551), seconds(1032.8)
    ('0.0355', '1,033')
    """
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def cells(values: Iterable[str]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(values)} |"


def lines_of(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [cells(heads), cells(["---"] * len(heads)), *map(cells, rows)]
