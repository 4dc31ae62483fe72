from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from handful.bench.rcv1 import class_topics, read_ids, read_rcv1
from handful.catalogue import find_record
from handful.cli import main
from handful.corpus import load_dataset
from handful.errors import DataError

ARTICLE = """<?xml version="1.0" encoding="iso-8859-1" ?>
<newsitem itemid="{item}" id="root" date="1996-08-20" xml:lang="en">
<title>MEXICO: Prices rise.</title>
<headline>Prices rise &amp; fall.</headline>
<dateline>MEXICO CITY 1996-08-20</dateline>
<text>
<p>Caf\xe9 prices rose on Tuesday.</p>
<p>They <b>fell</b> later.</p>
</text>
<copyright>(c) A made-up agency</copyright>
<metadata>
<codes class="bip:countries:1.0"><code code="MEX"></code></codes>
<codes class="bip:topics:1.0">{topics}</codes>
</metadata>
</newsitem>"""


def article(item: int, *topics: str) -> bytes:
    codes = "".join(
        f'<code code="{topic}"><editdetail attribution="A" action="confirmed" date="1996-08-20"/></code>' for topic in topics
    )
    return ARTICLE.format(item=item, topics=codes).encode("latin-1")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """Twenty documents of each of 71 topics: days as folders, and as zips with and without folders inside."""
    folder = tmp_path / "rcv1"
    days = [f"199608{day}" for day in range(20, 27)]
    with (tmp_path / "list.json").open("w") as ids:
        for number in range(71 * 20):
            day, name, content = (
                days[number % 7],
                f"{2286 + number}newsML.xml",
                article(number, "CCAT", f"C{number // 20 + 10}"),
            )
            ids.write(json.dumps({"path": f"{day}/{name}", "label": number // 20}) + "\n")
            if number % 7 < 3:
                (folder / day).mkdir(parents=True, exist_ok=True)
                (folder / day / name).write_bytes(content)
            else:
                with zipfile.ZipFile(folder / f"{day}.zip", "a") as bundle:
                    bundle.writestr(f"{day}/{name}" if number % 7 < 5 else name, content)
    (folder / days[0] / "1newsML.xml").write_bytes(b"never read")
    return folder


def get(collection: Path, data: Path, *more: object):
    arguments = ["datasets", "get", "rcv1", "--from", collection, "--data-dir", data, "--quiet", *more]
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_licensed_copy_becomes_the_benchmark(collection: Path, tmp_path: Path, monkeypatch) -> None:
    result = get(collection, tmp_path / "data", "--ids", tmp_path / "list.json")
    assert result.exit_code == 0, result.output
    monkeypatch.setenv("HANDFUL_DATA", str(tmp_path / "data"))
    dataset = load_dataset("rcv1")
    assert len(dataset.corpus) == 1420
    assert [len(part) for part in (dataset.split.train, dataset.split.val, dataset.split.test)] == [37, 10, 24]
    assert dataset.corpus.classes[:2] == ("C10", "C11")
    text = "prices rise & fall . café prices rose on tuesday . they fell later ."
    assert dataset.corpus.words(0) == text.split()


def test_the_list_of_documents_may_lie_in_the_data_folder(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rcv1.ids.json.gz").write_bytes(gzip.compress((tmp_path / "list.json").read_bytes()))
    assert get(collection, tmp_path / "data").exit_code == 0


def test_the_list_of_documents_may_come_from_the_authors_archive(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "downloads").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "data" / "downloads" / "data.zip", "w") as bundle:  # as if it had been fetched
        bundle.write(tmp_path / "list.json", "data/rcv1_ids.json")
    assert get(collection, tmp_path / "data").exit_code == 0


def test_without_a_copy_of_the_text_there_is_no_rcv1(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["datasets", "get", "rcv1", "--data-dir", str(tmp_path)])
    assert result.stderr.startswith("Error: RCV1 is licensed: ask for it at https://trec.nist.gov")
    assert "There is no file nowhere" in get(Path("nowhere"), tmp_path).stderr


def test_missing_documents_are_reported(collection: Path, tmp_path: Path) -> None:
    (collection / "19960823.zip").unlink()
    (collection / "19960820" / "2286newsML.xml").unlink()
    result = get(collection, tmp_path / "data", "--ids", tmp_path / "list.json")
    assert result.exit_code == 2
    assert "lacks 204 of the 1420 documents of RCV1 (2286newsML.xml, 2289newsML.xml, 2296newsML.xml, …)" in result.stderr
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"<newsitem><text>",
        b"\xff\xfe\x00",
        b'<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]><newsitem><text><p>&c;</p></text></newsitem>',
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><newsitem><text><p>&b;</p></text></newsitem>',
    ],
)
def test_broken_and_malicious_documents_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "1newsML.xml").write_bytes(content)
    with pytest.raises(DataError, match=r"1newsML.xml is not a NewsML document"):
        list(read_rcv1([tmp_path], {"1newsML.xml": 0}))


def test_a_broken_zip_and_a_broken_list(tmp_path: Path, lines) -> None:
    (tmp_path / "day.zip").write_bytes(b"no zip")
    with pytest.raises(DataError, match="is no zip file"):
        list(read_rcv1([tmp_path], {"1newsML.xml": 0}))
    for line in ("{", "[]", '{"path": "a"}', '{"path": "a", "label": "x"}'):
        with pytest.raises(DataError, match="line 1 is not an object with path and label"):
            read_ids(lines(line, name="list.json"))


def test_a_class_is_named_by_the_most_general_topic_its_documents_share() -> None:
    examples = [
        {"label": 0, "topics": ["CCAT", "C15", "C151", "C1511"]},
        {"label": 0, "topics": ["C15", "C151", "GCAT"]},
        {"label": 1, "topics": ["MCAT"]},
    ]
    assert class_topics(examples) == {"0": "C15", "1": "1"}
    assert len(find_record("rcv1").labels) == 71
