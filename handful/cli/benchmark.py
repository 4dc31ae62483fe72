"""The paper's grids and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .common import names_of


def _numbers(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in names_of(context, parameter, text))
    except ValueError as error:
        raise click.BadParameter("give whole numbers with commas, such as 0,1") from error


@click.command()
@click.argument("grid")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File of results, a line a cell; it is added to.")
@click.option("--runs", default="runs", type=click.Path(path_type=Path), help="Folder of the runs; an interrupted one goes on.")
@click.option("--only", default="", help="Only cells whose name contains this; --dry-run shows the names.")
@click.option("--seeds", default="", callback=_numbers, help="Such as 0,1 in place of the grid's.")
@click.option("--data", default="", callback=names_of, help="Only these data sets, such as reuters,amazon-17; your own too.")
@click.option("--vectors", default="", callback=names_of, help="In place of the grid's; several with commas.")
@click.option("--workers", default=1, help="Processes on this machine.")
@click.option("--backend", default="processes", help="processes, dask or ray.")
@click.option("--address", help="Of the Dask scheduler (tcp://host:8786) or the Ray cluster (host:6379).")
@click.option("--time-budget", help="Such as 90m: begin only what fits, the most informative first.")
@click.option("--dry-run", is_flag=True, help="List the cells that are not done, with the time they will take.")
@click.option("--machines", default=1, help="With --dry-run: how long so many machines of so many workers would take.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: print JSON, a line a cell.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
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
    """Run a grid: smoke, main, ablation, bert, finetuned, heads, baselines, full, or a file that lists data and methods.

    A rerun skips what is done. Several may share one file of results and one folder of runs.

    \b
    handful benchmark smoke --out smoke.jsonl --workers 2
    handful benchmark main --out main.jsonl --seeds 0 --time-budget 90m
    handful benchmark main --out main.jsonl --data reuters,amazon-17 --dry-run
    handful benchmark full --out full.jsonl --backend dask --address tcp://10.0.0.1:8786
    """
    from ..bench.costs import parse_duration
    from ..bench.grid import Selection, load_cells
    from ..bench.running import plan_grid, run_grid
    from ..parallel import Pool

    cells = load_cells(grid, Selection(**chosen))
    if dry_run:
        plan, refused = plan_grid(cells, out)
        for report in refused:
            click.echo(report, err=True)
        click.echo("\n".join(map(json.dumps, plan.rows())) if as_json else f"{plan}\n{plan.summary(machines * workers)}")
        return
    budget, failed = parse_duration(time_budget) if time_budget else None, False
    for report in run_grid(cells, out, runs, Pool(workers, backend, address), budget, quiet):
        failed |= report.failed
        click.echo(report, err=report.failed)
    if budget:
        click.echo(f"Left: {plan_grid(cells, out)[0].summary(workers)}")
    context.exit(1 if failed else 0)


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--table", "name", help="main, ablation, bert, rr_vs_lr, other_heads, other_baselines or finetuned_embeddings.")
@click.option("--format", "form", default="markdown", help="markdown, latex, or csv (a line a cell).")
def table(results: Path, name: str | None, form: str) -> None:
    """Print the paper's tables from a file of results: measured, the paper's figure, the difference; empty where not run.

    \b
    handful table main.jsonl
    handful table main.jsonl --table ablation --format latex
    """
    from ..bench.sections import render_file

    click.echo(render_file(results, name, form), nl=False)
