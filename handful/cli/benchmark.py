"""Commands for the paper's grids and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..utils.terminal import printable
from .common import Command, names_of, print_data, say


def _numbers(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in names_of(context, parameter, text))
    except ValueError as error:
        raise click.BadParameter("give whole numbers separated by commas, such as 0,1") from error


@click.command(cls=Command)
@click.argument("grid")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Results file, to which one line per cell is appended."
)
@click.option(
    "--runs", default="runs", type=click.Path(path_type=Path), help="Folder for the runs; interrupted ones are resumed."
)
@click.option("--only", default="", help="Run only cells whose name contains this; --dry-run shows the names.")
@click.option("--seeds", default="", callback=_numbers, help="Seeds instead of the grid's, such as 0,1.")
@click.option("--data", default="", callback=names_of, help="Run only these data sets, such as reuters,amazon-17 or your own.")
@click.option("--vectors", default="", callback=names_of, help="Word vectors instead of the grid's, separated by commas.")
@click.option("--workers", default=1, help="Number of processes on this machine.")
@click.option("--backend", default="processes", help="Where to run: processes, dask or ray.")
@click.option("--address", help="Address of the Dask scheduler (tcp://host:8786) or the Ray cluster (host:6379).")
@click.option("--time-budget", help="Start only what fits in this time, such as 90m, the most informative cells first.")
@click.option("--dry-run", is_flag=True, help="List the cells that are not done, with the estimated time.")
@click.option(
    "--machines", default=1, help="With --dry-run: number of machines, each with --workers processes, for the estimate."
)
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: print JSON, one line per cell.")
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
@click.pass_context
def benchmark(
    context: click.Context,
    /,
    grid: str,
    out: Path,
    runs: Path,
    workers: int,
    backend: str,
    address: str | None,
    time_budget: str | None,
    dry_run: bool,
    machines: int,
    as_json: bool,
    quiet: bool,
    **chosen: Any,
) -> None:
    """Run a grid: smoke, main, ablation, bert, finetuned, heads, baselines, full, after_2020, or a file that lists cells.

    Finished cells are skipped. Several processes may share one results file and one folder of runs.

    \b
    handful benchmark smoke --out smoke.jsonl --workers 2
    handful benchmark main --out main.jsonl --seeds 0 --time-budget 90m
    handful benchmark main --out main.jsonl --data reuters,amazon-17 --dry-run
    handful benchmark full --out full.jsonl --backend dask --address tcp://10.0.0.1:8786
    """
    from ..bench.costs import parse_duration
    from ..bench.grid import Selection, load_cells
    from ..bench.running import plan_grid, run_grid
    from ..utils.parallel import Workers
    from ..utils.paths import check_not_input

    check_not_input(out, [grid, *chosen["data"], *chosen["vectors"]])
    cells = load_cells(grid, Selection(**chosen))
    if dry_run:
        plan, refused = plan_grid(cells, out)
        for report in refused:
            say(report, err=True)
        spoken = printable(f"{plan}\n{plan.summary(machines * workers)}")
        click.echo("\n".join(map(json.dumps, plan.rows())) if as_json else spoken)
        return
    budget = parse_duration(time_budget) if time_budget else None
    failed = False
    for report in run_grid(cells, out, runs, Workers(workers, backend, address), budget, quiet):
        failed |= report.failed
        say(report, err=report.failed)
    if budget:
        say(f"Remaining: {plan_grid(cells, out)[0].summary(workers)}")
    context.exit(1 if failed else 0)


@click.command(cls=Command)
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--table",
    "name",
    help="Table: main, ablation, bert, rr_vs_lr, other_heads, other_baselines, finetuned_embeddings or after_2020.",
)
@click.option("--format", "form", default="markdown", help="Output format: markdown, latex or csv (one line per cell).")
def table(results: Path, name: str | None, form: str) -> None:
    """Print the paper's tables from a results file: measured accuracy, the paper's, and the difference; empty if not run.

    \b
    handful table main.jsonl
    handful table main.jsonl --table ablation --format latex
    """
    from ..bench.sections import render_file

    print_data(render_file(results, name, form).encode("utf-8", "replace"))
