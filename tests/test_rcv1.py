from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from handful.cli import main
from handful.data.datasets import load_dataset
from handful.data.rcv1 import class_topics, read_ids, read_rcv1
from handful.data.registry import find_dataset_facts
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


@pytest.fixture(scope="module")
def collection(tmp_path_factory) -> Path:
    """Twenty documents of each of 71 topics: days as folders, and as zips with and without folders inside."""
    folder = tmp_path_factory.mktemp("rcv1")
    days = {f"199608{day}": range(day - 20, 71 * 20, 7) for day in range(20, 27)}
    ids = {number: (day, f"{2286 + number}newsML.xml") for day, numbers in days.items() for number in numbers}
    lines = [json.dumps({"path": "/".join(ids[number]), "label": number // 20}) for number in range(71 * 20)]
    (folder / "list.json").write_text("\n".join(lines))
    for day, numbers in days.items():
        (folder / day).mkdir(parents=True)
        for number in numbers:
            (folder / day / ids[number][1]).write_bytes(article(number, "CCAT", f"C{number // 20 + 10}"))
        if day > "19960822":
            with zipfile.ZipFile(folder / f"{day}.zip", "w") as bundle:
                for path in sorted((folder / day).iterdir()):
                    bundle.write(path, f"{day}/{path.name}" if day < "19960825" else path.name)
            shutil.rmtree(folder / day)
    (folder / "19960820" / "1newsML.xml").write_bytes(b"never read")
    return folder


def get(sources: list[Path], data: Path, *more: object):
    arguments = ["datasets", "get", "rcv1", *(word for source in sources for word in ("--from", source))]
    return CliRunner().invoke(main, [str(argument) for argument in (*arguments, "--data-dir", data, "--quiet", *more)])


def test_a_licensed_copy_becomes_the_benchmark(collection: Path, tmp_path: Path, monkeypatch) -> None:
    result = get([collection], tmp_path / "data", "--ids", collection / "list.json")
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
    (tmp_path / "data" / "rcv1.ids.json.gz").write_bytes(gzip.compress((collection / "list.json").read_bytes()))
    assert get([collection], tmp_path / "data").exit_code == 0


def test_the_list_of_documents_may_come_from_the_authors_archive(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "downloads").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "data" / "downloads" / "data.zip", "w") as bundle:  # as if it had been fetched
        bundle.write(collection / "list.json", "data/rcv1_ids.json")
    assert get([collection], tmp_path / "data").exit_code == 0


def test_without_a_copy_of_the_text_there_is_no_rcv1(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["datasets", "get", "rcv1", "--data-dir", str(tmp_path)])
    assert result.stderr.startswith("Error: RCV1 is licensed: request it at https://trec.nist.gov")
    assert "There is no file nowhere" in get([Path("nowhere")], tmp_path).stderr


def test_missing_documents_are_reported(collection: Path, tmp_path: Path) -> None:
    some = [path for path in collection.iterdir() if path.name not in ("19960820", "19960823.zip")]
    result = get(some, tmp_path / "data", "--ids", collection / "list.json")
    assert result.exit_code == 2
    assert "lacks 406 of the 1420 documents of RCV1 (2286newsML.xml, 2289newsML.xml, 2293newsML.xml, …)" in result.stderr
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
    with pytest.raises(DataError, match="is not a zip file"):
        list(read_rcv1([tmp_path], {"1newsML.xml": 0}))
    wrong = {"{": "JSON .*", "[]": "a JSON object"}
    wrong |= dict.fromkeys(('{"path": "a"}', '{"path": "a", "label": "x"}'), "an object with path and label")
    for line, what in wrong.items():
        with pytest.raises(DataError, match=rf"list\.json, line 1 is not {what}: give the authors' list\.$"):
            read_ids(lines(line, name="list.json"))


def test_a_class_is_named_by_the_most_general_topic_its_documents_share() -> None:
    examples = [
        {"label": 0, "topics": ["CCAT", "C15", "C151", "C1511"]},
        {"label": 0, "topics": ["C15", "C151", "GCAT"]},
        {"label": 1, "topics": ["MCAT"]},
    ]
    assert class_topics(examples) == {"0": "C15", "1": "1"}
    assert len(find_dataset_facts("rcv1").labels) == 71
