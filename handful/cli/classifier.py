"""A classifier from a few examples: fit, predict, score, explain, suggest, inspect."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .common import options_of, print_table

HTML = '<!doctype html><meta charset="utf-8"><title>Why</title>{}\n'
FEW = 30  # classes up to which a matrix fits a terminal
model_argument = click.argument("model", type=click.Path(path_type=Path))
vectors_option = click.option("--vectors", help="The file of word vectors, if it was fitted with one.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress bar.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
label_option = click.option("--label", help="The column of the labels, if it is not obvious.")
source_options = options_of(
    click.argument("file"),
    click.option("--text", help="The column of the texts, if it is not obvious."),
    click.option("--format", "form", help="csv, tsv, jsonl, parquet or txt (a text a line); by default by the file's ending."),
    click.option(
        "--on-error", default="stop", type=click.Choice(["stop", "skip"]), help="What to do at a row that cannot be read."
    ),
)


def _source(file: str, on_error: str, form: str | None, text: str | None, label: str | None = None) -> Any:
    from ..rows import Source

    return Source(file, form, text, label, on_error == "skip")


def _say_skipped(skipped: int, problem: str) -> None:
    if skipped:
        rows = "1 row that cannot be read was" if skipped == 1 else f"{skipped:,} rows that cannot be read were"
        click.echo(f"{rows} left out, the first: {problem}.", err=True)


@click.command()
@source_options
@label_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the classifier.")
@click.option("--keep-examples", is_flag=True, help="Save the examples too: to learn more later, and to test it on them.")
@click.option(
    "--from",
    "earlier",
    type=click.Path(path_type=Path),
    help="A classifier that kept its examples: learn more, and keep all of them.",
)
@click.option("--vectors", help="Word vectors in place of wordllama+minilm: a file, or several with +.")
@click.option("--language", help="Code of the language whose word frequencies are the background; en by default.")
def fit(out: Path, keep_examples: bool, earlier: Path | None, vectors: str | None, language: str | None, **source: Any) -> None:
    """Fit a classifier on labelled texts, from one a class on.

    FILE is CSV, TSV, JSON lines, Parquet, or - for standard input.

    \b
    handful fit examples.csv --out triage
    handful fit tickets.parquet --text subject --label queue --out triage --keep-examples
    handful fit more.csv --from triage --out triage
    """
    from ..errors import SettingError
    from ..estimator import FewShotClassifier
    from ..workflow import fit_file

    if earlier and language:
        raise SettingError("--language is that of the classifier that --from names: leave it out.")
    parameters: dict[str, Any] = {n: v for n, v in (("vectors", vectors), ("language", language)) if v}
    classifier = FewShotClassifier.load(earlier, vectors) if earlier else FewShotClassifier(**parameters)
    keep_examples = keep_examples or earlier is not None
    rows = fit_file(classifier, _source(**source), out, keep_examples)
    _say_skipped(rows.skipped, rows.problem)
    kept = "with its examples" if keep_examples else "without its examples"
    click.echo(f"{out}: {len(classifier.classes_)} classes, saved {kept}.")


@click.command()
@model_argument
@source_options
@click.option("--out", type=click.Path(path_type=Path), help="A file ending in .csv, .tsv, .jsonl or .parquet.")
@click.option("--probabilities", is_flag=True, help="The probability of every class, a column each.")
@click.option("--keep", is_flag=True, help="Keep the columns of the input, before the answers.")
@click.option("--reject-below", type=float, help="Leave the label empty where its probability is below, from 0 to 1.")
@click.option("--workers", default=1, help="Processes on this machine.")
@click.option("--backend", default="processes", help="processes, dask or ray.")
@click.option("--address", help="Of the Dask scheduler (tcp://host:8786) or the Ray cluster (host:6379).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, not CSV; with --out, the numbers of rows as JSON.")
@vectors_option
@quiet_option
def predict(
    model: Path,
    out: Path | None,
    probabilities: bool,
    keep: bool,
    reject_below: float | None,
    workers: int,
    backend: str,
    address: str | None,
    as_json: bool,
    vectors: str | None,
    quiet: bool,
    **source: Any,
) -> None:
    """Answer every text of a file, of any size: the label and its probability, in the order of the file.

    FILE is CSV, TSV, JSON lines, Parquet, plain lines (.txt), - for standard input, or a URL such as s3://bucket/inbox.csv. The
    file of answers appears when it is whole; if the run is interrupted, the same command goes on where it stood.

    \b
    handful predict triage inbox.csv --out answers.csv
    handful predict triage inbox.csv --reject-below 0.6 --keep --out answers.csv
    handful predict triage inbox.jsonl.gz --keep --probabilities --out answers.parquet --workers 4
    handful predict triage inbox.csv --out answers.csv --backend dask --address tcp://10.0.0.1:8786
    tail -n 100 mail.txt | handful predict triage - --format txt
    """
    from ..answers import Model, Wanted, predict_file
    from ..parallel import Pool

    outcome = predict_file(
        Model.at(model, vectors),
        _source(**source),
        out or sys.stdout.buffer,
        "jsonl" if as_json and not out else None,
        Wanted(probabilities, keep, reject_below),
        Pool(workers, backend, address),
        quiet,
    )
    _say_skipped(outcome.skipped, outcome.problem)
    if out and as_json:
        click.echo(json.dumps({"out": str(out), **asdict(outcome)}))
    elif out:
        earlier = f", {outcome.resumed:,} of them by an earlier run" if outcome.resumed else ""
        click.echo(f"{out}: {outcome.rows:,} texts answered{earlier}.")


@click.command()
@model_argument
@source_options
@label_option
@vectors_option
@json_option
@quiet_option
def score(model: Path, vectors: str | None, as_json: bool, quiet: bool, **source: Any) -> None:
    """Compare the answers with the labels of a file: accuracy, macro-F1, and which class is taken for which.

    \b
    handful score triage labelled.csv
    handful score triage labelled.csv --json
    """
    from ..answers import Model
    from ..workflow import score_file

    report, rows = score_file(Model.at(model, vectors), _source(**source), quiet)
    _say_skipped(rows.skipped, rows.problem)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
        return
    click.echo(f"{report.accuracy:.1%} of {report.rows:,} texts right, macro-F1 {report.macro_f1:.3f}.")
    matrix = report.matrix()
    if matrix is None:
        print_table(("label", "F1"), [(label, f"{report.f1(label):.3f}") for label in report.labels])
    elif len(report.labels) <= FEW:
        table = [(label, *counts) for label, counts in zip(report.labels, matrix, strict=True)]
        print_table(("true \\ answered", *report.labels), table)
    else:
        mistakes = [(true, answer, times) for (true, answer), times in report.mistakes()[:FEW]]
        print_table(("true", "answered", "texts"), mistakes or [("–", "–", 0)])


@click.command()
@model_argument
@click.argument("text")
@vectors_option
@json_option
@click.option("--html", type=click.Path(path_type=Path), help="Write a web page instead.")
def explain(model: Path, text: str, vectors: str | None, as_json: bool, html: Path | None) -> None:
    """Show which words of a text speak for the answer (orange) and against it (blue); TEXT may be - for standard input.

    \b
    handful explain triage "the parcel never came"
    handful explain triage "the parcel never came" --html why.html
    """
    from ..answers import Model
    from ..storage import write_atomic

    explanation = Model.at(model, vectors).load().explain(_standard_input() if text == "-" else text)
    if html:
        write_atomic(html, HTML.format(explanation._repr_html_()).encode())
        click.echo(f"{html}: open it in a browser.")
    elif as_json:
        click.echo(explanation.to_json())
    else:
        explanation.show()


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")


@click.command()
@model_argument
@source_options
@click.option("--n", "number", default=10, help="How many texts.")
@vectors_option
@click.option("--json", "as_json", is_flag=True, help="JSON lines, with the row and the present answer.")
@quiet_option
def suggest(model: Path, number: int, vectors: str | None, as_json: bool, quiet: bool, **source: Any) -> None:
    """Choose the unlabelled texts that are worth labelling next: together they stand for those that it is unsure of.

    Prints CSV with an empty column to fill in, ready for handful fit.

    \b
    handful suggest triage pool.csv --n 10 > to-label.csv
    handful suggest triage pool.txt --json
    """
    from ..answers import Model
    from ..sheets import Delimited, Layout
    from ..workflow import suggest_rows

    suggestions, rows = suggest_rows(Model.at(model, vectors), _source(**source), number, quiet)
    _say_skipped(rows.skipped, rows.problem)
    if as_json:
        for suggestion in suggestions:
            click.echo(json.dumps(asdict(suggestion)))
        return
    sheet = Delimited(Layout(("text",), ("label",)))
    click.echo(sheet.header() + sheet.encode([(one.text, "") for one in suggestions]), nl=False)


@click.command()
@model_argument
@vectors_option
@json_option
@quiet_option
def inspect(model: Path, vectors: str | None, as_json: bool, quiet: bool) -> None:
    """Show what a classifier holds; with two examples a class that were kept, also how it does on them, cross-validated.

    \b
    handful inspect triage
    handful inspect triage --json
    """
    from ..answers import Model
    from ..workflow import inspect_model

    found = inspect_model(Model.at(model, vectors), quiet)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    counts = ["not kept" if count is None else count for count in found.classes.values()]
    print_table(("class", "examples"), list(zip(found.classes, counts, strict=True)))
    settings = ", ".join(f"{name} {value}" for name, value in found.settings.items())
    click.echo(f"\n{len(found.classes)} classes, {found.labels} a text; {settings}.")
    if found.accuracy is not None:
        click.echo(f"{found.accuracy:.1%} of its examples right in {found.folds}-fold cross-validation.")
