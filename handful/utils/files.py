"""Write files atomically; read plain or compressed files line by line, with clear errors for broken ones."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..errors import DataError
from .progress import progress_bar

OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
COMPRESSED = (*OPENERS, ".zip")
ABANDONED = 3600  # seconds after which a temporary file was left by a process that died
LARGE = 5_000_000  # bytes: reading a larger file shows a progress bar


@contextmanager
def decompressed(raw: IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    """The decompressed stream of a file whose name has this ending; for a zip archive, that of its first file."""
    if ending == ".zip":
        with zipfile.ZipFile(raw) as archive:
            if not archive.namelist():
                raise zipfile.BadZipFile("the archive is empty")
            with archive.open(archive.namelist()[0]) as stream:
                yield stream
    elif ending in OPENERS:
        with OPENERS[ending](raw, "rb") as stream:
            yield stream
    else:
        yield raw


@contextmanager
def reading_errors(name: str | Path) -> Iterator[None]:
    """Turn any failure to read a file into a DataError that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"There is no file {name}: check the path.") from error
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{name} cannot be read to the end ({error}): download or create it again.") from error


def read_lines(path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Numbered lines of a UTF-8 text file (plain, xz, gz, or the first file of a zip archive)."""
    with reading_errors(path):
        size = path.stat().st_size
        bar_of = progress_bar(f"Reading {path.name}", size, quiet=size < LARGE)
        with path.open("rb") as raw, decompressed(raw, path.suffix) as stream, bar_of as bar:
            for number, line in enumerate(stream, 1):
                if number % 4096 == 0:
                    bar.update(raw.tell())
                yield number, line.decode("utf-8", errors)


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object; the message of the ValueError completes a sentence that begins with the place."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def read_objects(path: Path, remedy: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered objects of a JSON lines file; blank lines are skipped, and `remedy` ends the error about a broken line."""
    for number, line in read_lines(path):
        if line.strip():
            try:
                yield number, parse_object(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number} {error}: {remedy}.") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file."""
    content = "".join(line for _, line in read_lines(path))
    try:
        return parse_object(content)
    except ValueError as error:
        raise DataError(f"{path} {error}: correct the file.") from error


@contextmanager
def atomic_writer(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary file that replaces `path` once it is complete and on disk; after an error nothing is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    remove_abandoned(path)


def remove_abandoned(path: Path) -> None:
    """Remove temporary files left next to `path` by processes that were killed long ago while writing it."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.\d+")
    old = time.time() - ABANDONED
    with suppress(OSError):  # another process may do the same, or the folder may not be listable
        for other in path.parent.iterdir():
            if pattern.fullmatch(other.name) and other.lstat().st_mtime < old:
                other.unlink()


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with atomic_writer(path) as stream:
        stream.write(content)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically; unpaired surrogates, which UTF-8 cannot hold, are escaped."""
    write_atomic(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))
