"""Download files completely or not at all, with resuming and checksums; unpack archives strictly into one folder."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast

from .. import __version__
from ..errors import DataError, HandfulError
from ..utils.files import read_json, write_json
from ..utils.progress import progress_bar

BYTES_AT_ONCE = 1 << 18
LARGEST_UNPACKED = 20 * 10**9  # bytes that an archive may unpack to
PASSING = {408, 429, 500, 502, 503, 504}  # status codes after which another try may succeed


class DownloadError(HandfulError, OSError):
    """A file could not be downloaded, or is not the expected one."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a silent server, and how often to retry after a broken connection."""

    silence: float = 30.0  # seconds
    tries: int = 5  # in a row without new data
    pause: float = 1.0  # seconds before the second try; doubles with each further one


@dataclass(frozen=True)
class Receipt:
    """The size and checksum of a file at its first download, kept in a small file next to it and compared from then on."""

    url: str
    size: int
    sha256: str


def download(
    url: str,
    folder: Path,
    size: int | None = None,
    sha256: str | None = None,
    patience: Patience | None = None,
    quiet: bool = False,
) -> Path:
    """Download a URL to `folder`, under its own file name, unless the file is there already; return its path.

    An interrupted download stays in a file `.part`, which the next call resumes. Size and checksum are compared with those
    given, or else with those of the first download. A file put there by hand counts as downloaded.
    """
    path = folder / PurePosixPath(urllib.parse.urlsplit(url).path).name
    fresh = not path.exists()
    file = _fetch(url, path, patience or Patience(), quiet) if fresh else path
    receipt = _receipt(file, url, quiet)
    _compare(receipt, size, sha256, file, path)
    if fresh:
        file.replace(path)
        _tag_file(file).unlink(missing_ok=True)
    write_json(_receipt_file(path), asdict(receipt))
    return path


# Size and checksum


def _receipt_file(path: Path) -> Path:
    return path.with_name(path.name + ".receipt.json")


def _receipt(path: Path, url: str, quiet: bool) -> Receipt:
    digest = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as stream, progress_bar(f"Checking {path.name}", size, quiet) as bar:
        while chunk := stream.read(BYTES_AT_ONCE):
            digest.update(chunk)
            bar.update(stream.tell())
    return Receipt(url, size, digest.hexdigest())


def _compare(found: Receipt, size: int | None, sha256: str | None, file: Path, path: Path) -> None:
    """Refuse a file that differs from the published one or from its first download; remove it if it was just downloaded."""
    first = _receipt_file(path)
    if first.exists():
        before = read_json(first)
        size, sha256 = size or before.get("size"), sha256 or before.get("sha256")
    if found.size == (size or found.size) and found.sha256 == (sha256 or found.sha256):
        return
    whose = str(path)
    remedy = "remove it and download it again"
    if file != path:
        file.unlink()
        whose = found.url
        remedy = "try again later" + (f", or remove {first} if the file was updated" * first.exists())
    is_so = f"{found.size} bytes with checksum {found.sha256[:12]}…"
    should = f"{size} bytes with {(sha256 or 'any')[:12]}…"
    raise DownloadError(f"{whose} has {is_so}, but {should} were expected: {remedy}.")


# Downloading


def _fetch(url: str, path: Path, patience: Patience, quiet: bool) -> Path:
    """Download the whole content to a file `.part` next to `path`."""
    part = path.with_name(path.name + ".part")
    make_folder(path.parent)
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url} is not a web address: give one that begins with https://.")
    farthest = _size(part)
    failures = 0
    with progress_bar(f"Downloading {path.name}", 1, quiet) as bar:
        while True:
            try:
                _fetch_more(url, part, patience.silence, bar.update)
                return part
            except (OSError, http.client.HTTPException) as error:
                failures = 0 if _size(part) > farthest else failures + 1
                farthest = max(farthest, _size(part))
                if failures >= patience.tries or not _may_pass(error, begun=farthest > 0):
                    remedy = f"try again, or put the file in {path.parent} yourself"
                    raise DownloadError(f"{url} cannot be downloaded ({_reason(error)}): {remedy}.") from error
            time.sleep(patience.pause * 2 ** max(0, failures - 1))


def make_folder(folder: Path) -> None:
    """Create a folder, and check that it can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"The folder {folder} cannot be created ({error.strerror}): give another one.") from error
    if not os.access(folder, os.W_OK):
        raise DataError(f"The folder {folder} cannot be written to: give another one, or change its permissions.")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _may_pass(error: Exception, begun: bool) -> bool:
    """Whether to try again: not if the server refuses, nor if it was never reached."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in PASSING
    if isinstance(error, urllib.error.URLError):
        return begun or isinstance(error.reason, TimeoutError)
    return isinstance(error, (TimeoutError, ConnectionError, http.client.HTTPException))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError):
        return "the server does not respond"
    if isinstance(error, urllib.error.URLError):
        return f"there is no connection: {error.reason}"
    if isinstance(error, (ConnectionError, http.client.HTTPException)):
        return f"the connection broke: {error or type(error).__name__}"
    return str(error)


def _tag_file(part: Path) -> Path:
    """The file that holds the server's version tag of a `.part` file."""
    return part.with_name(part.name + ".tag")


def _fetch_more(url: str, part: Path, silence: float, report: Callable[[float], None]) -> None:
    """Resume at the end of the part if the server still has that version and supports it; otherwise start over."""
    tag = _tag_file(part)
    headers = {"User-Agent": f"handful/{__version__}"}
    if _size(part) and tag.exists():
        headers |= {"Range": f"bytes={_size(part)}-", "If-Range": tag.read_text("utf-8")}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310, the scheme was checked
    try:
        answer = urllib.request.urlopen(request, timeout=silence)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # the part is not the beginning of this file
            part.unlink()
            raise ConnectionError("the partial download belongs to another file") from error
        raise
    with answer:
        goes_on = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        start = _size(part) if goes_on else 0
        _remember_version(tag, answer.headers)
        total = _total(answer.headers, start)
        with part.open("ab" if goes_on else "wb") as stream:
            while chunk := answer.read1(BYTES_AT_ONCE):  # what has arrived so far, so that a silent server loses nothing
                stream.write(chunk)
                report(stream.tell() / total if total else 0)
    if total is not None and _size(part) != total:
        if _size(part) > total:
            part.unlink()
        raise ConnectionError(f"{_size(part)} of {total} bytes arrived")


def _remember_version(tag: Path, headers: Any) -> None:
    version = headers.get("ETag") or headers.get("Last-Modified")
    if version and not version.startswith("W/"):  # a weak tag cannot vouch for bytes
        tag.write_text(version, "utf-8")
    else:
        tag.unlink(missing_ok=True)


def _total(headers: Any, start: int) -> int | None:
    length = headers.get("Content-Length")
    return start + int(length) if length and length.isdigit() else None


# Archives


def unpack(
    archive: Path, folder: Path, wanted: Callable[[str], bool] = lambda name: True, largest: int = LARGEST_UNPACKED
) -> list[Path]:
    """Unpack the wanted files of a zip, tar.gz or gz archive into `folder`; anything that points outside is refused."""
    paths = []
    written = 0
    try:
        for name, stream in _members(archive):
            if not wanted(name):
                continue
            path = _inside(folder, name, archive)
            path.parent.mkdir(parents=True, exist_ok=True)
            with stream, path.open("wb") as target:
                while chunk := stream.read(BYTES_AT_ONCE):
                    written += len(chunk)
                    if written > largest:
                        raise DataError(f"{archive} unpacks to more than {largest} bytes: it is not the expected archive.")
                    target.write(chunk)
            paths.append(path)
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        too = f" and {_receipt_file(archive).name}" * _receipt_file(archive).exists()
        raise DataError(f"{archive} cannot be unpacked ({error}): remove it{too}, then download it again.") from error
    return paths


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The name and content of each file in an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle:
            for info in bundle.infolist():
                if not info.is_dir():
                    yield info.filename, bundle.open(info)
    elif archive.name.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(archive) as tape:
            for member in tape:
                if member.isfile():
                    yield member.name, cast("IO[bytes]", tape.extractfile(member))
                elif not member.isdir():
                    raise DataError(f"{archive} contains {member.name}, which is a link or a device: it is not safe to unpack.")
    elif archive.suffix == ".gz":
        with gzip.open(archive) as stream:
            yield archive.stem, cast("IO[bytes]", stream)
    else:
        raise DataError(f"{archive} is not a zip, tar.gz or gz archive: download it again, or give another file.")


def _inside(folder: Path, name: str, archive: Path) -> Path:
    place = PurePosixPath(name.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or PureWindowsPath(name).drive:
        raise DataError(f"{archive} contains {name!r}, which points outside its folder: it is not safe to unpack.")
    return folder / place
