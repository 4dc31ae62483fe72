from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import needs_real_data

from handful.cli import main
from handful.data.corpus import FARTHEST, Corpus, make_corpus
from handful.data.datasets import Dataset, load_dataset
from handful.data.registry import find_dataset_facts
from handful.data.splits import PARTS, read_split
from handful.data.splitting import PIPELINE, default_sizes, head_types, make_parts, similar_classes
from handful.errors import DataError, SettingError


def handful(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def named_classes(*names: str) -> Corpus:
    return make_corpus(["some words"] * len(names), names)


NEWS = find_dataset_facts("20newsgroups").classes.values()


def everything(parts: dict) -> list[str]:
    return [name for part in PARTS for name in parts[part]]


def test_random_splits_are_reproducible_and_have_the_sizes_asked_for() -> None:
    corpus = named_classes(*(f"class {i}" for i in range(41)))
    parts = make_parts(corpus, "random", seed=3, sizes=(20, 5, 16))
    assert [len(parts[part]) for part in PARTS] == [20, 5, 16]
    assert sorted(everything(parts)) == sorted(corpus.classes)
    assert make_parts(corpus, "random", seed=3, sizes=(20, 5, 16)) == parts
    assert make_parts(corpus, "random", seed=4, sizes=(20, 5, 16)) != parts
    assert sum(default_sizes(41)) == 41


def test_hierarchy_gives_the_papers_split_of_20_newsgroups(tmp_path: Path) -> None:
    named = {"sci": "train", "rec": "train", "comp": "val"}
    corpus = named_classes(*NEWS)
    (tmp_path / "split.json").write_text(json.dumps(make_parts(corpus, "hierarchy", named=named)))
    split = read_split(tmp_path / "split.json", corpus)
    paper = find_dataset_facts("20newsgroups").split
    assert {part: sorted(getattr(split, part)) for part in PARTS} == {part: sorted(paper[part]) for part in PARTS}


def test_groups_that_are_not_named_stay_whole_and_come_close_to_the_sizes() -> None:
    parts = make_parts(named_classes(*NEWS), "hierarchy")
    of = {name: part for part in PARTS for name in parts[part]}
    assert sorted(of) == sorted(NEWS)
    assert len({(name.split(".")[0], part) for name, part in of.items()}) == len({name.split(".")[0] for name in of})
    sizes = np.array([len(parts[part]) for part in PARTS])
    assert np.abs(sizes - default_sizes(20)).max() <= 2
    assert make_parts(named_classes("a/1", "a/2", "b/1", "c/1"), "hierarchy", sizes=(2, 1, 1), separator="/")["train"] == [
        "a/1",
        "a/2",
    ]


def test_clusters_part_classes_of_different_words() -> None:
    rng = np.random.default_rng(0)
    topics = {name: [f"{name}{i}" for i in range(30)] for name in "xyz"}
    labels = [f"{topic}{number}" for topic, count in (("x", 4), ("y", 3), ("z", 2)) for number in range(count)]
    shared = [f"w{i}" for i in range(30)]
    texts = [list(rng.choice(shared + topics[label[0]], 200)) for label in labels]
    parts = make_parts(make_corpus(texts, labels), "clusters", sizes=(4, 2, 3))
    assert [parts[part] for part in PARTS] == [["x0", "x1", "x2", "x3"], ["z0", "z1"], ["y0", "y1", "y2"]]
    assert len(set(similar_classes(make_corpus(texts, labels), 4, seed=0))) == 4


@needs_real_data
def test_real_clusters_are_of_a_kind(amazon: Dataset) -> None:
    group = dict(zip(amazon.corpus.classes, similar_classes(amazon.corpus, 3, seed=0), strict=True))
    assert group["Books"] == group["Kindle_Store"] == group["Movies_and_TV"] == group["Digital_Music"]
    assert group["Beauty"] == group["Health_and_Personal_Care"] == group["Baby"]
    assert len({group["Books"], group["Beauty"], group["Electronics"]}) == 3


# By entity


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A small real pipeline of spaCy: rules that know a few names."""
    spacy = pytest.importorskip("spacy", reason="the extra spacy is not installed")
    language = spacy.blank("en")
    names = {"WORK_OF_ART": ["War And Peace", "Hamlet"], "PERSON": ["Tolstoy", "Shakespeare"], "GPE": ["Moscow"]}
    patterns = [{"label": kind, "pattern": name} for kind, texts in names.items() for name in texts]
    language.add_pipe("entity_ruler").add_patterns(patterns)
    language.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


@pytest.fixture
def relations() -> Corpus:
    rows = [
        ("author", "war and peace is by tolstoy", (0, 2), (5, 5)),
        ("author", "hamlet of shakespeare", (0, 0), (2, 2)),
        ("author", "what moscow wrote", (1, 1), (0, 0)),
        ("birthplace", "tolstoy in moscow", (0, 0), (2, 2)),
        ("written", "shakespeare wrote hamlet", (0, 0), (2, 2)),
        ("capital", "moscow of shakespeare", (0, 0), (2, 2)),
        ("unknown", "something of moscow", (0, 0), (2, 2)),
    ]
    return make_corpus([row[1].split() for row in rows], [row[0] for row in rows], entities=[row[2:] for row in rows])


def test_relations_are_split_by_the_type_of_their_head(relations: Corpus, pipeline: Path) -> None:
    assert head_types(relations, str(pipeline)) == ["WORK_OF_ART", "PERSON", "PERSON", "GPE", "none"]
    parts = make_parts(relations, "entity", pipeline=str(pipeline), sizes=(2, 2, 1))
    assert parts["test"] == ["author"]
    assert (len(parts["train"]), len(parts["val"])) == (2, 2)
    other = make_parts(relations, "entity", pipeline=str(pipeline), named={"PERSON": "test"}, sizes=(2, 1, 2))
    assert other["test"] == ["birthplace", "written"]
    assert other["groups"]["capital"] == "GPE"
    with pytest.raises(DataError, match="no class is left for test"):
        make_parts(relations, "entity", pipeline=str(pipeline), named={"EVENT": "test"})


def test_no_pipeline_and_no_relations(relations: Corpus) -> None:
    pytest.importorskip("spacy", reason="the extra spacy is not installed")
    with pytest.raises(DataError, match="no spaCy pipeline 'nowhere'"):
        head_types(relations, "nowhere")
    with pytest.raises(DataError, match="Only relations can be split by entity"):
        head_types(named_classes("a", "b"))


@needs_real_data
def test_the_packaged_pipeline_finds_works_of_art_in_real_relations(fewrel: Dataset) -> None:
    pytest.importorskip(PIPELINE, reason="the extra spacy is not installed")
    corpus = fewrel.corpus
    few = [
        i
        for name in ("director", "composer", "father")
        for i in np.flatnonzero(corpus.labels == corpus.classes.index(name))[:25]
    ]
    spans = []
    for document in few:
        inside = corpus.positions[corpus.offsets[document] : corpus.offsets[document + 1]] == FARTHEST
        spans.append([(int(np.flatnonzero(column)[0]), int(np.flatnonzero(column)[-1])) for column in inside.T])
    small = make_corpus([corpus.words(i) for i in few], [corpus.classes[corpus.labels[i]] for i in few], entities=spans)
    assert head_types(small) == ["WORK_OF_ART", "WORK_OF_ART", "PERSON"]


# Mistakes, and the command line


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "alphabet"}, "no split method 'alphabet'"),
        ({"by": "random", "sizes": (3, 2, 1)}, "sizes 3,2,1 do not fit 5 classes"),
        ({"by": "random", "sizes": (3, 2)}, "give three numbers"),
        ({"by": "random", "sizes": (5, 0, 0)}, "do not fit"),
        ({"by": "hierarchy", "separator": "/"}, "No two class names agree up to"),
        ({"by": "hierarchy", "named": {"z": "train"}}, "There is no group z: choose from a, b"),
        ({"by": "hierarchy"}, "leaves no class for val"),
        ({"by": "clusters", "clusters": 2}, "clusters is 2: it must be from 3 to"),
        ({"by": "clusters", "clusters": 6}, "clusters is 6: it must be from 3 to"),
    ],
)
def test_mistakes(options: dict, sentence: str) -> None:
    with pytest.raises((SettingError, DataError), match=sentence):
        make_parts(named_classes("a.1", "a.2", "a.3", "b.1", "b.2"), **{"sizes": (2, 1, 2), **options})


def test_the_command_writes_a_split_that_can_be_used(tmp_path: Path) -> None:
    out = tmp_path / "demo.split.json"
    result = handful("split", "demo", "--sizes", "15,5,10", "--seed", 7, "--out", out)
    assert (result.exit_code, result.stdout) == (0, f"{out}: 15/5/10 classes for training, validation and testing.\n")
    assert len(load_dataset("demo", out).split.test) == 10
    first = out.read_bytes()
    handful("split", "demo", "--sizes", "15,5,10", "--seed", 7, "--out", out)
    assert out.read_bytes() == first
    result = handful("split", "demo", "--sizes", "many", "--out", out)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    result = handful("split", "demo", "--by", "entity", "--out", out)
    assert "have no head and tail" in result.stderr
