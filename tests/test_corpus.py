from __future__ import annotations

import gzip
import io
import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow
import pytest
from conftest import needs_real_data
from pyarrow import parquet

from handful.data.corpus import FARTHEST, join_texts, make_corpus
from handful.data.datasets import Dataset, find_data, load_corpus, load_dataset, read_corpus
from handful.data.splits import ClassSplit, read_split
from handful.errors import DataError

GOOD = '{"text": "Hello there", "label": "b"}', '{"text": ["good", "bye"], "label": "a"}'


def test_strings_and_lists_names_and_numbers(lines) -> None:
    corpus = read_corpus(lines(*GOOD, ""))
    assert corpus.classes == ("a", "b")
    assert corpus.labels.tolist() == [1, 0]
    assert corpus.words(0) == ["hello", "there"]
    assert corpus.words(1) == ["good", "bye"]
    numbered = read_corpus(lines('{"text": "x", "label": 10}', '{"text": "y", "label": 9}'))
    assert numbered.classes == ("9", "10")


def table_bytes(columns: dict[str, list], name: str) -> bytes:
    """The columns as a file of the format that the name says."""
    rows, stream = list(zip(*columns.values(), strict=True)), io.BytesIO()
    if name.endswith(".parquet"):
        parquet.write_table(pyarrow.table(columns), stream)
    elif name.endswith(".xlsx"):
        book = openpyxl.Workbook()
        for row in (tuple(columns), *rows):
            book.active.append(row)
        book.save(stream)
    elif "json" in name:
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        text = json.dumps(objects) if name.endswith(".json") else "".join(json.dumps(one) + "\n" for one in objects)
        stream.write(text.encode())
    else:
        delimiter = "\t" if ".tsv" in name else ";"
        lines = [delimiter.join(f'"{value}"' for value in row) for row in (tuple(columns), *rows)]
        stream.write("\r\n".join(lines).encode("utf-8-sig"))
    return gzip.compress(stream.getvalue()) if name.endswith(".gz") else stream.getvalue()


FORMATS = ["a.csv", "a.csv.gz", "a.tsv", "a.jsonl", "a.json", "a.ndjson.gz", "a.parquet", "a.xlsx"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_corpus(tmp_path: Path, name: str) -> None:
    """Found by the same names as in `handful fit`; labels that are numbers come in the order of numbers."""
    columns = {"id": [1, 2, 3], "Message": ["Hello, you; there!", "b c", "d"], "Category": [10, 9, 10]}
    (tmp_path / name).write_bytes(table_bytes(columns, name))
    (tmp_path / "a.classes.json").write_text('{"9": "nine", "10": "ten"}')
    (tmp_path / "a.split.json").write_text('{"train": [10], "val": ["nine"], "test": []}')
    dataset = load_dataset(str(tmp_path / name))
    corpus = dataset.corpus
    assert (corpus.classes, corpus.written, corpus.labels.tolist()) == (("nine", "ten"), ("9", "10"), [1, 0, 1])
    assert corpus.words(0) == ["hello", ",", "you", ";", "there", "!"]
    assert (dataset.split.train, dataset.split.val) == ((1,), (0,))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_its_empty_texts_and_its_columns(tmp_path: Path, name: str, caplog) -> None:
    columns = {"title": ["x", "y"], "body": ["a", " "], "queue": ["p", "q"], "topic": ["r", "s"]}
    path = tmp_path / name
    path.write_bytes(table_bytes(columns, name))
    with pytest.raises(
        DataError, match=rf"{name} has the columns title, body, .* which one holds the texts: name it with `text`\."
    ):
        read_corpus(path)
    with pytest.raises(DataError, match=rf"{name}, (line|row) \d has an empty text: .*\(--skip-empty\)"):
        read_corpus(path, text="body", label="queue")
    assert read_corpus(path, skip_empty=True, text="body", label="queue").classes == ("p",)
    assert caplog.messages == [f"Empty texts skipped in {name}: 1."]
    assert load_corpus(str(path), text="title", label="topic").classes == ("r", "s")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_words_and_relations_in_every_format_that_has_lists(tmp_path: Path, name: str) -> None:
    columns = {"text": [["Ann", "met", "Bob"]], "label": ["x"], "head": [[0, 0]], "tail": [[2, 2]]}
    (tmp_path / name).write_bytes(table_bytes(columns, name))
    corpus = read_corpus(tmp_path / name)
    assert corpus.words(0) == ["Ann", "met", "Bob"]
    assert (corpus.positions - FARTHEST).tolist() == [[0, -2], [1, -1], [2, 0]]


def test_a_column_called_head_is_nothing_special_where_there_are_no_lists(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label,head\nhello,x,Subject: it\n")
    assert read_corpus(tmp_path / "a.csv").positions.shape == (1, 0)


def test_a_file_without_a_known_ending_is_json_lines(lines) -> None:
    assert len(read_corpus(lines(*GOOD, name="data.corpus"))) == 2
    assert len(read_corpus(lines("text,label", "a,x", name="data.corpus"), form="csv")) == 1


def test_texts_may_be_called_sentences(lines) -> None:
    assert read_corpus(lines('{"sentence": ["good", "bye"], "label": "a"}')).words(0) == ["good", "bye"]


@pytest.mark.parametrize(("ending", "compress"), [(".xz", lzma.compress), (".gz", gzip.compress)])
def test_compressed_files(tmp_path: Path, ending: str, compress) -> None:
    path = tmp_path / f"data.jsonl{ending}"
    path.write_bytes(compress("\n".join(GOOD).encode()))
    assert len(read_corpus(path)) == 2


def test_long_texts_are_cut(lines) -> None:
    assert np.diff(read_corpus(lines('{"text": "a b c d", "label": 1}'), max_words=3).offsets).tolist() == [3]


def test_class_names_beside_the_data(lines) -> None:
    path = lines('{"text": "x", "label": 0}', '{"text": "y", "label": 1}')
    lines('{"0": "zero", "1": "one"}', name="data.classes.json")
    assert read_corpus(path).classes == ("zero", "one")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (("{",), r"data.jsonl, line 1 is not JSON .*: fix it\.$"),
        ((GOOD[0], "{"), r"data.jsonl, line 2 is not JSON .*: fix it\.$"),
        ((GOOD[0], "[1]"), r"line 2 is not a JSON object"),
        (('{"label": 1}',), r"data.jsonl has the columns label, .* which one holds the texts: name it with `text`"),
        ((GOOD[0], '{"label": 1}'), r"line 2 has nothing as its text, neither a text nor a list of words: fix it\.$"),
        (('{"text": 3, "label": 1}',), r"line 1 has 3 as its text, neither a text nor a list of words: fix it\.$"),
        (('{"text": ["a", 1], "label": 1}',), r"line 1 has \['a', 1\] as its text, neither a text nor a list of words"),
        (('{"text": "a"}',), r"data.jsonl has the columns text, .* which one holds the labels: name it with `label`"),
        ((GOOD[0], '{"text": "a"}'), r"line 2 has no label: fix it\.$"),
        ((GOOD[0], '{"text": "a", "label": " "}'), r"line 2 has no label: fix it\.$"),
        (('{"text": "a", "label": 1.5}',), r"line 1 has the label 1.5: give each text one label, a name or a whole number"),
        (('{"text": "a", "label": true}',), r"line 1 has the label True: give each text one label"),
        (('{"text": "a", "label": ["x", "y"]}',), r"line 1 has the label \['x', 'y'\]: give each text one label"),
        ((GOOD[0], '{"text": " ", "label": 1}'), r"line 2 has an empty text: remove it, or skip such texts \(--skip-empty\)"),
        (("",), r"data.jsonl is empty: give one JSON object per line"),
        (('{"text": "a b", "label": 1, "head": [0, 0]}',), "head and tail must both be"),
        (('{"text": "a b", "label": 1, "head": [0, 0], "tail": [1, 2]}',), "head and tail must both be"),
        ((GOOD[0], '{"text": "a b", "label": 1, "head": [0, 0], "tail": [1, 1]}'), "for some texts only"),
    ],
)
def test_bad_lines_are_refused_with_their_place_and_remedy(lines, rows, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_corpus(lines(*rows))


def test_empty_texts_can_be_skipped_and_are_reported(lines, caplog) -> None:
    assert len(read_corpus(lines(*GOOD, '{"text": [], "label": 1}'), skip_empty=True)) == 2
    assert caplog.messages == ["Empty texts skipped in data.jsonl: 1."]


def test_relations_carry_their_positions_clipped(lines) -> None:
    words = " ".join(["w"] * 100)
    corpus = read_corpus(lines(f'{{"text": "{words}", "label": 1, "head": [0, 1], "tail": [50, 50]}}'))
    assert corpus.positions.shape == (100, 2)
    head, tail = (corpus.positions - FARTHEST).T
    assert head[[0, 1, 2, 10, 99]].tolist() == [0, 0, 1, 9, FARTHEST]
    assert tail[[0, 49, 50, 60]].tolist() == [-FARTHEST, -1, 0, 10]
    assert read_corpus(lines(*GOOD)).positions.shape == (4, 0)


@needs_real_data
def test_real_relations(fewrel: Dataset) -> None:
    corpus = fewrel.corpus
    assert corpus.positions.shape == (len(corpus.ids), 2)
    assert corpus.positions.min() >= 0
    assert corpus.positions.max() <= 2 * FARTHEST
    inside = [corpus.vocabulary.words[i] for i in corpus.ids[:29][corpus.positions[:29, 0] == FARTHEST]]
    assert inside == ["bud", "frye", "field"]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file .*nowhere.jsonl"):
        read_corpus(tmp_path / "nowhere.jsonl")
    broken = tmp_path / "broken.jsonl.xz"
    broken.write_bytes(lzma.compress(b"x" * 1000)[:-8])
    with pytest.raises(DataError, match="cannot be read to the end"):
        read_corpus(broken)
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes('{"text": "é", "label": 1}'.encode("latin-1"))
    with pytest.raises(
        DataError, match=r"latin.jsonl, line 1 is not in UTF-8 \(its byte 11 is 0xe9\): .* `encoding='windows-1252'`\.$"
    ):
        read_corpus(latin)
    assert read_corpus(latin, encoding="latin-1").words(0) == ["é"]


def test_splits_by_name_and_number(lines) -> None:
    corpus = make_corpus(["x", "y", "z"], ["a", "b", "c"])
    by_name = lines('{"train": ["a"], "val": ["b"], "test": ["c"]}', name="one.json")
    nested = lines('{"mine": {"train": [0], "val": [1], "test": [2]}}', name="two.json")
    assert read_split(by_name, corpus) == read_split(nested, corpus, "mine") == ClassSplit((0,), (1,), (2,))


def test_numbers_in_a_split_are_labels_also_where_labels_have_gaps(lines) -> None:
    path = lines('{"text": "x", "label": 9}', '{"text": "y", "label": 2}', '{"text": "z", "label": 5}')
    lines('{"2": "two", "5": "five", "9": "nine"}', name="data.classes.json")
    corpus = read_corpus(path)
    assert (corpus.classes, corpus.written) == (("two", "five", "nine"), ("2", "5", "9"))
    split = lines('{"train": [9], "val": ["5"], "test": ["two"]}', name="split.json")
    assert read_split(split, corpus) == ClassSplit((2,), (1,), (0,))
    with pytest.raises(DataError, match=r"does not have \(1, 0\)"):
        read_split(lines('{"train": [1], "val": [2], "test": [0]}', name="split.json"), corpus)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"train": [0], "val": [1]}', "lacks test"),
        ('{"train": [0], "val": [1], "test": ["q"]}', r"that the data does not have \(q\)"),
        ('{"train": [0], "val": [1], "test": [7]}', r"does not have \(7\)"),
        ('{"train": [0], "val": [0], "test": [1]}', "is in two parts"),
        ('{"train": 0, "val": [1], "test": []}', "not a list of class names"),
        ('{"train": [[0]], "val": [1], "test": []}', "not a list of class names"),
        ('{"other": {}}', "has no split for 'mine': it has other"),
        ("{", "is not JSON"),
        ("[]", r"split.json is not a JSON object: correct the file\.$"),
    ],
)
def test_bad_splits(lines, content: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_split(lines(content, name="split.json"), make_corpus(["x", "y"], ["a", "b"]), "mine")


def test_data_by_name_and_path(lines, monkeypatch, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no data set 'mine'"):
        find_data("mine")
    lines(*GOOD, name="mine.jsonl")
    lines('{"mine": {"train": ["a"], "val": ["b"], "test": []}}', name="splits.json")
    assert load_dataset(str(tmp_path / "mine.jsonl")).split.train == (0,)
    monkeypatch.setenv("HANDFUL_DATA", str(tmp_path))
    assert load_dataset("mine").split.val == (1,)
    (tmp_path / "mine.jsonl").rename(tmp_path / "before")
    lines("text;label", "Hello there;b", "good, bye;a", name="mine.csv")
    assert load_dataset("mine").split.val == (1,)
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    (lonely / "data.jsonl").write_text("\n".join(GOOD))
    with pytest.raises(DataError, match="no class split next to it"):
        load_dataset(str(lonely / "data.jsonl"))


def test_the_demo_corpus_is_what_its_note_says() -> None:
    dataset = load_dataset("demo")
    assert (len(dataset.split.train), len(dataset.split.val), len(dataset.split.test)) == (15, 5, 10)
    assert np.bincount(dataset.corpus.labels).tolist() == [20] * 30
    texts = [json.loads(line)["text"] for line in find_data("demo")[0].read_text("utf-8").splitlines()]
    assert len(set(texts)) == 600
    lengths = [len(text.split()) for text in texts]
    assert min(lengths) >= 10
    assert max(lengths) <= 40


@needs_real_data
@pytest.mark.parametrize(
    ("name", "examples", "classes", "words", "parts"),
    [("reuters", 620, 31, 186, (15, 5, 11)), ("huffpost", 36900, 41, 11.5, (20, 5, 16))],
)
def test_real_data(name: str, examples: int, classes: int, words: float, parts: tuple[int, ...]) -> None:
    dataset = load_dataset(name, max_words=10**6)
    assert len(dataset.corpus) == examples
    assert len(dataset.corpus.classes) == classes
    assert np.diff(dataset.corpus.offsets).mean() == pytest.approx(words, rel=0.01)
    assert tuple(len(part) for part in (dataset.split.train, dataset.split.val, dataset.split.test)) == parts


@needs_real_data
def test_real_empty_texts_are_left_out_and_their_number_reported(caplog) -> None:
    assert len(load_dataset("20newsgroups").corpus) == 18828 - 34
    assert caplog.messages == ["Empty texts skipped in 20newsgroups.json.xz: 34."]
    with pytest.raises(DataError, match="has an empty text"):
        read_corpus(find_data("20newsgroups")[0])


def test_requests_are_split_by_service() -> None:
    dataset = load_dataset("requests")
    corpus, parts = dataset.corpus, (dataset.split.train, dataset.split.val, dataset.split.test)
    services = [{corpus.classes[label].split(".")[0] for label in part} for part in parts]
    assert [len(part) for part in parts] == [108, 36, 24]
    assert [len(part) for part in services] == [9, 3, 2]
    assert len(set.union(*services)) == 14
    texts = [" ".join(corpus.words(document)) for document in range(len(corpus))]
    assert len(set(texts)) == len(texts) == 1776


def test_vectors_of_whole_texts_follow_their_documents() -> None:
    corpus = make_corpus(["a b", "c", "a c b"], ["x", "y", "x"])
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    texts = replace(corpus.texts(np.eye(3, dtype=np.float32)), sentences=vectors)
    chosen = texts.select(np.array([2, 0]))
    assert (chosen.sentences == vectors[[2, 0]]).all()
    assert (join_texts([chosen, texts]).sentences == vectors[[2, 0, 0, 1, 2]]).all()
    assert join_texts([corpus.texts(texts.table)] * 2).sentences is None
