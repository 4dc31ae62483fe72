"""The universal attention generator: meta-trained once on public corpora, packaged, and used unchanged on any texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..data.corpus import Corpus, Texts, make_corpus
from ..data.datasets import Dataset, load_dataset
from ..data.episodes import MixedSampler
from ..data.frequencies import background_pool
from ..embeddings import load_vectors
from ..meta.checkpoints import CHECKPOINT, load_checkpoint, save_checkpoint
from ..meta.training import TrainingSettings, meta_train
from ..models.few_shot import FewShotModel
from ..models.generator import DEFAULT_VECTORS, SHIPPED_GENERATOR
from ..models.settings import AttentionSettings, ModelSettings, VectorSettings
from ..models.signatures import PORTABLE_SIGNALS
from ..models.storage import CONFIG, FORMAT, save_model
from ..utils.files import write_json
from ..utils.functional import as_like, cross_entropy
from ..utils.settings import settings_to_dict

GENERATOR_SETTINGS = ModelSettings(
    head="unit-ridge",
    max_words=120,
    vectors=VectorSettings(DEFAULT_VECTORS),
    positions=False,
    attention=AttentionSettings(signals=PORTABLE_SIGNALS, word_frequencies="background", network="pooled"),
)
GENERATOR_TRAINING = TrainingSettings(learning_rate=3e-3, epochs=40, patience=20, validation_episodes=150)
RARITY = 0.5  # the share of attention by rarity alone at prediction time, as texts may be unlike any seen in training
DATASETS = ("huffpost", "reuters", "20newsgroups", "amazon-17", "fewrel-partial", "requests", "demo")
DISTRACTED = ("huffpost", "reuters", "fewrel-partial")  # also used with filler words, which say nothing about the class
FILLER = "amazon-17"  # the source of the filler words: informal text
OFTEN = {"requests": 4, "demo": 2}  # episodes for each one of another data set: short messages are a common use
EPISODE_WAYS = (2, 100)
PER_CLASS = 150  # documents: more per class add little information about words in general
CLASSES = "classes.json"  # the training and validation classes of each data set
CALIBRATION_EPISODES = 400
SCALE_PARAMETER = "head.scale"


# Making the generator


def make_generator(
    folder: Path,
    names: Sequence[str] = DATASETS,
    seed: int = 0,
    training: TrainingSettings = GENERATOR_TRAINING,
    quiet: bool = False,
) -> FewShotModel:
    """Meta-train a generator on data sets, given by name, and write it to a folder; an interrupted run is resumed."""
    datasets = {
        name: load_dataset(name, SHIPPED_GENERATOR / CLASSES, GENERATOR_SETTINGS.max_words, skip_empty=True) for name in names
    }
    distracted = [distract(datasets[name], datasets[FILLER].corpus, seed) for name in DISTRACTED if {name, FILLER} <= {*names}]
    generator_data = load_generator_data([*datasets.values(), *distracted], GENERATOR_SETTINGS, seed)
    model = FewShotModel.initial(GENERATOR_SETTINGS, generator_data.texts.table.shape[1], seed)
    trained, history = meta_train(
        model,
        generator_data.texts,
        generator_data.train,
        generator_data.validation,
        training,
        load_checkpoint(folder, model.parameters),
        lambda state: save_checkpoint(folder, state),
        quiet,
    )
    careful = in_use(GENERATOR_SETTINGS)
    finished = calibrate_scale(FewShotModel(careful, trained.parameters), generator_data, CALIBRATION_EPISODES)
    made = {"data": list(names), "seed": seed, "training": settings_to_dict(training), "epochs": len(history)}
    write_json(folder / CONFIG, {"format": FORMAT, "model": settings_to_dict(careful), "made": made})
    save_model(folder, finished)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return finished


def in_use(settings: ModelSettings) -> ModelSettings:
    """The settings for prediction, which differ slightly from those for training the generator."""
    return replace(settings, head="refined-ridge", attention=replace(settings.attention, rarity=RARITY))


def calibrate_scale(model: FewShotModel, generator_data: GeneratorData, episodes: int) -> FewShotModel:
    """The model with the scale, as a function of classes and examples, that suits classes it was not trained on."""
    import torch

    flat = model.with_parameters(
        {**model.parameters, SCALE_PARAMETER: np.zeros(3, np.float32)}
    )  # a scale of 1: bare ridge scores
    fast = flat.to_torch()
    known = []
    for index in range(episodes):
        episode = generator_data.validation[index]
        prepared = fast.prepare(generator_data.texts, [episode])
        shape = [1.0, np.log(len(episode.classes)), np.log(len(episode.support) / len(episode.classes))]
        known.append(
            (
                torch.tensor(shape),
                fast.logits(prepared)[0],
                as_like(prepared.query_targets[0], fast.parameters[SCALE_PARAMETER]),
            )
        )
    scale = torch.tensor(model.parameters[SCALE_PARAMETER], requires_grad=True)
    optimizer = torch.optim.LBFGS([scale], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        total = sum(cross_entropy(torch.exp(scale @ shape.float()) * scores, targets) for shape, scores, targets in known)
        total.backward()
        return total  # type: ignore[no-any-return]

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return model.with_parameters({**model.parameters, SCALE_PARAMETER: scale.detach().numpy().copy()})


@dataclass(frozen=True, eq=False)
class GeneratorData:
    """Several data sets as one corpus with vectors, with episodes for training and for validation."""

    corpus: Corpus
    texts: Texts
    train: MixedSampler
    validation: MixedSampler


def load_generator_data(datasets: Sequence[Dataset], settings: ModelSettings, seed: int = 0) -> GeneratorData:
    """A sample of documents from each class; an episode never mixes the classes of different data sets."""
    rng = np.random.default_rng([seed, 0])
    drawn = [(dataset, label, words) for dataset in datasets for label, words in _some_documents(dataset, rng)]
    names = [f"{dataset.name}/{dataset.corpus.classes[label]}" for dataset, label, _ in drawn]
    corpus = make_corpus((words for *_, words in drawn), names, max_words=settings.max_words)
    table = load_vectors(settings.vectors.names).lookup(corpus.vocabulary.words)
    corpus = corpus.keep_words((table != 0).any(axis=1))
    pool = background_pool(corpus.vocabulary)
    number = {name: i for i, name in enumerate(corpus.classes)}

    def sampler(part: str) -> MixedSampler:
        repeated = [d for d in datasets for _ in range(OFTEN.get(d.name, 1))]
        groups = [[number[f"{d.name}/{d.corpus.classes[i]}"] for i in getattr(d.split, part)] for d in repeated]
        return MixedSampler(corpus, groups, pool, seed, EPISODE_WAYS)

    return GeneratorData(corpus, corpus.texts(table), sampler("train"), sampler("val"))


def distract(dataset: Dataset, filler: Corpus, seed: int = 0) -> Dataset:
    """A copy of a data set in which each text has a few words of some other text before or after it.

    With one example per class, a word that occurs only in that example says little in such texts; the generator learns this.
    """
    rng = np.random.default_rng([seed, 2])
    corpus = dataset.corpus

    def distracted(document: int) -> list[str]:
        words = corpus.words(document)[:DISTRACTED_WORDS]
        other = filler.words(int(rng.integers(len(filler))))
        length = int(rng.integers(*FILLER_WORDS, endpoint=True))
        begin = int(rng.integers(max(1, len(other) - length)))
        stretch = other[begin : begin + length]
        return stretch + words if rng.random() < 0.5 else words + stretch

    labels = [corpus.classes[label] for label in corpus.labels]
    texts = make_corpus((distracted(document) for document in range(len(corpus))), labels, corpus.classes)
    return Dataset(f"{dataset.name}, distracted", texts, dataset.split)


DISTRACTED_WORDS = 60  # kept of a distracted text
FILLER_WORDS = (3, 12)  # fewest and most words of filler


def _some_documents(dataset: Dataset, rng: np.random.Generator) -> Iterator[tuple[int, list[str]]]:
    corpus = dataset.corpus
    for label in (*dataset.split.train, *dataset.split.val):
        members = np.flatnonzero((corpus.labels == label) & (np.diff(corpus.offsets) > 0))
        for document in rng.permutation(members)[:PER_CLASS]:
            yield label, corpus.words(document)
