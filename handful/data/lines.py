"""The lines of a text file, numbered and decoded; an unreadable line is replaced by the reason."""

from __future__ import annotations

import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import IO, Any, cast

LONGEST_LINE = 1 << 26  # characters: anything longer is not a line, and may not fit in memory


@dataclass(frozen=True)
class Broken:
    """Why a line or row cannot be used: the end of a sentence that begins with its place."""

    reason: str
    remedy: str = "fix it"


Line = tuple[int, "str | Broken"]


def numbered_lines(stream: IO[bytes], encoding: str | None = None) -> Iterator[Line]:
    """Numbered lines with their line ends; the encoding is UTF-8 by default, or UTF-16 if the file begins with its mark."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))
    is_wide = buffered.peek(2)[:2] in (BOM_UTF16_LE, BOM_UTF16_BE)
    encoding = encoding or ("UTF-16" if is_wide else "UTF-8")
    by_bytes = "\n".encode(encoding) == b"\n"  # then an undecodable line does not affect the others
    source: Any = buffered if by_bytes else io.TextIOWrapper(buffered, encoding, "surrogatepass", newline="\n")
    for number in count(1):
        line = source.readline(LONGEST_LINE)
        if not line:
            return
        if not _is_cut(line):
            text = _decoded(line, encoding)
            yield number, text.removeprefix("\ufeff") if number == 1 and isinstance(text, str) else text
            continue
        while _is_cut(line):
            line = source.readline(LONGEST_LINE)
        yield number, Broken(f"is longer than {LONGEST_LINE:,} characters")


def _is_cut(line: bytes | str) -> bool:
    return len(line) == LONGEST_LINE and line[-1] not in ("\n", ord("\n"))


def _decoded(line: bytes | str, encoding: str) -> str | Broken:
    try:
        if isinstance(line, bytes):
            return line.decode(encoding)
        line.encode()  # fails for an unpaired UTF-16 surrogate
        return line
    except UnicodeDecodeError as error:
        remedy = "give its encoding, such as `encoding='windows-1252'`" if encoding == "UTF-8" else "name another `encoding`"
        return Broken(f"is not in {encoding} (its byte {error.start + 1} is 0x{error.object[error.start]:02x})", remedy)
    except UnicodeEncodeError as error:
        return Broken(f"is not in {encoding} ({error})")
