"""Running a grid: cells to run folders to lines of results; what is done is skipped, what was interrupted goes on."""

from __future__ import annotations

import io
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..corpus import load_dataset
from ..episodes import EpisodeSpec
from ..errors import HandfulError
from ..evaluation import Values, paired_difference
from ..model import ModelSettings
from ..parallel import Failure, Pool, dependable_map
from ..progress import track
from ..runs import Material, RunSettings, evaluate_run, load_material, train_run
from ..storage import HISTORY, MODEL, write_atomic
from ..training import TrainingSettings
from .costs import Plan, budget_check, estimate_cells
from .grid import Cell, without_folders
from .results import CellResult, append_result, check_writable, locked, missing_cells, parse_result, read_results, result_line

RESULT, ACCURACIES, LOCK = "result.json", "accuracies.npy", ".lock"
LIBRARIES = ("numpy", "torch", "numba")


# One cell


def run_cell(cell: Cell, runs: Path, wait: bool = False) -> CellResult | None:
    """Train and test a cell in its folder, or read what was measured there; None if another process is at it."""
    folder = runs / cell.folder
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / LOCK, wait) as mine:
        if not mine:
            return None
        if not (folder / RESULT).exists():
            write_atomic(folder / RESULT, result_line(_measure(cell, folder, runs)).encode())
        return parse_result((folder / RESULT).read_text("utf-8"), str(folder / RESULT))


def _measure(cell: Cell, folder: Path, runs: Path) -> CellResult:
    settings, begun, start = cell.settings, _epochs(folder), time.perf_counter()
    _forget_peak_memory()
    material = shared_material(settings)
    if not (folder / MODEL).exists():
        train_run(settings, folder, material, quiet=True)
    tested = evaluate_run(folder, episodes=cell.test_episodes, material=material, quiet=True)
    seconds, memory = time.perf_counter() - start, _peak_memory()
    _save_array(folder / ACCURACIES, tested.accuracies)
    rival = _rival_accuracies(cell, runs)
    gain = None if rival is None else paired_difference(tested.accuracies, rival)
    return CellResult(
        data=cell.data,
        shot=cell.shot,
        vectors=without_folders(cell.vectors),
        preset=cell.preset,
        seed=cell.seed,
        options=dict(cell.options),
        accuracy=tested.score.mean,
        ci95=tested.score.ci95,
        episodes=tested.score.episodes,
        queries=tested.queries,
        epochs=_epochs(folder),
        reference=cell.reference if gain else None,
        over_reference=gain.mean if gain else None,
        over_reference_ci95=gain.ci95 if gain else None,
        seconds=seconds,
        resumed_from_epoch=begun,
        peak_memory_mb=memory,
        settings=cell.portable_settings,
        versions={"handful": __version__, "python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    )


def _rival_accuracies(cell: Cell, runs: Path) -> Values | None:
    """Accuracies of the cell to pair with, which is run first if nobody has."""
    if cell.rival is None:
        return None
    run_cell(cell.rival, runs, wait=True)
    accuracies: Values = np.load(runs / cell.rival.folder / ACCURACIES)
    return accuracies


def shared_material(settings: RunSettings) -> Material:
    """Data and vectors, shared by cells one after the other as long as the settings that decide them are the same."""
    model = settings.model
    loaded = ModelSettings(
        representation=model.representation if model.trains_encoder else "mean",  # others read what the tables say
        vectors=model.vectors,
        length=model.length,
        train_vectors=model.train_vectors,
        pool=model.pool,
        longest=model.longest,
    )
    return _material(replace(settings, seed=0, episode=EpisodeSpec(), training=TrainingSettings(), model=loaded))


@lru_cache(maxsize=1)
def _material(settings: RunSettings) -> Material:
    return load_material(settings)


def _epochs(folder: Path) -> int:
    history = folder / HISTORY
    return len(history.read_text("utf-8").splitlines()) if history.exists() else 0


def _save_array(path: Path, values: Values) -> None:
    stream = io.BytesIO()
    np.save(stream, values)
    write_atomic(path, stream.getvalue())


def _forget_peak_memory() -> None:
    """Let Linux measure the peak from here on; elsewhere, and where it is forbidden, it is that of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_memory() -> float | None:
    """Megabytes, where the system tells."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), None)


# Many cells


@dataclass(frozen=True)
class Report:
    """What became of a cell, or of several that failed for one reason."""

    title: str
    outcome: CellResult | Failure | None  # None: another process is at it

    @property
    def failed(self) -> bool:
        return isinstance(self.outcome, Failure)

    def __str__(self) -> str:
        if self.outcome is None:
            return f"{self.title}: another process is at it."
        if isinstance(self.outcome, Failure):
            return f"{self.title}: {self.outcome.reason}"
        return f"{self.title}: {100 * self.outcome.accuracy:.1f} ± {100 * self.outcome.ci95:.1f}"


def run_grid(
    cells: Iterable[Cell],
    out: Path,
    runs: Path,
    pool: Pool | None = None,
    budget: float | None = None,  # seconds
    quiet: bool = False,
) -> Iterator[Report]:
    """Run the cells that have no line yet, append their lines, and tell of each; with a budget, those that will fit into it."""
    check_writable(out)
    results = read_results(out)
    valid, refused = _sort_out(cells, lambda cell: cell.settings)
    ready, absent = _sort_out(missing_cells(valid, results), _data_loader())
    yield from refused + absent
    fits = budget_check(ready, results, budget)
    jobs = ((cell, runs.resolve()) for cell in ready if fits(cell))  # asked when a worker is free
    for (cell, _), outcome in track(dependable_map(run_cell, jobs, pool), "Cells", len(ready), quiet):
        if isinstance(outcome, CellResult):
            append_result(out, outcome)
        yield Report(cell.title, outcome)


def plan_grid(cells: Iterable[Cell], out: Path) -> tuple[Plan, list[Report]]:
    """The cells that have no line yet with the time each will take, and what cannot be run."""
    results = read_results(out)
    valid, refused = _sort_out(cells, lambda cell: cell.settings)
    missing = list(missing_cells(valid, results))
    return Plan(missing, estimate_cells(missing, results)), refused


def _data_loader() -> Callable[[Cell], object]:
    """Reads the data of a cell, to find out what is wrong with it, once for all cells that share it."""
    known: dict[tuple[Any, ...], HandfulError | None] = {}

    def load(cell: Cell) -> None:
        settings = cell.settings
        source = (settings.data, settings.split, settings.model.longest, settings.skip_empty)
        if source not in known:
            try:
                known[source] = None
                load_dataset(*source)
            except HandfulError as error:
                known[source] = error
        if problem := known[source]:
            raise problem

    return load


def _sort_out(cells: Iterable[Cell], need: Callable[[Cell], object]) -> tuple[list[Cell], list[Report]]:
    """The cells that have what they need, and a report for each reason why others have not."""
    ready, refused = [], dict[str, list[Cell]]()
    for cell in cells:
        try:
            need(cell)
            ready.append(cell)
        except HandfulError as error:
            refused.setdefault(str(error), []).append(cell)
    more = {why: f" and {len(group) - 1} more" if len(group) > 1 else "" for why, group in refused.items()}
    return ready, [Report(f"{group[0].title}{more[why]}", Failure(why)) for why, group in refused.items()]
