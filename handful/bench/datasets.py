"""Data sets: fetched or taken from files at hand, turned into Handful's format, and compared with what they should be."""

from __future__ import annotations

import gzip
import io
import json
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..catalogue import Place, Record, catalogue, find_record
from ..corpus import ENDINGS, LONGEST, find_data, read_examples
from ..errors import DataError, HandfulError, SettingError
from ..folders import data_folder
from ..storage import write_atomic, write_json
from .download import DownloadError, Patience, download, make_folder, unpack
from .rcv1 import class_topics, read_ids, read_rcv1
from .readers import KEYS, READERS, Row, read_rows

DOWNLOADS = "downloads"  # folder for what was fetched, in the data folder
RARE = 5  # a word that occurs less often is not in the paper's vocabulary
SPECIAL = 2  # entries of the paper's vocabulary that are no words: padding and unknown
ARCHIVES = (".zip", ".tar.gz", ".tgz")

_log = logging.getLogger(__name__)


# Comparing


@dataclass(frozen=True)
class Measured:
    """A data file in figures."""

    sizes: dict[str, int]  # examples of each label
    statistics: dict[str, int]


def measure(path: Path, labels: Iterable[str] = ()) -> Measured:
    """The figures of a data file, counted as the paper counts: `labels`, if given, are those that matter.

    Words an example is the mean, rounded down. The vocabulary has the words that occur at least five times in the first 500
    words of the texts, and two entries that are no words.
    """
    sizes, counts, words = Counter[str](), Counter[str](), 0
    wanted = set(labels)
    for example in read_examples(path):
        if example.label in wanted or not wanted:
            sizes[example.label] += 1
            words += len(example.words)
            counts.update(example.words[:LONGEST])
    examples = sizes.total()
    vocabulary = sum(count >= RARE for count in counts.values()) + SPECIAL
    figures = {"examples": examples, "classes": len(sizes), "words": words // max(1, examples), "vocabulary": vocabulary}
    return Measured(dict(sizes), figures)


@dataclass(frozen=True)
class Figure:
    """One figure of a data set, as it should be and as it is."""

    name: str
    expected: int
    found: int

    @property
    def differs(self) -> bool:
        return self.found != self.expected


def check_dataset(name: str, path: Path | None = None) -> list[Figure]:
    """Each figure of the record beside that of the file: the one given, or the one in the data folder."""
    record = find_record(name)
    measured = measure(path or find_data(name)[0], record.labels if record.part_of else ())
    return [Figure(name, expected, measured.statistics[name]) for name, expected in record.statistics.items()]


def list_datasets() -> list[dict[str, Any]]:
    """The facts of every data set as plain values, and the file it lies in, if it does."""
    return [_facts(record) for record in catalogue().values()]


def _facts(record: Record) -> dict[str, Any]:
    try:
        path = str(find_data(record.name)[0])
    except DataError:
        path = ""
    return {
        "name": record.name,
        "title": record.title,
        "home": record.home,
        "licence": record.licence,
        "made": record.made,
        "split": {part: len(labels) for part, labels in record.split.items()},
        "split_rule": record.split_rule,
        **record.statistics,
        "note": record.note,
        "path": path,
    }


# Getting


def get_dataset(
    name: str,
    sources: Sequence[Path] = (),
    ids: Path | None = None,
    patience: Patience | None = None,
    quiet: bool = False,
) -> Path:
    """The file of a data set in the data folder, made from `sources` if given, else from the first place that has it."""
    record, folder = find_record(name), data_folder()
    there = next((path for path in (folder / (name + ending) for ending in ENDINGS) if path.exists()), None)
    if there and sources:
        raise DataError(f"{there} is there already: remove it first, or name another folder (--data-dir).")
    if there:
        record.check_whole(measure(there).sizes, str(there))
        return there
    missing = [str(path) for path in sources if not path.exists()]
    if missing:
        raise DataError(f"There is no file {missing[0]}: check the path.")
    make_folder(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as scratch:
        if name == "rcv1":
            examples = _licensed(record, sources, ids, Path(scratch), patience, quiet)
        elif sources:
            examples = _from_sources(record, sources, Path(scratch))
        else:
            examples = _from_places(record, Path(scratch), patience, quiet)
    return _write(record, folder, examples)


def _write(record: Record, folder: Path, examples: Sequence[Row]) -> Path:
    path = folder / f"{record.name}.jsonl.gz"
    names = record.classes or (class_topics(examples) if "topics" in examples[0] else {})
    if names:
        write_json(folder / f"{record.name}.classes.json", {label: names[label] for label in record.labels})
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as stream:
        for example in examples:
            row = {key: example[key] for key in KEYS if key in example}
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
    write_atomic(path, content.getvalue())
    return path


def _taken(record: Record, examples: Iterable[Row], place: str) -> list[Row]:
    """The examples of the record's classes, if they are all there."""
    labels = set(record.labels)
    try:
        taken = [example for example in examples if str(example["label"]) in labels]
    except HandfulError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        kind = f"{type(error).__name__}: {error}"
        raise DataError(f"{place} is not in the format of {record.home} ({kind}): give the file as it is published.") from error
    record.check_whole(Counter(str(example["label"]) for example in taken), place)
    return taken


def _from_sources(record: Record, sources: Sequence[Path], scratch: Path) -> list[Row]:
    """Examples of files at hand: the authors' archive, a file in Handful's format, or those of the data set's home."""
    place = ", ".join(map(str, sources))
    paths = [
        path for source in sources for path in (sorted(source.rglob("*")) if source.is_dir() else [source]) if path.is_file()
    ]
    authors = [unpacked for path in paths if path.suffix == ".zip" for unpacked in unpack(path, scratch, _of_authors(record))]
    if authors or (paths and _is_ours(paths[0])):
        return _taken(record, read_rows(authors or paths, record), place)
    return _taken(record, READERS[record.places[-1].reader](_unpacked(paths, scratch), record), place)


def _of_authors(record: Record) -> Callable[[str], bool]:
    """Whether a member of the authors' archive is this data set: they shorten some names and lengthen others."""

    def wanted(member: str) -> bool:
        file, name = PurePosixPath(member).name, record.part_of or record.name
        stem = file.split(".")[0]
        return file.endswith(".json") and bool(stem) and (name.startswith(stem) or stem.startswith(name))

    return wanted


def _is_ours(path: Path) -> bool:
    try:
        return next(read_examples(path), None) is not None
    except HandfulError:
        return False


def _unpacked(paths: Sequence[Path], scratch: Path) -> list[Path]:
    """The paths, with the files of an archive in its place."""
    return [file for path in paths for file in (unpack(path, scratch) if path.name.endswith(ARCHIVES) else [path])]


def _from_places(record: Record, scratch: Path, patience: Patience | None, quiet: bool) -> list[Row]:
    """Examples from the first place that can be reached."""
    failures: list[DownloadError] = []
    for place in (place for place in record.places if place.urls):
        try:
            paths = _fetched(place, patience, quiet)
        except DownloadError as error:
            failures.append(error)
            continue
        if failures:
            _log.warning("%s This is from %s instead.", failures[0], place.page)
        if place.reader == "authors":
            files = [file for path in paths for file in unpack(path, scratch, _of_authors(record))]
        else:
            files = _unpacked(paths, scratch)
        return _taken(record, READERS[place.reader](files, record), place.urls[0])
    raise failures[0]


def _fetched(place: Place, patience: Patience | None, quiet: bool) -> list[Path]:
    return [download(url, data_folder() / DOWNLOADS, patience=patience, quiet=quiet) for url in place.urls]


def _licensed(
    record: Record, sources: Sequence[Path], ids: Path | None, scratch: Path, patience: Patience | None, quiet: bool
) -> list[Row]:
    """RCV1: the user's copy of the text, by a list of documents given, in the data folder, or in the authors' archive."""
    if not sources:
        raise SettingError(f"{record.title} is licensed: ask for it at {record.home}, then name its folder (--from FOLDER).")
    beside = [data_folder() / f"{record.name}.ids{ending}" for ending in ENDINGS]
    listed = [ids] if ids else [path for path in beside if path.exists()]
    if not listed:
        archives = _fetched(record.places[0], patience, quiet)
        listed = [file for archive in archives for file in unpack(archive, scratch, _of_authors(record))]
    if not listed:
        raise DataError(f"{record.places[0].urls[0]} has no list of RCV1's documents: give one (--ids FILE).")
    return _taken(record, read_rcv1(sources, read_ids(listed[0]), quiet), str(listed[0]))
