"""Runs: train a model from settings into a folder, load it, and evaluate it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..data.corpus import Texts
from ..data.datasets import find_data
from ..data.episodes import EpisodeSampler, EpisodeSpec
from ..data.frequencies import SourcePool
from ..errors import HandfulWarning, ModelError, SettingError
from ..models.components import HEADS, REPRESENTATIONS
from ..models.few_shot import VECTOR_TABLE, FewShotModel
from ..models.settings import ModelSettings
from ..models.signatures import T_SIGNALS, variation
from ..models.storage import CONFIG, MODEL, RUN_FORMAT, load_model, read_config, save_model
from ..utils.files import write_json
from ..utils.paths import check_not_input
from ..utils.settings import settings_from_dict, settings_to_dict
from .checkpoints import (
    CHECKPOINT,
    HISTORY,
    PRETRAINING,
    VOCABULARY,
    WORD_VECTORS,
    load_checkpoint,
    load_pool,
    load_vectors_over,
    save_checkpoint,
    save_pool,
    save_vectors,
)
from .evaluation import Score, measure_episodes, paired_difference
from .inputs import ExperimentData, load_experiment_data, sentence_dim
from .pretraining import MaskedLanguageModel
from .settings import EPISODE_HELP, OPEN_OPTIONS, RunSettings
from .training import meta_train
from .vector_identity import (
    VectorIdentity,
    words_to_mark,
)

IDENTITY, PLUGINS, VARIATION = "word_vectors", "plugins", "signal_variation"  # in the config, next to the settings
POSITIONED = ("cnn", "attention", "attention-sentence")  # use a word's place relative to head and tail, as in the paper
VARIATION_EPISODES = 10  # to measure how much signals vary
NEARLY_CONSTANT = 0.01  # of the mean: a signal that varies less says nothing that a generator could learn from
CURVE_SEED = 1_000_000  # differs from that of any run


# Training


def train_run(
    settings: RunSettings, folder: Path, inputs: ExperimentData | None = None, quiet: bool = False
) -> list[dict[str, float]]:
    """Meta-train into a folder; an interrupted run is resumed, and a finished one is left unchanged."""
    inputs = inputs or load_experiment_data(settings)
    settings = replace(settings, model=_suited(settings.model, inputs))
    train = inputs.sampler("train", settings.episode.for_training, settings.seed)
    vectors = inputs.identity(words_to_mark(inputs.corpus.vocabulary, train.training_pool.counts))
    _claim_folder(folder, settings, vectors)
    validation = inputs.sampler("val", settings.episode.for_training, settings.seed)
    model = FewShotModel.initial(settings.model, vectors.dim, settings.seed)
    labels = inputs.corpus.labels
    documents = np.flatnonzero(np.isin(labels, inputs.dataset.split.train))
    pool = inputs.background or train.training_pool
    model = model.learn_from_texts(inputs.texts.select(documents), labels[documents], pool)
    if settings.model.trains_table:
        model = model.with_vectors(inputs.texts.table)
    if settings.training.pretraining_epochs:
        model = _pretrained(model, settings, inputs, folder, quiet)
    facts = {"format": RUN_FORMAT, IDENTITY: asdict(vectors), VARIATION: signal_variation(model, inputs.texts, train)}
    write_json(folder / CONFIG, {**facts, **_plugins(settings.model), **settings_to_dict(settings)})
    trained, history = meta_train(
        model,
        inputs.texts,
        train,
        validation,
        settings.training,
        load_checkpoint(folder, model.parameters),
        lambda state: save_checkpoint(folder, state),
        quiet,
        curve_samplers(inputs, settings),
    )
    save_pool(folder, inputs.corpus.vocabulary, train.training_pool)
    table = trained.parameters.pop(VECTOR_TABLE, None)
    if table is not None:
        save_vectors(folder, table, train.training_pool)
    save_model(folder, trained)
    for place in (folder, folder / PRETRAINING):
        (place / CHECKPOINT).unlink(missing_ok=True)
    return history


def _suited(settings: ModelSettings, inputs: ExperimentData) -> ModelSettings:
    """The settings with what depends on the data: its classes, the length of vectors of whole texts, and head and tail."""
    if settings.head == "finetune":
        classes, outputs = len(inputs.corpus.classes), tuple(inputs.dataset.split.train)
        settings = replace(settings, finetune=replace(settings.finetune, classes=classes, outputs=outputs))
    if settings.positions is None:
        settings = replace(settings, positions=settings.representation in POSITIONED and inputs.corpus.positions.shape[1] > 0)
    return replace(settings, vectors=replace(settings.vectors, sentence_dim=sentence_dim(inputs.texts)))


def signal_variation(model: FewShotModel, texts: Texts, sampler: EpisodeSampler) -> dict[str, float]:
    """How much t varies over the words of an episode, as a share of its mean; warns if it hardly does."""
    columns = {name: column for column, name in enumerate(model.representation.signals) if name in T_SIGNALS}
    if not columns:
        return {}
    episodes = [model.prepare(texts, [sampler[index]]).batch.signals for index in range(VARIATION_EPISODES)]
    shares = {name: float(np.mean([variation(words[:, i]) for words in episodes])) for name, i in columns.items()}
    for name, share in shares.items():
        if share < NEARLY_CONSTANT:
            warnings.warn(
                f"The signal {name} is nearly constant (its deviation is {share:.2%} of its mean), so the attention learns "
                "nothing from it: lower --penalty, use longer vectors (--length) or --stop relative, or change --estimator.",
                HandfulWarning,
                stacklevel=3,
            )
    return shares


def curve_samplers(inputs: ExperimentData, settings: RunSettings) -> dict[str, EpisodeSampler]:
    """Episodes of training and of test classes for a learning curve, if the settings request one.

    They have their own seed, the same for every run, and are never used for training.
    """
    parts = {"seen": "train", "unseen": "test"} if settings.training.curve_episodes else {}
    return {name: inputs.sampler(part, settings.episode.for_training, CURVE_SEED) for name, part in parts.items()}


def _pretrained(model: FewShotModel, settings: RunSettings, inputs: ExperimentData, folder: Path, quiet: bool) -> FewShotModel:
    """The model with an encoder pre-trained on the texts of the training classes, by masked language modelling."""
    encoder = settings.model.vectors.encoder
    owner = "representation" if settings.model.representation == "cls" else "vectors"
    if not encoder or not settings.model.trains_encoder:
        raise SettingError("Pre-training works only if an encoder is trained: use --representation cls, or --train-vectors.")
    split = inputs.dataset.split
    labels = inputs.corpus.labels
    documents = {part: np.flatnonzero(np.isin(labels, getattr(split, part))) for part in ("train", "val", "test")}
    learner = MaskedLanguageModel(encoder, settings.seed)
    place = folder / PRETRAINING
    read = learner.train(
        {part: inputs.texts.select(chosen) for part, chosen in documents.items()},
        settings.training.pretraining_epochs,
        load_checkpoint(place, learner.parameters),
        lambda state: save_checkpoint(place, state),
        quiet,
    )
    return model.with_parameters({**model.parameters, **{f"{owner}.{name}": value for name, value in read.items()}})


def _claim_folder(folder: Path, settings: RunSettings, vectors: VectorIdentity) -> None:
    """Raise an error unless the folder is empty or has an unfinished run with the same settings, and has no input in it."""
    for name in (CONFIG, MODEL, VOCABULARY, WORD_VECTORS, HISTORY, CHECKPOINT):
        check_not_input(folder / name, [*find_data(settings.data), settings.split])
    remedy = "choose another folder (--out), or remove it"
    if (folder / MODEL).exists():
        raise ModelError(f"{folder} contains a finished run: {remedy}.")
    if (folder / CONFIG).exists():
        config = _read_run_config(folder)
        if run_settings(config) != settings:
            raise ModelError(f"{folder} contains a run with other settings: {remedy}.")
        if not _vector_identity(folder, config).agrees(vectors):
            raise ModelError(f"{folder} contains a run with other word vectors: {remedy}.")


# A finished run


def run_settings(config: Mapping[str, Any]) -> RunSettings:
    """The settings in a config file."""
    about = ("format", IDENTITY, PLUGINS, VARIATION)
    return settings_from_dict(RunSettings, {name: value for name, value in config.items() if name not in about})


def _plugins(settings: ModelSettings) -> dict[str, dict[str, str]]:
    """The packages of the parts that are not Handful's own, for the config: empty if there is none."""
    parts = ((REPRESENTATIONS, settings.representation), (HEADS, settings.head))
    packages = {components.kind: components.package(name) for components, name in parts if components.package(name)}
    return {PLUGINS: packages} if packages else {}


def _read_run_config(folder: Path) -> dict[str, Any]:
    """The config of a run, whose plugins are installed."""
    config = read_config(folder, RUN_FORMAT)
    packages, model = (dict(part) if isinstance(part := config.get(name), dict) else {} for name in (PLUGINS, "model"))
    for components in (REPRESENTATIONS, HEADS):
        name, package = model.get(components.kind), packages.get(components.kind)
        if package and name not in components:
            raise ModelError(
                f"{folder} uses the {components.kind} {name!r} of the package {package}, which is not installed: "
                "install that package."
            )
    return config


def recorded_variation(folder: Path) -> dict[str, float]:
    """How much the signals of a run vary, as recorded when it was trained; empty if it has no t."""
    shares: dict[str, float] = read_config(folder, RUN_FORMAT).get(VARIATION, {})
    return shares


def _vector_identity(folder: Path, config: Mapping[str, Any]) -> VectorIdentity:
    try:
        return VectorIdentity.from_json(config[IDENTITY])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG} is damaged ({error!r}): train it again.") from error


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A finished run, loaded from its folder."""

    folder: Path
    settings: RunSettings
    model: FewShotModel  # with NumPy parameters
    vectors: VectorIdentity

    def on(self, data: str | None, split: str | None) -> LoadedRun:
        """The same run on other data, if given."""
        return replace(self, settings=replace(self.settings, data=data, split=split)) if data else self

    def load_data(self) -> ExperimentData:
        """Load the data of its settings, with its word vectors."""
        inputs = load_experiment_data(self.settings)
        self.check_vectors(inputs)
        return inputs

    def check_vectors(self, inputs: ExperimentData) -> None:
        """Raise a ModelError unless the word vectors are those that the run was trained with."""
        if not self.vectors.agrees(inputs.identity(list(self.vectors.marks))):
            raise ModelError(
                f"{self.folder} was trained with word vectors other than the current ones for "
                f"{self.settings.model.vectors.names!r}: restore them, or pass vectors computed in Python with "
                "evaluate_run(run, inputs=load_experiment_data(settings, encode=...))."
            )

    def texts(self, inputs: ExperimentData) -> Texts:
        """The documents with their vectors, including those that the run trained."""
        if not self.settings.model.trains_table:
            return inputs.texts
        return replace(inputs.texts, table=load_vectors_over(self.folder, inputs.corpus.vocabulary, inputs.texts.table))

    def pool(self, inputs: ExperimentData) -> SourcePool:
        """The statistics of the training examples, as counted by the run."""
        return load_pool(self.folder, inputs.corpus.vocabulary)


def load_run(folder: Path) -> LoadedRun:
    """Load a finished run: its settings, its trained model, and the identity of its word vectors."""
    config = _read_run_config(folder)
    settings = run_settings(config)
    vectors = _vector_identity(folder, config)
    return LoadedRun(folder, settings, load_model(folder, settings.model, vectors.dim), vectors)


# Evaluation


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The accuracy of each test episode, and how it was measured.

    With queries of no class, `areas` has the area under the ROC curve of the largest score: 1 if it tells all of them.
    """

    accuracies: np.ndarray[Any, Any]
    queries: int
    seconds: float
    areas: np.ndarray[Any, Any] | None = None

    @property
    def score(self) -> Score:
        return Score.of(self.accuracies)

    @property
    def area(self) -> Score | None:
        return None if self.areas is None else Score.of(self.areas)


def evaluate_run(
    run: Path | LoadedRun,
    part: str = "test",
    episodes: int = 1000,
    seed: int | None = None,
    spec: EpisodeSpec | None = None,
    data: str | None = None,
    split: str | None = None,
    workers: int = 1,
    inputs: ExperimentData | None = None,
    quiet: bool = False,
) -> Evaluation:
    """Test a run, given as a folder or loaded, on the classes of one part of its own data or of other data."""
    run = (run if isinstance(run, LoadedRun) else load_run(run)).on(data, split)
    spec = spec or run.settings.episode
    run = replace(run, settings=replace(run.settings, episode=spec))
    if inputs:
        run.check_vectors(inputs)
    else:
        inputs = run.load_data()
    training = None if part == "train" else run.pool(inputs)  # the run's pool would count the episode's own classes
    sampler = inputs.sampler(part, spec, run.settings.seed if seed is None else seed, training)
    texts = run.texts(inputs)
    start = time.perf_counter()
    fast = run.model.to_torch() if find_spec("torch") else run.model  # its compiled LSTM is faster than NumPy
    accuracies, areas = measure_episodes(fast, texts, sampler, episodes, workers, quiet).T
    return Evaluation(accuracies, sampler.queries_used, time.perf_counter() - start, areas if spec.none_share else None)


def evaluation_report(run: LoadedRun, against: LoadedRun | None = None, **options: Any) -> dict[str, Any]:
    """The evaluation of a run as plain values; with `against`, including the paired difference from another run."""
    settings = run.settings
    shape = {name: options.pop(name) for name in EPISODE_HELP if name in options}
    spec = replace(settings.episode, **{name: value for name, value in shape.items() if value is not None})
    seed = settings.seed if options.get("seed") is None else options["seed"]
    options |= {"seed": seed, "spec": spec}
    result = evaluate_run(run, **options)
    report = {
        "run": str(run.folder),
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
        **{name: value for name, value in asdict(spec).items() if name in OPEN_OPTIONS and value},
    }
    if result.area:
        report |= {"auroc": result.area.mean, "auroc_ci95": result.area.ci95}
    if against:
        difference = paired_difference(result.accuracies, evaluate_run(against, **options).accuracies)
        report |= {"difference": difference.mean, "difference_ci95": difference.ci95}
    return report


def over_seeds(reports: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The mean and standard deviation of the accuracy over several runs."""
    accuracies = [report["accuracy"] for report in reports]
    return {"accuracy": float(np.mean(accuracies)), "deviation": float(np.std(accuracies, ddof=1)), "runs": len(accuracies)}
