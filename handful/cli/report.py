"""Looking at a run: the report of its figures, and its attention on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import data_dir_option, names_of, options_of

SUBJECT_OPTIONS = options_of(
    click.argument("run", type=click.Path(path_type=Path)),
    click.option("--data", help="Other data than the run's own."),
    data_dir_option,
    click.option("--split", help="The split of that data."),
    click.option("--classes", default="", callback=names_of, help="Classes of the episode to show, such as jobs,retail,cpi."),
    click.option("--document", type=int, help="The text to show, by its place in the data, counted from 0."),
    click.option("--seed", default=0, help="Of episodes, and of what an analysis trains."),
)


def _list_analyses(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    from ..bench.analyses import ANALYSES

    if wanted:
        for name, analysis in ANALYSES.items():
            click.echo(f"{name:13} {analysis.about} Needs {analysis.needs}.")
        context.exit()


@click.command()
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_analyses, help="Show all analyses.")
@SUBJECT_OPTIONS
@click.option("--out", default="report.html", type=click.Path(path_type=Path), help="The page.")
@click.option(
    "--only", default="", callback=names_of, help="Some analyses, such as attention,words; by default all that apply."
)
@click.option("--figures", type=click.Path(path_type=Path), help="Folder for each figure as SVG and PNG, its numbers as CSV.")
@click.option("--against", multiple=True, type=click.Path(path_type=Path), help="A run to compare with; may be repeated.")
@click.option("--quick", is_flag=True, help="Less of what takes long: a first look.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def report(
    run: Path, out: Path, only: tuple[str, ...], figures: Path | None, against: tuple[Path, ...], quiet: bool, **wishes: Any
) -> None:
    """Make one web page of all figures that apply to a run; it needs no network and opens in any browser.

    \b
    handful report runs/reuters --out report.html
    handful report runs/reuters --only attention,words --figures figures
    handful report runs/huffpost --only importance --against runs/proto --against runs/proto-seen
    """
    from ..bench.analyses import Subject
    from ..bench.report import analyse, write_report

    others = tuple(Subject(other, seed=wishes["seed"], quick=wishes["quick"], quiet=quiet) for other in against)
    subject = Subject(run, against=others, quiet=quiet, **wishes)
    outcomes = []
    for outcome in analyse(subject, only):
        outcomes.append(outcome)
        click.echo(outcome, err=True)
        if figures:
            for figure in outcome.figures:
                figure.save(figures)
    write_report(out, subject, outcomes)
    made = sum(len(outcome.figures) for outcome in outcomes)
    click.echo(f"{out}: {made} figure{'s' * (made != 1)}{f', as files in {figures}' if figures else ''}.")


@click.command()
@SUBJECT_OPTIONS
@click.option("--n", "number", default=10, help="How many queries of the episode.")
def attention(number: int, run: Path, **wishes: Any) -> None:
    """Show queries of an episode, each word shaded by s(x), by t(x) and by the attention it gets.

    \b
    handful attention runs/huffpost
    handful attention runs/reuters --classes jobs,retail,ipi,wpi,cpi --document 325
    """
    from ..bench.analyses import Subject
    from ..bench.analyses.attention import print_attention

    print_attention(Subject(run, **wishes), number)
