"""Commands for meta-learning: train, evaluate and demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..utils.terminal import printable
from .common import Command, data_dir_option, say
from .settings_command import SettingsCommand

OPEN_WORDS = {
    "class_names": "with class names",
    "unlabelled": "with {unlabelled} unlabelled texts per class",
    "transductive": "transductive",
    "unbalanced": "at most, unbalanced",
    "none_share": "and {none_share:.0%} of no class",
}


def _run_settings() -> type[Any]:
    from ..meta.settings import RunSettings

    return RunSettings


def _list_presets(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    from ..meta.presets import ABOUT, load_preset, preset_names

    if wanted:
        for name in preset_names():
            say(f"{name:20} {load_preset(name)[ABOUT]}")
        context.exit()


def _list_methods(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    from ..models.components import HEADS, REPRESENTATIONS, describe

    if wanted:
        for components in (REPRESENTATIONS, HEADS):
            for line in describe(components):
                say(line)
        context.exit()


@click.command(cls=SettingsCommand, settings=_run_settings)
@click.option(
    "--list-presets", is_flag=True, is_eager=True, expose_value=False, callback=_list_presets, help="Show all presets."
)
@click.option(
    "--list-methods",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_methods,
    help="Show all representations and heads, with their own options.",
)
@click.option(
    "--preset",
    help="Method by its name in the paper's tables, such as cnn-proto, or as sif+ridge; explicit options override it.",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder for the run; an interrupted run is resumed."
)
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress: neither a bar nor, if there is no terminal, lines.")
@click.pass_context
def train(context: click.Context, /, preset: str | None, out: Path, as_json: bool, quiet: bool, **options: Any) -> None:
    """Meta-train on the training classes of a corpus, with early stopping on its validation classes.

    \b
    handful train --out runs/demo
    handful train --data reuters --shot 5 --vectors wordllama+glove.npz --out runs/reuters
    handful train --data my.jsonl --split my.split.json --preset idf-rr --out runs/idf
    """
    from ..meta.experiment import train_run
    from ..meta.presets import ABOUT, load_preset
    from ..meta.settings import settings_from_options
    from ..meta.training import validation_objective
    from ..utils.wording import counted

    named = load_preset(preset).items() if preset else ()
    default = click.core.ParameterSource.DEFAULT
    options |= {name: value for name, value in named if name != ABOUT and context.get_parameter_source(name) is default}
    settings = settings_from_options(options)
    history = train_run(settings, out, quiet=quiet)
    best = min(history, key=lambda line: validation_objective(line, settings.training), default={})
    if as_json:
        click.echo(json.dumps({"run": str(out), "epochs": len(history), **(best if history else {})}))
    elif history:
        where = f"{100 * best['val_accuracy']:.1f} % on validation classes at epoch {best['epoch']}"
        say(f"{out}: {counted(len(history), 'epoch')}, {where}.")
    else:
        say(f"{out}: this method needs no training; test it with handful evaluate.")


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--against", type=click.Path(path_type=Path), help="Run to compare with, by the paired difference over the same episodes."
)
@click.option("--part", default="test", type=click.Choice(["train", "val", "test"]), help="Classes to test on.")
@click.option("--episodes", default=1000, help="Number of test episodes.")
@click.option("--data", help="Data to test on instead of the run's own.")
@data_dir_option
@click.option("--split", help="Split of that data.")
@click.option("--way", type=int, help="Classes per episode; by default as in training.")
@click.option("--shot", type=int, help="Labelled examples per class; by default as in training.")
@click.option("--queries", type=int, help="Queries per class; by default as in training.")
@click.option("--class-names/--no-class-names", default=None, help="Add the words of each class's name to its examples.")
@click.option("--unlabelled", type=int, help="Further texts per class to learn from without their labels.")
@click.option("--transductive/--inductive", default=None, help="Whether to learn also from the queries, without their labels.")
@click.option("--unbalanced/--balanced", default=None, help="Whether the classes of the queries are unequally frequent.")
@click.option("--none-share", type=float, help="Share of the queries that belong to no class of the episode, below 1.")
@click.option("--seed", type=int, help="Seed for the episodes; by default the run's.")
@click.option("--workers", default=1, help="Number of processes.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, one line per run.")
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
def evaluate(runs: tuple[Path, ...], against: Path | None, as_json: bool, **options: Any) -> None:
    """Test runs on episodes of unseen classes; for several runs, also report their mean and standard deviation.

    \b
    handful evaluate runs/demo
    handful evaluate runs/demo --against runs/idf --json
    handful evaluate runs/seed0 runs/seed1 runs/seed2
    handful evaluate runs/demo --class-names --none-share 0.3
    """
    from ..meta.experiment import evaluation_report, load_run, over_seeds

    other = load_run(against) if against else None
    reports = [evaluation_report(load_run(run), other, **options) for run in runs]
    for report in reports:
        click.echo(json.dumps(report) if as_json else printable(_evaluation_sentence(report, against)))
    if len(reports) > 1:
        summary = over_seeds(reports)
        text = (
            f"Mean over {len(runs)} runs: {100 * summary['accuracy']:.1f} %, "
            f"σ {100 * summary['deviation']:.1f} (their standard deviation)."
        )
        click.echo(json.dumps(summary) if as_json else text)


def _evaluation_sentence(report: dict[str, Any], against: Path | None) -> str:
    sentence = (
        "{run}: {accuracy:.1%} ± {ci95:.1%} over {episodes} episodes, {way}-way {shot}-shot, {queries} queries per class"
        + "".join(", " + words.format(**report) for name, words in OPEN_WORDS.items() if name in report)
        + "."
    )
    if "auroc" in report:
        sentence += (
            "\nArea under the ROC curve of the largest score, which tells queries of no class: {auroc:.3f} ± {auroc_ci95:.3f}."
        )
    if against:
        sentence += "\n{difference:+.1%} ± {difference_ci95:.1%} compared with {against} on the same episodes."
    return sentence.format(**report, against=against)


@click.command(cls=Command)
@click.option("--episodes", default=1000, help="Test episodes.")
@click.option("--seed", default=0)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def demo(episodes: int, seed: int, quiet: bool) -> None:
    """Train on the packaged demo corpus, test on unseen classes, and show which words mattered.

    \b
    handful demo
    """
    from ..meta.demo import print_demo

    print_demo(episodes, seed, quiet)
