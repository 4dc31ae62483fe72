"""Readers for the files of each data set's home and of the paper's authors; they yield text, label, and head and tail."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..utils.files import read_json, read_objects
from ..utils.progress import track
from ..utils.sampling import Reservoir
from .reader import Source, open_rows
from .registry import DatasetFacts

RawExample = dict[str, Any]
KEYS = ("text", "label", "head", "tail")
REMEDY = "download the file again"


def read_rows(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """Handful's own format, also used by the authors: one JSON object per line, with text (or sentence) and label."""
    for path in paths:
        for _, row in read_objects(path, REMEDY):
            yield {"text": row.get("text", row.get("sentence")), **{key: row[key] for key in KEYS[1:] if key in row}}


def read_newsgroups(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """One folder per newsgroup with one file per post; the body starts after the first empty line."""
    numbers = _numbers(record)
    posts = sorted(path for path in paths if path.parent.name in numbers)
    for path in track(posts, "Reading posts", len(posts)):
        _, _, body = path.read_text("latin-1").partition("\n\n")
        yield {"text": body.strip(), "label": numbers[path.parent.name]}


def read_reuters(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """ApteMod in SGML: the articles with a single topic that Lewis assigned to training or test."""
    numbers = _numbers(record)

    def articles() -> Iterator[RawExample]:
        for path in sorted(path for path in paths if path.suffix == ".sgm"):
            for head, article in re.findall(r"<REUTERS(.*?)>(.*?)</REUTERS>", path.read_text("latin-1"), re.DOTALL):
                topics = re.findall(r"<D>(.*?)</D>", _between(article, "TOPICS"))
                chosen = 'TOPICS="YES"' in head and re.search(r'LEWISSPLIT="(TRAIN|TEST)"', head)
                if chosen and len(topics) == 1 and topics[0] in numbers:
                    yield {"text": _reuters_text(article), "label": numbers[topics[0]]}

    return _sampled(articles(), record.each)


def _reuters_text(article: str) -> str:
    """Title and body, or the whole text if it has neither."""
    parts = [_between(article, name) for name in ("TITLE", "BODY")]
    text = " ".join(part for part in parts if part) or re.sub(r"<.*?>", " ", _between(article, "TEXT"))
    return re.sub(r"[\x00-\x1f\s]+", " ", html.unescape(text)).strip()


def _between(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL)
    return found.group(1) if found else ""


def read_amazon(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """One JSON lines file per category, which the file name gives."""
    numbers = _numbers(record)

    def reviews() -> Iterator[RawExample]:
        for path in paths:
            category = re.sub(r"^reviews_|_5$", "", path.name.split(".")[0])
            if category in numbers:
                texts = (row["reviewText"] for _, row in read_objects(path, REMEDY))
                yield from ({"text": text, "label": numbers[category]} for text in texts if text.strip())

    return _sampled(reviews(), record.each)


def read_huffpost(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """JSON lines with category and headline."""
    numbers = _numbers(record)
    rows = (row for path in paths for _, row in read_objects(path, REMEDY))
    headlines = ((row["headline"].strip(), numbers.get(row["category"].lower())) for row in rows)
    return _sampled(({"text": text, "label": label} for text, label in headlines if text and label is not None), record.each)


def read_fewrel(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """JSON files of relations keyed by Wikidata id, plus `pid2name.json` with the names of the relations."""
    numbers = _numbers(record)
    names = next((read_json(path) for path in paths if path.name == "pid2name.json"), None)
    if names is None:
        raise DataError("The file pid2name.json with the names of FewRel's relations is missing: give it too (--from).")
    for path in paths:
        for relation, sentences in read_json(path).items() if path.name != "pid2name.json" else ():
            for row in sentences:
                spans = {key: [min(row[short][2][0]), max(row[short][2][0])] for key, short in (("head", "h"), ("tail", "t"))}
                words = [word.lower() for word in row["tokens"]]
                yield {"text": words, "label": numbers[names[relation][0]], **spans}


def read_banking77(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """CSV files with text and category."""
    for path in paths:
        with open_rows(Source(str(path), "csv", "text", "category"), labelled=True) as rows:
            yield from ({"text": row.text, "label": row.label} for row in rows)


def read_clinc150(paths: Sequence[Path], record: DatasetFacts) -> Iterator[RawExample]:
    """A JSON object of parts, each a list of (text, intent) pairs; the out-of-scope parts are skipped."""
    for path in paths:
        parts = read_json(path)
        yield from ({"text": text, "label": intent} for part in ("train", "val", "test") for text, intent in parts[part])


READERS: dict[str, Callable[[Sequence[Path], DatasetFacts], Iterator[RawExample]]] = {
    "authors": read_rows,
    "newsgroups": read_newsgroups,
    "reuters": read_reuters,
    "amazon": read_amazon,
    "huffpost": read_huffpost,
    "fewrel": read_fewrel,
    "banking77": read_banking77,
    "clinc150": read_clinc150,
}


def _numbers(record: DatasetFacts) -> dict[str, int]:
    """The label of each class name."""
    return {name: int(label) for label, name in record.classes.items()}


def _sampled(examples: Iterable[RawExample], each: int) -> Iterator[RawExample]:
    """At most `each` examples per label, chosen at random in one pass with a fixed seed."""
    kept: dict[int, Reservoir[RawExample]] = {}
    for example in examples:
        label = example["label"]
        if label not in kept:
            kept[label] = Reservoir(each, [0, label])
        kept[label].add(example)
    for label in sorted(kept):
        yield from kept[label].items
