from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from handful.data.download import DownloadError, Patience, download, unpack
from handful.errors import DataError

CONTENT = bytes(range(256)) * 4000  # about 1 MB
QUICK = Patience(silence=0.2, tries=3, pause=0.01)


class Server:
    """A real server whose manners a test can spoil; it notes the Range of every request."""

    def __init__(self) -> None:
        self.content, self.version, self.status = CONTENT, '"1"', 200
        self.ranges: list[str | None] = []
        self.cut: Callable[[int], int | None] = lambda request: None  # bytes after which the request's connection is cut
        self.stalls, self.takes_ranges = 0, True
        self.done = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}/files/data.bin"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self.done.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handler(server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                server.ranges.append(wanted)
                if server.status != 200:
                    self.send_error(server.status)
                    return
                same = self.headers.get("If-Range") == server.version
                start = int(wanted[6:-1]) if wanted and server.takes_ranges and same else 0
                if start > len(server.content):
                    self.send_error(416)
                    return
                rest = server.content[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(rest)))
                self.send_header("ETag", server.version)
                self.end_headers()
                if len(server.ranges) <= server.stalls:
                    self.wfile.write(rest[:1000])
                    self.wfile.flush()
                    server.done.wait(5)
                    return
                self.wfile.write(rest[: server.cut(len(server.ranges))])

        return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


def fetch(server: Server, folder: Path, **options) -> bytes:
    return download(server.url, folder, patience=QUICK, **options).read_bytes()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole_with_a_receipt_and_only_once(server: Server, tmp_path: Path) -> None:
    assert fetch(server, tmp_path / "new") == CONTENT
    assert names(tmp_path / "new") == ["data.bin", "data.bin.receipt.json"]
    receipt = json.loads((tmp_path / "new" / "data.bin.receipt.json").read_text())
    assert receipt == {"url": server.url, "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    assert fetch(server, tmp_path / "new") == CONTENT
    assert server.ranges == [None]


def test_a_cut_connection_goes_on_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.cut = lambda request: 300_000 if request < 4 else None
    assert fetch(server, tmp_path) == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]


def test_a_later_call_goes_on_too(server: Server, tmp_path: Path) -> None:
    server.cut = lambda request: 500_000 if request == 1 else 0 if request < 5 else None
    with pytest.raises(DownloadError, match="500000 of 1024000 bytes arrived"):
        fetch(server, tmp_path)
    assert names(tmp_path) == ["data.bin.part", "data.bin.part.tag"]
    assert fetch(server, tmp_path) == CONTENT
    assert names(tmp_path) == ["data.bin", "data.bin.receipt.json"]


def test_a_server_without_ranges_starts_over_and_is_not_asked_for_ever(server: Server, tmp_path: Path) -> None:
    server.takes_ranges, server.cut = False, lambda request: 300_000 if request == 1 else None
    assert fetch(server, tmp_path / "good") == CONTENT
    server.ranges, server.cut = [], lambda request: 300_000
    with pytest.raises(DownloadError, match="300000 of 1024000"):
        fetch(server, tmp_path / "bad")
    assert len(server.ranges) == 1 + QUICK.tries


def test_a_part_of_an_older_version_is_not_continued(server: Server, tmp_path: Path) -> None:
    server.cut = lambda request: 300_000 if request == 1 else 0 if request < 5 else None
    with pytest.raises(DownloadError):
        fetch(server, tmp_path)
    server.content, server.version = CONTENT[::-1], '"2"'
    assert fetch(server, tmp_path) == CONTENT[::-1]


def test_a_part_longer_than_the_file_is_dropped(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT * 2)
    (tmp_path / "data.bin.part.tag").write_text(server.version)
    assert fetch(server, tmp_path) == CONTENT


def test_a_silent_server_is_left_and_asked_again(server: Server, tmp_path: Path) -> None:
    server.stalls = 1
    assert fetch(server, tmp_path) == CONTENT
    assert server.ranges == [None, "bytes=1000-"]


def test_a_server_that_stays_silent(server: Server, tmp_path: Path) -> None:
    server.stalls, server.takes_ranges = 99, False
    with pytest.raises(DownloadError, match=r"does not respond\): try again, or put the file in"):
        fetch(server, tmp_path)


@pytest.mark.parametrize("options", [{"sha256": hashlib.sha256(CONTENT).hexdigest()}, {"size": len(CONTENT) + 1}])
def test_content_other_than_the_published_is_refused_and_removed(server: Server, tmp_path: Path, options) -> None:
    server.content = b"x" + CONTENT[1:]
    with pytest.raises(DownloadError, match=r"were expected: try again later\.$"):
        fetch(server, tmp_path, **options)
    assert names(tmp_path) == ["data.bin.part.tag"]


def test_content_other_than_the_first_time_is_refused(server: Server, tmp_path: Path) -> None:
    fetch(server, tmp_path)
    (tmp_path / "data.bin").unlink()
    server.content = b"x" + CONTENT[1:]
    with pytest.raises(DownloadError, match="if the file was updated"):
        fetch(server, tmp_path)
    assert not (tmp_path / "data.bin").exists()
    (tmp_path / "data.bin").write_bytes(b"spoilt")
    with pytest.raises(DownloadError, match=r"data.bin has 6 bytes .*: remove it and download it again"):
        fetch(server, tmp_path)


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (403, 1), (500, 3), (503, 3)])
def test_a_server_that_says_no(server: Server, tmp_path: Path, status: int, requests: int) -> None:
    server.status = status
    with pytest.raises(DownloadError, match=rf"{server.url} cannot be downloaded \(the server answers {status}"):
        fetch(server, tmp_path)
    assert len(server.ranges) == requests
    assert names(tmp_path) == []


def test_offline_names_the_address_and_the_folder(server: Server, tmp_path: Path) -> None:
    server.stop()
    sentence = (
        rf"{server.url} cannot be downloaded \(there is no connection: .*\): try again, or put the file in {tmp_path} yourself"
    )
    with pytest.raises(DownloadError, match=sentence):
        fetch(server, tmp_path)
    (tmp_path / "data.bin").write_bytes(CONTENT)  # put there by hand
    assert fetch(server, tmp_path) == CONTENT


def test_only_addresses_of_the_web(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="is not a web address"):
        download("file:///etc/hostname", tmp_path)


# Archives


def make_zip(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
    return path


def make_tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tape:
        for member in members:
            tape.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def member(name: str, size: int = 3, **fields) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def test_zip_tar_and_gz(tmp_path: Path) -> None:
    bundle = make_zip(tmp_path / "a.zip", **{"data/one.txt": "1", "data/two.txt": "2"})
    (one,) = unpack(bundle, tmp_path / "zip", lambda name: name.endswith("one.txt"))
    assert one.read_text() == "1"
    assert not (tmp_path / "zip" / "data" / "two.txt").exists()
    tape = make_tar(tmp_path / "a.tar.gz", member("data", 0, type=tarfile.DIRTYPE), member("data/one.txt"))
    assert [path.read_text() for path in unpack(tape, tmp_path / "tar")] == ["xxx"]
    (tmp_path / "one.txt.gz").write_bytes(gzip.compress(b"1"))
    assert unpack(tmp_path / "one.txt.gz", tmp_path / "gz") == [tmp_path / "gz" / "one.txt"]


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "..\\out", "C:\\out", "\\out"])
def test_nothing_leaves_the_folder(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    for archive in (make_zip(tmp_path / "a.zip", **{name: "x"}), make_tar(tmp_path / "a.tar.gz", member(name))):
        with pytest.raises(DataError, match="points outside its folder"):
            unpack(archive, inside)
    assert not inside.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    tape = make_tar(tmp_path / "a.tar.gz", member("link", 0, type=kind, linkname="/etc/passwd"))
    with pytest.raises(DataError, match="a link or a device"):
        unpack(tape, tmp_path / "inside")


def test_a_bound_on_what_an_archive_unpacks_to(tmp_path: Path) -> None:
    bomb = make_zip(tmp_path / "a.zip", bomb="0" * 10**6)
    with pytest.raises(DataError, match="more than 1000 bytes"):
        unpack(bomb, tmp_path / "inside", largest=1000)


def test_damaged_archives(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    (tmp_path / "b.tar.gz").write_bytes(b"nonsense")
    damaged = bytearray(make_zip(tmp_path / "c.zip", file="hello").read_bytes())
    damaged[damaged.index(b"hello")] ^= 1
    (tmp_path / "c.zip").write_bytes(damaged)
    for name in ("a.gz", "b.tar.gz", "c.zip"):
        with pytest.raises(DataError, match="cannot be unpacked"):
            unpack(tmp_path / name, tmp_path / "inside")
    (tmp_path / "d.rar").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"not a zip, tar\.gz or gz archive"):
        unpack(tmp_path / "d.rar", tmp_path / "inside")
