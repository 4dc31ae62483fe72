"""Commands to inspect a run: a report with figures, and its attention on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import Command, data_dir_option, names_of, options_of, print_data, say

RUN_OPTIONS = options_of(
    click.argument("run", type=click.Path(path_type=Path)),
    click.option("--data", help="Data to inspect instead of the run's own."),
    data_dir_option,
    click.option("--split", help="Split of that data."),
    click.option("--classes", default="", callback=names_of, help="Classes of the episode to show, such as jobs,retail,cpi."),
    click.option("--document", type=int, help="Text to show, by its position in the data, counted from 0."),
    click.option("--seed", default=0, help="Seed for episodes and for models that an analysis trains."),
)


def _list_analyses(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    from ..analysis import ANALYSES

    if wanted:
        for name, analysis in ANALYSES.items():
            say(f"{name:13} {analysis.about} Needs {analysis.needs}.")
        context.exit()


@click.command(cls=Command)
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_analyses, help="Show all analyses.")
@RUN_OPTIONS
@click.option("--out", default="report.html", type=click.Path(path_type=Path), help="HTML file to write.")
@click.option(
    "--only", default="", callback=names_of, help="Analyses or figures, such as attention,words-map; by default all that apply."
)
@click.option(
    "--figures", type=click.Path(path_type=Path), help="Folder for the figures as SVG, PDF and PNG, with their numbers as CSV."
)
@click.option("--against", multiple=True, type=click.Path(path_type=Path), help="Run to compare with; may be repeated.")
@click.option("--quick", is_flag=True, help="Shorten the slow analyses, for a first look.")
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
def report(
    run: Path, out: Path, only: tuple[str, ...], figures: Path | None, against: tuple[Path, ...], quiet: bool, **wishes: Any
) -> None:
    """Write one web page with all figures that apply to a run; it needs no network and opens in any browser.

    \b
    handful report runs/reuters --out report.html
    handful report runs/reuters --only attention,words --figures figures
    handful report runs/huffpost --only importance --against runs/proto --against runs/proto-seen
    """
    from ..analysis import InspectedRun
    from ..analysis.page import analyse, write_report
    from ..utils.paths import check_not_input

    inputs = [run, *against, *(Path(name) for name in (wishes["data"], wishes["split"]) if name)]
    check_not_input(out, inputs)
    others = tuple(InspectedRun(other, seed=wishes["seed"], quick=wishes["quick"], quiet=quiet) for other in against)
    inspected = InspectedRun(run, against=others, quiet=quiet, **wishes)
    outcomes = []
    for outcome in analyse(inspected, only):
        outcomes.append(outcome)
        say(outcome, err=True)
        if figures:
            for figure in outcome.figures:
                figure.save(figures, inputs)
    write_report(out, inspected, outcomes)
    made = sum(len(outcome.figures) for outcome in outcomes)
    say(f"{out}: {made} figure{'s' * (made != 1)}{f', also saved in {figures}' if figures else ''}.")


@click.command(cls=Command)
@RUN_OPTIONS
@click.option("--n", "number", default=10, help="Number of queries to show.")
def attention(number: int, run: Path, **wishes: Any) -> None:
    """Show queries of an episode, with each word shaded by s(x), by t(x) and by its attention; in a file, as numbers.

    \b
    handful attention runs/huffpost
    handful attention runs/huffpost > weights.tsv
    handful attention runs/reuters --classes jobs,retail,ipi,wpi,cpi --document 325
    """
    from ..analysis import InspectedRun
    from ..analysis.attention import attention_table
    from ..utils.terminal import console

    table, screen = attention_table(InspectedRun(run, **wishes), number), console()
    if screen.is_terminal:
        screen.print(table.terminal())
    else:  # without colours, numbers say more
        print_data(table.weights_by_word(("s", "t", "attention")).encode("utf-8", "replace"))
