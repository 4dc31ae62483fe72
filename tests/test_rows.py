from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies

from handful.data import binary_tables, lines, text_tables
from handful.data.reader import Source, identity, open_rows
from handful.errors import DataError, MissingExtraError, SettingError

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
    lenient = replace(source, skip_broken=True)
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


def excel_bytes(rows: list[list], **options: object) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, stream = openpyxl.Workbook(**options), io.BytesIO()
    sheet = book.create_sheet() if options else book.active
    for row in rows:
        sheet.append(row)
    if not options:
        book.create_sheet("second").append(["not", "read"])
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "name", ["a.csv", "a.CSV", "a.csv.gz", "a.csv.xz", "a.csv.zip", "a.tsv", "a.jsonl", "a.json.gz", "a.parquet", "a.xlsx"]
)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    content = CSV.encode()
    if ".tsv" in name:
        content = b'text\tlabel\nhello there\tgreeting\n"two\nlines, and a ""quote"""\todd\n'
    elif ".json" in name:
        content = json_lines()
    elif ".parquet" in name:
        content = parquet_bytes(dict(zip(("text", "label"), zip(*EXPECTED, strict=True), strict=True)))
    elif ".xlsx" in name:
        content = excel_bytes([["text", "label"], *EXPECTED])
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
    with pytest.raises(
        SettingError, match=r"Standard input has no ending .* `form`, one of csv, tsv, jsonl, parquet, xlsx, txt\."
    ):
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


# Delimiters

FIELD = strategies.text(strategies.sampled_from('ab,;|\t"\n'))


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_delimiter_of_csv_is_found(tmp_path: Path, delimiter: str, end: str) -> None:
    rows = [("text", "label"), ("Hello, you; there | or\there", "a"), ("plain", "b"), ('"quoted"', "c")]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator=end).writerows(rows)
    assert read(write(tmp_path / "a.csv", "\ufeff" + stream.getvalue())) == rows[1:]


def test_semicolons_with_commas_in_unquoted_texts(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.csv", "text;label\nHello, you;a\n\nsorry, no, never;b\n")) == [
        ("Hello, you", "a"),
        ("sorry, no, never", "b"),
    ]
    with_commas_above = write(tmp_path / "b.csv", "text, raw;label\nHello;a\nno, never;b\nbye, bye, you;b\n")
    assert read(with_commas_above) == [("Hello", "a"), ("no, never", "b"), ("bye, bye, you", "b")]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ('text\n"Hello; you, there"\n"a;b"\nc;d\n', ["Hello; you, there", "a;b", "c;d"]),
        ('text\n"one, two"\n"three, four"\n', ["one, two", "three, four"]),
        ("text,label\na;b,x\nc;d,y\n", ["a;b", "c;d"]),
        ('text,"label;other"\na;b,x\nc;d,y\n', ["a;b", "c;d"]),
        ("text,label;other\na;b,x\nc;d,y\n", ["a;b", "c;d"]),
        ("text; remark\nfine\ngood\n", ["fine", "good"]),
        ("text\na\tb\nc|d\n", ["a\tb", "c|d"]),
        ("text,label\n", []),
    ],
)
def test_a_comma_file_and_a_file_of_one_column_are_never_misread(tmp_path: Path, content: str, texts: list[str]) -> None:
    assert read(write(tmp_path / "a.csv", content), labelled=False) == texts


@given(
    strategies.integers(2, 4).flatmap(lambda n: strategies.lists(strategies.lists(FIELD, min_size=n, max_size=n), min_size=1))
)
@settings(deadline=None)
def test_what_is_written_with_commas_is_read_with_commas(rows: list[list[str]]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    assert text_tables.find_delimiter(list(enumerate(written.getvalue().splitlines(keepends=True), 1))) == ","


def test_a_broken_row_and_a_long_one_do_not_hide_the_delimiter(tmp_path: Path) -> None:
    long = "a line, and\n" * 300
    source = write(tmp_path / "a.csv", f'text;label\nfine, yes;x\none;two;three\n"{long}";y\nlast, one;z\n')
    assert "line 3 has 3 fields, but the header has 2" in problem(source)
    assert skipping(source)[:2] == (["fine, yes", long, "last, one"], 1)
    assert read(write(tmp_path / "b.csv", f'text;label\n"{long}";y\n')) == [(long, "y")]


def test_the_first_lines_are_a_bounded_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "SAMPLE_CHARACTERS", 50)
    drawn = iter([(number, "text;label\n") for number in range(1, 100)])
    assert text_tables.delimited_table(drawn, "a", None).columns == ("text", "label")
    assert next(drawn)[0] == 6


def test_a_delimiter_that_is_given_wins(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "text;label,more\na;b,c\n")
    assert read(Source(source.path, delimiter=";", text="text")) == [("a", "b,c")]
    assert read(Source(write(tmp_path / "a.tsv", "text^label\na^b\n").path, delimiter="^")) == [("a", "b")]
    for wrong in ("", ";;", '"', "\n"):
        with pytest.raises(SettingError, match=r"The delimiter is .*: give one character, such as ; \(`delimiter`\)"):
            Source("a.csv", delimiter=wrong)
    with pytest.raises(SettingError, match=r"a.jsonl is jsonl, which has no delimiter: remove `delimiter`\."):
        read(Source(write(tmp_path / "a.jsonl", json_lines()).path, delimiter=";"))


def test_how_a_file_is_read_is_part_of_what_identifies_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", CSV).path
    ways = [Source(path), Source(path, delimiter=","), Source(path, encoding="latin-1")]
    assert len({str(identity(source)) for source in ways}) == 3
    assert identity(ways[0]) == identity(Source(path, label="label"))


# Encodings


@pytest.mark.parametrize(
    "encoding", ["windows-1252", "latin-1", "utf-16-le", "utf-16", "utf-8", "utf-8-sig", "shift_jis", "cp037"]
)
def test_an_encoding_that_is_given(tmp_path: Path, encoding: str) -> None:
    word = "日本語" if encoding == "shift_jis" else "caf\xe9"
    content = f'text,label\r\n{word},a\r\n"{word}\n{word}",b\r\n'.encode(encoding)
    source = write(tmp_path / "a.csv", content)
    assert read(Source(source.path, encoding=encoding)) == [(word, "a"), (f"{word}\n{word}", "b")]


def test_a_header_that_is_not_utf8_names_the_encoding_to_try(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "Überschrift;label\ncafé;a\n".encode("windows-1252"))
    assert problem(source).endswith(
        "a.csv, line 1, which must name the columns, is not in UTF-8 (its byte 1 is 0xdc): "
        "give its encoding, such as `encoding='windows-1252'`."
    )
    assert read(Source(source.path, encoding="windows-1252")) == [("café", "a")]
    lines_of_json = write(tmp_path / "a.jsonl", '{"text": "café"}\n'.encode("latin-1"))
    assert "a.jsonl, line 1 is not in UTF-8 (its byte 14 is 0xe9): give its encoding, such as" in problem(lines_of_json)


def test_a_byte_that_the_encoding_does_not_have(tmp_path: Path) -> None:
    source = Source(write(tmp_path / "a.txt", b"fine\n\x81\n").path, encoding="windows-1252")
    assert "a.txt, line 2 is not in windows-1252 (its byte 1 is 0x81): name another `encoding`, or skip" in problem(source)
    assert skipping(source)[:2] == (["fine"], 1)


@pytest.mark.parametrize("encoding", ["klingon", "hex", "rot13", ""])
def test_encodings_that_do_not_exist(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(SettingError, match=r"There is no encoding .*: give one such as utf-8 or windows-1252 \(`encoding`\)"):
        Source("a.csv", encoding=encoding)
    with pytest.raises(SettingError, match=r"a.parquet is Parquet, which is not encoded text: remove `encoding`"):
        read(Source(write(tmp_path / "a.parquet", b"").path, encoding="latin-1"))


# An array of JSON


ROWS_OF_JSON = [{"text": text, "label": label} for text, label in EXPECTED]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz"])
def test_an_array_of_objects(tmp_path: Path, indent: int | None, name: str) -> None:
    content = b"\n " + json.dumps(ROWS_OF_JSON, indent=indent).encode() + b"\n"
    assert read(write(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)) == EXPECTED


def test_an_array_with_signs_in_its_strings_and_lists_in_its_objects(tmp_path: Path) -> None:
    rows = [{"text": 'a ] } , [ { \\ \\" " \\', "label": ["x", "y"], "more": {"a": [[1], {}]}}, {"text": "\n", "label": ["z"]}]
    for indent in (None, 1):
        found = read(write(tmp_path / "a.json", json.dumps(rows, indent=indent)))
        assert found == [(row["text"], row["label"]) for row in rows]


def test_rows_of_an_array_are_numbered_by_the_line_they_begin_at(tmp_path: Path) -> None:
    content = '[\n{"text":\n "a"}, {"text": "b"},\n\n  {"text": 5},\n{"text": oops},\n["c"], 7, {"text": "d"}]\n'
    source = write(tmp_path / "a.json", content)
    assert "a.json, line 5 has 5 as its text, not a text" in problem(source)
    with open_rows(Source(source.path, skip_broken=True)) as rows:
        assert [(row.number, row.text) for row in rows] == [(2, "a"), (3, "b"), (7, "d")]
        assert (rows.skipped, rows.problem) == (4, f"{source.path}, line 5 has 5 as its text, not a text")


@pytest.mark.parametrize(
    ("content", "sentence", "texts"),
    [
        ('[\n{"text": "a"}\n', "line 2 ends before its JSON array does: download or create the file again", ["a"]),
        ('[{"text": "a"}, {"text": "b', "line 1 is not JSON (", ["a"]),
        ('[{"text": "a"}] {"text": "b"}', "line 1 is not JSON (", ["a"]),
        ('[{"text": "a"}]]\n}', "", ["a"]),
        ('[{"text": "a" "b"}, {"text": "c"}]', "line 1 is not JSON (", ["c"]),
    ],
)
def test_arrays_that_are_broken(tmp_path: Path, content: str, sentence: str, texts: list[str]) -> None:
    source = write(tmp_path / "a.json", content)
    if sentence:
        assert sentence in problem(source)
    assert skipping(source)[0] == texts


def test_an_array_without_objects(tmp_path: Path) -> None:
    assert "is empty: give one JSON object per line, or an array of objects." in problem(write(tmp_path / "a.json", "[\n]\n"))
    assert "line 1 is not a JSON object: fix it." in problem(write(tmp_path / "a.json", "[1, 2]"))


def test_an_array_is_held_one_object_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    with path.open("w") as stream:
        stream.write("[\n")
        stream.writelines(json.dumps({"text": f"number {i} " + "word " * 75}) + ",\n" for i in range(20_000))
        stream.write('{"text": "last"}]\n')
    tracemalloc.start()
    with open_rows(Source(str(path))) as rows:
        assert sum(1 for _ in rows) == 20_001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000 < path.stat().st_size / 8
    monkeypatch.setattr(text_tables, "LONGEST_LINE", 1000)
    source = write(tmp_path / "b.json", '[{"text": "a"},\n{"text": [' + '"word",\n' * 1000)
    assert "line 2 begins an object of more than 1,000 characters" in problem(source)


# Excel


def test_cells_of_excel(tmp_path: Path) -> None:
    when, day = datetime(2024, 5, 17, 13, 30), datetime(2024, 5, 17)
    rows = [["id", "text", "label", None, "when", "share"], [1.0, "a", 3, "x", when, 0.5], [], [2, None, 4.0, None, day, 1]]
    source = write(tmp_path / "a.xlsx", excel_bytes(rows))
    assert read(source) == [("a", 3), ("", 4)]
    assert all(type(label) is int for _, label in read(source))
    with open_rows(source, whole=True) as found:
        assert found.columns == ("id", "text", "label", "when", "share")
        assert [(row.number, row.values) for row in found] == [
            (2, (1, "a", 3, "2024-05-17T13:30:00", 0.5)),
            (4, (2, "", 4, "2024-05-17", 1)),
        ]
        assert (found.done, found.total) == (4, 4)


def test_a_sheet_without_its_size_and_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = excel_bytes([["text"], ["a"], ["b"]], write_only=True)
    assert read(write(tmp_path / "a.xlsx", content), False) == ["a", "b"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read(Source("-", "xlsx"), False) == ["a", "b"]


def test_broken_rows_of_excel(tmp_path: Path) -> None:
    source = write(tmp_path / "a.xlsx", excel_bytes([["text", "label"], ["a", "x"], ["b", " "], [5, "y"]]))
    assert "a.xlsx, row 3 has no label" in problem(source, labelled=True)
    assert skipping(source)[:2] == (["a", "b"], 1)
    assert "row 1 of the first sheet is empty, but it must name the columns" in problem(
        write(tmp_path / "b.xlsx", excel_bytes([[], ["text"]]))
    )
    assert "two columns with the same name" in problem(write(tmp_path / "c.xlsx", excel_bytes([["text", "text"], ["a", "b"]])))


SHEET, STRINGS, TYPES = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "[Content_Types].xml"
NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def changed(workbook: bytes, part: str, change: Callable[[bytes], bytes]) -> bytes:
    """A workbook with one of its parts changed, or made from nothing."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in dict.fromkeys([*old.namelist(), part]):
            content = old.read(name) if name in old.namelist() else b""
            new.writestr(name, change(content) if name == part else content)
    return stream.getvalue()


def with_shared_strings(workbook: bytes) -> bytes:
    """As Excel writes it: cells give the numbers of texts in a common table."""
    texts: list[str] = []

    def numbered(cell: re.Match[bytes]) -> bytes:
        texts.append(cell.group(1).decode())
        return f't="s"><v>{len(texts) - 1}</v>'.encode()

    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = f'<Override PartName="/{STRINGS}" ContentType="{kind}"/></Types>'.encode()
    workbook = changed(workbook, SHEET, lambda xml: re.sub(rb't="inlineStr"><is><t>(.*?)</t></is>', numbered, xml))
    workbook = changed(workbook, TYPES, lambda xml: xml.replace(b"</Types>", override))
    table = "".join(f"<si><t>{text}</t></si>" for text in texts)
    return changed(workbook, STRINGS, lambda _: f'<sst xmlns="{NAMESPACE}">{table}</sst>'.encode())


def test_texts_in_the_common_table_of_a_workbook(tmp_path: Path) -> None:
    content = with_shared_strings(excel_bytes([["text", "label"], *EXPECTED[:1], ["naïve &amp; 🎉", "b"]]))
    assert read(write(tmp_path / "a.xlsx", content)) == [EXPECTED[0], ("naïve &amp; 🎉", "b")]


def test_damaged_and_hostile_workbooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = with_shared_strings(excel_bytes([["text"], ["a"], ["b"]]))
    assert read(write(tmp_path / "sound.xlsx", sound), False) == ["a", "b"]
    entity = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e "boom">]>'
    for content in (
        b"",
        b"no zip",
        sound[: len(sound) // 2],
        changed(sound, TYPES, lambda _: b"<a>"),
        changed(sound, "xl/workbook.xml", lambda _: b""),
        changed(sound, SHEET, lambda xml: xml[:-60]),
        changed(sound, SHEET, lambda xml: xml.replace(b"<v>2</v>", b"<v>3</v>")),
        changed(sound, STRINGS, lambda xml: entity + xml.replace(b"<t>b</t>", b"<t>&e;</t>")),
    ):
        assert "is not a readable Excel workbook (" in problem(write(tmp_path / "a.xlsx", content))
    far = changed(
        sound, SHEET, lambda xml: xml.replace(b'<row r="3"', b'<row r="999999999999"').replace(b'"A3"', b'"A999999999999"')
    )
    assert read(write(tmp_path / "far.xlsx", far), False) == ["a"]
    wide = changed(sound, SHEET, lambda xml: xml.replace(b'"A3"', b'"ZZZ3"'))
    assert read(write(tmp_path / "wide.xlsx", wide), False) == ["a"]
    bomb = changed(sound, "docProps/app.xml", lambda xml: xml + b" " * 5_000_000)
    assert len(bomb) < 50_000
    assert read(write(tmp_path / "bomb.xlsx", bomb), False) == ["a", "b"]
    monkeypatch.setattr(binary_tables, "LARGEST_WORKBOOK", 4 << 20)
    assert problem(Source(str(tmp_path / "bomb.xlsx"))).endswith("unpacks to more than 4 MB: save its first sheet as CSV.")


def test_a_workbook_that_lies_about_its_size(tmp_path: Path) -> None:
    """The size that is looked at is that which is read: a part that holds more than it says is refused."""
    sound = with_shared_strings(excel_bytes([["text"], ["a" * 1000]]))
    with zipfile.ZipFile(io.BytesIO(sound)) as archive:
        size = archive.getinfo(STRINGS).file_size
    true, less = size.to_bytes(4, "little"), (size - 900).to_bytes(4, "little")
    assert sound.count(true) == 2  # before the part, and in the list of all parts
    assert "is not a readable Excel workbook (" in problem(write(tmp_path / "a.xlsx", sound.replace(true, less)))


def test_without_openpyxl_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"install it with pip install 'handful\[excel\]'"):
        read(write(tmp_path / "a.xlsx", b""))


# Columns


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        ("sentence,intent", "sentence", "intent"),
        ("id,Message,Category,date", "Message", "Category"),
        ("review,label", "review", "label"),
        ("text,queue", "text", "queue"),
        ("title,Text,label,topic", "Text", "label"),
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
        "a.csv has the columns title, body, queue, size, but it is not clear which one holds the texts: name it with `text`."
    )
    named = Source(source.path, text="body")
    assert read(named, labelled=False) == ["b"]
    assert "it is not clear which one holds the labels: name it with `label`." in problem(named, labelled=True)
    assert read(Source(source.path, text="body", label="queue")) == [("b", "c")]
    assert "a.csv has no column 'boddy': it has title, body, queue, size." in problem(Source(source.path, text="boddy"))


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    assert "two columns with the same name (text, text): rename one." in problem(write(tmp_path / "a.csv", "text,text\na,b\n"))


# What is broken


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    assert problem(Source(str(path))) == f"There is no file {path}: check the path."


def test_formats_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="There is no format 'doc'"):
        Source("a", "doc")
    with pytest.raises(SettingError, match=r"a\.doc has no ending that tells its format"):
        read(write(tmp_path / "a.doc", b""))
    for name, kind in (("a.parquet.gz", "Parquet"), ("a.xlsx.xz", "Excel")):
        with pytest.raises(SettingError, match=f"is a compressed {kind} file, which cannot be read directly: unpack it first"):
            read(write(tmp_path / name, b""))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a.csv", "line 1, which must name the columns, is missing: fix it."),
        ("a.jsonl", "is empty: give one JSON object per line, or an array of objects."),
        ("a.parquet", "is not a Parquet file"),
        ("a.csv.gz", "line 1, which must name the columns, is missing"),
        ("a.csv.zip", "cannot be read to the end"),
    ],
)
def test_empty_files(tmp_path: Path, name: str, sentence: str) -> None:
    assert sentence in problem(write(tmp_path / name, b""))


def test_an_empty_file_of_plain_lines_has_no_texts(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.txt", b""), False) == []


def test_a_row_with_too_many_fields(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "text,label\na,b\nc,d,e\nf\ng,h\n")
    assert problem(source).endswith(
        "a.csv, line 3 has 3 fields, but the header has 2: fix it, or skip such rows with `skip_broken=True`."
    )
    texts, skipped, first = skipping(source)
    assert (texts, skipped) == (["a", "g"], 2)
    assert first.endswith("a.csv, line 3 has 3 fields, but the header has 2")


def test_a_line_that_is_not_utf8(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", b'text\nfine\ncaf\xe9\n"two\nl\xefnes"\nlast\n')
    assert problem(source).endswith(
        "a.csv, line 3 is not in UTF-8 (its byte 4 is 0xe9): give its encoding, such as `encoding='windows-1252'`, "
        "or skip such rows with `skip_broken=True`."
    )
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
    assert "cannot be read to the end" in problem(write(tmp_path / name, packed[: len(packed) // 2]))


def test_a_gzip_file_with_damage_in_the_middle(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(("text\n" + "".join(f"row {i * i}\n" for i in range(5000))).encode()))
    packed[len(packed) // 2] ^= 0xFF
    assert "cannot be read to the end" in problem(write(tmp_path / "a.csv.gz", bytes(packed)))


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
    assert "line 1, which must name the columns, has quotes that do not match" in problem(
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
    source = write(tmp_path / "a.jsonl", '{oops\n{"text": "a"}\n')
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
    assert "cannot be read to the end" in problem(write(tmp_path / "a.parquet", bytes(content)))
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
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
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
    assert identity(Source(bucket.format("a.csv")))[1:3] == [len(CSV), 1445412480_000_000_000]
    assert problem(Source(bucket.format("none.csv"))) == "There is no file s3://mail/none.csv: check the path."


def test_urls_that_nobody_reads() -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(SettingError, match=r"foo://a/b\.csv is not a readable URL"):
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
