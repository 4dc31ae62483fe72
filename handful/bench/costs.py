"""Estimates of how long cells take, from earlier measurements or a packaged table, on one machine or many."""

from __future__ import annotations

import heapq
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean, median
from typing import Any

from ..data.registry import known_datasets
from ..errors import SettingError
from ..utils.files import read_json
from ..utils.paths import resource
from .grid import Cell, without_folders
from .results import CellResult

COSTS = resource("costs.json")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Estimate:
    """The estimated seconds of a cell on one core, and the basis of the estimate."""

    seconds: float
    basis: str


def estimate_cells(cells: Sequence[Cell], results: Iterable[CellResult]) -> list[Estimate]:
    """Estimates from the cell's own past (other seeds, then other shots), from the packaged table, or from other cells."""
    past: dict[tuple[Any, ...], list[float]] = {}
    for result in results:
        if not result.resumed_from_epoch:
            exact = (result.data, result.preset, tuple(sorted(result.options.items())))
            for key in (exact, (*exact, result.shot), (*exact, result.shot, result.vectors)):
                past.setdefault(key, []).append(result.seconds)
    known = [_from_past(cell, past) or _from_table(cell) for cell in cells]
    usual = median([estimate.seconds for estimate in known if estimate] or [0.0])
    return [estimate or Estimate(usual, "guessed from the other cells") for estimate in known]


def _from_past(cell: Cell, past: dict[tuple[Any, ...], list[float]]) -> Estimate | None:
    exact = (cell.data, cell.preset, cell.options)
    keys = {
        "measured": (*exact, cell.shot, without_folders(cell.vectors)),
        "measured with other vectors": (*exact, cell.shot),
        "measured at another shot": exact,
    }
    return next((Estimate(mean(past[key]), basis) for basis, key in keys.items() if key in past), None)


def _from_table(cell: Cell) -> Estimate | None:
    """Interpolate between short and long texts by the number of words; cost is proportional to the number of episodes."""
    table = read_costs()
    training = cell.settings.training
    episode = table["presets"].get(cell.preset)
    if not episode:
        return None
    short, long = (known_datasets()[data].statistics["words"] for data in table["data"])
    words, length = (
        (known_datasets()[cell.data].statistics["words"], "") if cell.data in known_datasets() else (long, ", for long texts")
    )
    share = max(0.0, (words - short) / (long - short))
    train, test = (max(low, low + share * (high - low)) for low, high in episode)
    epochs = min(training.epochs, table["epochs"]) if train else 0
    seconds = epochs * (training.episodes * train + training.validation_episodes * test) + cell.test_episodes * test
    return Estimate(seconds, f"from the cost table{length}")


@cache
def read_costs() -> dict[str, Any]:
    """Measured seconds per training episode and per test episode of each method, on short texts and on long ones."""
    return read_json(COSTS)


def makespan(seconds: Iterable[float], machines: int) -> float:
    """Time until all is done on `machines` machines, each of which takes the longest remaining job when it is free.

    >>> makespan([3, 3, 2, 2, 2], 2)
    7.0
    """
    free = [0.0] * machines
    for duration in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + duration)
    return max(free)


@dataclass(frozen=True)
class Plan:
    """The cells that are not done, with the estimated time of each."""

    cells: Sequence[Cell]
    estimates: Sequence[Estimate]

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell: its name, its seconds, and the basis of the estimate."""
        pairs = zip(self.cells, self.estimates, strict=True)
        return [{"cell": cell.title, "seconds": known.seconds, "basis": known.basis} for cell, known in pairs]

    def __str__(self) -> str:
        return "\n".join("{:60} {:>8}  {}".format(r["cell"], spoken_duration(r["seconds"]), r["basis"]) for r in self.rows())

    def summary(self, workers: int = 1) -> str:
        """The total time, in one sentence."""
        seconds = [estimate.seconds for estimate in self.estimates]
        sources = ", ".join(f"{count} {basis}" for basis, count in Counter(known.basis for known in self.estimates).items())
        return (
            f"{len(seconds)} cells ({sources or 'nothing to do'}): {spoken_duration(sum(seconds))} on one core, the longest "
            f"{spoken_duration(max(seconds, default=0))}; {workers} in parallel: {spoken_duration(makespan(seconds, workers))}."
        )


def parse_duration(text: str) -> float:
    """Parse a duration into seconds.

    >>> parse_duration("90m")
    5400.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if not found:
        raise SettingError(f"{text!r} is not a duration: write 90m, 2h or 45s.")
    return float(found[1]) * UNITS[found[2]]


def spoken_duration(seconds: float) -> str:
    """A duration in a suitable unit.

    >>> spoken_duration(5400)
    '1.5 h'
    """
    unit = next((unit for unit in ("h", "m") if seconds >= UNITS[unit]), "s")
    return f"{seconds / UNITS[unit]:.{0 if unit == 's' else 1}f} {unit}"


def budget_check(cells: Sequence[Cell], results: Iterable[CellResult], budget: float | None) -> Callable[[Cell], bool]:
    """A test of whether a cell started now would finish within the budget, which starts with this call."""
    if budget is None:
        return lambda cell: True
    expected = dict(zip(cells, estimate_cells(cells, results), strict=True))
    deadline = time.monotonic() + budget
    return lambda cell: time.monotonic() + expected[cell].seconds <= deadline
