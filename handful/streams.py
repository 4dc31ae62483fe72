"""Lines of text files, plain or compressed, with a progress bar on large ones and a sentence for broken ones."""

from __future__ import annotations

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import DataError
from .progress import progress_bar

OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
COMPRESSED = (*OPENERS, ".zip")
LARGE = 5_000_000  # bytes from which a reading shows its progress


@contextmanager
def decompressed(raw: IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    """What is in a file whose name ends so: itself, or what was compressed; of a zip, its first file."""
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
    """Turns what goes wrong while a file is read into a sentence that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"There is no file {name}: check the path.") from error
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{name} cannot be read to its end ({error}): fetch or write it again.") from error


def read_lines(path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file (plain, xz, gz, or the first file of a zip) in UTF-8."""
    with reading_errors(path):
        size = path.stat().st_size
        bar_of = progress_bar(f"Reading {path.name}", size, quiet=size < LARGE)
        with path.open("rb") as raw, decompressed(raw, path.suffix) as stream, bar_of as bar:
            for number, line in enumerate(stream, 1):
                if number % 4096 == 0:
                    bar.update(raw.tell())
                yield number, line.decode("utf-8", errors)
