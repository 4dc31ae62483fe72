"""Small real things that many tests share."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fetch_encoder import WEIGHTS, weights_are_here

from handful.data.corpus import Corpus, make_corpus
from handful.data.datasets import Dataset, load_dataset
from handful.data.episodes import EpisodeSampler, EpisodeSpec
from handful.meta.experiment import train_run
from handful.meta.inputs import ExperimentData, load_experiment_data
from handful.meta.settings import RunSettings
from handful.meta.training import TrainingSettings
from handful.models.settings import ModelSettings

REAL_DATA = os.environ.get("HANDFUL_DATA", "")
needs_real_data = pytest.mark.skipif(not REAL_DATA, reason="HANDFUL_DATA names no folder with the benchmark files")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Small problems run faster on one thread, and the same everywhere."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def demo() -> ExperimentData:
    return load_experiment_data(RunSettings())


@pytest.fixture(scope="session")
def demo_run(demo: ExperimentData, tmp_path_factory) -> Path:
    """The folder of a run that was hardly trained."""
    folder = tmp_path_factory.mktemp("runs") / "demo"
    training = TrainingSettings(epochs=1, episodes=2, validation_episodes=2)
    train_run(RunSettings(training=training), folder, demo, quiet=True)
    return folder


@pytest.fixture(scope="session")
def amazon() -> Dataset:
    """Real reviews; for tests that need real data."""
    return load_dataset("amazon-17")


@pytest.fixture(scope="session")
def fewrel() -> Dataset:
    """Real relations; for tests that need real data."""
    return load_dataset("fewrel-partial")


@pytest.fixture(scope="session")
def random_corpus() -> Corpus:
    """Eight classes of twelve texts over sixty words, uneven lengths, with a head and a tail."""
    rng = np.random.default_rng(0)
    texts = [[f"w{i}" for i in rng.integers(0, 60, rng.integers(1, 12))] for _ in range(96)]
    spans = [tuple((int(i), int(i)) for i in rng.integers(0, len(text), 2)) for text in texts]
    return make_corpus(texts, [f"class{i // 12}" for i in range(96)], entities=spans)


@pytest.fixture(scope="session")
def random_table(random_corpus: Corpus) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(len(random_corpus.vocabulary), 16)).astype(np.float32) / 4


@pytest.fixture(scope="session")
def sampler(random_corpus: Corpus) -> EpisodeSampler:
    return EpisodeSampler(random_corpus, range(4), range(8), EpisodeSpec(3, 2, 5), seed=3)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> str:
    """The folder of a real encoder with two small layers, untrained, that knows the words of the random corpus."""
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast, set_seed

    folder = tmp_path_factory.mktemp("tiny")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *"w0123456789", *(f"##{i}" for i in range(10))]))
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=24).save_pretrained(folder)
    set_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    BertForMaskedLM(BertConfig(vocab_size=26, max_position_embeddings=24, initializer_range=0.3, **sizes)).save_pretrained(
        folder
    )
    return str(folder)


@pytest.fixture(scope="session")
def bge_small() -> Path:
    """The folder of a real sentence encoder."""
    if not weights_are_here():
        pytest.skip("the encoder's weights are not here: make test fetches them")
    return WEIGHTS


@pytest.fixture
def lines(tmp_path: Path):
    """Writes a file of lines and gives its path."""

    def write(*rows: str, name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(row + "\n" for row in rows), "utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def curve_settings() -> RunSettings:
    """A run of the method that takes a moment, with a learning curve."""
    training = TrainingSettings(episodes=4, validation_episodes=3, epochs=3, curve_episodes=5)
    return RunSettings(episode=EpisodeSpec(3, 1, 3), training=training)


@pytest.fixture(scope="session")
def curve_run(demo: ExperimentData, curve_settings: RunSettings, tmp_path_factory) -> Path:
    """A finished run of the method."""
    return _run(curve_settings, demo, tmp_path_factory.mktemp("runs") / "our")


@pytest.fixture(scope="session")
def mean_run(demo: ExperimentData, curve_settings: RunSettings, tmp_path_factory) -> Path:
    """A finished run that generates no attention, without a curve."""
    training = replace(curve_settings.training, curve_episodes=0)
    settings = replace(curve_settings, model=ModelSettings("mean"), training=training)
    return _run(settings, demo, tmp_path_factory.mktemp("runs") / "mean")


@pytest.fixture(scope="session")
def nearest_run(demo: ExperimentData, curve_settings: RunSettings, tmp_path_factory) -> Path:
    """A finished run that has nothing to learn."""
    settings = replace(curve_settings, model=ModelSettings("mean", "nearest"))
    return _run(settings, demo, tmp_path_factory.mktemp("runs") / "nearest")


def _run(settings: RunSettings, inputs: ExperimentData, folder: Path) -> Path:
    train_run(settings, folder, inputs, quiet=True)
    return folder
