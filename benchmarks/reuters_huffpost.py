"""Mean, idf and the method with its four ablations on Reuters and HuffPost, beside the paper's figures.

    HANDFUL_DATA=data python benchmarks/reuters_huffpost.py --glove glove.npz --out results/reuters_huffpost.jsonl
    python benchmarks/reuters_huffpost.py --out results/reuters_huffpost.jsonl --table

A line is appended for each finished cell; a rerun skips what is done and goes on with runs that were interrupted. The first
seed of everything comes first, so that a table is complete early. `--glove` is the second table of vectors (docs/vectors.md).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np

from handful import __version__
from handful.episodes import EpisodeSpec
from handful.evaluation import paired_difference
from handful.model import ModelSettings
from handful.runs import Evaluation, Material, RunSettings, evaluate_run, load_material, train_run
from handful.storage import settings_to_dict
from handful.training import TrainingSettings

METHODS = {
    "mean": ModelSettings(representation="mean"),
    "idf": ModelSettings(representation="idf"),
    "our": ModelSettings(),
    "without s": ModelSettings(signals=("t",)),
    "without t": ModelSettings(signals=("s",)),
    "without biLSTM": ModelSettings(network="mlp"),
    "with embeddings": ModelSettings(embeddings=True),
}
SEEDED = ("mean", "idf", "our")  # with three seeds
PAPER = {  # accuracies of the paper's Table 1, fastText: Reuters 1 and 5 shot, HuffPost 1 and 5 shot
    "mean": (63.4, 90.0, 36.3, 54.8),
    "idf": (69.1, 93.0, 37.6, 59.5),
    "our": (81.8, 96.0, 43.0, 63.5),
    "without s": (78.1, 94.8, 40.1, 60.2),
    "without t": (76.7, 93.7, 42.0, 60.8),
    "without biLSTM": (77.2, 95.4, 42.2, 63.0),
    "with embeddings": (81.7, 95.8, 40.6, 58.6),
}
COLUMNS = [("reuters", 1), ("reuters", 5), ("huffpost", 1), ("huffpost", 5)]


@dataclass(frozen=True)
class Cell:
    """One method on one data set, with one seed."""

    data: str
    shot: int
    vectors: str  # a name: wordllama or wordllama+glove
    method: str
    seed: int

    @property
    def folder(self) -> str:
        return f"{self.data}-{self.shot}-{self.vectors}-{self.method}-{self.seed}".replace(" ", "_")


def cells() -> Iterator[Cell]:
    """The most informative first."""
    for seed in (0, 1, 2):
        for vectors in ("wordllama", "wordllama+glove"):
            for method in METHODS:
                if seed == 0 or method in SEEDED:
                    yield from (Cell(data, shot, vectors, method, seed) for data, shot in COLUMNS)


def settings_of(cell: Cell, glove: str) -> RunSettings:
    """The run of a cell: the paper's training, our defaults for the rest."""
    vectors = cell.vectors.replace("glove", glove)
    model = ModelSettings(**{**METHODS[cell.method].__dict__, "vectors": vectors})
    return RunSettings(
        cell.data, seed=cell.seed, episode=EpisodeSpec(5, cell.shot, 25), model=model, training=TrainingSettings()
    )


def run_cell(cell: Cell, glove: str, runs: Path) -> dict[str, object]:
    """Train and test; the paired difference is to idf with the same seed, over the same episodes."""
    import torch

    torch.set_num_threads(1)
    start, settings = time.perf_counter(), settings_of(cell, glove)
    material, folder = load_material(settings), runs / cell.folder
    result, gain = test_cell(cell, glove, runs, material), None
    if cell.method not in ("mean", "idf"):
        rival = test_cell(replace(cell, method="idf"), glove, runs, material)
        gain = paired_difference(result.accuracies, rival.accuracies)
    epochs = len((folder / "history.jsonl").read_text().splitlines())
    return {
        **cell.__dict__,
        "accuracy": result.score.mean,
        "ci95": result.score.ci95,
        "over_idf": gain and gain.mean,
        "over_idf_ci95": gain and gain.ci95,
        "episodes": result.score.episodes,
        "queries": result.queries,
        "epochs": epochs,
        "seconds": time.perf_counter() - start,
        "settings": settings_to_dict(settings) | {"model": settings_to_dict(settings.model) | {"vectors": cell.vectors}},
        "versions": {"handful": __version__, "numpy": np.__version__, "torch": torch.__version__},
    }


def test_cell(cell: Cell, glove: str, runs: Path, material: Material) -> Evaluation:
    """Accuracies of a cell's run, trained first if it is not there yet."""
    folder = runs / cell.folder
    if not (folder / "model.safetensors").exists():
        train_run(settings_of(cell, glove), folder, material, quiet=True)
    return evaluate_run(folder, material=material, quiet=True)


def run_all(arguments: argparse.Namespace) -> None:
    """Every cell that has no line yet."""
    from joblib import Parallel, delayed

    done = {tuple(row[field.name] for field in fields(Cell)) for row in rows_of(arguments.out)}
    todo = [cell for cell in cells() if astuple(cell) not in done and arguments.only in cell.folder]
    jobs = (delayed(run_cell)(cell, arguments.glove, arguments.runs) for cell in todo)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for row in Parallel(n_jobs=arguments.workers, return_as="generator_unordered", batch_size=1)(jobs):
        with arguments.out.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        print(f"{row['data']} {row['shot']} {row['vectors']} {row['method']} {row['seed']}: {row['accuracy']:.3f}", flush=True)


def rows_of(path: Path) -> list[dict[str, object]]:
    """The lines of a results file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def print_table(path: Path) -> None:
    """Markdown: a table for each choice of vectors, mean over seeds ± 95 % interval over episodes (± deviation over seeds)."""
    rows = rows_of(path)
    for vectors in ("wordllama", "wordllama+glove"):
        print(f"\n**{vectors}**\n\n| method | " + " | ".join(f"{data} {shot}-shot | paper" for data, shot in COLUMNS) + " |")
        print("|---" * (1 + 2 * len(COLUMNS)) + "|")
        for method, paper in PAPER.items():
            line = [method]
            for (data, shot), figure in zip(COLUMNS, paper, strict=True):
                found = [r for r in rows if (r["data"], r["shot"], r["vectors"], r["method"]) == (data, shot, vectors, method)]
                line += [_cell(found), f"{figure:.1f}"]
            print("| " + " | ".join(line) + " |")


def _cell(found: list[dict[str, object]]) -> str:
    if not found:
        return ""
    accuracies = [100 * float(str(row["accuracy"])) for row in found]
    text = f"{statistics.mean(accuracies):.1f} ± {100 * float(str(found[0]['ci95'])):.1f}"
    if len(found) > 1:
        text += f" (σ {statistics.stdev(accuracies):.1f}, {len(found)} seeds)"
    gains = [100 * float(str(row["over_idf"])) for row in found if row["over_idf"] is not None]
    return text + (f" **{statistics.mean(gains):+.1f}**" if gains else "")


def main() -> None:
    """Run, or print the table of what was run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--glove", default="glove.npz")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print_table(arguments.out)
    else:
        run_all(arguments)


if __name__ == "__main__":
    main()
