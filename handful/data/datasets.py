"""Load data sets by name or path: a corpus, and the split of its classes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from ..errors import DataError
from ..utils.files import COMPRESSED, LARGE, read_json
from ..utils.paths import DATA_VARIABLE, data_folder, resource
from ..utils.plugins import Components
from ..utils.progress import progress_bar
from .corpus import MAX_WORDS, Corpus, make_corpus
from .hub import is_on_hub
from .reader import ENDINGS, SPANS, Reading, Row, Source, ending_format, open_rows
from .registry import known_datasets
from .splits import ClassSplit, are_numbers, make_split, read_split
from .text import words_of

JSON_ENDINGS = (".json.xz", ".jsonl.xz", ".json.gz", ".jsonl.gz", ".jsonl", ".json")
DATA_ENDINGS = (*JSON_ENDINGS, *(ending + packed for ending in ENDINGS for packed in ("", *COMPRESSED) if ending != ".txt"))

_log = logging.getLogger(__name__)


# Reading


@dataclass(frozen=True)
class Example:
    """One row of a data file."""

    place: str  # for messages
    words: list[str]
    label: str
    entities: list[tuple[int, int]]  # first and last words of head and tail, or empty


def corpus_source(path: str | Path, **reading: Unpack[Reading]) -> Source:
    """A data file, taken for JSON lines if neither its ending nor `reading` gives a format."""
    if not is_on_hub(str(path)):
        reading["form"] = reading.get("form") or ending_format(str(path))[0] or "jsonl"
    return Source(str(path), **reading)


def read_examples(source: Source) -> Iterator[Example]:
    """Yield the labelled texts of a file."""
    with open_rows(source, labelled=True, worded=True) as rows:
        spans = [rows.columns.index(name) for name in SPANS if name in rows.columns]
        with progress_bar(f"Reading {Path(source.name).name}", rows.total, quiet=(rows.total or 0) < LARGE) as bar:
            for number, row in enumerate(rows):
                if number % 4096 == 0:
                    bar.update(rows.done)
                yield _example(rows.place(row.number), row, [row.values[i] for i in spans if row.values[i] is not None])


def _example(place: str, row: Row, spans: Sequence[Any]) -> Example:
    if isinstance(row.label, bool) or not isinstance(row.label, (str, int)):
        raise DataError(f"{place} has the label {row.label!r}: give each text one label, a name or a whole number.")
    words = words_of(row.text)
    if any(not _is_span(span, len(words)) for span in spans) or len(spans) == 1:
        raise DataError(f"{place}: head and tail must both be [first word, last word], counted from 0 within the text.")
    return Example(place, words, str(row.label), [(span[0], span[1]) for span in spans])


def _is_span(span: Any, length: int) -> bool:
    return isinstance(span, list) and len(span) == 2 and all(type(i) is int for i in span) and 0 <= span[0] <= span[1] < length


def read_corpus(path: str | Path, max_words: int = MAX_WORDS, skip_empty: bool = False, **reading: Unpack[Reading]) -> Corpus:
    """A corpus from any file with texts and labels; `reading` says how to read it if that is not obvious (see `Source`).

    In JSON and Parquet files, a text may be a list of words, and may have a `head` and a `tail`.
    """
    path = Path(path)
    examples = []
    empty = 0
    for example in read_examples(corpus_source(path, **reading)):
        if example.words:
            examples.append(example)
        elif skip_empty:
            empty += 1
        else:
            raise DataError(f"{example.place} has an empty text: remove it, or skip such texts (--skip-empty).")
    if empty:
        _log.warning("Empty texts skipped in %s: %d.", path.name, empty)
    if len({len(example.entities) for example in examples}) > 1:
        raise DataError(f"{path} gives head and tail for some texts only: give them for all, or for none.")
    if not examples:
        raise DataError(f"{path} has no examples: give at least one text with a label.")
    labels = [example.label for example in examples]
    classes = sorted(set(labels), key=int if are_numbers(labels) else str)
    entities = [example.entities for example in examples]
    corpus = make_corpus([example.words for example in examples], labels, classes, max_words, entities)
    return replace(corpus, classes=_class_names(path, corpus.written))


def _class_names(path: Path, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Class names from a file `*.classes.json` next to the data, if there is one."""
    names = path.with_name(path.name.split(".")[0] + ".classes.json")
    if not names.exists():
        return labels
    by_label = read_json(names)
    return tuple(str(by_label.get(label, label)) for label in labels)


# Data sets by name


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus with its class split."""

    name: str
    corpus: Corpus
    split: ClassSplit


PACKAGED_DATA = ("demo", "requests")  # written for this project
PLUGIN_DATA = Components("data set", "handful.datasets")  # functions that return the path of a file


def find_data(data: str) -> tuple[Path, Path | None]:
    """The files of a data set and of its split; `data` is `demo` or `requests`, a path, or a name.

    A name is one of the hub (`hf:NAME`), of a file in the data folder, or of another package's data set.
    """
    if data in PACKAGED_DATA:
        return resource(f"{data}.jsonl"), resource(f"{data}.split.json")
    if is_on_hub(data):
        return Path(data), None
    if Path(data).is_file():
        return Path(data), _split_beside(Path(data))
    whole = known_datasets()[data].part_of if data in known_datasets() else ""
    found = [data_folder() / (name + ending) for name in (data, whole) if name for ending in DATA_ENDINGS]
    splits = data_folder() / "splits.json"
    for path in found:
        if path.is_file():
            return path, splits if splits.exists() else None
    if data in PLUGIN_DATA:
        path = Path(PLUGIN_DATA.load(data)())
        return path, _split_beside(path)
    remedy = (
        f"download it (handful datasets get {data})"
        if data in known_datasets()
        else "give demo, the path of a file, or the name of a data set in that folder or of an installed package"
    )
    raise DataError(f"There is no data set {data!r} in {data_folder()} ({DATA_VARIABLE}): {remedy}.")


def _split_beside(path: Path) -> Path | None:
    """The file with the classes of train, val and test next to a data file, if there is one."""
    beside = [path.with_name(path.name.split(".")[0] + ".split.json"), path.with_name("splits.json")]
    return next((split for split in beside if split.exists()), None)


def load_corpus(data: str, max_words: int = MAX_WORDS, skip_empty: bool = False, **reading: Unpack[Reading]) -> Corpus:
    """A corpus by name or path; under the name of a known data set it must be that data set and complete."""
    path, _ = find_data(data)
    record = known_datasets().get(data)
    corpus = read_corpus(path, max_words, skip_empty or bool(record and record.skip_empty), **reading)
    if record:
        sizes = np.bincount(corpus.labels, minlength=len(corpus.written)).tolist()
        record.check_whole(dict(zip(corpus.written, sizes, strict=True)), str(path))
    return corpus


def load_dataset(
    data: str,
    split: str | Path | None = None,
    max_words: int = MAX_WORDS,
    skip_empty: bool = False,
    **reading: Unpack[Reading],
) -> Dataset:
    """A data set by name or path, with the given split, the one next to its file, or the one that ships for a known name.

    `split` is a file, or the name of another split that ships for a known data set. `reading` is as for `read_corpus`.
    """
    path, beside = find_data(data)
    corpus = load_corpus(data, max_words, skip_empty, **reading)
    shipped = {"": known_datasets()[data].split, **known_datasets()[data].splits} if data in known_datasets() else {}
    if str(split or "") in shipped and (split or not (beside and data in read_json(beside))):
        return Dataset(data, corpus, make_split(shipped[str(split or "")], corpus, f"The split of {data}"))
    where = split or beside
    if where is None:
        raise DataError(f"{path} has no class split next to it: give one (--split FILE), or create one (handful split {data}).")
    name = path.name.split(".")[0]
    return Dataset(name, corpus, read_split(where, corpus, name))
