"""The universal generator: meta-trained once on public corpora, shipped with the package, used on any texts as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from .corpus import Corpus, Dataset, Texts, load_dataset, make_corpus
from .embeddings import load_vectors
from .episodes import MixedSampler, background_pool
from .model import FewShotModel, ModelSettings
from .storage import load_model, read_config, settings_from_dict
from .training import TrainingSettings

VECTORS = "wordllama+minilm"
SETTINGS = ModelSettings(head="universal", signals=("f", "u", "r"), vectors=VECTORS, pool="background", longest=120)
TRAINING = TrainingSettings(epochs=60, patience=60, validation_episodes=150)
DATASETS = ("huffpost", "reuters", "20newsgroups", "amazon", "fewrel")
PER_CLASS = 150  # documents of a class: more say little more about words in general
FOLDER = Path(str(files("handful") / "generator"))


@cache
def load_generator(folder: Path = FOLDER) -> FewShotModel:
    """The generator that is shipped, or one made by `make_generator` in a folder."""
    config = read_config(folder)
    return load_model(folder, settings_from_dict(ModelSettings, config.get("model")), 0)


# Making it


@dataclass(frozen=True, eq=False)
class Ground:
    """Several data sets as one corpus with vectors, and episodes of their classes for training and for validation."""

    corpus: Corpus
    texts: Texts
    train: MixedSampler
    validation: MixedSampler


def load_ground(datasets: Sequence[Dataset], settings: ModelSettings, seed: int = 0) -> Ground:
    """Some documents of each class of the data sets; classes of different data sets never meet in an episode."""
    rng = np.random.default_rng([seed, 0])
    drawn = [(dataset, label, words) for dataset in datasets for label, words in _some_documents(dataset, rng)]
    names = [f"{dataset.name}/{dataset.corpus.classes[label]}" for dataset, label, _ in drawn]
    corpus = make_corpus((words for *_, words in drawn), names, longest=settings.longest)
    table = load_vectors(settings.vectors).lookup(corpus.vocabulary.words)
    corpus = corpus.keep_words((table != 0).any(axis=1))
    pool = background_pool(corpus.vocabulary)
    number = {name: i for i, name in enumerate(corpus.classes)}

    def sampler(part: str) -> MixedSampler:
        groups = [[number[f"{d.name}/{d.corpus.classes[i]}"] for i in getattr(d.split, part)] for d in datasets]
        return MixedSampler(corpus, groups, pool, seed)

    return Ground(corpus, corpus.texts(table), sampler("train"), sampler("val"))


def _some_documents(dataset: Dataset, rng: np.random.Generator) -> Iterator[tuple[int, list[str]]]:
    corpus = dataset.corpus
    for label in (*dataset.split.train, *dataset.split.val):
        members = np.flatnonzero((corpus.labels == label) & (np.diff(corpus.offsets) > 0))
        for document in rng.permutation(members)[:PER_CLASS]:
            yield label, corpus.words(document)
