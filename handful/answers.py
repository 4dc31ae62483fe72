"""Answers to files of any size: read, spread over workers, and written in order as they come.

A file of answers grows beside its place and appears there when it is whole. Beside it is noted how far it is, and for which
input, classifier and options, so that an interrupted run goes on where it stood and ends with the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from . import __version__
from .classifier_storage import WORDS
from .errors import DataError, MissingExtraError, ModelError, SettingError
from .parallel import Failure, Pool, dependable_map
from .progress import progress_bar
from .rows import DELIMITERS, ENDINGS, Row, Rows, Source, identity, open_rows
from .storage import CONFIG, MODEL, write_json

if TYPE_CHECKING:
    from .estimator import FewShotClassifier

BATCH = 2_000  # rows
BATCH_CHARACTERS = 4_000_000  # ends a batch of long rows: bounds memory
MOST_AHEAD = 128  # batches read but not written: more workers than this would wait for the reading anyway
DIGITS = 6  # of a probability
Cells = tuple[Any, ...]


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


@dataclass(frozen=True)
class Outcome:
    """What was done: texts answered, those of them by an earlier run, and broken rows left out."""

    rows: int
    resumed: int
    skipped: int
    problem: str  # the first of the broken rows


# Answering


def answer_cells(model: Model, probabilities: bool, _number: int, texts: Sequence[str]) -> list[Cells]:
    """The label of each text and its probability, and that of each class if wanted; of several labels, lists."""
    classifier = model.load()
    found = classifier.predict_proba(texts)  # (texts, classes)
    labels, shares = classifier.classes_.tolist(), found.round(DIGITS).tolist()
    if classifier.kind_ == "one":
        chosen: list[Cells] = [(labels[i], share[i]) for i, share in zip(found.argmax(axis=1), shares, strict=True)]
    else:
        places = [row.nonzero()[0] for row in found > 0.5]
        chosen = [([labels[i] for i in row], [share[i] for i in row]) for row, share in zip(places, shares, strict=True)]
    return [(*cells, *share) for cells, share in zip(chosen, shares, strict=True)] if probabilities else chosen


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
    with open_rows(source, whole=wanted.keep) as rows:
        sheet = SHEETS[form](_layout(rows, classifier, wanted))
        run = _run_digest(source, model, wanted, form) if isinstance(out, Path) else None
        with _destination(out, sheet, run) as written, _predicting(rows, written.rows, quiet) as report:
            before = written.rows
            batches = batches_of(islice(rows, before, None))
            for batch, cells in answered(batches, partial(answer_cells, model, wanted.probabilities), pool):
                kept = [row.values if wanted.keep else () for row in batch]
                written.add(sheet.encode([(*k, *c) for k, c in zip(kept, cells, strict=True)]), len(batch))
                report(written.rows)
        return Outcome(written.rows, before, rows.skipped, rows.problem)


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


# The formats of answers


@dataclass(frozen=True)
class Layout:
    """The columns of the answers."""

    kept: tuple[str, ...]
    own: tuple[str, ...]
    types: tuple[Any, ...] = ()  # of the columns that are kept, where the input says so, otherwise None
    labels: tuple[Any, ...] = ()
    several: bool = False  # labels a text

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.kept, *self.own)


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


class Sheet(Protocol):
    """A format of answers: bytes that can be appended, and what is to be done when they are complete."""

    def header(self) -> bytes:
        """How a file begins."""
        ...

    def encode(self, rows: Sequence[Cells]) -> bytes:
        """Some rows more."""
        ...

    def finish(self, pending: Path, out: Path) -> None:
        """Put the complete file in its place."""
        ...


class _Appended:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def finish(self, pending: Path, out: Path) -> None:
        pending.replace(out)


class Delimited(_Appended):
    """CSV; a value that is no string is written as JSON."""

    delimiter = DELIMITERS["csv"]

    def header(self) -> bytes:
        return self.encode([self.layout.columns])

    def encode(self, rows: Sequence[Cells]) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows([as_text(v) for v in row] for row in rows)
        return text.getvalue().encode("utf-8", "replace")


class TabDelimited(Delimited):
    """TSV."""

    delimiter = DELIMITERS["tsv"]


class JsonLines(_Appended):
    """An object a line, in ASCII, so that any text can be written."""

    def header(self) -> bytes:
        return b""

    def encode(self, rows: Sequence[Cells]) -> bytes:
        columns = self.layout.columns
        return "".join(json.dumps(dict(zip(columns, row, strict=True)), default=str) + "\n" for row in rows).encode()


class Parquet:
    """Parquet cannot be appended to: until it is complete, the answers are a stream of Arrow's messages."""

    def __init__(self, layout: Layout) -> None:
        try:
            import pyarrow
        except ImportError as error:
            raise MissingExtraError("Parquet", "files") from error
        self._arrow = pyarrow
        label, share = pyarrow.array(layout.labels).type, pyarrow.float64()
        if layout.several:
            label, share = pyarrow.list_(label), pyarrow.list_(share)
        kept = [kind or pyarrow.string() for kind in layout.types]
        own = [label, share, *[pyarrow.float64()] * (len(layout.own) - 2)]
        self._schema = pyarrow.schema(list(zip(layout.columns, [*kept, *own], strict=True)))
        self._as_text = {i for i, kind in enumerate(layout.types) if kind is None}

    def header(self) -> bytes:
        return bytes(self._schema.serialize())

    def encode(self, rows: Sequence[Cells]) -> bytes:
        columns = [
            self._arrow.array([_sound(as_text(v)) if i in self._as_text and v is not None else v for v in column], field.type)
            for i, (column, field) in enumerate(zip(zip(*rows, strict=True), self._schema, strict=True))
        ]
        return bytes(self._arrow.record_batch(columns, schema=self._schema).serialize())

    def finish(self, pending: Path, out: Path) -> None:
        from pyarrow.parquet import ParquetWriter

        made = pending.with_suffix(".parquet")
        with (
            pending.open("rb") as stream,
            self._arrow.ipc.open_stream(stream) as batches,
            ParquetWriter(made, self._schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        made.replace(out)
        pending.unlink()


SHEETS: dict[str, Callable[[Layout], Sheet]] = {
    "csv": Delimited,
    "tsv": TabDelimited,
    "jsonl": JsonLines,
    "parquet": Parquet,
}


def output_format(out: Path | IO[bytes]) -> str:
    """The format that the ending of a file says; CSV for a stream."""
    if not isinstance(out, Path):
        return "csv"
    form = ENDINGS.get(out.suffix.lower())
    if form not in SHEETS or ":/" in str(out):
        raise SettingError(
            f"Answers cannot be written to {out}: give a local file that ends in .csv, .tsv, .jsonl or .parquet."
        )
    return form


def as_text(value: Any) -> str:
    """A value in a format that knows only text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    plain = isinstance(value, (bool, int, float, list, dict))
    return json.dumps(value, default=str) if plain else str(value)


def _sound(text: str) -> str:
    """Without halves of characters, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


# Files that grow beside their place


class Pending:
    """A file that grows beside its place; `rows` and bytes of it that are safe are noted after every addition."""

    def __init__(self, out: Path, sheet: Sheet, run: str | None) -> None:
        self._out, self._sheet, self._run = out, sheet, run
        self._path, self._note = (out.with_name(f".{out.name}.{ending}") for ending in ("pending", "pending.json"))
        out.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch()
        self._stream = self._path.open("r+b")
        self._locked = _lock(self._stream, self._path, out)
        self.rows, size = self._progress()
        self._stream.seek(size)
        self._stream.truncate()
        if not size:
            self.add(sheet.header(), 0)

    def _progress(self) -> tuple[int, int]:
        """Rows and bytes that an earlier run of the same kind left, or none."""
        try:
            note = json.loads(self._note.read_bytes())
            rows, size = int(note["rows"]), int(note["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0
        fits = self._run is not None and note["run"] == self._run and 0 <= size <= os.fstat(self._stream.fileno()).st_size
        return (rows, size) if fits else (0, 0)

    def add(self, content: bytes, rows: int) -> None:
        """Append some rows, and note it once they are on the disk."""
        self._stream.write(content)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.rows += rows
        if self._run is not None:
            write_json(self._note, {"run": self._run, "rows": self.rows, "bytes": self._stream.tell()})

    def close(self, whole: bool) -> None:
        """Put the file in its place if it is whole; otherwise leave it for the next run, which may go on with it."""
        if not self._locked:
            self._stream.close()  # where files cannot be locked, those that are open cannot be moved
        if whole:
            self._sheet.finish(self._path, self._out)
            self._note.unlink(missing_ok=True)
        elif self._run is None:
            self._path.unlink(missing_ok=True)
        self._stream.close()


class Streamed:
    """An open stream, such as standard output."""

    def __init__(self, stream: IO[bytes], sheet: Sheet) -> None:
        self._stream, self.rows = stream, 0
        self.add(sheet.header(), 0)

    def add(self, content: bytes, rows: int) -> None:
        """Write some rows."""
        self._stream.write(content)
        self._stream.flush()
        self.rows += rows


@contextmanager
def _destination(out: Path | IO[bytes], sheet: Sheet, run: str | None) -> Iterator[Pending | Streamed]:
    if not isinstance(out, Path):
        yield Streamed(out, sheet)
        return
    pending, whole = Pending(out, sheet, run), False
    try:
        yield pending
        whole = True
    finally:
        pending.close(whole)


def _lock(stream: IO[bytes], path: Path, out: Path) -> bool:
    """Keep the file to this run for as long as it is open; False where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not path.exists() or not os.path.samestat(os.fstat(stream.fileno()), path.stat()):
            raise BlockingIOError
    except BlockingIOError as error:
        stream.close()
        raise SettingError(f"Another run is writing {out}: wait for it, or choose another --out.") from error
    return True
