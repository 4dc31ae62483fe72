"""A run knows its word vectors again, and refuses others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.analysis.inspected_run import InspectedRun
from handful.data.episodes import EpisodeSpec
from handful.errors import ModelError
from handful.meta.experiment import evaluate_run, load_run, train_run
from handful.meta.inputs import ExperimentData, load_experiment_data
from handful.meta.settings import RunSettings, settings_from_options
from handful.meta.training import TrainingSettings
from handful.meta.vector_identity import MARKED
from handful.models.settings import ModelSettings, VectorSettings

SETTINGS = RunSettings(
    model=ModelSettings("mean"),
    episode=EpisodeSpec(3, 1, 3),
    training=TrainingSettings(episodes=2, validation_episodes=2, epochs=1),
)
REFUSED = r"trained with word vectors other than.*inputs=load_experiment_data\(settings, encode=\.\.\.\)"


def encoding(seed: int, dim: int = 256) -> Callable[[Sequence[str]], np.ndarray]:
    """Vectors of words made in Python, of the size of the default table."""

    def encode(words: Sequence[str]) -> np.ndarray:
        return np.stack([np.random.default_rng([seed, *word.encode()]).normal(size=dim) for word in words]) / 16

    return encode


@pytest.fixture(scope="module")
def python_run(tmp_path_factory) -> Path:
    """Trained with vectors made in Python."""
    folder = tmp_path_factory.mktemp("runs") / "python"
    train_run(SETTINGS, folder, load_experiment_data(SETTINGS, encoding(0)), quiet=True)
    return folder


def score(run: Path, inputs: ExperimentData | None = None, **options: object) -> float:
    return evaluate_run(run, episodes=4, inputs=inputs, quiet=True, **options).score.mean


def test_vectors_made_in_python_are_not_replaced_by_others(python_run: Path) -> None:
    with pytest.raises(ModelError, match=REFUSED):
        score(python_run)  # it would take wordllama, of the same size
    with pytest.raises(ModelError, match=REFUSED):
        score(python_run, load_experiment_data(SETTINGS, encoding(1)))
    with pytest.raises(ModelError, match=REFUSED):
        score(python_run, load_experiment_data(SETTINGS, encoding(0, dim=8)))
    with pytest.raises(ModelError, match=REFUSED):
        _ = InspectedRun(python_run).texts


def test_the_same_vectors_made_in_python_pass(python_run: Path) -> None:
    inputs = load_experiment_data(SETTINGS, encoding(0))
    assert score(python_run, inputs) == score(python_run, inputs)
    nearly = load_experiment_data(SETTINGS, lambda words: encoding(0)(words) * (1 + 1e-6))  # as another machine rounds
    assert score(python_run, nearly) == pytest.approx(score(python_run, inputs), abs=0.1)


def test_a_run_is_not_continued_with_other_vectors(python_run: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((python_run / "config.json").read_bytes())
    with pytest.raises(ModelError, match="contains a run with other word vectors"):
        train_run(SETTINGS, tmp_path, quiet=True)
    train_run(SETTINGS, tmp_path, load_experiment_data(SETTINGS, encoding(0)), quiet=True)


@pytest.fixture
def other_data(lines) -> Path:
    """Texts that share a few words with the demo corpus, most of them not."""
    texts = [f"the {label} number {'x' * i} was not zzz{label}{i}" for label in "abcd" for i in range(1, 5)]
    rows = [json.dumps({"text": text, "label": text.split()[1]}) for text in texts]
    lines('{"train": ["a"], "val": [], "test": ["b", "c", "d"]}', name="other.split.json")
    return lines(*rows, name="other.jsonl")


def test_other_data_with_the_same_vectors_passes_and_with_others_does_not(python_run: Path, demo, other_data, tmp_path) -> None:
    train_run(SETTINGS, tmp_path / "run", demo, quiet=True)
    assert 0 <= score(tmp_path / "run", data=str(other_data)) <= 1
    elsewhere = replace(SETTINGS, data=str(other_data))
    assert 0 <= score(python_run, load_experiment_data(elsewhere, encoding(0))) <= 1
    for inputs in (load_experiment_data(elsewhere, encoding(1)), load_experiment_data(elsewhere)):
        with pytest.raises(ModelError, match=REFUSED):
            score(python_run, inputs)


def test_data_that_shares_no_word_is_compared_too(demo, lines, tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"zzz{label}{i} yyy{i}", "label": label}) for label in "abcd" for i in range(4)]
    lines('{"train": ["a"], "val": [], "test": ["b", "c", "d"]}', name="alien.split.json")
    alien = str(lines(*rows, name="alien.jsonl"))
    train_run(SETTINGS, tmp_path / "run", demo, quiet=True)
    assert 0 <= score(tmp_path / "run", data=alien) <= 1
    longer = replace(SETTINGS, data=alien, model=ModelSettings("mean", vectors=VectorSettings(length=3.0)))
    with pytest.raises(ModelError, match=REFUSED):
        score(tmp_path / "run", load_experiment_data(longer))


def write_table(path: Path, words: Sequence[str], seed: int) -> None:
    np.savez(path, words=np.array(words), vectors=np.random.default_rng(seed).normal(size=(len(words), 8)).astype("f"))


@pytest.mark.parametrize("preparation", ["raw", "unit", "centred"])
def test_a_vector_file_that_has_changed_is_refused(demo, tmp_path: Path, preparation: str) -> None:
    table, words = tmp_path / "mine.npz", demo.dataset.corpus.vocabulary.words
    write_table(table, words, 0)
    settings = replace(SETTINGS, model=ModelSettings("mean", vectors=VectorSettings(f"{table}:{preparation}")))
    train_run(settings, tmp_path / "run", quiet=True)
    before = score(tmp_path / "run")
    write_table(table, words, 1)
    with pytest.raises(ModelError, match=REFUSED):
        score(tmp_path / "run")
    write_table(table, words[::2], 0)  # some words are gone
    with pytest.raises(ModelError, match=REFUSED):
        score(tmp_path / "run")
    write_table(table, words, 0)
    assert score(tmp_path / "run") == before


def test_an_encoder_with_other_weights_is_refused(tiny_encoder: str, random_corpus, lines, tmp_path: Path, monkeypatch) -> None:
    from transformers import BertForMaskedLM

    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    names = random_corpus.classes
    rows = [{"text": random_corpus.words(i), "label": names[random_corpus.labels[i]]} for i in range(len(random_corpus))]
    lines(json.dumps({"train": names[:4], "val": names[4:6], "test": names[6:]}), name="data.split.json")
    sizes = {"way": 2, "queries": 2, "epochs": 1, "episodes": 2, "validation_episodes": 2, "representation": "mean"}
    data = {"data": str(lines(*map(json.dumps, rows))), "vectors": f"contextual:{tiny_encoder}"}
    settings = settings_from_options({**sizes, **data})
    train_run(settings, tmp_path / "run", quiet=True)
    assert len(load_run(tmp_path / "run").vectors.marks) == min(MARKED, len(random_corpus.vocabulary))
    assert 0 <= score(tmp_path / "run") <= 1
    other = tmp_path / "other"
    other.mkdir()
    for path in Path(tiny_encoder).iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    model = BertForMaskedLM.from_pretrained(tiny_encoder)
    model.bert.embeddings.word_embeddings.weight.data *= 1.5
    model.save_pretrained(other)
    changed = replace(settings, model=replace(settings.model, vectors=VectorSettings(f"contextual:{other}")))
    with pytest.raises(ModelError, match=REFUSED):
        score(tmp_path / "run", load_experiment_data(changed))


def test_a_run_keeps_marks_of_its_most_frequent_words(python_run: Path, demo) -> None:
    config = json.loads((python_run / "config.json").read_text("utf-8"))["word_vectors"]
    assert config["dim"] == 256
    assert len(config["marks"]) == MARKED
    assert {"the", ".", "i"} <= set(config["marks"])
