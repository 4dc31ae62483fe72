"""Read the benchmark's 1,420 RCV1 documents from the user's licensed copy: NewsML files, or zip archives of them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import DataError, MissingExtraError
from ..utils.files import read_objects
from ..utils.progress import track

TOP_LEVEL = {"CCAT", "ECAT", "GCAT", "MCAT"}
Found = tuple[Path, str]  # a file and "", or a zip archive and the name of its member


def read_ids(path: Path) -> dict[str, int]:
    """The label of each of the benchmark's documents by file name, from JSON lines with `path` and `label`."""
    ids = {}
    for number, row in read_objects(path, "give the authors' list"):
        try:
            ids[PurePosixPath(row["path"]).name] = int(row["label"])
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path}, line {number} is not an object with path and label: give the authors' list.") from error
    return ids


def read_rcv1(sources: Sequence[Path], ids: Mapping[str, int], quiet: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the listed documents in order; raises a DataError if any is missing."""
    places = dict(_find(sources, ids))
    missing = [name for name in ids if name not in places]
    if missing:
        first = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        where = ", ".join(map(str, sources))
        raise DataError(
            f"{where} lacks {len(missing)} of the {len(ids)} documents of RCV1 ({first}): give the whole collection."
        )
    for name, label in track(ids.items(), "Reading RCV1", len(ids), quiet):
        yield {**_article(_content(places[name]), name), "label": label}


def _find(sources: Sequence[Path], wanted: Mapping[str, int]) -> Iterator[tuple[str, Found]]:
    """The location of each wanted document, found by its file name, which is unique."""
    for source in sources:
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.suffix == ".zip":
                try:
                    with zipfile.ZipFile(path) as bundle:
                        members = bundle.namelist()
                except zipfile.BadZipFile as error:
                    raise DataError(f"{path} is not a zip file: copy it again.") from error
                yield from (
                    (PurePosixPath(member).name, (path, member)) for member in members if PurePosixPath(member).name in wanted
                )
            elif path.name in wanted:
                yield path.name, (path, "")


def _content(found: Found) -> bytes:
    path, member = found
    if not member:
        return path.read_bytes()
    with zipfile.ZipFile(path) as bundle:
        return bundle.read(member)


def _article(content: bytes, name: str) -> dict[str, Any]:
    """The headline and paragraphs of a NewsML document as text, and its topic codes."""
    try:
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import ParseError, fromstring
    except ImportError as error:
        raise MissingExtraError("Reading RCV1", "bench") from error
    try:
        root = fromstring(content, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise DataError(f"{name} is not a NewsML document ({error}): copy it again.") from error
    parts = [root.findtext("headline") or "", *("".join(paragraph.itertext()) for paragraph in root.iterfind("text/p"))]
    codes = [code.get("code", "") for code in root.iterfind("metadata/codes[@class='bip:topics:1.0']/code")]
    return {"text": "\n".join(part.strip() for part in parts if part.strip()), "topics": codes}


def class_topics(examples: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """A name for each label: the topic code shared by all its documents, the most general one below the top level."""
    shared: dict[str, set[str]] = {}
    for example in examples:
        codes = set(example["topics"]) - TOP_LEVEL
        shared[str(example["label"])] = shared.get(str(example["label"]), codes) & codes
    return {label: min(codes, key=lambda code: (len(code), code)) if codes else label for label, codes in shared.items()}
