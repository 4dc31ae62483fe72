from __future__ import annotations

import gzip
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import needs_real_data

from handful.cli import main
from handful.data.datasets import Dataset, find_data, load_corpus, load_dataset, read_corpus
from handful.data.download import DownloadError, Patience
from handful.data.fetching import check_dataset, get_dataset, measure
from handful.data.registry import DatasetFacts, Place, find_dataset_facts, known_datasets
from handful.data.splits import PARTS
from handful.data.splitting import make_parts
from handful.embeddings import published as vectors
from handful.embeddings.published import Published, get_vectors
from handful.errors import DataError, SettingError

QUICK = Patience(silence=1, tries=2, pause=0.01)
PAPER = {"20newsgroups": (8, 5, 7), "rcv1": (37, 10, 24), "reuters": (15, 5, 11), "amazon": (10, 5, 9)} | {
    "huffpost": (20, 5, 16),
    "fewrel": (65, 5, 10),
}


def handful(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("HANDFUL_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A real server: its address, and the folder that it serves."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    site = tmp_path / "site"
    site.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def known(monkeypatch):
    """Changes what is known of a data set: fewer examples a class, or other places."""

    def change(name: str, **fields) -> DatasetFacts:
        record = replace(find_dataset_facts(name), **fields)
        monkeypatch.setitem(known_datasets(), name, record)
        return record

    return change


def rows(record: DatasetFacts, each: int = 2) -> str:
    """Lines of the authors' kind, with an extra key, for all classes of a record."""
    examples = [
        {"text": ["word", str(label)], "label": int(label), "raw": "Word"} for label in record.labels for _ in range(each)
    ]
    return "".join(json.dumps(example) + "\n" for example in examples)


def make_zip(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as bundle:
        for name, content in files.items():
            bundle.writestr(name.replace("__", "/"), content)
    return path


# Facts


def test_records_are_complete_and_agree_with_themselves() -> None:
    for name, record in known_datasets().items():
        assert all([record.title, record.home, record.licence, record.made, record.places, record.split_rule])
        assert set(record.split) == set(PARTS)
        assert len(set(record.labels)) == len(record.labels) == record.statistics["classes"]
        assert set(record.labels) <= set(record.classes) or not record.classes
        assert record.statistics["examples"] >= record.each * len(record.labels)
        assert all(len(record.split[part]) >= 5 for part in PARTS), name  # enough for 5-way
        assert all(url.startswith("http") for place in record.places for url in place.urls)


def test_splits_have_the_papers_sizes() -> None:
    for name, sizes in PAPER.items():
        assert tuple(len(find_dataset_facts(name).split[part]) for part in PARTS) == sizes


def test_parts_keep_the_papers_classes_where_they_can() -> None:
    paper, ours = find_dataset_facts("amazon").split, find_dataset_facts("amazon-17").split
    assert set(ours["train"]) < set(paper["train"])
    assert set(ours["test"]) < set(paper["test"])
    assert set(ours["val"]) < set(paper["val"]) | set(paper["test"])
    assert find_dataset_facts("fewrel-partial").split == find_dataset_facts("fewrel").split


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SettingError, match="no data set 'imdb': choose one of 20newsgroups, rcv1"):
        find_dataset_facts("imdb")


# Getting


def test_the_authors_archive_comes_from_the_web_and_is_found(web, folder: Path, known) -> None:
    url, site = web
    record = known("20newsgroups", places=(Place("authors", urls=(url + "data.zip",)),))
    make_zip(
        site / "data.zip", data__20news=".", **{"data__20news.json": rows(record), "data__._20news.json": "", "__MACOSX__x": ""}
    )
    path = get_dataset("20newsgroups", quiet=True)
    assert sorted(file.name for file in folder.iterdir()) == ["20newsgroups.classes.json", "20newsgroups.jsonl.gz", "downloads"]
    dataset = load_dataset("20newsgroups")
    assert (len(dataset.corpus), len(dataset.split.test)) == (40, 7)
    assert dataset.corpus.classes[dataset.split.train[0]] == "sci.space"
    assert "raw" not in gzip.decompress(path.read_bytes()).decode()
    assert get_dataset("20newsgroups") == path  # nothing to do the second time


def test_the_next_place_is_tried_when_the_first_is_gone(web, folder: Path, known, caplog) -> None:
    url, site = web
    (site / "train.csv").write_text(
        "text,category\n" + "".join(f'"a, b",{label}\n' for label in find_dataset_facts("banking77").labels)
    )
    places = Place("authors", urls=(url + "gone.zip",)), Place("banking77", "its home", (url + "train.csv",))
    known("banking77", each=1, places=places)
    get_dataset("banking77", patience=QUICK, quiet=True)
    assert "gone.zip cannot be downloaded (the server answers 404" in caplog.text
    assert "Using its home instead." in caplog.text
    assert load_corpus("banking77").words(0) == ["a", ",", "b"]


def test_offline_names_the_address_and_the_folder_and_leaves_nothing(folder: Path, known) -> None:
    known("reuters", places=(Place("authors", urls=("http://127.0.0.1:9/data.zip",)),))
    with pytest.raises(
        DownloadError, match=rf"http://127.0.0.1:9/data.zip cannot be .* put the file in {folder}/downloads yourself"
    ):
        get_dataset("reuters", patience=QUICK)
    assert [path.name for path in folder.rglob("*")] == ["downloads"]


def test_files_at_hand(tmp_path: Path, folder: Path, known) -> None:
    record = known("amazon", each=2)
    archive = make_zip(tmp_path / "data.zip", **{"data__amazon.json": rows(record)})
    with pytest.raises(DataError, match="There is no file nowhere"):
        get_dataset("amazon", [Path("nowhere")])
    assert len(read_corpus(get_dataset("amazon", [archive]))) == 48
    with pytest.raises(DataError, match="already exists: remove it first"):
        get_dataset("amazon", [archive])
    empty = make_zip(tmp_path / "other.zip")
    with pytest.raises(DataError, match=r"other\.zip lacks 41 of the 41 classes of huffpost: download it again"):
        get_dataset("huffpost", [empty])
    (tmp_path / "file").touch()
    result = handful("datasets", "get", "huffpost", "--from", empty, "--data-dir", tmp_path / "file" / "data")
    assert (result.exit_code, "cannot be created" in result.stderr) == (2, True)


def test_a_part_is_not_called_by_the_name_of_the_whole(tmp_path: Path, folder: Path, known) -> None:
    known("amazon", each=2)
    part = known("amazon-17", each=2)
    file = tmp_path / "amazon.json"
    file.write_text(rows(part))
    with pytest.raises(DataError, match=r"lacks 7 of the 24 classes of amazon: use it under its own name, amazon-17\.$"):
        get_dataset("amazon", [file])
    assert not list(folder.glob("amazon*"))
    assert load_dataset("amazon-17" if get_dataset("amazon-17", [file]) else "").split.val == (1, 8, 9, 14, 16)
    (folder / "amazon.json").write_text(rows(part))
    with pytest.raises(DataError, match="amazon-17"):
        load_dataset("amazon")


def test_a_folder_without_splits_uses_those_that_ship_and_its_own_wins(folder: Path, known) -> None:
    record = known("reuters", each=2)
    folder.mkdir()
    (folder / "reuters.json").write_text(rows(record))
    assert len(load_dataset("reuters").split.test) == 11
    (folder / "splits.json").write_text('{"reuters": {"train": [30], "val": [29], "test": [28]}}')
    assert load_dataset("reuters").split.train == (30,)


# The formats of each home


def write_newsgroups(path: Path, record: DatasetFacts) -> list[Path]:
    for number, group in record.classes.items():
        (path / "20news-18828" / group).mkdir(parents=True)
        (path / "20news-18828" / group / number).write_text(
            f"From: me\nSubject: it\n\nbody of {group}\n\nend caf\xe9", "latin-1"
        )
    with tarfile.open(path / "20news-18828.tar.gz", "w:gz") as tape:
        tape.add(path / "20news-18828", "20news-18828")
    return [path / "20news-18828.tar.gz"]


def write_reuters(path: Path, record: DatasetFacts) -> list[Path]:
    def article(topics: str, lewis: str = "TRAIN", body: str = "<BODY>It rose &lt;3 &amp; fell.\n&#3;</BODY>") -> str:
        head = f'<REUTERS TOPICS="YES" LEWISSPLIT="{lewis}" CGISPLIT="TRAINING-SET">'
        return f"{head}<TOPICS>{topics}</TOPICS><TEXT>&#2;<TITLE>Prices</TITLE>{body}</TEXT></REUTERS>\n"

    names = list(record.classes.values())
    articles = [article(f"<D>{name}</D>") * 3 for name in names]
    articles += [article("<D>earn</D><D>acq</D>"), article("<D>earn</D>", "NOT-USED"), article("<D>dlr</D>"), article("")]
    (path / "reut2-000.sgm").write_text("<!DOCTYPE lewis SYSTEM>\n" + "".join(articles), "latin-1")
    return [path / "reut2-000.sgm"]


def write_amazon(path: Path, record: DatasetFacts) -> list[Path]:
    for name in record.classes.values():
        lines = "".join(json.dumps({"reviewText": f"{name} {i}" * (i > 0), "overall": 5.0}) + "\n" for i in range(5))
        (path / f"reviews_{name}_5.json.gz").write_bytes(gzip.compress(lines.encode()))
    return [path]


def write_huffpost(path: Path, record: DatasetFacts) -> list[Path]:
    lines = [{"category": name.upper(), "headline": f"News {i}"} for name in record.classes.values() for i in range(5)]
    lines += [{"category": "OTHER", "headline": "x"}, {"category": "POLITICS", "headline": " "}]
    (path / "News.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [path / "News.json"]


def write_fewrel(path: Path, record: DatasetFacts) -> list[Path]:
    names = {f"P{number}": [name, "what it is"] for number, name in record.classes.items()}
    sentence = {"tokens": ["Anna", "Karenina", "by", "Tolstoy"], "h": ["anna", "Q1", [[0, 1]]], "t": ["t", "Q2", [[3]]]}
    relations = {relation: [sentence] * 2 for relation in names}
    (path / "train_wiki.json").write_text(json.dumps(dict(list(relations.items())[:64])))
    (path / "val_wiki.json").write_text(json.dumps(dict(list(relations.items())[64:])))
    (path / "pid2name.json").write_text(json.dumps(names))
    return [path / name for name in ("train_wiki.json", "val_wiki.json", "pid2name.json")]


def write_banking77(path: Path, record: DatasetFacts) -> list[Path]:
    for name in ("train.csv", "test.csv"):
        (path / name).write_text("text,category\n" + "".join(f'"Why, oh\nwhy?",{label}\n' for label in record.labels))
    return [path / "train.csv", path / "test.csv"]


def write_clinc150(path: Path, record: DatasetFacts) -> list[Path]:
    part = [["do it", label] for label in record.labels]
    (path / "data_full.json").write_text(json.dumps({"train": part, "val": part, "test": [], "oos_train": [["hm", "oos"]]}))
    return [path / "data_full.json"]


@pytest.mark.parametrize(
    ("name", "write", "words"),
    [
        ("20newsgroups", write_newsgroups, "body of sci . space end café"),
        ("reuters", write_reuters, "prices it rose < 3 & fell ."),
        ("amazon", write_amazon, ""),
        ("huffpost", write_huffpost, ""),
        ("fewrel", write_fewrel, "anna karenina by tolstoy"),
        ("banking77", write_banking77, "why , oh why ?"),
        ("clinc150", write_clinc150, "do it"),
    ],
)
def test_the_format_of_each_home(tmp_path: Path, folder: Path, known, name: str, write, words: str) -> None:
    each = 1 if name == "20newsgroups" else 2
    record = known(name, each=each)
    home = tmp_path / "home"
    home.mkdir()
    first = get_dataset(name, write(home, record)).read_bytes()
    corpus = load_corpus(name)
    assert np.bincount(corpus.labels).tolist() == [each] * len(record.labels)
    assert set(corpus.classes) == set(record.classes.values() if record.classes else record.labels)
    texts = {" ".join(corpus.words(document)) for document in range(len(corpus))}
    assert words in texts or not words
    assert corpus.positions.shape[1] == (2 if name == "fewrel" else 0)
    find_data(name)[0].unlink()
    assert get_dataset(name, [home] if name == "amazon" else [path for path in home.iterdir() if path.is_file()]).exists()
    if name != "fewrel":
        assert find_data(name)[0].read_bytes() == first  # the same sample every time


@pytest.mark.parametrize("name", ["reuters", "huffpost", "fewrel", "banking77", "clinc150"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, folder: Path, name: str) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"nothing": ["of", "use"]}')
    with pytest.raises(DataError):
        get_dataset(name, [file])
    assert list(folder.iterdir()) == []


def test_vectors(web, tmp_path: Path, monkeypatch) -> None:
    url, site = web
    (site / "wiki.en.vec").write_text("1 2\nword 1 2\n")
    make_zip(site / "glove.zip", **{"glove.50d.txt": "word 1", "glove.100d.txt": "word 2"})
    monkeypatch.setitem(vectors.PUBLISHED, "fasttext", Published(url + "wiki.en.vec", "wiki.en.vec"))
    monkeypatch.setitem(vectors.PUBLISHED, "glove-100", Published(url + "glove.zip", "glove.100d.txt"))
    monkeypatch.setitem(vectors.PUBLISHED, "glove-300", Published(url + "glove.zip", "glove.300d.txt"))
    assert "word 1 2" in get_vectors("fasttext", tmp_path, quiet=True).read_text()
    result = handful("vectors", "get", "glove-100", "--out", tmp_path, "--quiet")
    assert f"--vectors {tmp_path / 'glove.100d.txt'}" in result.stdout
    assert get_vectors("glove-100", tmp_path).read_text() == "word 2"
    assert not (tmp_path / "glove.50d.txt").exists()
    with pytest.raises(DataError, match=r"does not contain glove.300d.txt"):
        get_vectors("glove-300", tmp_path)
    with pytest.raises(SettingError, match="no published vectors 'elmo': choose one of fasttext, glove-50"):
        get_vectors("elmo")


# Checking


def test_figures_are_counted_as_in_the_paper(lines) -> None:
    text = json.dumps(["often"] * 6 + ["late"] * 494 + ["cut"] * 10)
    path = lines(f'{{"text": {text}, "label": 3}}', '{"text": "", "label": 4}', '{"text": "rare", "label": 5}')
    assert measure(path).statistics == {"examples": 3, "classes": 3, "words": 511 // 3, "vocabulary": 2 + 2}
    assert measure(path, ["5"]).statistics == {"examples": 1, "classes": 1, "words": 1, "vocabulary": 2}


def test_check_shows_differences_and_tells_by_its_exit_code(tmp_path: Path, folder: Path, known) -> None:
    record = known("reuters", statistics={"examples": 62, "classes": 31, "words": 2, "vocabulary": 9})
    folder.mkdir()
    (folder / "reuters.json").write_text(rows(record))
    result = handful("datasets", "check", "reuters")
    assert result.exit_code == 1
    assert [line.split() for line in result.stdout.splitlines()[3:5]] == [
        ["words", "2", "2"],
        ["vocabulary", "9", "3", "differs"],
    ]
    known("reuters", statistics={"examples": 62, "classes": 31, "words": 2, "vocabulary": 3})
    result = handful("datasets", "check", "reuters", folder / "reuters.json", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)[0] == {"name": "examples", "expected": 62, "found": 62}
    assert handful("datasets", "check", "huffpost").exit_code == 2


def test_check_without_a_name_checks_all_and_lists_a_part_as_such(folder: Path, known) -> None:
    figures = {"examples": 62, "classes": 31, "words": 2, "vocabulary": 3}
    reuters, _, part = known("reuters", each=2, statistics=figures), known("amazon", each=2), known("amazon-17", each=2)
    folder.mkdir()
    (folder / "reuters.json").write_text(rows(reuters))
    (folder / "amazon.json").write_text(rows(part))
    known("amazon-17", each=2, statistics=measure(folder / "amazon.json").statistics)
    result = handful("datasets", "check")
    assert result.exit_code == 0, result.output
    found = {line.split()[0]: " ".join(line.split()[1:]) for line in result.stdout.splitlines()}
    assert found["reuters"] == "62 of 62 31 of 31 as published"
    assert found["amazon"].endswith("17 of 24 partial")
    assert found["amazon-17"].endswith("as published")
    assert found["fewrel"] == "– – not downloaded"
    listed = [json.loads(line) for line in handful("datasets", "list", "--json").stdout.splitlines()]
    assert [fact["name"] for fact in listed if fact["partial"]] == ["amazon"]
    assert re.search(r"amazon +.* partial +/", handful("datasets", "list").stdout)
    known("reuters", each=2, statistics={**figures, "words": 3, "vocabulary": 4})
    result = handful("datasets", "check", "--json")
    assert result.exit_code == 1
    outcomes = {line["name"]: line["outcome"] for line in map(json.loads, result.stdout.splitlines())}
    assert outcomes["reuters"] == "differs in words and vocabulary"


def test_the_command_line_lists_gets_and_takes_a_folder(tmp_path: Path, folder: Path, known) -> None:
    record = known("clinc150", each=2)
    (file,) = write_clinc150(tmp_path, record)
    result = handful("datasets", "get", "clinc150", "--from", file, "--data-dir", tmp_path / "mine")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "mine" / "clinc150.jsonl.gz").exists()
    assert not folder.exists()
    listed = [
        json.loads(line) for line in handful("datasets", "list", "--json", "--data-dir", tmp_path / "mine").stdout.splitlines()
    ]
    assert {fact["name"]: bool(fact["path"]) for fact in listed} == {name: name == "clinc150" for name in known_datasets()}
    assert "clinc150" in handful("datasets", "list").stdout
    quick = ["--representation", "mean", "--head", "nearest", "--queries", "1", "--quiet", "--out", tmp_path / "run"]
    assert handful("train", "--data", "clinc150", "--data-dir", tmp_path / "mine", *quick).exit_code == 0


def test_check_and_split_read_any_file(tmp_path: Path, folder: Path, known) -> None:
    record = known("clinc150", statistics={"examples": 150, "classes": 150, "words": 3, "vocabulary": 5})
    path = tmp_path / "my.csv"
    rows = "".join(f"caf\xe9, {i};{label};0\n" for i, label in enumerate(record.labels))
    path.write_text("utterance;intent;query\n" + rows, "windows-1252")
    named = ("--text", "utterance", "--encoding", "windows-1252")
    assert (
        "it is not clear which one holds the texts: name it with --text"
        in handful("datasets", "check", "clinc150", path, "--encoding", "windows-1252").stderr
    )
    result = handful("datasets", "check", "clinc150", path, "--text", "utterance")
    assert result.stderr.endswith(
        "my.csv, line 2 is not in UTF-8 (its byte 4 is 0xe9): give its encoding, such as --encoding windows-1252.\n"
    )
    result = handful("datasets", "check", "clinc150", path, *named, "--json")
    assert [figure["found"] for figure in json.loads(result.stdout)] == [150, 150, 3, 4]
    out = tmp_path / "my.split.json"
    assert "73/21/56 classes" in handful("split", path, "--out", out, *named, "--delimiter", ";", "--label", "intent").stdout
    dataset = load_dataset(str(path), text="utterance", encoding="windows-1252")
    assert (len(dataset.split.train), dataset.corpus.words(0)) == (73, ["café", ",", "0"])


def test_training_reads_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    names = ("the soup was tasty", "my train came late", "the screen is broken")
    path.write_text("message,category\n" + "".join(f'"{text}, {i}",{text[-4:]} {i % 9}\n' for text in names for i in range(90)))
    assert handful("split", path, "--out", tmp_path / "my.split.json").exit_code == 0
    quick = ("--representation", "mean", "--head", "nearest", "--way", "2", "--queries", "1", "--quiet")
    result = handful("train", "--data", path, *quick, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output


# Real data


@needs_real_data
@pytest.mark.parametrize("name", ["huffpost", "reuters", "banking77", "clinc150"])
def test_real_data_is_as_it_should_be(name: str) -> None:
    assert [figure for figure in check_dataset(name) if figure.differs] == []


@needs_real_data
@pytest.mark.parametrize(
    ("part", "whole", "lack"),
    [("amazon-17", "amazon", "lacks 7 of the 24"), ("fewrel-partial", "fewrel", "has too few examples for 38 of the 80")],
)
def test_real_parts_are_as_they_should_be_and_not_the_whole(part: str, whole: str, lack: str) -> None:
    measured = measure(find_data(part)[0])
    assert measured.statistics == find_dataset_facts(part).statistics
    with pytest.raises(DataError, match=rf"{lack} classes of {whole}: use it under its own name, {part}\.$"):
        find_dataset_facts(whole).check_whole(measured.sizes, "The file")


@needs_real_data
def test_real_labels_with_gaps_have_the_right_names(amazon: Dataset) -> None:
    names = {part: [amazon.corpus.classes[i] for i in getattr(amazon.split, part)] for part in PARTS}
    assert names["test"] == ["Amazon_Instant_Video", "Books", "Clothing_Shoes_and_Jewelry", "Kindle_Store", "Movies_and_TV"]
    assert names["val"][-1] == "Tools_and_Home_Improvement"
    words = amazon.corpus.word_counts()
    pet = amazon.corpus.classes.index("Pet_Supplies")
    assert words[:, amazon.corpus.vocabulary.find(["dog"])[0]].argmax() == pet


@needs_real_data
@pytest.mark.parametrize("name", ["banking77", "clinc150"])
def test_shipped_random_splits_come_from_the_documented_command(name: str) -> None:
    made = make_parts(load_corpus(name), "random", seed=0)
    assert {part: made[part] for part in PARTS} == find_dataset_facts(name).split
    assert find_dataset_facts(name).split_rule.endswith(f"handful split {name} --by random --seed 0")
