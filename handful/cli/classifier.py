"""A classifier from a few examples: fit, predict, score, explain, suggest, inspect."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .common import Command, label_option, options_of, print_data, print_table, reading_options, say, standard_output

HTML = '<!doctype html><meta charset="utf-8"><title>Why</title>{}\n'
FEW = 30  # classes up to which a matrix fits a terminal
model_argument = click.argument("model", type=click.Path(path_type=Path))
vectors_option = click.option("--vectors", help="The file of word vectors, if it was fitted with one.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress bar.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
separator_option = click.option(
    "--label-separator", help="Separator of several labels in one cell of CSV, such as ; (a JSON list needs none)."
)


def formulas_option(default: bool) -> Callable[..., Any]:
    """For files that a spreadsheet may open."""
    about = "Put a single quote before cells of CSV and TSV that a spreadsheet would run as formulas; fit and score remove it."
    return click.option("--escape-formulas/--no-escape-formulas", default=default, help=about)


on_error_option = click.option(
    "--on-error", default="stop", type=click.Choice(["stop", "skip"]), help="What to do at a row that cannot be read."
)
source_options = options_of(click.argument("file"), reading_options, on_error_option)


def _source(file: str, on_error: str, **reading: Any) -> Any:
    from ..data.reader import Source

    return Source(file, skip_broken=on_error == "skip", **reading)


def _say_skipped(skipped: int, problem: str) -> None:
    if skipped:
        rows = "1 row that cannot be read was" if skipped == 1 else f"{skipped:,} rows that cannot be read were"
        say(f"{rows} skipped; the first: {problem}.", err=True)


@click.command(cls=Command)
@click.argument("file", required=False)
@reading_options
@on_error_option
@label_option
@separator_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the classifier.")
@click.option("--keep-examples", is_flag=True, help="Save the examples too, to learn more later and to test it on them.")
@click.option(
    "--from",
    "earlier",
    type=click.Path(path_type=Path),
    help="A classifier that kept its examples: learn more, and keep all of them.",
)
@click.option(
    "--class-names",
    default="auto",
    help="Words that describe classes: auto (labels that read as words), off, or a file with a row per class, its label and "
    "its description (a .txt file: one label per line).",
)
@click.option("--unlabeled", help="A file of unlabelled texts to learn from, such as the inbox to be sorted.")
@click.option(
    "--encoder", default="words", help="words, a sentence encoder by name (see handful encoders list), or both: words+NAME."
)
@click.option("--vectors", help="Word vectors to use instead of blend: a file, or several separated by +.")
@click.option("--language", help="Code of the language of the background word frequencies; en by default.")
def fit(
    file: str | None,
    out: Path,
    keep_examples: bool,
    earlier: Path | None,
    label_separator: str | None,
    class_names: str,
    unlabeled: str | None,
    encoder: str,
    vectors: str | None,
    language: str | None,
    **source: Any,
) -> None:
    """Fit a classifier to labelled texts; one example per class is enough to start.

    FILE is CSV, TSV, JSON, Parquet, Excel, or - for standard input. Without FILE, descriptions of the classes are enough.

    \b
    handful fit examples.csv --out triage
    handful fit examples.csv --unlabeled inbox.csv --encoder bge-small --out triage
    handful fit tickets.parquet --text subject --label queue --out triage --keep-examples
    handful fit more.csv --from triage --out triage
    handful fit tagged.csv --label-separator ";" --out tags
    handful fit --class-names classes.csv --unlabeled inbox.csv --out triage
    """
    from ..batch.fitting import FitSources, fit_file
    from ..classifier.estimator import FewShotClassifier
    from ..data.reader import Source
    from ..embeddings.encoders import encoder_names
    from ..errors import SettingError

    if earlier and (language is not None or encoder != "words" or class_names != "auto" or unlabeled is not None):
        raise SettingError(
            "--language, --encoder, --class-names and --unlabeled are those of the classifier that --from names: remove them."
        )
    if encoder != "words" and encoder.removeprefix("words+") not in encoder_names():
        raise SettingError(
            f"There is no encoder {encoder!r}: choose words, {', '.join(encoder_names())}, or words+ and one of these names; "
            "folders are for Python."
        )
    given = {"vectors": vectors, "language": language, "encoder": encoder}
    parameters: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    classifier = FewShotClassifier.load(earlier, vectors) if earlier else FewShotClassifier(**parameters)
    sources = FitSources(
        _source(file, **source) if file else None,
        class_names == "auto" if class_names in ("auto", "off") else Source(class_names),
        Source(unlabeled) if unlabeled else None,
    )
    keep_examples = keep_examples or earlier is not None
    rows = fit_file(classifier, sources, out, keep_examples, label_separator)
    _say_skipped(rows.skipped, rows.problem)
    kept = "with its examples" if keep_examples else "without its examples"
    say(f"{out}: {len(classifier.classes_)} classes, saved {kept}{_sources_text(asdict(classifier.fitted_.sources))}.")


def _sources_text(sources: dict[str, Any]) -> str:
    """The end of a sentence that says which sources other than examples a classifier learned from."""
    parts = []
    if sources["named"]:
        parts.append(f"the words of {len(sources['named'])} labels, each worth {sources['name_weight']:.1f} examples")
    if sources["unlabeled"]:
        parts.append(f"{sources['pooled']:,} of {sources['unlabeled']:,} unlabelled texts")
    return f"; it also learned from {' and '.join(parts)}" if parts else ""


@click.command(cls=Command)
@model_argument
@source_options
@click.option("--out", type=click.Path(path_type=Path), help="A file ending in .csv, .tsv, .jsonl or .parquet.")
@click.option("--probabilities", is_flag=True, help="Add a column with the probability of each class.")
@click.option("--keep", is_flag=True, help="Keep the columns of the input, before the answers.")
@click.option("--reject-below", type=float, help="Leave the label empty if its probability is below this (0 to 1).")
@click.option("--threshold", type=float, help="Probability above which a text gets a label, if it may have several.")
@formulas_option(False)
@click.option("--workers", default=1, help="Processes on this machine.")
@click.option("--backend", default="processes", help="processes, dask or ray.")
@click.option("--address", help="Address of the Dask scheduler (tcp://host:8786) or the Ray cluster (host:6379).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, not CSV; with --out, the numbers of rows as JSON.")
@vectors_option
@quiet_option
def predict(
    model: Path,
    out: Path | None,
    probabilities: bool,
    keep: bool,
    reject_below: float | None,
    threshold: float | None,
    escape_formulas: bool,
    workers: int,
    backend: str,
    address: str | None,
    as_json: bool,
    vectors: str | None,
    quiet: bool,
    **source: Any,
) -> None:
    """Answer every text of a file, of any size: the label and its probability, in the order of the file.

    FILE is CSV, TSV, JSON, Parquet, Excel, plain lines (.txt), - for standard input, or a URL such as s3://bucket/inbox.csv.
    The file of answers appears when it is complete; if the run is interrupted, the same command resumes it.

    \b
    handful predict triage inbox.csv --out answers.csv
    handful predict triage inbox.csv --reject-below 0.6 --keep --out answers.csv
    handful predict triage inbox.jsonl.gz --keep --probabilities --out answers.parquet --workers 4
    handful predict triage inbox.csv --out answers.csv --backend dask --address tcp://10.0.0.1:8786
    tail -n 100 mail.txt | handful predict triage - --format txt
    """
    from ..batch.prediction import OutputOptions, predict_file
    from ..batch.saved import SavedClassifier
    from ..utils.parallel import Workers

    outcome = predict_file(
        SavedClassifier.at(model, vectors),
        _source(**source),
        out or standard_output(),
        "jsonl" if as_json and not out else None,
        OutputOptions(probabilities, keep, reject_below, threshold, escape_formulas),
        Workers(workers, backend, address),
        quiet,
    )
    _say_skipped(outcome.skipped, outcome.problem)
    if outcome.cut:
        longer = "1 text is" if outcome.cut == 1 else f"{outcome.cut:,} texts are"
        say(
            f"{longer} longer than the number of words that the classifier reads; only the words up to max_words count.",
            err=True,
        )
    if out and as_json:
        click.echo(json.dumps({"out": str(out), **asdict(outcome)}))
    elif out:
        earlier = f", {outcome.resumed:,} of them by an earlier run" if outcome.resumed else ""
        say(f"{out}: {outcome.rows:,} texts answered{earlier}.")


@click.command(cls=Command)
@model_argument
@source_options
@label_option
@separator_option
@vectors_option
@json_option
@quiet_option
def score(model: Path, label_separator: str | None, vectors: str | None, as_json: bool, quiet: bool, **source: Any) -> None:
    """Compare the answers with the labels of a file: accuracy, macro-F1, and which class is taken for which.

    \b
    handful score triage labelled.csv
    handful score triage labelled.csv --json
    """
    from ..batch.saved import SavedClassifier
    from ..batch.scoring import score_file

    report, rows = score_file(SavedClassifier.at(model, vectors), _source(**source), quiet, label_separator)
    _say_skipped(rows.skipped, rows.problem)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
        return
    say(f"{report.accuracy:.1%} of {report.rows:,} texts right, macro-F1 {report.macro_f1:.3f}.")
    matrix = report.matrix()
    if matrix is None:
        print_table(("label", "F1"), [(label, f"{report.f1(label):.3f}") for label in report.labels])
    elif len(report.labels) <= FEW:
        table = [(label, *counts) for label, counts in zip(report.labels, matrix, strict=True)]
        print_table(("true \\ answered", *report.labels), table)
    else:
        mistakes = [(true, answer, times) for (true, answer), times in report.mistakes()[:FEW]]
        print_table(("true", "answered", "texts"), mistakes or [("–", "–", 0)])


@click.command(cls=Command)
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
    from ..batch.saved import SavedClassifier
    from ..utils.files import write_atomic
    from ..utils.paths import check_not_input

    if html:
        check_not_input(html, [*SavedClassifier.at(model, vectors).files, vectors])
    explanation = SavedClassifier.at(model, vectors).load().explain(_standard_input() if text == "-" else text)
    if html:
        write_atomic(html, HTML.format(explanation._repr_html_()).encode())
        say(f"{html}: open it in a browser.")
    elif as_json:
        click.echo(explanation.to_json())
    else:
        explanation.show()


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")


@click.command(cls=Command)
@model_argument
@source_options
@click.option("--n", "number", default=10, help="How many texts.")
@formulas_option(True)
@vectors_option
@click.option("--json", "as_json", is_flag=True, help="JSON lines, with the row and the present answer.")
@quiet_option
def suggest(
    model: Path, number: int, escape_formulas: bool, vectors: str | None, as_json: bool, quiet: bool, **source: Any
) -> None:
    """Choose the unlabelled texts that are worth labelling next: together they represent those that it is unsure about.

    Prints CSV with an empty column to fill in, ready for handful fit.

    \b
    handful suggest triage pool.csv --n 10 > to-label.csv
    handful suggest triage pool.txt --json
    """
    from ..batch.output import ColumnLayout, CsvFormat
    from ..batch.saved import SavedClassifier
    from ..batch.suggesting import suggest_rows

    suggestions, rows = suggest_rows(SavedClassifier.at(model, vectors), _source(**source), number, quiet)
    _say_skipped(rows.skipped, rows.problem)
    if as_json:
        for suggestion in suggestions:
            click.echo(json.dumps(asdict(suggestion)))
        return
    sheet = CsvFormat(ColumnLayout(("text",), ("label",), escape_formulas=escape_formulas))
    print_data(sheet.header() + sheet.encode([(one.text, "") for one in suggestions]))


@click.command(cls=Command)
@model_argument
@vectors_option
@json_option
@quiet_option
def inspect(model: Path, vectors: str | None, as_json: bool, quiet: bool) -> None:
    """Show what a classifier holds and, if at least two examples per class were kept, its cross-validated accuracy on them.

    \b
    handful inspect triage
    handful inspect triage --json
    """
    from ..batch.inspection import inspect_model
    from ..batch.saved import SavedClassifier

    found = inspect_model(SavedClassifier.at(model, vectors), quiet)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    counts = ["not kept" if count is None else count for count in found.classes.values()]
    print_table(("class", "examples"), list(zip(found.classes, counts, strict=True)))
    settings = ", ".join(f"{name} {value}" for name, value in found.settings.items())
    click.echo()
    labels = "one label" if found.labels == "one" else "several labels"
    say(f"{len(found.classes)} classes, {labels} per text; {settings}{_sources_text(found.sources)}.")
    if found.accuracy is not None:
        say(f"{found.accuracy:.1%} of its examples right in {found.folds}-fold cross-validation.")
