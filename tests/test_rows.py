from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from handful import rows as rows_module
from handful.errors import DataError, MissingExtraError, SettingError
from handful.rows import Source, identity, open_rows

CSV = 'text,label\nhello there,greeting\n"two\nlines, and a ""quote""",odd\n'
EXPECTED = [("hello there", "greeting"), ('two\nlines, and a "quote"', "odd")]


def write(path: Path, content: str | bytes) -> Source:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Source(str(path))


def read(source: Source, labelled: bool = True) -> list[tuple]:
    with open_rows(source, labelled) as rows:
        return [(row.text, row.label) if labelled else row.text for row in rows]


def problem(source: Source, labelled: bool = False) -> str:
    with pytest.raises(DataError) as caught:
        read(source, labelled)
    return str(caught.value)


def skipping(source: Source) -> tuple[list[str], int, str]:
    lenient = Source(source.path, source.form, source.text, source.label, skip_broken=True)
    with open_rows(lenient) as rows:
        return [row.text for row in rows], rows.skipped, rows.problem


# Formats


def parquet_bytes(columns: dict, **options: object) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    stream = io.BytesIO()
    write_table(pyarrow.table(columns), stream, **options)
    return stream.getvalue()


def json_lines() -> bytes:
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in EXPECTED).encode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-bom", "utf-16-be-bom"])
def test_csv_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    text = CSV.replace("hello", "grüß – 你好 🎉")
    marks = {"utf-16-le-bom": b"\xff\xfe", "utf-16-be-bom": b"\xfe\xff"}
    content = marks.get(encoding, b"") + text.encode(encoding.removesuffix("-bom"))
    assert read(write(tmp_path / "a.csv", content)) == [("grüß – 你好 🎉 there", "greeting"), EXPECTED[1]]


@pytest.mark.parametrize(
    "name", ["a.csv", "a.CSV", "a.csv.gz", "a.csv.xz", "a.csv.zip", "a.tsv", "a.jsonl", "a.json.gz", "a.parquet"]
)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    content = CSV.encode()
    if ".tsv" in name:
        content = b'text\tlabel\nhello there\tgreeting\n"two\nlines, and a ""quote"""\todd\n'
    elif ".json" in name:
        content = json_lines()
    elif ".parquet" in name:
        content = parquet_bytes(dict(zip(("text", "label"), zip(*EXPECTED, strict=True), strict=True)))
    if name.endswith("gz"):
        content = gzip.compress(content)
    elif name.endswith("xz"):
        content = lzma.compress(content)
    elif name.endswith("zip"):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("inside.csv", content)
        content = stream.getvalue()
    assert read(write(tmp_path / name, content)) == EXPECTED


def test_windows_line_ends_and_empty_lines(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.csv", "text,label\r\na,b\r\n\r\nc,d\r\n")) == [("a", "b"), ("c", "d")]


def test_plain_lines_are_texts_the_empty_ones_too(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.txt", 'one, "two\r\n\n three\nlast'), False) == ['one, "two', "", " three", "last"]


def test_standard_input_needs_a_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    with pytest.raises(SettingError, match=r"Standard input has no ending .* --format csv, tsv, jsonl, parquet, txt"):
        read(Source("-"))
    assert read(Source("-", "csv")) == EXPECTED
    assert identity(Source("-", "csv")) is None


def test_parquet_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(parquet_bytes({"text": ["a", "b"]}))))
    assert read(Source("-", "parquet"), False) == ["a", "b"]


def test_labels_of_json_and_parquet_keep_their_types(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.jsonl", '{"text": "a", "label": 3}\n{"label": ["x", "y"], "text": "b"}\n')) == [
        ("a", 3),
        ("b", ["x", "y"]),
    ]
    assert read(write(tmp_path / "a.parquet", parquet_bytes({"text": ["a"], "label": [3]}))) == [("a", 3)]


def test_parquet_is_read_in_parts_with_only_the_columns_that_are_wanted(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", parquet_bytes({"id": range(2500), "text": ["x"] * 2500}, row_group_size=700))
    with open_rows(source) as rows:
        assert (rows.columns, rows.total) == (("text",), 2500)
        assert [row.number for row in rows] == list(range(1, 2501))
        assert rows.done == 2500
    with open_rows(source, whole=True) as rows:
        assert next(iter(rows)).values == (0, "x")


# Columns


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        ("sentence,intent", "sentence", "intent"),
        ("id,Message,Category,date", "Message", "Category"),
        ("review,label", "review", "label"),
        ("text,queue", "text", "queue"),
    ],
)
def test_obvious_columns_are_found(tmp_path: Path, header: str, text: str, label: str) -> None:
    names = header.split(",")
    row = dict(zip(names, (f"value of {name}" for name in names), strict=True))
    source = write(tmp_path / "a.csv", f"{header}\n{','.join(row.values())}\n")
    assert read(source) == [(row[text], row[label])]
    assert read(source, labelled=False) == [row[text]]


def test_a_column_without_a_name(tmp_path: Path) -> None:
    source = write(tmp_path / "what?.csv", ",text,label\n0,a,x\n")
    assert read(source) == [("a", "x")]
    assert "what?.csv has no column 'b': it has , text, label." in problem(Source(source.path, text="b"))
    assert read(Source(source.path, label="")) == [("a", "0")]


def test_the_only_column_holds_the_texts(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.csv", "remark\nfine\n"), False) == ["fine"]


def test_columns_that_are_not_obvious_have_to_be_named(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "title,body,queue,size\na,b,c,d\n")
    assert problem(source).endswith(
        "a.csv has the columns title, body, queue, size, and which one holds the texts is not clear: name it with --text."
    )
    named = Source(source.path, text="body")
    assert read(named, labelled=False) == ["b"]
    assert "which one holds the labels is not clear: name it with --label." in problem(named, labelled=True)
    assert read(Source(source.path, text="body", label="queue")) == [("b", "c")]
    assert "a.csv has no column 'boddy': it has title, body, queue, size." in problem(Source(source.path, text="boddy"))


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    assert "two columns of the same name (text, text): rename one." in problem(write(tmp_path / "a.csv", "text,text\na,b\n"))


# What is broken


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    assert problem(Source(str(path))) == f"There is no file {path}: check the path."


def test_formats_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="There is no format 'xlsx'"):
        Source("a", "xlsx")
    with pytest.raises(SettingError, match=r"a\.xlsx has no ending that says what it holds"):
        read(write(tmp_path / "a.xlsx", b""))
    with pytest.raises(SettingError, match="Parquet in a compressed file: unpack it"):
        read(write(tmp_path / "a.parquet.gz", b""))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a.csv", "line 1, which should name the columns, is not there: mend it."),
        ("a.jsonl", "is empty: give one JSON object a line."),
        ("a.parquet", "is not a Parquet file"),
        ("a.csv.gz", "line 1, which should name the columns, is not there"),
        ("a.csv.zip", "cannot be read to its end"),
    ],
)
def test_empty_files(tmp_path: Path, name: str, sentence: str) -> None:
    assert sentence in problem(write(tmp_path / name, b""))


def test_an_empty_file_of_plain_lines_has_no_texts(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.txt", b""), False) == []


def test_a_row_with_too_many_fields(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "text,label\na,b\nc,d,e\nf\ng,h\n")
    assert problem(source).endswith(
        "a.csv, line 3 has 3 fields, the header 2: mend it, or leave such rows out with --on-error skip."
    )
    texts, skipped, first = skipping(source)
    assert (texts, skipped) == (["a", "g"], 2)
    assert first.endswith("a.csv, line 3 has 3 fields, the header 2")


def test_a_line_that_is_not_utf8(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", b'text\nfine\ncaf\xe9\n"two\nl\xefnes"\nlast\n')
    assert "a.csv, line 3 is not in UTF-8 ('utf-8' codec can't decode byte 0xe9 in position 3" in problem(source)
    texts, skipped, _ = skipping(source)
    assert (texts, skipped) == (["fine", "last"], 3)  # of the row of two lines, neither can be used


def test_half_a_character_of_utf16(tmp_path: Path) -> None:
    source = write(tmp_path / "a.txt", b"\xff\xfe" + "fine\n".encode("utf-16-le") + b"\x00\xd8" + "\nlast".encode("utf-16-le"))
    assert "line 2 is not in UTF-16" in problem(source)
    assert skipping(source)[:2] == (["fine", "last"], 1)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.xz"])
def test_a_compressed_file_that_ends_early(tmp_path: Path, name: str) -> None:
    content = ("text\n" + "".join(f"row {i * i}\n" for i in range(5000))).encode()
    packed = (gzip if name.endswith("gz") else lzma).compress(content)
    assert "cannot be read to its end" in problem(write(tmp_path / name, packed[: len(packed) // 2]))


def test_a_gzip_file_with_damage_in_the_middle(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(("text\n" + "".join(f"row {i * i}\n" for i in range(5000))).encode()))
    packed[len(packed) // 2] ^= 0xFF
    assert "cannot be read to its end" in problem(write(tmp_path / "a.csv.gz", bytes(packed)))


def test_a_quote_that_is_never_closed_does_not_swallow_the_file(tmp_path: Path) -> None:
    lines = ["text", "fine", '"never closed', *(f"row {i}" for i in range(3000))]
    source = write(tmp_path / "a.csv", "\n".join(lines) + "\n")
    assert "a.csv, line 3 has quotes that do not match" in problem(source)
    texts, skipped, _ = skipping(source)
    assert (texts, skipped) == (["fine", *lines[3:]], 1)


def test_a_quote_that_a_later_one_seems_to_close(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", 'text,label\n"open,x\nfine,y\n"quoted",z\nlast,z\n')
    assert "line 2 has quotes that do not match" in problem(source)
    assert skipping(source)[:2] == (["fine", "quoted", "last"], 1)


def test_a_quote_left_open_at_the_end(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", 'text\nfine\n"open')
    assert "line 3 has quotes that do not match (unexpected end of data)" in problem(source)
    assert skipping(source)[:2] == (["fine"], 1)


def test_a_header_with_an_open_quote(tmp_path: Path) -> None:
    assert "line 1, which should name the columns, has quotes that do not match" in problem(
        write(tmp_path / "a.csv", '"text\na\n')
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{oops", "line 2 is not JSON (Expecting property name"),
        ("[1]", "line 2 is not a JSON object"),
        ("[" * 100_000, "line 2 is not JSON ("),
        ('{"text": null}', "line 2 has nothing as its text, not a text"),
        ('{"text": 5}', "line 2 has 5 as its text, not a text"),
        ('{"other": "x"}', "line 2 has nothing as its text, not a text"),
    ],
)
def test_bad_json(tmp_path: Path, line: str, sentence: str) -> None:
    source = write(tmp_path / "a.jsonl", f'{{"text": "a"}}\n{line}\n\n{{"text": "b"}}\n')
    assert sentence in problem(source)
    assert skipping(source)[:2] == (["a", "b"], 1)


def test_bad_json_at_the_beginning(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", '[\n{"text": "a"}\n')
    assert "line 1 is not JSON (" in problem(source)
    assert skipping(source)[:2] == (["a"], 1)
    assert "line 1 has no columns" in problem(write(tmp_path / "b.jsonl", "{}\n"))


@pytest.mark.parametrize("label", ["null", '""', "[null]", '{"a": 1}'])
def test_rows_without_a_label(tmp_path: Path, label: str) -> None:
    source = write(tmp_path / "a.jsonl", f'{{"text": "a", "label": "x"}}\n{{"text": "b", "label": {label}}}\n')
    assert "line 2 has" in problem(source, labelled=True)
    assert read(source, labelled=False) == ["a", "b"]


def test_a_parquet_file_with_damage(tmp_path: Path) -> None:
    content = bytearray(parquet_bytes({"text": [f"row {i * i}" for i in range(5000)]}))
    content[len(content) // 2 : len(content) // 2 + 200] = bytes(200)
    assert "cannot be read to its end" in problem(write(tmp_path / "a.parquet", bytes(content)))
    assert "is not a Parquet file" in problem(write(tmp_path / "b.parquet", b"PAR1 and more"))


def test_a_parquet_row_without_a_text(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", parquet_bytes({"text": ["a", None, "c"]}))
    assert "a.parquet, row 2 has nothing as its text" in problem(source)
    assert skipping(source)[:2] == (["a", "c"], 1)


def test_hostile_texts_come_as_they_are(tmp_path: Path) -> None:
    texts = ["a" * 10_000_000, "\x00\x07\x1b[31m", "nul\x00inside", "‮right to left", "🎉" * 10]
    assert read(write(tmp_path / "a.csv", "text\n" + "\n".join(texts) + "\n"), False) == texts
    lone = write(tmp_path / "a.jsonl", '{"text": "lone \\ud800 half"}\n')
    assert read(lone, False) == ["lone \ud800 half"]


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_too_long_for_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr(rows_module, "LONGEST_LINE", 1000)
    source = write(tmp_path / "a.txt", "fine\n" + "x" * 999 + "\n" + "x" * 5000 + end)
    assert "line 3 is longer than 1,000 characters" in problem(source)
    assert skipping(source)[:2] == (["fine", "x" * 999], 1)


def test_memory_stays_flat(tmp_path: Path) -> None:
    """A file of 20 MB is read in a small part of it."""
    path = tmp_path / "a.csv"
    with path.open("w") as stream:
        stream.write("text,label\n")
        stream.writelines(f'"number {i}, {"word " * 75}",x\n' for i in range(50_000))
    assert path.stat().st_size > 18_000_000
    tracemalloc.start()
    with open_rows(Source(str(path)), labelled=True) as rows:
        assert sum(1 for _ in rows) == 50_000
        assert rows.done == rows.total
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


# Object stores


class Bucket(BaseHTTPRequestHandler):
    """As much of S3's protocol as reading a file needs."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes] = {}  # noqa: RUF012

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        content, wanted = self.files.get(self.path), self.headers.get("Range")
        self.send_response(404 if content is None else 206 if wanted else 200)
        part = content or b""
        if content is not None and wanted:
            first, last = (int(end) for end in wanted.removeprefix("bytes=").split("-"))
            part = content[first : last + 1]
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if with_body:
            self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a file in a local object store, with {} for its name."""
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
        yield f"s3://someone:secret@mail/{{}}?{where}"
        server.shutdown()


def test_object_stores(bucket: str) -> None:
    content = {"a.csv": CSV.encode(), "a.csv.gz": gzip.compress(CSV.encode()), "a.jsonl": json_lines()}
    content["a.parquet"] = parquet_bytes(dict(zip(("text", "label"), zip(*EXPECTED, strict=True), strict=True)))
    Bucket.files = {f"/mail/{name}": stored for name, stored in content.items()}
    for name in content:
        assert read(Source(bucket.format(name))) == EXPECTED, name
    assert identity(Source(bucket.format("a.csv")))[1:] == [len(CSV), 1445412480_000_000_000]
    assert problem(Source(bucket.format("none.csv"))) == "There is no file s3://mail/none.csv: check the path."


def test_urls_that_nobody_reads() -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(SettingError, match=r"foo://a/b\.csv is no URL that can be read"):
        read(Source("foo://a/b.csv"))
    with pytest.raises(SettingError) as caught:
        read(Source("foo://someone:secret@a/b.csv"))
    assert "secret" not in str(caught.value)


def test_without_pyarrow_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.fs", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    for source in (Source("s3://mail/a.csv"), write(tmp_path / "a.parquet", b"")):
        with pytest.raises(MissingExtraError, match=r"install it with pip install 'handful\[files\]'"):
            read(source)
