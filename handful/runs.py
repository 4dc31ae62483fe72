"""A run: data, model and training settings to a folder, and a folder to a measured score."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import Corpus, Dataset, Texts, load_dataset
from .embeddings import load_vectors
from .embeddings.contextual import Encoder, contextual_table, encoder_of
from .episodes import EpisodeSampler, EpisodeSpec, SourcePool, background_pool
from .errors import ModelError, SettingError
from .evaluation import Score, evaluate, paired_difference
from .functional import Floats
from .model import VECTORS, FewShotModel, ModelSettings
from .pretraining import MaskedLanguageModel
from .signatures import SignatureSettings
from .storage import (
    CHECKPOINT,
    CONFIG,
    FORMAT,
    MODEL,
    PRETRAINING,
    load_checkpoint,
    load_model,
    load_pool,
    load_vectors_over,
    read_config,
    save_checkpoint,
    save_model,
    save_pool,
    save_vectors,
    settings_from_dict,
    settings_to_dict,
    write_json,
)
from .training import TrainingSettings, meta_train

CURVE_SEED = 1_000_000  # unlike that of a run


@dataclass(frozen=True)
class RunSettings:
    """All that decides a run: the same settings give the same numbers."""

    data: str = "demo"
    split: str | None = None
    skip_empty: bool = False
    seed: int = 0
    episode: EpisodeSpec = field(default_factory=EpisodeSpec)
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


def settings_from_options(options: Mapping[str, Any]) -> RunSettings:
    """Flat options, by their names and in their forms on the command line and in presets, as the nested settings of a run."""
    options = {**options, "signals": tuple(name for name in options.get("signals", "s,t").split(",") if name)}

    def pick(kind: type[Any], **more: Any) -> Any:
        return kind(**{field.name: options[field.name] for field in fields(kind) if field.name in options}, **more)

    model = pick(ModelSettings, signature=pick(SignatureSettings))
    run: RunSettings = pick(RunSettings, episode=pick(EpisodeSpec), model=model, training=pick(TrainingSettings))
    return run


@dataclass(frozen=True, eq=False)
class Material:
    """A data set with vectors for its words, ready for episodes."""

    dataset: Dataset
    corpus: Corpus  # without the words that have no vector
    texts: Texts
    background: SourcePool | None  # in place of the source pool, if the model wants it

    def sampler(self, part: str, spec: EpisodeSpec, seed: int, training: SourcePool | None = None) -> EpisodeSampler:
        """Episodes of the classes of one part of the split; `training` stands for the training examples, if given."""
        split = self.dataset.split
        pool = self.background or training
        return EpisodeSampler(self.corpus, getattr(split, part), split.train, spec, seed, pool, training)


def load_material(settings: RunSettings, encode: Callable[[Sequence[str]], Floats] | None = None) -> Material:
    """The data and the vectors of a run; `encode`, if given, makes a vector for each word of a text, in place of the tables."""
    dataset = load_dataset(settings.data, settings.split, settings.model.longest, settings.skip_empty)
    corpus, texts = _with_vectors(dataset.corpus, settings.model, encode)
    background = background_pool(corpus.vocabulary) if settings.model.pool == "background" else None
    return Material(dataset, corpus, texts, background)


def _with_vectors(
    corpus: Corpus, settings: ModelSettings, encode: Callable[[Sequence[str]], Floats] | None
) -> tuple[Corpus, Texts]:
    """A corpus with the vectors of its words: of each word type, or with `contextual:ENCODER` of each occurrence."""
    encoder = encoder_of(settings.vectors)
    if encode:
        vectors = [encode(corpus.words(document)) for document in range(len(corpus))]
        return corpus, corpus.contextual_texts(np.concatenate(vectors).astype(np.float32))
    if encoder:
        return corpus, _contextual(corpus, settings, encoder)
    table = np.float32(settings.length) * load_vectors(settings.vectors).lookup(corpus.vocabulary.words)
    known = corpus.keep_words((table != 0).any(axis=1))
    return known, known.texts(table)


def _contextual(corpus: Corpus, settings: ModelSettings, encoder: Encoder) -> Texts:
    if settings.representation == "cls":  # it reads the words itself, and nothing reads their vectors
        table = np.broadcast_to(np.float32(0), (len(corpus.ids), encoder.dim))
    else:
        table = contextual_table(encoder, [corpus.words(document) for document in range(len(corpus))])
    pieces = encoder.pieces(corpus.vocabulary.words) if settings.trains_encoder else None
    return replace(corpus.contextual_texts(table), pieces=pieces)


def train_run(
    settings: RunSettings, folder: Path, material: Material | None = None, quiet: bool = False
) -> list[dict[str, float]]:
    """Meta-train into a folder; a run that was killed goes on where it stood, a finished one is left as it is."""
    material = material or load_material(settings)
    if settings.model.head == "finetune":
        settings = replace(settings, model=replace(settings.model, classes=len(material.corpus.classes)))
    _claim_folder(folder, settings)
    train = material.sampler("train", settings.episode, settings.seed)
    validation = material.sampler("val", settings.episode, settings.seed)
    model = FewShotModel.initial(settings.model, material.texts.table.shape[1], settings.seed)
    if settings.model.trains_table:
        model = model.with_vectors(material.texts.table)
    if settings.training.pretraining_epochs:
        model = _pretrained(model, settings, material, folder, quiet)
    write_json(folder / CONFIG, {"format": FORMAT, "dim": material.texts.table.shape[1], **settings_to_dict(settings)})
    trained, history = meta_train(
        model,
        material.texts,
        train,
        validation,
        settings.training,
        load_checkpoint(folder, model.parameters),
        lambda state: save_checkpoint(folder, state),
        quiet,
        curve_samplers(material, settings),
    )
    save_pool(folder, material.corpus.vocabulary, train.training_pool)
    table = trained.parameters.pop(VECTORS, None)
    if table is not None:
        save_vectors(folder, table, train.training_pool)
    save_model(folder, trained)
    for place in (folder, folder / PRETRAINING):
        (place / CHECKPOINT).unlink(missing_ok=True)
    return history


def curve_samplers(material: Material, settings: RunSettings) -> dict[str, EpisodeSampler]:
    """Episodes of training classes and of test classes for a learning curve, if the settings want one.

    They have a seed of their own: the same for every run, and none of them is trained on.
    """
    parts = {"seen": "train", "unseen": "test"} if settings.training.curve_episodes else {}
    return {name: material.sampler(part, settings.episode, CURVE_SEED) for name, part in parts.items()}


def _pretrained(model: FewShotModel, settings: RunSettings, material: Material, folder: Path, quiet: bool) -> FewShotModel:
    """The model with an encoder that has read the texts of the training classes, by masked language modelling."""
    encoder = encoder_of(settings.model.vectors)
    owner = "representation" if settings.model.representation == "cls" else "vectors"
    if not encoder or not settings.model.trains_encoder:
        raise SettingError("Pre-training is for an encoder that is trained: use the representation cls, or --train-vectors.")
    split, labels = material.dataset.split, material.corpus.labels
    documents = {part: np.flatnonzero(np.isin(labels, getattr(split, part))) for part in ("train", "val", "test")}
    learner = MaskedLanguageModel(encoder, settings.seed)
    place = folder / PRETRAINING
    read = learner.train(
        {part: material.texts.select(chosen) for part, chosen in documents.items()},
        settings.training.pretraining_epochs,
        load_checkpoint(place, learner.parameters),
        lambda state: save_checkpoint(place, state),
        quiet,
    )
    return model.with_parameters({**model.parameters, **{f"{owner}.{name}": value for name, value in read.items()}})


def _claim_folder(folder: Path, settings: RunSettings) -> None:
    """An empty folder, or the same run begun before."""
    if (folder / MODEL).exists():
        raise ModelError(f"{folder} holds a finished run: choose another folder (--out), or remove it.")
    if (folder / CONFIG).exists() and run_settings(read_config(folder)) != settings:
        raise ModelError(f"{folder} holds a run of other settings: choose another folder (--out), or remove it.")


def run_settings(config: dict[str, Any]) -> RunSettings:
    """The settings in a config file."""
    return settings_from_dict(RunSettings, {name: value for name, value in config.items() if name not in ("format", "dim")})


def load_run(folder: Path) -> tuple[RunSettings, FewShotModel]:
    """The settings and the trained model of a finished run."""
    config = read_config(folder)
    settings = run_settings(config)
    return settings, load_model(folder, settings.model, config["dim"])


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Accuracy of each test episode, and what it was measured with."""

    accuracies: np.ndarray[Any, Any]
    queries: int
    seconds: float

    @property
    def score(self) -> Score:
        return Score.of(self.accuracies)


def evaluate_run(
    folder: Path,
    part: str = "test",
    episodes: int = 1000,
    seed: int | None = None,
    spec: EpisodeSpec | None = None,
    data: str | None = None,
    split: str | None = None,
    workers: int = 1,
    material: Material | None = None,
    quiet: bool = False,
) -> Evaluation:
    """Test a run on the classes of one part of its own data, or of other data in the same format."""
    settings, model = load_run(folder)
    if data:
        settings = replace(settings, data=data, split=split)
    material = material or load_material(settings)
    training = None if part == "train" else load_pool(folder, material.corpus.vocabulary)  # it counts the episode's classes
    sampler = material.sampler(part, spec or settings.episode, settings.seed if seed is None else seed, training)
    texts = material.texts
    if settings.model.trains_table:
        texts = replace(texts, table=load_vectors_over(folder, material.corpus.vocabulary, texts.table))
    start = time.perf_counter()
    fast = model.to_torch() if find_spec("torch") else model  # the compiled LSTM; NumPy gives the same, more slowly
    accuracies = evaluate(fast, texts, sampler, episodes, workers, quiet)
    return Evaluation(accuracies, sampler.queries_used, time.perf_counter() - start)


def evaluation_report(folder: Path, against: Path | None = None, **options: Any) -> dict[str, Any]:
    """The evaluation of a run as plain values; with `against`, also the paired difference to another run."""
    settings, _ = load_run(folder)
    shape = {name: options.pop(name) for name in ("way", "shot", "queries") if name in options}
    spec = replace(settings.episode, **{name: value for name, value in shape.items() if value is not None})
    seed = settings.seed if options.get("seed") is None else options["seed"]
    options |= {"seed": seed, "spec": spec}
    result = evaluate_run(folder, **options)
    report = {
        "run": str(folder),
        "accuracy": result.score.mean,
        "ci95": result.score.ci95,
        "episodes": result.score.episodes,
        "seconds": result.seconds,
        "way": spec.way,
        "shot": spec.shot,
        "queries": result.queries,
        "seed": seed,
        "part": options.get("part", "test"),
        "data": options.get("data") or settings.data,
    }
    if against:
        difference = paired_difference(result.accuracies, evaluate_run(against, **options).accuracies)
        report |= {"difference": difference.mean, "difference_ci95": difference.ci95}
    return report


def over_seeds(reports: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean accuracy and standard deviation over several runs."""
    accuracies = [report["accuracy"] for report in reports]
    return {"accuracy": float(np.mean(accuracies)), "deviation": float(np.std(accuracies, ddof=1)), "runs": len(accuracies)}
