"""Predictions for files of any size: rows are read in batches, distributed over workers, and written in order.

A run is identified by its input, classifier and options, so that an interrupted run can be resumed, and ends with the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from .. import __version__
from ..data.reader import Row, Rows, Source, identity, open_rows
from ..errors import DataError
from ..utils.parallel import Failure, Workers, dependable_map
from ..utils.paths import check_not_input
from ..utils.progress import progress_bar
from .output import OUTPUT_FORMATS, Cells, ColumnLayout, destination, output_format, pending_paths

if TYPE_CHECKING:
    from ..classifier.estimator import FewShotClassifier
from .saved import SavedClassifier

BATCH_ROWS = 2_000
BATCH_CHARACTERS = 4_000_000  # ends a batch of long rows early, to bound memory
MOST_AHEAD = 128  # batches read but not yet written: more workers than this would wait for the reader anyway
DIGITS = 6  # of a probability


@dataclass(frozen=True)
class OutputOptions:
    """What to write for each row."""

    probabilities: bool = False  # of all classes, not only of the answer
    keep: bool = False  # the input columns too
    reject_below: float | None = None  # no label if its probability is lower
    threshold: float | None = None  # with several labels, the probability that a label needs; by default as learned
    escape_formulas: bool = False  # put a single quote before CSV and TSV cells that a spreadsheet would run


@dataclass(frozen=True)
class PredictionSummary:
    """The numbers of rows answered, in total and by an earlier run, and of broken rows skipped."""

    rows: int
    resumed: int
    skipped: int
    problem: str  # with the first broken row
    cut: int  # texts answered by this run of which only the first words were read


class AnsweredBatch(NamedTuple):
    """The answer cells of some texts, and the number of texts of which only the first words were read."""

    cells: list[Cells]
    cut: int


# Answering


def answer_cells(model: SavedClassifier, options: OutputOptions, _number: int, texts: Sequence[str]) -> AnsweredBatch:
    """The label of each text with its probability (lists, with several labels per text), and all probabilities if wanted."""
    fitted = model.load().fitted_
    scores, cut = fitted.scores_and_cut(texts)
    found = fitted.probabilities(scores)  # (texts, classes)
    labels = fitted.classes.tolist()
    shares = found.round(DIGITS).tolist()
    chosen = [
        row.nonzero()[0]
        for row in fitted.choose(found, options.threshold if options.reject_below is None else options.reject_below)
    ]
    if fitted.label_format == "single":
        best = found.argmax(axis=1)
        cells: list[Cells] = [
            (labels[i] if len(row) else None, share[i]) for i, row, share in zip(best, chosen, shares, strict=True)
        ]
    else:
        cells = [([labels[i] for i in row], [share[i] for i in row]) for row, share in zip(chosen, shares, strict=True)]
    if options.probabilities:
        cells = [(*pair, *share) for pair, share in zip(cells, shares, strict=True)]
    return AnsweredBatch(cells, cut)


def batches_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Batches of up to BATCH_ROWS rows, fewer if they are long."""
    batch: list[Row] = []
    characters = 0
    for row in rows:
        batch.append(row)
        characters += sum(len(value) for value in row.values if isinstance(value, str))
        if len(batch) == BATCH_ROWS or characters > BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def answered(
    batches: Iterator[list[Row]], answer: Callable[[int, list[str]], AnsweredBatch], workers: Workers
) -> Iterator[tuple[list[Row], AnsweredBatch]]:
    """Each batch with its answers, in order; at most MOST_AHEAD batches are held at a time."""
    held: dict[int, list[Row]] = {}
    ready: dict[int, AnsweredBatch] = {}
    problems: list[Exception] = []
    source = enumerate(batches)
    following = 0
    ended = False

    def draw() -> Iterator[tuple[int, list[str]]]:
        nonlocal ended
        while len(held) < MOST_AHEAD:
            try:
                number, batch = next(source, (-1, []))
            except Exception as error:  # from reading, not from a worker: retrying would not help
                problems.append(error)
                batch = []
            if not batch:
                ended = True
                return
            held[number] = batch
            yield number, [row.text for row in batch]

    while not ended:
        for (number, _), outcome in dependable_map(answer, draw(), workers):
            if isinstance(outcome, Failure):
                first, last = held[number][0].number, held[number][-1].number
                raise DataError(f"Lines {first} to {last} could not be answered: {outcome.reason}")
            ready[number] = outcome
            while following in ready:
                yield held.pop(following), ready.pop(following)
                following += 1
    if problems:
        raise problems[0]


def predict_file(
    model: SavedClassifier,
    source: Source,
    out: Path | IO[bytes],
    form: str | None = None,
    options: OutputOptions | None = None,
    workers: Workers | None = None,
    quiet: bool = False,
) -> PredictionSummary:
    """Answer every row of the source; write to a file, whose ending gives the format, or to an open stream."""
    options = options or OutputOptions()
    workers = workers or Workers()
    form = form or output_format(out)
    if isinstance(out, Path):
        for path in (out, *pending_paths(out)):
            check_not_input(path, [source.path, *model.files])
    classifier = model.load()
    classifier.predict([], options.reject_below, options.threshold)  # raises an error about bad options before any work
    with open_rows(source, whole=options.keep) as rows:
        sheet = OUTPUT_FORMATS[form](_layout(rows, classifier, options))
        run = _run_digest(source, model, options, form) if isinstance(out, Path) else None
        with destination(out, sheet, run) as written, _predicting(rows, written.rows, quiet) as report:
            before = written.rows
            batches = batches_of(islice(rows, before, None))
            cut = 0
            for batch, (cells, longer) in answered(batches, partial(answer_cells, model, options), workers):
                cut += longer
                kept = [row.values if options.keep else () for row in batch]
                written.add(sheet.encode([(*k, *c) for k, c in zip(kept, cells, strict=True)]), len(batch))
                report(written.rows)
        return PredictionSummary(written.rows, before, rows.skipped, rows.problem, cut)


def _layout(rows: Rows, classifier: FewShotClassifier, options: OutputOptions) -> ColumnLayout:
    kept = rows.columns if options.keep else ()
    labels = tuple(classifier.classes_.tolist())
    own = ["label", "probability", *(f"probability of {label}" for label in labels if options.probabilities)]
    free = [_free_name(name, kept) for name in own]
    types = tuple(rows.types.get(name) for name in kept)
    several = classifier.fitted_.label_format != "single"
    return ColumnLayout(kept, tuple(free), types, labels, several, options.escape_formulas)


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"predicted {name}"
    return name


@contextmanager
def _predicting(rows: Rows, before: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar with the rate and the time left."""
    start = time.monotonic()
    with progress_bar("Predicting", rows.total, quiet) as bar:

        def report(written: int) -> None:
            rate = (written - before) / max(time.monotonic() - start, 1e-9)
            bar.update(rows.done, f"{written:,} texts, {rate:,.0f} per second")

        yield report


def _run_digest(source: Source, model: SavedClassifier, options: OutputOptions, form: str) -> str | None:
    """A digest that is equal for runs that would write the same bytes; None if the input cannot be read again."""
    known = identity(source)
    if known is None:
        return None
    given = [__version__, known, source.form, source.text, model.digest, model.vectors, asdict(options), form, BATCH_ROWS]
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()
