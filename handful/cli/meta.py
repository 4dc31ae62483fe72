"""Meta-learning: train, evaluate, and the demonstration of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .common import data_dir_option, options_of

DATA_OPTIONS = options_of(
    click.option("--data", default="demo", help="demo, requests, a file of JSON lines, or a name in the data folder."),
    data_dir_option,
    click.option("--split", help="JSON file with the classes of train, val and test, or the name of a split that ships."),
    click.option("--skip-empty", is_flag=True, help="Leave texts without a word out, instead of stopping at them."),
    click.option("--longest", default=500, help="Words kept of a text."),
)
EPISODE_OPTIONS = options_of(
    click.option("--way", default=5, help="Classes of an episode."),
    click.option("--shot", default=1, help="Labelled examples a class."),
    click.option("--queries", default=25, help="Queries a class."),
)
MODEL_OPTIONS = options_of(
    click.option("--representation", default="attention", help="mean, idf, cnn, lstm, cls or attention."),
    click.option(
        "--head",
        default="ridge",
        help="ridge, universal, refined, logistic, nearest, centroid, prototype, routing, induction, maml, finetune.",
    ),
    click.option("--first-order", is_flag=True, help="maml: leave second derivatives out."),
    click.option("--inner-steps", default=10, help="maml: gradient steps on a support set."),
    click.option("--inner-rate", default=0.1, help="maml: their size."),
    click.option("--hidden", default=300, help="maml: ReLU units; 0 for a softmax layer alone."),
    click.option(
        "--distance", default="euclidean", help="euclidean, squared or cosine (nearest, centroid, prototype, routing)."
    ),
    click.option(
        "--vectors",
        default="wordllama",
        help="Tables joined by + (wordllama, minilm, paths), each with :raw, :unit or :centred; or contextual:ENCODER.",
    ),
    click.option("--length", default=1.0, help="Of a frequent word's vector; networks learn better from longer ones (10)."),
    click.option("--train-vectors", is_flag=True, help="Fine-tune the vectors of the training words too, or the encoder."),
    click.option(
        "--signals", default="s,t", help="What the attention generator sees: some of s, t, f, u and r, joined by commas."
    ),
    click.option("--network", default="bilstm", help="bilstm, or mlp (each word alone)."),
    click.option("--pool", default="source", help="Word frequencies for s(x): the source pool, or the background (wordfreq)."),
    click.option(
        "--positions", is_flag=True, help="For relations: show attention or cnn where a word stands from head and tail."
    ),
    click.option("--embeddings", is_flag=True, help="Show the attention generator the word vectors too."),
)
SIGNATURE_OPTIONS = options_of(
    click.option("--estimator", default="count", help="Of P(class | word): softmax, ridge or count."),
    click.option("--measure", default="entropy", help="t from P(class | word): entropy (its inverse), or max (ridge only)."),
    click.option("--epsilon", default=1e-3, help="ε of s(x)."),
    click.option("--penalty", default=0.01, help="Of the softmax or ridge classifier behind t(x)."),
    click.option("--smoothing", default=0.1, help="Count added to every class (count)."),
    click.option("--tolerance", default=0.1, help="Gradient norm at which the softmax classifier stops."),
    click.option("--stop", default="relative", help="That norm relative to the first one, or absolute."),
)
TRAINING_OPTIONS = options_of(
    click.option("--learning-rate", default=1e-3),
    click.option("--episodes", default=100, help="Episodes an epoch."),
    click.option("--tasks", default=1, help="Episodes of one update."),
    click.option("--validation-episodes", default=100, help="Validation episodes after each epoch."),
    click.option("--patience", default=20, help="Epochs without improvement before stopping."),
    click.option("--epochs", default=1000, help="Epochs at most."),
    click.option("--pretraining-epochs", default=0, help="Epochs at most of masked language modelling, of a trained encoder."),
    click.option("--monitor", default="loss", help="What must improve on the validation classes: loss or accuracy."),
    click.option(
        "--curve-episodes",
        default=0,
        help="After each epoch, note the accuracy on so many episodes of training and of test classes; it decides nothing.",
    ),
)


def _list_presets(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    from ..presets import load_preset, preset_names

    if wanted:
        for name in preset_names():
            click.echo(f"{name:20} {load_preset(name)['about']}")
        context.exit()


@click.command()
@click.option(
    "--list-presets", is_flag=True, is_eager=True, expose_value=False, callback=_list_presets, help="Show all presets."
)
@click.option("--preset", help="A method by its name in the paper's tables, such as cnn-proto; an option given wins over it.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the run; a killed run in it goes on.")
@DATA_OPTIONS
@EPISODE_OPTIONS
@MODEL_OPTIONS
@SIGNATURE_OPTIONS
@TRAINING_OPTIONS
@click.option("--seed", default=0, help="Of episodes, initial weights and dropout.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.pass_context
def train(context: click.Context, /, preset: str | None, out: Path, as_json: bool, quiet: bool, **options: Any) -> None:
    """Meta-train on the training classes of a corpus, watching its validation classes.

    \b
    handful train --out runs/demo
    handful train --data reuters --shot 5 --vectors wordllama+glove.npz --out runs/reuters
    handful train --data my.jsonl --split my.split.json --preset idf-rr --out runs/idf
    """
    from ..presets import load_preset
    from ..runs import settings_from_options, train_run
    from ..training import badness

    named = load_preset(preset).items() if preset else ()
    default = click.core.ParameterSource.DEFAULT
    options |= {name: value for name, value in named if context.get_parameter_source(name) is default}
    settings = settings_from_options(options)
    history = train_run(settings, out, quiet=quiet)
    best = min(history, key=lambda line: badness(line, settings.training), default={})
    if as_json:
        click.echo(json.dumps({"run": str(out), "epochs": len(history), **(best if history else {})}))
    elif history:
        where = f"{100 * best['val_accuracy']:.1f} % on validation classes at epoch {best['epoch']}"
        click.echo(f"{out}: {len(history)} epochs, {where}.")
    else:
        click.echo(f"{out}: this method has nothing to learn in training; test it with handful evaluate.")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="Another run: the paired difference over the same episodes.")
@click.option("--part", default="test", type=click.Choice(["train", "val", "test"]), help="Classes to test on.")
@click.option("--episodes", default=1000, help="Test episodes.")
@click.option("--data", help="Other data than the run's own.")
@data_dir_option
@click.option("--split", help="The split of that data.")
@click.option("--way", type=int, help="Other than in training.")
@click.option("--shot", type=int, help="Other than in training.")
@click.option("--queries", type=int, help="Other than in training.")
@click.option("--seed", type=int, help="Of the episodes; by default the run's.")
@click.option("--workers", default=1, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, a line a run.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def evaluate(runs: tuple[Path, ...], against: Path | None, as_json: bool, **options: Any) -> None:
    """Test runs on episodes of classes they have never seen; of several, also the mean and deviation over them.

    \b
    handful evaluate runs/demo
    handful evaluate runs/demo --against runs/idf --json
    handful evaluate runs/seed0 runs/seed1 runs/seed2
    """
    from ..runs import evaluation_report, over_seeds

    reports = [evaluation_report(run, against, **options) for run in runs]
    for report in reports:
        click.echo(json.dumps(report) if as_json else _evaluation_sentence(report, against))
    if len(reports) > 1:
        summary = over_seeds(reports)
        text = (
            f"{100 * summary['accuracy']:.1f} % on average, deviation {100 * summary['deviation']:.1f} over {len(runs)} runs."
        )
        click.echo(json.dumps(summary) if as_json else text)


def _evaluation_sentence(report: dict[str, Any], against: Path | None) -> str:
    sentence = "{run}: {accuracy:.1%} ± {ci95:.1%} over {episodes} episodes, {way}-way {shot}-shot, {queries} queries a class."
    if against:
        sentence += "\n{difference:+.1%} ± {difference_ci95:.1%} against {against} on the same episodes."
    return sentence.format(**report, against=against)


@click.command()
@click.option("--episodes", default=1000, help="Test episodes.")
@click.option("--seed", default=0)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def demo(episodes: int, seed: int, quiet: bool) -> None:
    """Train on the packaged demo corpus, test on classes never seen, and show the words that counted.

    \b
    handful demo
    """
    from ..demo import print_demo

    print_demo(episodes, seed, quiet)
