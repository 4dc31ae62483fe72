"""Run a grid: train and test its cells and append lines of results; finished cells are skipped, interrupted ones resumed."""

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
from ..data.episodes import EpisodeSpec
from ..errors import HandfulError
from ..meta.checkpoints import HISTORY
from ..meta.evaluation import Values, paired_difference
from ..meta.experiment import evaluate_run, recorded_variation, train_run
from ..meta.inputs import ExperimentData, load_data, load_experiment_data
from ..meta.settings import RunSettings
from ..meta.training import TrainingSettings
from ..models.settings import AttentionSettings, ModelSettings
from ..models.storage import MODEL
from ..utils.files import write_atomic
from ..utils.parallel import Failure, Workers, dependable_map
from ..utils.progress import track
from .costs import Plan, budget_check, estimate_cells
from .grid import Cell, without_folders
from .results import CellResult, append_result, check_writable, locked, missing_cells, parse_result, read_results, result_line

RESULT, ACCURACIES, LOCK = "result.json", "accuracies.npy", ".lock"
LIBRARIES = ("numpy", "torch", "numba")


# One cell


def run_cell(cell: Cell, runs: Path, wait: bool = False) -> CellResult | None:
    """Train and test a cell in its folder, or read its earlier result; None if another process is running it."""
    folder = runs / cell.folder
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / LOCK, wait) as mine:
        if not mine:
            return None
        if not (folder / RESULT).exists():
            write_atomic(folder / RESULT, result_line(_measure(cell, folder, runs)).encode())
        return parse_result((folder / RESULT).read_text("utf-8"), str(folder / RESULT))


def _measure(cell: Cell, folder: Path, runs: Path) -> CellResult:
    settings = cell.settings
    begun = _epochs(folder)
    start = time.perf_counter()
    _forget_peak_memory()
    inputs = shared_data(settings)
    if not (folder / MODEL).exists():
        train_run(settings, folder, inputs, quiet=True)
    tested = evaluate_run(folder, episodes=cell.test_episodes, inputs=inputs, quiet=True)
    seconds = time.perf_counter() - start
    memory = _peak_memory()
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
        reference=cell.rival.preset if cell.rival and gain else None,
        over_reference=gain.mean if gain else None,
        over_reference_ci95=gain.ci95 if gain else None,
        auroc=tested.area.mean if tested.area else None,
        seconds=seconds,
        resumed_from_epoch=begun,
        peak_memory_mb=memory,
        settings=cell.portable_settings,
        signal_variation=recorded_variation(folder),
        versions={"handful": __version__, "python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    )


def _rival_accuracies(cell: Cell, runs: Path) -> Values | None:
    """The accuracies of the cell to compare with, which is run first if necessary."""
    if cell.rival is None:
        return None
    run_cell(cell.rival, runs, wait=True)
    accuracies: Values = np.load(runs / cell.rival.folder / ACCURACIES)
    return accuracies


def shared_data(settings: RunSettings) -> ExperimentData:
    """Data and vectors, shared by consecutive cells as long as the settings that determine them are the same."""
    model = settings.model
    loaded = ModelSettings(
        representation=model.representation if model.trains_encoder or model.vectors.sentence_encoder else "mean",
        max_words=model.max_words,
        min_count=model.min_count,
        vectors=model.vectors,
        attention=AttentionSettings(word_frequencies=model.attention.word_frequencies),
    )
    episode = EpisodeSpec(class_names=settings.episode.class_names)
    return _inputs(replace(settings, seed=0, episode=episode, training=TrainingSettings(), model=loaded))


@lru_cache(maxsize=1)
def _inputs(settings: RunSettings) -> ExperimentData:
    return load_experiment_data(settings)


def _epochs(folder: Path) -> int:
    history = folder / HISTORY
    return len(history.read_text("utf-8").splitlines()) if history.exists() else 0


def _save_array(path: Path, values: Values) -> None:
    stream = io.BytesIO()
    np.save(stream, values)
    write_atomic(path, stream.getvalue())


def _forget_peak_memory() -> None:
    """Reset the peak memory on Linux; elsewhere, or if that is forbidden, the peak is that of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_memory() -> float | None:
    """Peak memory in megabytes, if the system reports it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), None)


# Many cells


@dataclass(frozen=True)
class CellReport:
    """The outcome of a cell, or of several that failed for the same reason."""

    title: str
    outcome: CellResult | Failure | None  # None: another process is running it

    @property
    def failed(self) -> bool:
        return isinstance(self.outcome, Failure)

    def __str__(self) -> str:
        if self.outcome is None:
            return f"{self.title}: another process is running it."
        if isinstance(self.outcome, Failure):
            return f"{self.title}: {self.outcome.reason}"
        return f"{self.title}: {100 * self.outcome.accuracy:.1f} ± {100 * self.outcome.ci95:.1f}"


def run_grid(
    cells: Iterable[Cell],
    out: Path,
    runs: Path,
    workers: Workers | None = None,
    budget: float | None = None,  # seconds
    quiet: bool = False,
) -> Iterator[CellReport]:
    """Run the cells that have no result yet, append their results and report each; with a budget, only those that fit in it."""
    check_writable(out)
    results = read_results(out)
    valid, refused = _sort_out(cells, lambda cell: cell.settings)
    ready, absent = _sort_out(missing_cells(valid, results), _data_loader())
    yield from refused + absent
    fits = budget_check(ready, results, budget)
    jobs = ((cell, runs.resolve()) for cell in ready if fits(cell))  # checked when a worker is free
    for (cell, _), outcome in track(dependable_map(run_cell, jobs, workers), "Cells", len(ready), quiet):
        if isinstance(outcome, CellResult):
            append_result(out, outcome)
        yield CellReport(cell.title, outcome)


def plan_grid(cells: Iterable[Cell], out: Path) -> tuple[Plan, list[CellReport]]:
    """The cells that have no result yet with their estimated times, and reports on those that cannot be run."""
    results = read_results(out)
    valid, refused = _sort_out(cells, lambda cell: cell.settings)
    missing = list(missing_cells(valid, results))
    return Plan(missing, estimate_cells(missing, results)), refused


def _data_loader() -> Callable[[Cell], object]:
    """A function that loads the data of a cell to find errors, once for all cells that share it."""
    known: dict[tuple[Any, ...], HandfulError | None] = {}

    def load(cell: Cell) -> None:
        settings = cell.settings
        source = (settings.data, settings.split, settings.model.max_words, settings.skip_empty, settings.reading)
        if source not in known:
            try:
                known[source] = None
                load_data(settings)
            except HandfulError as error:
                known[source] = error
        if problem := known[source]:
            raise problem

    return load


def _sort_out(cells: Iterable[Cell], need: Callable[[Cell], object]) -> tuple[list[Cell], list[CellReport]]:
    """The cells that can be run, and one report for each reason why others cannot."""
    ready = []
    refused = dict[str, list[Cell]]()
    for cell in cells:
        try:
            need(cell)
            ready.append(cell)
        except HandfulError as error:
            refused.setdefault(str(error), []).append(cell)
    more = {why: f" and {len(group) - 1} more" if len(group) > 1 else "" for why, group in refused.items()}
    return ready, [CellReport(f"{group[0].title}{more[why]}", Failure(why)) for why, group in refused.items()]
