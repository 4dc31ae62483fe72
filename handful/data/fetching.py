"""Get data sets from the web or from local files, convert them to Handful's format, and compare them with their records."""

from __future__ import annotations

import gzip
import json
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Unpack

from ..errors import DataError, HandfulError, SettingError
from ..utils.files import atomic_writer, read_objects, write_json
from ..utils.paths import data_folder
from ..utils.wording import listed
from .corpus import MAX_WORDS
from .datasets import DATA_ENDINGS, JSON_ENDINGS, corpus_source, find_data, read_examples
from .download import DownloadError, Patience, download, make_folder, unpack
from .formats import KEYS, READERS, RawExample, read_rows
from .rcv1 import class_topics, read_ids, read_rcv1
from .reader import Reading, open_rows
from .registry import DatasetFacts, Place, find_dataset_facts, known_datasets

DOWNLOADS = "downloads"  # folder for downloaded files, in the data folder
RARE_COUNT = 5  # words that occur less often are not in the paper's vocabulary
SPECIAL = 2  # entries of the paper's vocabulary that are not words: padding and unknown
ARCHIVES = (".zip", ".tar.gz", ".tgz")

_log = logging.getLogger(__name__)


# Comparing


@dataclass(frozen=True)
class Measured:
    """The statistics of a data file."""

    sizes: dict[str, int]  # examples of each label
    statistics: dict[str, int]


def measure(path: Path, labels: Iterable[str] = (), **reading: Unpack[Reading]) -> Measured:
    """The statistics of a data file, counted as in the paper; if `labels` are given, only their examples count.

    The words per example are the mean, rounded down. The vocabulary has the words that occur at least five times in the first
    500 words of the texts, and two entries that are not words.
    """
    sizes = Counter[str]()
    counts = Counter[str]()
    words = 0
    wanted = set(labels)
    for example in read_examples(corpus_source(path, **reading)):
        if example.label in wanted or not wanted:
            sizes[example.label] += 1
            words += len(example.words)
            counts.update(example.words[:MAX_WORDS])
    examples = sizes.total()
    vocabulary = sum(count >= RARE_COUNT for count in counts.values()) + SPECIAL
    figures = {"examples": examples, "classes": len(sizes), "words": words // max(1, examples), "vocabulary": vocabulary}
    return Measured(dict(sizes), figures)


@dataclass(frozen=True)
class Statistic:
    """One statistic of a data set, as recorded and as measured."""

    name: str
    expected: int
    found: int

    @property
    def differs(self) -> bool:
        return self.found != self.expected


def check_dataset(name: str, path: Path | None = None, **reading: Unpack[Reading]) -> list[Statistic]:
    """Compare each statistic of a data set's record with that of a file: the given one, or the one in the data folder."""
    record = find_dataset_facts(name)
    measured = measure(path or find_data(name)[0], record.labels if record.part_of else (), **reading)
    return [Statistic(name, expected, measured.statistics[name]) for name, expected in record.statistics.items()]


@dataclass(frozen=True)
class Comparison:
    """A data set compared with its record; without statistics if it is not here."""

    name: str
    statistics: tuple[Statistic, ...]
    partial: bool = False  # whether classes or examples are missing

    @property
    def outcome(self) -> str:
        """The result in a few words."""
        differing = [statistic.name for statistic in self.statistics if statistic.differs]
        if not self.statistics:
            return "not downloaded"
        return "partial" if self.partial else f"differs in {listed(differing)}" if differing else "as published"

    @property
    def failed(self) -> bool:
        """Whether it claims to be the whole data set, and differs."""
        return not self.partial and any(statistic.differs for statistic in self.statistics)


def check_datasets() -> Iterator[Comparison]:
    """Compare every known data set in the data folder with its record."""
    for name, record in known_datasets().items():
        try:
            path = find_data(name)[0]
        except DataError:
            yield Comparison(name, ())
            continue
        measured = measure(path, record.labels if record.part_of else ())
        statistics = (Statistic(each, expected, measured.statistics[each]) for each, expected in record.statistics.items())
        yield Comparison(name, tuple(statistics), not record.fits(measured.sizes))


def list_datasets() -> list[dict[str, Any]]:
    """The facts of every known data set as plain values, with its file if it has been downloaded."""
    return [_facts(record) for record in known_datasets().values()]


def _is_partial(record: DatasetFacts, path: str) -> bool:
    """Whether the file of a data set that is known to come in parts has only a part of it."""
    if not path or not any(other.part_of == record.name for other in known_datasets().values()):
        return False
    with open_rows(corpus_source(path), labelled=True, worded=True) as rows:
        return not record.fits(Counter(str(row.label) for row in rows))


def _facts(record: DatasetFacts) -> dict[str, Any]:
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
        "partial": _is_partial(record, path),
    }


# Getting


def get_dataset(
    name: str,
    sources: Sequence[Path] = (),
    ids: Path | None = None,
    patience: Patience | None = None,
    quiet: bool = False,
) -> Path:
    """Create the file of a data set in the data folder, from `sources` if given, or else from the first place that has it."""
    record = find_dataset_facts(name)
    folder = data_folder()
    there = next((path for path in (folder / (name + ending) for ending in DATA_ENDINGS) if path.exists()), None)
    if there and sources:
        raise DataError(f"{there} already exists: remove it first, or give another folder (--data-dir).")
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


def _write(record: DatasetFacts, folder: Path, examples: Sequence[RawExample]) -> Path:
    path = folder / f"{record.name}.jsonl.gz"
    names = record.classes or (class_topics(examples) if "topics" in examples[0] else {})
    if names:
        write_json(folder / f"{record.name}.classes.json", {label: names[label] for label in record.labels})
    with (
        atomic_writer(path) as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream,
    ):  # without name and time, the bytes are always the same
        for example in examples:
            row = {key: example[key] for key in KEYS if key in example}
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
    return path


def _taken(record: DatasetFacts, examples: Iterable[RawExample], place: str) -> list[RawExample]:
    """The examples of the record's classes, checked for completeness."""
    labels = set(record.labels)
    try:
        taken = [example for example in examples if str(example["label"]) in labels]
    except HandfulError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        kind = f"{type(error).__name__}: {error}"
        raise DataError(f"{place} is not in the format of {record.home} ({kind}): give the file as published there.") from error
    record.check_whole(Counter(str(example["label"]) for example in taken), place)
    return taken


def _from_sources(record: DatasetFacts, sources: Sequence[Path], scratch: Path) -> list[RawExample]:
    """Examples from local files: the authors' archive, a file in Handful's format, or the files of the data set's home."""
    place = ", ".join(map(str, sources))
    paths = [
        path for source in sources for path in (sorted(source.rglob("*")) if source.is_dir() else [source]) if path.is_file()
    ]
    authors = [unpacked for path in paths if path.suffix == ".zip" for unpacked in unpack(path, scratch, _of_authors(record))]
    if authors or (paths and _is_ours(paths[0])):
        return _taken(record, read_rows(authors or paths, record), place)
    return _taken(record, READERS[record.places[-1].reader](_unpacked(paths, scratch), record), place)


def _of_authors(record: DatasetFacts) -> Callable[[str], bool]:
    """A test for members of the authors' archive that are this data set: some names are shortened there, others lengthened."""

    def wanted(member: str) -> bool:
        file = PurePosixPath(member).name
        name = record.part_of or record.name
        stem = file.split(".")[0]
        return file.endswith(".json") and bool(stem) and (name.startswith(stem) or stem.startswith(name))

    return wanted


def _is_ours(path: Path) -> bool:
    """Whether a file is JSON lines with text (or sentence) and label."""
    try:
        _, row = next(read_objects(path, "give another file"), (0, {}))
    except HandfulError:
        return False
    return "label" in row and ("text" in row or "sentence" in row)


def _unpacked(paths: Sequence[Path], scratch: Path) -> list[Path]:
    """The paths, with each archive replaced by its files."""
    return [file for path in paths for file in (unpack(path, scratch) if path.name.endswith(ARCHIVES) else [path])]


def _from_places(record: DatasetFacts, scratch: Path, patience: Patience | None, quiet: bool) -> list[RawExample]:
    """Examples from the first place that can be reached."""
    failures: list[DownloadError] = []
    for place in (place for place in record.places if place.urls):
        try:
            paths = _fetched(place, patience, quiet)
        except DownloadError as error:
            failures.append(error)
            continue
        if failures:
            _log.warning("%s Using %s instead.", failures[0], place.page)
        if place.reader == "authors":
            files = [file for path in paths for file in unpack(path, scratch, _of_authors(record))]
        else:
            files = _unpacked(paths, scratch)
        return _taken(record, READERS[place.reader](files, record), place.urls[0])
    raise failures[0]


def _fetched(place: Place, patience: Patience | None, quiet: bool) -> list[Path]:
    return [download(url, data_folder() / DOWNLOADS, patience=patience, quiet=quiet) for url in place.urls]


def _licensed(
    record: DatasetFacts, sources: Sequence[Path], ids: Path | None, scratch: Path, patience: Patience | None, quiet: bool
) -> list[RawExample]:
    """RCV1 from the user's copy of the texts, by a list of documents: the given one, the data folder's, or the authors'."""
    if not sources:
        raise SettingError(f"{record.title} is licensed: request it at {record.home}, then give its folder (--from FOLDER).")
    beside = [data_folder() / f"{record.name}.ids{ending}" for ending in JSON_ENDINGS]
    listed = [ids] if ids else [path for path in beside if path.exists()]
    if not listed:
        archives = _fetched(record.places[0], patience, quiet)
        listed = [file for archive in archives for file in unpack(archive, scratch, _of_authors(record))]
    if not listed:
        raise DataError(f"{record.places[0].urls[0]} has no list of the RCV1 documents: give one (--ids FILE).")
    return _taken(record, read_rcv1(sources, read_ids(listed[0]), quiet), str(listed[0]))
