"""Lines of text files, plain or compressed, with a progress bar on large ones and a sentence for broken ones."""

from __future__ import annotations

import gzip
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import DataError
from .progress import progress_bar

OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
LARGE = 5_000_000  # bytes from which a reading shows its progress


@contextmanager
def _open(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The stream of lines, and the raw file under it whose position tells how far the reading is."""
    with path.open("rb") as raw:
        if path.suffix == ".zip":
            with zipfile.ZipFile(raw) as archive:
                if not archive.namelist():
                    raise zipfile.BadZipFile("the archive is empty")
                with archive.open(archive.namelist()[0]) as stream:
                    yield stream, raw
        elif path.suffix in OPENERS:
            with OPENERS[path.suffix](raw, "rb") as stream:
                yield stream, raw
        else:
            yield raw, raw


def read_lines(path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file (plain, xz, gz, or the first file of a zip) in UTF-8."""
    try:
        size = path.stat().st_size
        with _open(path) as (stream, raw), progress_bar(f"Reading {path.name}", size, quiet=size < LARGE) as bar:
            for number, line in enumerate(stream, 1):
                if number % 4096 == 0:
                    bar.update(raw.tell())
                yield number, line.decode("utf-8", errors)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}: check the path.") from error
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read to its end ({error}): fetch or write it again.") from error
