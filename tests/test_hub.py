"""Data sets of the Hugging Face hub, read from a folder in its layout: nothing goes over the network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from handful.cli import main
from handful.data.datasets import load_corpus, load_dataset, read_corpus
from handful.data.reader import Source, open_rows
from handful.errors import DataError, MissingExtraError, SettingError
from handful.utils.paths import resource

datasets = pytest.importorskip("datasets")


def handful(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def hub(tmp_path: Path, monkeypatch) -> Path:
    """The demo corpus in the hub's layout: a card that names the classes, and a Parquet file with their numbers per part."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    datasets.disable_progress_bars()
    folder = tmp_path / "topics"
    (folder / "data").mkdir(parents=True)
    rows = [json.loads(line) for line in resource("demo.jsonl").read_text("utf-8").splitlines()]
    names = sorted({row["label"] for row in rows})
    for number, part in enumerate(("train", "test")):
        own = rows[number::2]
        columns = {"text": [row["text"] for row in own], "label": [names.index(row["label"]) for row in own]}
        parquet.write_table(pa.table(columns), folder / "data" / f"{part}-00000-of-00001.parquet")
    classes = "".join(f"          '{number}': {name}\n" for number, name in enumerate(names))
    (folder / "README.md").write_text(
        "---\ndataset_info:\n  features:\n  - name: text\n    dtype: string\n  - name: label\n    dtype:\n"
        f"      class_label:\n        names:\n{classes}"
        "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: data/train-*\n"
        "  - split: test\n    path: data/test-*\n---\n",
        "utf-8",
    )
    return folder


def test_all_parts_are_read_with_the_names_of_classes(hub: Path) -> None:
    found, demo = load_corpus(f"hf:{hub}"), load_corpus("demo")
    assert set(found.classes) == set(demo.classes)
    texts = [
        sorted((corpus.classes[corpus.labels[i]], corpus.words(i)) for i in range(len(corpus))) for corpus in (found, demo)
    ]
    assert texts[0] == texts[1]


def test_its_classes_are_split_and_a_run_is_trained_and_evaluated(hub: Path, tmp_path: Path) -> None:
    missing = handful("train", "--data", f"hf:{hub}", "--out", "run", "--quiet")
    assert missing.exit_code == 2
    assert f"create one (handful split hf:{hub})" in " ".join(missing.stderr.split()).replace("- ", "-")
    split = handful("split", f"hf:{hub}", "--sizes", "5,2,3", "--out", "classes.json")
    assert split.exit_code == 0, split.output
    assert len(load_dataset(f"hf:{hub}", "classes.json").split.test) == 3
    short = ["--way", 2, "--epochs", 1, "--episodes", 2, "--validation-episodes", 2, "--quiet"]
    trained = handful("train", "--data", f"hf:{hub}", "--split", "classes.json", "--preset", "idf-rr", *short, "--out", "run")
    assert trained.exit_code == 0, trained.output
    report = json.loads(handful("evaluate", "run", "--episodes", 20, "--quiet", "--json").stdout)
    assert report["accuracy"] > 0.6  # of two classes
    assert report["data"] == f"hf:{hub}"


def test_rows_whose_class_is_not_published_are_skipped(hub: Path) -> None:
    rows = pa.table({"text": ["a secret", "a soup"], "label": [-1, 0]})
    parquet.write_table(rows, hub / "data" / "test-00000-of-00001.parquet")
    with open_rows(Source(f"hf:{hub}"), labelled=True) as found:
        assert [row.text for row in found][-1] == "a soup"
    with open_rows(Source(f"hf:{hub}")) as found:
        assert [row.text for row in found][-2:] == ["a secret", "a soup"]


def test_what_cannot_be_loaded_is_told_in_a_sentence(hub: Path, monkeypatch) -> None:
    with pytest.raises(DataError, match=r"^hf:nobody/nothing cannot be loaded \(.*\): check the name"):
        read_corpus("hf:nobody/nothing")
    with pytest.raises(SettingError, match="is not a file: remove `form`"):
        read_corpus(f"hf:{hub}", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"install it with pip install 'handful\[hf\]'"):
        read_corpus(f"hf:{hub}")
