"""Answers to files of any size: read, spread over workers, and written in order as they come.

A run is known by its input, classifier and options, so that an interrupted one goes on where it stood and ends with the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from . import __version__
from .classifier_storage import WORDS
from .errors import DataError, ModelError, SettingError
from .parallel import Failure, Pool, dependable_map
from .progress import progress_bar
from .rows import Row, Rows, Source, identity, open_rows
from .sheets import SHEETS, Cells, Layout, destination, output_format
from .storage import CONFIG, MODEL

if TYPE_CHECKING:
    from .estimator import FewShotClassifier

BATCH = 2_000  # rows
BATCH_CHARACTERS = 4_000_000  # ends a batch of long rows: bounds memory
MOST_AHEAD = 128  # batches read but not written: more workers than this would wait for the reading anyway
DIGITS = 6  # of a probability


@dataclass(frozen=True)
class Model:
    """A saved classifier by its path, so that a worker reads it once, and a worker on another machine from there."""

    folder: str
    vectors: str | None
    digest: str

    @classmethod
    def at(cls, folder: Path, vectors: str | None = None) -> Model:
        """The classifier in a folder; `vectors` names the word vectors where it was fitted with a file."""
        place = str(folder.absolute())
        _load.cache_clear()
        return cls(place, vectors, _load(place, vectors)[1])

    def load(self) -> FewShotClassifier:
        """The classifier itself."""
        for _ in range(2):
            classifier, digest = _load(self.folder, self.vectors)
            if digest == self.digest:
                return classifier
            _load.cache_clear()  # it was written again since this process read it
        raise ModelError(f"{self.folder} is not the same for every worker: put the classifier where all of them see it.")


@lru_cache(maxsize=1)
def _load(folder: str, vectors: str | None) -> tuple[FewShotClassifier, str]:
    """A classifier, read once a process, and a digest of the files that its answers depend on."""
    from .estimator import FewShotClassifier

    classifier, digest = FewShotClassifier.load(folder, vectors), hashlib.sha256()
    for name in (CONFIG, MODEL, WORDS):
        with (Path(folder) / name).open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return classifier, digest.hexdigest()


@dataclass(frozen=True)
class Wanted:
    """What to write of each row."""

    probabilities: bool = False  # of all classes, not of the answer alone
    keep: bool = False  # the columns of the input too
    reject_below: float | None = None  # no label where its probability is below


@dataclass(frozen=True)
class Outcome:
    """What was done: texts answered, those of them by an earlier run, and broken rows left out."""

    rows: int
    resumed: int
    skipped: int
    problem: str  # the first of the broken rows


# Answering


def answer_cells(model: Model, wanted: Wanted, _number: int, texts: Sequence[str]) -> list[Cells]:
    """The label of each text and its probability, and that of each class if wanted; of several labels, lists."""
    classifier = model.load()
    found = classifier.predict_proba(texts)  # (texts, classes)
    labels, shares = classifier.classes_.tolist(), found.round(DIGITS).tolist()
    if classifier.kind_ == "one":
        best, sure = found.argmax(axis=1), found.max(axis=1) >= (wanted.reject_below or 0)
        chosen: list[Cells] = [
            (labels[i] if known else None, share[i]) for i, known, share in zip(best, sure, shares, strict=True)
        ]
    else:
        places = [row.nonzero()[0] for row in found > 0.5]
        chosen = [([labels[i] for i in row], [share[i] for i in row]) for row, share in zip(places, shares, strict=True)]
    return [(*cells, *share) for cells, share in zip(chosen, shares, strict=True)] if wanted.probabilities else chosen


def batches_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Some thousand rows at a time, fewer where they are long; always the same ones, wherever reading begins."""
    batch: list[Row] = []
    characters = 0
    for row in rows:
        batch.append(row)
        characters += sum(len(value) for value in row.values if isinstance(value, str))
        if len(batch) == BATCH or characters > BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def answered(
    batches: Iterator[list[Row]], answer: Callable[[int, list[str]], list[Cells]], pool: Pool
) -> Iterator[tuple[list[Row], list[Cells]]]:
    """Each batch with its answers, in order; only so many batches are read before the first of them is given."""
    held, ready, problems = dict[int, list[Row]](), dict[int, list[Cells]](), list[Exception]()
    source, following, ended = enumerate(batches), 0, False

    def draw() -> Iterator[tuple[int, list[str]]]:
        nonlocal ended
        while len(held) < MOST_AHEAD:
            try:
                number, batch = next(source, (-1, []))
            except Exception as error:  # not of a worker, and not to be tried again
                problems.append(error)
                batch = []
            if not batch:
                ended = True
                return
            held[number] = batch
            yield number, [row.text for row in batch]

    while not ended:
        for (number, _), outcome in dependable_map(answer, draw(), pool):
            if isinstance(outcome, Failure):
                first, last = held[number][0].number, held[number][-1].number
                raise DataError(f"Lines {first} to {last} got no answers: {outcome.reason}")
            ready[number] = outcome
            while following in ready:
                yield held.pop(following), ready.pop(following)
                following += 1
    if problems:
        raise problems[0]


def predict_file(
    model: Model,
    source: Source,
    out: Path | IO[bytes],
    form: str | None = None,
    wanted: Wanted | None = None,
    pool: Pool | None = None,
    quiet: bool = False,
) -> Outcome:
    """Answer every row of the source, into a file, of the format that its ending says, or into an open stream."""
    wanted, pool = wanted or Wanted(), pool or Pool()
    form = form or output_format(out)
    if isinstance(out, Path) and out.absolute() == Path(source.path).absolute():
        raise SettingError(f"{out} is the input, which the answers would replace: choose another --out.")
    classifier = model.load()
    classifier.predict([], wanted.reject_below)  # says what is wrong with it before any work
    with open_rows(source, whole=wanted.keep) as rows:
        sheet = SHEETS[form](_layout(rows, classifier, wanted))
        run = _run_digest(source, model, wanted, form) if isinstance(out, Path) else None
        with destination(out, sheet, run) as written, _predicting(rows, written.rows, quiet) as report:
            before = written.rows
            batches = batches_of(islice(rows, before, None))
            for batch, cells in answered(batches, partial(answer_cells, model, wanted), pool):
                kept = [row.values if wanted.keep else () for row in batch]
                written.add(sheet.encode([(*k, *c) for k, c in zip(kept, cells, strict=True)]), len(batch))
                report(written.rows)
        return Outcome(written.rows, before, rows.skipped, rows.problem)


def _layout(rows: Rows, classifier: FewShotClassifier, wanted: Wanted) -> Layout:
    kept = rows.columns if wanted.keep else ()
    labels = tuple(classifier.classes_.tolist())
    own = ["label", "probability", *(f"probability of {label}" for label in labels if wanted.probabilities)]
    free = [_free_name(name, kept) for name in own]
    return Layout(kept, tuple(free), tuple(rows.types.get(name) for name in kept), labels, classifier.kind_ != "one")


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"predicted {name}"
    return name


@contextmanager
def _predicting(rows: Rows, before: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar with the rate and the time left."""
    start = time.monotonic()
    with progress_bar("Predicting", rows.total, quiet) as bar:

        def report(written: int) -> None:
            rate = (written - before) / max(time.monotonic() - start, 1e-9)
            bar.update(rows.done, f"{written:,} texts, {rate:,.0f} a second")

        yield report


def _run_digest(source: Source, model: Model, wanted: Wanted, form: str) -> str | None:
    """The same for a run that would write the same; None where the input cannot be read again."""
    known = identity(source)
    if known is None:
        return None
    given = [__version__, known, source.form, source.text, model.digest, model.vectors, asdict(wanted), form, BATCH]
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()
