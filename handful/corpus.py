"""Labelled texts as ragged arrays, the readers that make them, and the split of their classes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .catalogue import catalogue
from .errors import DataError
from .folders import DATA_VARIABLE, data_folder
from .functional import Floats, Ints, Offsets
from .streams import read_lines
from .text import Vocabulary, words_of

LONGEST = 500  # words kept of a text
FARTHEST = 40  # words from an entity that are told apart
ENDINGS = (".json.xz", ".jsonl.xz", ".json.gz", ".jsonl.gz", ".jsonl", ".json")
PARTS = ("train", "val", "test")

_log = logging.getLogger(__name__)


def ragged_positions(starts: Ints, lengths: Ints) -> Ints:
    """The positions start, start + 1, ... of several stretches, one stretch after the other.

    >>> ragged_positions(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


@dataclass(frozen=True, eq=False)
class Pieces:
    """What an encoder reads of each word of a vocabulary: word i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Ints
    offsets: Offsets


@dataclass(frozen=True, eq=False)
class Texts:
    """Ragged documents. A word's id serves the statistics, its row the vectors: the same number for a static table."""

    ids: Ints  # (words,)
    offsets: Offsets  # (documents + 1,)
    table: Floats  # (rows, dim)
    rows: Ints  # (words,)
    positions: Ints  # (words, entities): where a word stands from each entity of its text; no column for plain texts
    pieces: Pieces | None = None  # of the word ids, where an encoder is trained

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """Number of words of each document."""
        return np.diff(self.offsets)

    def gathered(self) -> Texts:
        """With a table of just these words, in single precision, where the table is a large one in half precision on disk."""
        if self.table.dtype == np.float32:
            return self
        return replace(self, table=np.asarray(self.table[self.rows], np.float32), rows=np.arange(len(self.rows)))

    def select(self, documents: Ints) -> Texts:
        """These documents, in this order."""
        lengths = self.lengths[documents]
        where = ragged_positions(self.offsets[documents], lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return replace(self, ids=self.ids[where], rows=self.rows[where], positions=self.positions[where], offsets=offsets)


def join_texts(parts: Sequence[Texts]) -> Texts:
    """The documents of several parts that share one table, one part after the other."""
    words: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "rows", "positions")
    }
    lengths = np.concatenate([part.lengths for part in parts])
    return replace(parts[0], **words, offsets=np.concatenate([[0], np.cumsum(lengths)]))


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled documents as word ids: document i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Ints
    offsets: Offsets
    labels: Ints  # (documents,), positions in `classes`
    classes: tuple[str, ...]
    written: tuple[str, ...]  # the label of each class as the data writes it: its name, or a number
    vocabulary: Vocabulary
    positions: Ints  # (words, entities): see Texts

    def __len__(self) -> int:
        return len(self.labels)

    def texts(self, table: Floats) -> Texts:
        """The documents with a static table of vectors, a row for each word of the vocabulary."""
        return Texts(self.ids, self.offsets, table, self.ids, self.positions)

    def contextual_texts(self, table: Floats) -> Texts:
        """The documents with a row of the table for each occurrence of a word."""
        return Texts(self.ids, self.offsets, table, np.arange(len(self.ids)), self.positions)

    def words(self, document: int) -> list[str]:
        """The words of one document."""
        return [self.vocabulary.words[i] for i in self.ids[self.offsets[document] : self.offsets[document + 1]]]

    def word_counts(self) -> Ints:
        """How often each word occurs in each class: (classes, vocabulary)."""
        where = np.repeat(self.labels, np.diff(self.offsets)) * len(self.vocabulary) + self.ids
        return np.bincount(where, minlength=len(self.classes) * len(self.vocabulary)).reshape(len(self.classes), -1)

    def document_counts(self) -> Ints:
        """In how many documents of each class each word occurs: (classes, vocabulary)."""
        documents = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        pairs = np.unique(documents * len(self.vocabulary) + self.ids)
        where = self.labels[pairs // len(self.vocabulary)] * len(self.vocabulary) + pairs % len(self.vocabulary)
        return np.bincount(where, minlength=len(self.classes) * len(self.vocabulary)).reshape(len(self.classes), -1)

    def keep_words(self, known: np.ndarray[Any, np.dtype[np.bool_]]) -> Corpus:
        """Without the words that have no vector, so that they are neither counted nor attended to."""
        kept = known[self.ids]
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        return replace(self, ids=self.ids[kept], positions=self.positions[kept], offsets=offsets)


def entity_positions(length: int, spans: Sequence[tuple[int, int]]) -> Ints:
    """Where each word stands from each entity (its first and last word): (words, entities), from 0 to 2 · FARTHEST.

    FARTHEST is inside the entity, less is before it, more is behind; what is farther counts as FARTHEST words away.

    >>> entity_positions(5, [(1, 2)])[:, 0] - FARTHEST
    array([-1,  0,  0,  1,  2])
    """
    words = np.arange(length)
    columns = [np.minimum(words - first, 0) + np.maximum(words - last, 0) for first, last in spans]
    return np.array(columns, np.int64).reshape(len(spans), length).T.clip(-FARTHEST, FARTHEST) + FARTHEST


def make_corpus(
    texts: Iterable[str | Sequence[str]],
    labels: Iterable[str],
    classes: Sequence[str] = (),
    longest: int = LONGEST,
    entities: Sequence[Sequence[tuple[int, int]]] = (),
) -> Corpus:
    """A corpus from texts (raw, or lists of words) and class names, `longest` words of each.

    `entities` are, for texts about the relation of two entities, the first and last word of each.

    >>> corpus = make_corpus(["Good food!", "bad food"], ["yes", "no"])
    >>> corpus.classes, corpus.words(1)
    (('yes', 'no'), ['bad', 'food'])
    """
    vocabulary, names = Vocabulary(), Vocabulary(list(classes))
    documents = [vocabulary.ids(words_of(text, longest)) for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype(np.int64)
    ids = np.concatenate(documents) if documents else np.empty(0, np.int64)
    spans = entities or [()] * len(documents)
    positions = [entity_positions(len(document), spans[i]) for i, document in enumerate(documents)]
    together = np.concatenate(positions) if positions else np.empty((0, 0), np.int64)
    numbers, written = names.ids(labels), tuple(names.words)
    return Corpus(ids, offsets, numbers, written, written, vocabulary, together)


# Reading


@dataclass(frozen=True)
class Example:
    """One line of a data file."""

    line: int
    words: list[str]
    label: str
    entities: list[tuple[int, int]]  # first and last word of head and tail, or none


def _example(path: Path, number: int, line: str) -> Example:
    place = f"{path}, line {number}"
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{place} is not JSON ({error.msg}): write one JSON object a line.") from error
    if not isinstance(row, dict):
        raise DataError(f"{place} is not a JSON object: write one object with text and label a line.")
    text = row.get("text", row.get("sentence"))
    if text is None:
        raise DataError(f"{place} has no text: give each line a key text (or sentence).")
    if not isinstance(text, str) and not (isinstance(text, list) and all(isinstance(word, str) for word in text)):
        raise DataError(f"{place} has a text that is neither a string nor a list of words: make it one of the two.")
    label = row.get("label")
    if isinstance(label, bool) or not isinstance(label, (str, int)):
        raise DataError(f"{place} has no label: give each line a key label, a number or a name.")
    words = words_of(text)
    spans = [row[name] for name in ("head", "tail") if name in row]
    if any(not _is_span(span, len(words)) for span in spans) or len(spans) == 1:
        raise DataError(f"{place}: head and tail should both be [first word, last word], counted from 0 within the text.")
    return Example(number, words, str(label), [(span[0], span[1]) for span in spans])


def _is_span(span: Any, length: int) -> bool:
    return isinstance(span, list) and len(span) == 2 and all(type(i) is int for i in span) and 0 <= span[0] <= span[1] < length


def read_examples(path: Path) -> Iterator[Example]:
    """The examples of a file of JSON lines, one after the other."""
    return (_example(path, number, line) for number, line in read_lines(path) if line.strip())


def read_corpus(path: str | Path, longest: int = LONGEST, skip_empty: bool = False) -> Corpus:
    """A corpus from JSON lines with `text` or `sentence` (a string or a list of words) and `label` (a number or a name)."""
    path = Path(path)
    examples, empty = [], 0
    for example in read_examples(path):
        if example.words:
            examples.append(example)
        elif skip_empty:
            empty += 1
        else:
            place = f"{path}, line {example.line}"
            raise DataError(f"{place} has an empty text: remove the line, or skip such lines (--skip-empty).")
    if empty:
        _log.warning("%s: %d empty texts are left out.", path.name, empty)
    if len({len(example.entities) for example in examples}) > 1:
        raise DataError(f"{path} gives head and tail for some texts only: give them for all, or for none.")
    if not examples:
        raise DataError(f"{path} has no examples: write one JSON object with text and label a line.")
    labels = [example.label for example in examples]
    classes = sorted(set(labels), key=int if _are_numbers(labels) else str)
    entities = [example.entities for example in examples]
    corpus = make_corpus([example.words for example in examples], labels, classes, longest, entities)
    return replace(corpus, classes=_class_names(path, corpus.written))


def _are_numbers(labels: Iterable[str]) -> bool:
    return all(label.lstrip("-").isdigit() for label in labels)


def _class_names(path: Path, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Names from a file `*.classes.json` beside the data, where there is one."""
    names = path.with_name(path.name.split(".")[0] + ".classes.json")
    if not names.exists():
        return labels
    by_label = read_json(names)
    return tuple(str(by_label.get(label, label)) for label in labels)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        value = json.loads("".join(line for _, line in read_lines(path)))
    except json.JSONDecodeError as error:
        raise DataError(f"{path} is not JSON ({error}): correct the file.") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} does not hold a JSON object: correct the file.")
    return value


# Splits


@dataclass(frozen=True)
class ClassSplit:
    """Which classes serve meta-training, validation and meta-testing; no class serves twice."""

    train: tuple[int, ...]
    val: tuple[int, ...]
    test: tuple[int, ...]

    def __post_init__(self) -> None:
        everything = self.train + self.val + self.test
        if len(set(everything)) < len(everything):
            raise DataError("A class stands in two parts of the split: give each class to one of train, val, test.")


def read_split(path: str | Path, corpus: Corpus, name: str = "") -> ClassSplit:
    """A split from a JSON object with train, val and test, each a list of class names or labels.

    A file that holds the splits of several data sets is an object of such objects; `name` chooses one.
    """
    path = Path(path)
    parts = read_json(path)
    if "train" not in parts:
        if name not in parts:
            raise DataError(f"{path} has no split for {name!r}: it has {', '.join(parts) or 'none'}.")
        parts = parts[name]
    return make_split(parts, corpus, str(path))


def make_split(parts: Mapping[str, Any], corpus: Corpus, place: str) -> ClassSplit:
    """A split from lists of class names or labels; a number is a label, or a position where the labels are names.

    >>> corpus = make_corpus(["x", "y", "z"], ["7", "3", "5"])
    >>> make_split({"train": [3], "val": ["5"], "test": [7]}, corpus, "here")
    ClassSplit(train=(1,), val=(2,), test=(0,))
    """
    missing = set(PARTS) - set(parts)
    if missing:
        raise DataError(f"{place} lacks {', '.join(sorted(missing))}: a split has train, val and test.")
    if not all(isinstance(parts[part], list) and all(isinstance(label, (str, int)) for label in parts[part]) for part in PARTS):
        raise DataError(f"{place} has a part that is no list of class names or labels: make train, val and test such lists.")
    numbered = _are_numbers(corpus.written)
    known: dict[str | int, int] = {}
    for number, (label, name) in enumerate(zip(corpus.written, corpus.classes, strict=True)):
        known |= {label: number, name: number, int(label) if numbered else number: number}
    unknown = [str(label) for part in PARTS for label in parts[part] if label not in known]
    if unknown:
        raise DataError(f"{place} names classes that the data does not have: {', '.join(unknown)}. Correct the split.")
    return ClassSplit(*(tuple(known[label] for label in parts[part]) for part in PARTS))


# Data sets by name


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus with its class split."""

    name: str
    corpus: Corpus
    split: ClassSplit


PACKAGED = ("demo", "requests")  # written for this project


def find_data(data: str) -> tuple[Path, Path | None]:
    """The files of a data set and of its split: a packaged one (`demo`, `requests`), a path, or a name in the data folder."""
    if data in PACKAGED:
        folder = Path(str(files("handful") / "data"))
        return folder / f"{data}.jsonl", folder / f"{data}.split.json"
    if Path(data).is_file():
        beside = [Path(data).with_name(Path(data).name.split(".")[0] + ".split.json"), Path(data).with_name("splits.json")]
        return Path(data), next((path for path in beside if path.exists()), None)
    whole = catalogue()[data].part_of if data in catalogue() else ""
    found = [data_folder() / (name + ending) for name in (data, whole) if name for ending in ENDINGS]
    splits = data_folder() / "splits.json"
    for path in found:
        if path.is_file():
            return path, splits if splits.exists() else None
    remedy = (
        f"fetch it (handful datasets get {data})" if data in catalogue() else "give demo, the path of a file, or a name there"
    )
    raise DataError(f"There is no data {data!r} in {data_folder()} ({DATA_VARIABLE}): {remedy}.")


def load_corpus(data: str, longest: int = LONGEST, skip_empty: bool = False) -> Corpus:
    """A corpus by name or path; by the name of a known data set it has to be that data set, whole."""
    path, _ = find_data(data)
    record = catalogue().get(data)
    corpus = read_corpus(path, longest, skip_empty or bool(record and record.skip_empty))
    if record:
        sizes = np.bincount(corpus.labels, minlength=len(corpus.written)).tolist()
        record.check_whole(dict(zip(corpus.written, sizes, strict=True)), str(path))
    return corpus


def load_dataset(data: str, split: str | Path | None = None, longest: int = LONGEST, skip_empty: bool = False) -> Dataset:
    """A data set by name or path, with the split given, the one beside it, or the one that ships for a known name.

    The split given is a file, or the name of another split that ships for a known name.
    """
    path, beside = find_data(data)
    corpus = load_corpus(data, longest, skip_empty)
    shipped = {"": catalogue()[data].split, **catalogue()[data].splits} if data in catalogue() else {}
    if str(split or "") in shipped and (split or not (beside and data in read_json(beside))):
        return Dataset(data, corpus, make_split(shipped[str(split or "")], corpus, f"The split of {data}"))
    where = split or beside
    if where is None:
        raise DataError(f"{path} has no class split beside it: name one (--split FILE), or make one (handful split {data}).")
    name = path.name.split(".")[0]
    return Dataset(name, corpus, read_split(where, corpus, name))
