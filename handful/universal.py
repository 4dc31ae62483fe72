"""The universal generator: meta-trained once on public corpora, shipped with the package, used on any texts as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from .corpus import Corpus, Dataset, Texts, load_dataset, make_corpus
from .embeddings import load_vectors
from .episodes import MixedSampler, background_pool
from .errors import ModelError
from .functional import as_like, cross_entropy
from .model import FewShotModel, ModelSettings
from .storage import (
    CHECKPOINT,
    CONFIG,
    FORMAT,
    load_checkpoint,
    load_model,
    read_config,
    save_checkpoint,
    save_model,
    settings_from_dict,
    settings_to_dict,
    write_json,
)
from .training import TrainingSettings, meta_train

VECTORS = "wordllama+minilm"
SETTINGS = ModelSettings(head="universal", signals=("f", "u", "r"), vectors=VECTORS, pool="background", longest=120)
TRAINING = TrainingSettings(learning_rate=3e-3, epochs=40, patience=20, validation_episodes=150)
RARITY = 0.5  # the share of attention by rarity alone, in use: its texts may be unlike any that it was trained on
HEADS_IN_USE = ("refined", "universal")  # the first is ours: too slow to learn through, and worth it with many classes
DATASETS = ("huffpost", "reuters", "20newsgroups", "amazon-17", "fewrel-partial", "requests", "demo")
DISTRACTED = ("huffpost", "reuters", "fewrel-partial")  # are there a second time, with words that say nothing of the class
FILLER = "amazon-17"  # whose words those are: people talking
OFTEN = {"requests": 4, "demo": 2}  # episodes of it for one of another: much of what people sort is such messages
WAYS = (2, 100)
PER_CLASS = 150  # documents of a class: more say little more about words in general
FOLDER = Path(str(files("handful") / "generator"))
CLASSES = "classes.json"  # of each data set, those for training and those for validation
CALIBRATION_EPISODES = 400
SCALE = "head.scale"


@cache
def load_generator(folder: Path = FOLDER) -> FewShotModel:
    """The generator that is shipped, or one made by `make_generator` in a folder."""
    settings = settings_from_dict(ModelSettings, read_config(folder).get("model"), "model.")
    if settings.head not in HEADS_IN_USE or not set(settings.signals) <= {"f", "u", "r"} or settings.embeddings:
        raise ModelError(f"{folder} does not hold a universal generator: give one that benchmarks/make_generator.py made.")
    return load_model(folder, settings, 0)


# Making it


def make_generator(
    folder: Path, names: Sequence[str] = DATASETS, seed: int = 0, training: TrainingSettings = TRAINING, quiet: bool = False
) -> FewShotModel:
    """Meta-train a generator on data sets by name and write it to a folder; a run that was killed goes on where it stood."""
    datasets = {name: load_dataset(name, FOLDER / CLASSES, SETTINGS.longest, skip_empty=True) for name in names}
    distracted = [distract(datasets[name], datasets[FILLER].corpus, seed) for name in DISTRACTED if {name, FILLER} <= {*names}]
    ground = load_ground([*datasets.values(), *distracted], SETTINGS, seed)
    model = FewShotModel.initial(SETTINGS, ground.texts.table.shape[1], seed)
    trained, history = meta_train(
        model,
        ground.texts,
        ground.train,
        ground.validation,
        training,
        load_checkpoint(folder, model.parameters),
        lambda state: save_checkpoint(folder, state),
        quiet,
    )
    careful = in_use(SETTINGS)
    finished = calibrate(FewShotModel(careful, trained.parameters), ground, CALIBRATION_EPISODES)
    made = {"data": list(names), "seed": seed, "training": settings_to_dict(training), "epochs": len(history)}
    write_json(folder / CONFIG, {"format": FORMAT, "model": settings_to_dict(careful), "made": made})
    save_model(folder, finished)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return finished


def in_use(settings: ModelSettings) -> ModelSettings:
    """As texts are answered, which is not quite as the generator is trained."""
    return replace(settings, head="refined", rarity=RARITY)


def calibrate(model: FewShotModel, ground: Ground, episodes: int) -> FewShotModel:
    """The model with the scale, as a function of classes and examples, that suits classes it was not trained on."""
    import torch

    flat = model.with_parameters({**model.parameters, SCALE: np.zeros(3, np.float32)})  # a scale of 1: bare ridge scores
    fast, known = flat.to_torch(), []
    for index in range(episodes):
        episode = ground.validation[index]
        prepared = fast.prepare(ground.texts, [episode])
        shape = [1.0, np.log(len(episode.classes)), np.log(len(episode.support) / len(episode.classes))]
        known.append(
            (torch.tensor(shape), fast.logits(prepared)[0], as_like(prepared.query_targets[0], fast.parameters[SCALE]))
        )
    scale = torch.tensor(model.parameters[SCALE], requires_grad=True)
    optimizer = torch.optim.LBFGS([scale], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        total = sum(cross_entropy(torch.exp(scale @ shape.float()) * scores, targets) for shape, scores, targets in known)
        total.backward()
        return total  # type: ignore[no-any-return]

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return model.with_parameters({**model.parameters, SCALE: scale.detach().numpy().copy()})


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
        repeated = [d for d in datasets for _ in range(OFTEN.get(d.name, 1))]
        groups = [[number[f"{d.name}/{d.corpus.classes[i]}"] for i in getattr(d.split, part)] for d in repeated]
        return MixedSampler(corpus, groups, pool, seed, WAYS)

    return Ground(corpus, corpus.texts(table), sampler("train"), sampler("val"))


def distract(dataset: Dataset, filler: Corpus, seed: int = 0) -> Dataset:
    """The same texts, each with a few words of some other text before or after it.

    At one example a class a word that only this example has says little in such texts, and the generator learns how little.
    """
    rng, corpus = np.random.default_rng([seed, 2]), dataset.corpus

    def distracted(document: int) -> list[str]:
        words, other = corpus.words(document)[:MOST_WORDS], filler.words(int(rng.integers(len(filler))))
        length = int(rng.integers(*FILLER_WORDS, endpoint=True))
        begin = int(rng.integers(max(1, len(other) - length)))
        stretch = other[begin : begin + length]
        return stretch + words if rng.random() < 0.5 else words + stretch

    labels = [corpus.classes[label] for label in corpus.labels]
    texts = make_corpus((distracted(document) for document in range(len(corpus))), labels, corpus.classes)
    return Dataset(f"{dataset.name}, distracted", texts, dataset.split)


MOST_WORDS, FILLER_WORDS = 60, (3, 12)  # of a text that is distracted, and of what distracts


def _some_documents(dataset: Dataset, rng: np.random.Generator) -> Iterator[tuple[int, list[str]]]:
    corpus = dataset.corpus
    for label in (*dataset.split.train, *dataset.split.val):
        members = np.flatnonzero((corpus.labels == label) & (np.diff(corpus.offsets) > 0))
        for document in rng.permutation(members)[:PER_CLASS]:
            yield label, corpus.words(document)
