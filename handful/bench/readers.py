"""From the files of each data set's home, and of the paper's authors, to examples: text, label, head and tail of a relation."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..catalogue import Record
from ..corpus import read_json
from ..errors import DataError
from ..progress import track
from ..streams import read_lines

Row = dict[str, Any]
KEYS = ("text", "label", "head", "tail")


def read_rows(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """Handful's own format, which is the authors' too: a JSON object with text (or sentence) and label a line."""
    for path in paths:
        for row in _json_lines(path):
            yield {"text": row.get("text", row.get("sentence")), **{key: row[key] for key in KEYS[1:] if key in row}}


def read_newsgroups(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """A file a post, in a folder a group; the body comes after the first empty line."""
    numbers = _numbers(record)
    posts = sorted(path for path in paths if path.parent.name in numbers)
    for path in track(posts, "Reading posts", len(posts)):
        _, _, body = path.read_text("latin-1").partition("\n\n")
        yield {"text": body.strip(), "label": numbers[path.parent.name]}


def read_reuters(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """ApteMod in SGML: articles that Lewis put into training or test and that have topics; those with a single one are kept."""
    numbers = _numbers(record)

    def articles() -> Iterator[Row]:
        for path in sorted(path for path in paths if path.suffix == ".sgm"):
            for head, article in re.findall(r"<REUTERS(.*?)>(.*?)</REUTERS>", path.read_text("latin-1"), re.DOTALL):
                topics = re.findall(r"<D>(.*?)</D>", _between(article, "TOPICS"))
                chosen = 'TOPICS="YES"' in head and re.search(r'LEWISSPLIT="(TRAIN|TEST)"', head)
                if chosen and len(topics) == 1 and topics[0] in numbers:
                    yield {"text": _reuters_text(article), "label": numbers[topics[0]]}

    return _sampled(articles(), record.each)


def _reuters_text(article: str) -> str:
    """Title and body, or all of the text where it has no such parts."""
    parts = [_between(article, name) for name in ("TITLE", "BODY")]
    text = " ".join(part for part in parts if part) or re.sub(r"<.*?>", " ", _between(article, "TEXT"))
    return re.sub(r"[\x00-\x1f\s]+", " ", html.unescape(text)).strip()


def _between(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL)
    return found.group(1) if found else ""


def read_amazon(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """A file of JSON lines a category, named in its file name."""
    numbers = _numbers(record)

    def reviews() -> Iterator[Row]:
        for path in paths:
            category = re.sub(r"^reviews_|_5$", "", path.name.split(".")[0])
            if category in numbers:
                rows = _json_lines(path)
                yield from (
                    {"text": row["reviewText"], "label": numbers[category]} for row in rows if row["reviewText"].strip()
                )

    return _sampled(reviews(), record.each)


def read_huffpost(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """JSON lines with category and headline."""
    numbers = _numbers(record)
    rows = (row for path in paths for row in _json_lines(path))
    headlines = ((row["headline"].strip(), numbers.get(row["category"].lower())) for row in rows)
    return _sampled(({"text": text, "label": label} for text, label in headlines if text and label is not None), record.each)


def read_fewrel(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """Files of relations by their Wikidata number, and one, `pid2name.json`, with the names of the relations."""
    numbers = _numbers(record)
    names = next((read_json(path) for path in paths if path.name == "pid2name.json"), None)
    if names is None:
        raise DataError("The file pid2name.json, with the names of FewRel's relations, is missing: give it too (--from).")
    for path in paths:
        for relation, sentences in read_json(path).items() if path.name != "pid2name.json" else ():
            for row in sentences:
                spans = {key: [min(row[short][2][0]), max(row[short][2][0])] for key, short in (("head", "h"), ("tail", "t"))}
                words = [word.lower() for word in row["tokens"]]
                yield {"text": words, "label": numbers[names[relation][0]], **spans}


def read_banking77(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """CSV files with text and category."""
    for path in paths:
        for row in csv.DictReader(line for _, line in read_lines(path)):
            yield {"text": row["text"], "label": row["category"]}


def read_clinc150(paths: Sequence[Path], record: Record) -> Iterator[Row]:
    """An object of parts, each a list of text and intent; the parts out of scope are left out."""
    for path in paths:
        parts = read_json(path)
        yield from ({"text": text, "label": intent} for part in ("train", "val", "test") for text, intent in parts[part])


READERS: dict[str, Callable[[Sequence[Path], Record], Iterator[Row]]] = {
    "authors": read_rows,
    "newsgroups": read_newsgroups,
    "reuters": read_reuters,
    "amazon": read_amazon,
    "huffpost": read_huffpost,
    "fewrel": read_fewrel,
    "banking77": read_banking77,
    "clinc150": read_clinc150,
}


def _numbers(record: Record) -> dict[str, int]:
    """The label of each class name."""
    return {name: int(label) for label, name in record.classes.items()}


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in read_lines(path):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}, line {number} is not JSON ({error.msg}): fetch the file again.") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number} is not a JSON object: fetch the file again.")
        yield row


def _sampled(examples: Iterable[Row], each: int) -> Iterator[Row]:
    """As many examples of each label, chosen at random with a fixed seed in one pass (reservoir sampling)."""
    kept: dict[int, list[Row]] = {}
    seen: dict[int, int] = {}
    rngs: dict[int, np.random.Generator] = {}
    for example in examples:
        label = example["label"]
        seen[label] = seen.get(label, 0) + 1
        rng = rngs.setdefault(label, np.random.default_rng([0, label])) if seen[label] > each else None
        if rng is None:
            kept.setdefault(label, []).append(example)
        elif (place := int(rng.integers(seen[label]))) < each:
            kept[label][place] = example
    for label in sorted(kept):
        yield from kept[label]
