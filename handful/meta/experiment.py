"""Runs: train a model from settings into a folder, load it, and evaluate it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..data.corpus import Corpus, Texts
from ..data.datasets import Dataset, find_data, load_dataset
from ..data.episodes import EpisodeSampler, EpisodeSpec
from ..data.frequencies import SourcePool, background_pool
from ..data.open_episodes import OpenSampler, name_documents
from ..embeddings import load_vectors
from ..embeddings.contextual import Encoder, contextual_table
from ..embeddings.encoders import find_encoder
from ..embeddings.vector_cache import CachedEncoder
from ..errors import DataError, HandfulWarning, ModelError, SettingError
from ..models.components import HEADS, REPRESENTATIONS
from ..models.few_shot import VECTOR_TABLE, FewShotModel
from ..models.sentence_encoder import SentenceEncoder
from ..models.settings import ModelSettings
from ..models.signatures import T_SIGNALS, variation
from ..models.storage import CONFIG, MODEL, RUN_FORMAT, load_model, read_config, save_model
from ..utils.files import write_json
from ..utils.functional import Floats, Ints
from ..utils.paths import cache_folder, check_not_input
from ..utils.settings import option, settings_from_dict, settings_from_flat, settings_to_dict
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
from .pretraining import MaskedLanguageModel
from .training import TrainingSettings, meta_train
from .vector_identity import (
    SENTENCE_TOLERANCE,
    TOLERANCE,
    Marking,
    VectorIdentity,
    mark_by_table,
    mark_by_text,
    words_to_mark,
)

IDENTITY, PLUGINS, VARIATION = "word_vectors", "plugins", "signal_variation"  # in the config, next to the settings
POSITIONED = ("cnn", "attention", "attention-sentence")  # use a word's place relative to head and tail, as in the paper
VARIATION_EPISODES = 10  # to measure how much signals vary
NEARLY_CONSTANT = 0.01  # of the mean: a signal that varies less says nothing that a generator could learn from
EPISODE_HELP = {
    "way": "Classes per episode.",
    "shot": "Labelled examples per class.",
    "queries": "Queries per class.",
    "class_names": "Add the words of each class's name to its examples.",
    "unlabelled": "Number of further texts per class to learn from without their labels; the head must be able to.",
    "transductive": "Also learn from the queries, without their labels; the head must be able to.",
    "unbalanced": "Test with queries whose classes are unequally frequent.",
    "none_share": "Share of the test queries that belong to no class of the episode, from 0 to below 1.",
}
OPEN_OPTIONS = ("class_names", "unlabelled", "transductive", "unbalanced", "none_share")  # of episodes, reported if set
CURVE_SEED = 1_000_000  # differs from that of any run


@dataclass(frozen=True)
class ReadingSettings:
    """How to read a data file, if that is not obvious."""

    form: str | None = option(
        None, "Format of the data file, if its ending does not tell: csv, tsv, jsonl, parquet, xlsx.", name="format"
    )
    text: str | None = option(None, "Column of the texts in the data file, if it is not obvious.")
    label: str | None = option(None, "Column of the labels in the data file, if it is not obvious.")
    delimiter: str | None = option(None, "Delimiter of a CSV file, if it is not obvious.")
    encoding: str | None = option(None, "Encoding of the data file, such as windows-1252; UTF-8 by default.")


@dataclass(frozen=True)
class RunSettings:
    """All settings of a run: the same settings give the same numbers."""

    data: str = option(
        "demo",
        "Data: demo, requests, a file (CSV, TSV, JSON, Parquet, Excel), a name in the data folder, or hf:NAME on the hub.",
    )
    split: str | None = option(None, "JSON file with the classes of train, val and test, or the name of a packaged split.")
    skip_empty: bool = option(False, "Skip texts without words instead of stopping at them.")
    reading: ReadingSettings = field(default_factory=ReadingSettings)
    seed: int = option(0, "Seed for episodes, initial weights and dropout.")
    episode: EpisodeSpec = field(default_factory=EpisodeSpec, metadata={"about": EPISODE_HELP})
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


def settings_from_options(options: Mapping[str, Any]) -> RunSettings:
    """The nested settings of a run from flat options, with the names and values of the command line and presets."""
    return settings_from_flat(RunSettings, options)


@dataclass(frozen=True, eq=False)
class ExperimentData:
    """A data set with word vectors, ready for episodes."""

    dataset: Dataset
    corpus: Corpus  # without the words that are too rare or have no vector
    texts: Texts
    background: SourcePool | None  # replaces the source pool, if the model uses it
    mark: Marking  # identifies the vectors of words
    names: Ints  # (classes,): the document with the words of each class's name, -1 if there is none
    tolerance: float = TOLERANCE  # for telling the vectors from others
    mark_sentences: Marking | None = None  # identifies the vectors of whole texts, if they stand next to those of words

    def sampler(self, part: str, spec: EpisodeSpec, seed: int, training: SourcePool | None = None) -> EpisodeSampler:
        """Episodes from one part of the split; `training`, if given, replaces the statistics of the training examples."""
        split = self.dataset.split
        pool = self.background or training
        if spec.class_names and not (self.names >= 0).any():
            raise DataError(
                "No class has a name that reads as words: remove --class-names, or name the classes; in Python, load the data "
                "with class_names too."
            )
        arguments = self.corpus, getattr(split, part), split.train, spec, seed, pool, training
        return OpenSampler(self.names, *arguments) if spec.is_open else EpisodeSampler(*arguments)

    def identity(self, words: Sequence[str]) -> VectorIdentity:
        """The identity of the word vectors, judged by these words."""
        sentences = None
        if self.mark_sentences:
            sentences = VectorIdentity(_sentence_dim(self.texts), self.mark_sentences(words), SENTENCE_TOLERANCE)
        return VectorIdentity(self.texts.table.shape[1], self.mark(words), self.tolerance, sentences)


def _sentence_dim(texts: Texts) -> int:
    """Length of the vectors of whole texts next to those of words; 0 if there are none."""
    return 0 if texts.sentences is None else texts.sentences.shape[1]


def load_data(settings: RunSettings) -> Dataset:
    """The data set of a run."""
    return load_dataset(
        settings.data, settings.split, settings.model.max_words, settings.skip_empty, **asdict(settings.reading)
    )


def load_experiment_data(settings: RunSettings, encode: Callable[[Sequence[str]], Floats] | None = None) -> ExperimentData:
    """The data and vectors of a run; `encode`, if given, replaces the tables and computes a vector for each word of a text.

    With the representations `sentence` and `attention-sentence` it replaces the encoder, and computes a vector for each of
    several texts.
    """
    dataset = load_data(settings)
    words, names = name_documents(dataset.corpus.classes, settings.episode.class_names)
    frequent = dataset.corpus.frequent(settings.model.min_count)
    corpus, texts, mark, mark_sentences = _with_vectors(frequent.with_documents(words), settings.model, encode)
    names = np.where(names >= 0, len(dataset.corpus) + names, -1)
    names[texts.lengths[names] == 0] = -1  # no word of the name has a vector
    wanted = settings.model.attention.word_frequencies == "background"
    return ExperimentData(
        dataset,
        corpus.first(len(dataset.corpus)),
        texts,
        background_pool(corpus.vocabulary) if wanted else None,
        mark,
        names,
        TOLERANCE if settings.model.vectors.words else SENTENCE_TOLERANCE,
        mark_sentences,
    )


def _with_vectors(
    corpus: Corpus, settings: ModelSettings, encode: Callable[[Sequence[str]], Floats] | None
) -> tuple[Corpus, Texts, Marking, Marking | None]:
    """A corpus with vectors of its words, of its whole texts, or of both; the last marking is for texts next to words."""
    name = settings.vectors.sentence_encoder
    if not name:
        return *_with_word_vectors(corpus, settings, encode), None
    encoder = _sentence_encoder(name, encode)
    sentences = encoder.read(" ".join(corpus.words(document)) for document in range(len(corpus))).vectors
    mark = mark_by_text(lambda words: encoder.read(words).vectors)
    if not settings.vectors.words:
        return corpus, corpus.sentence_texts(sentences), mark, None
    known, texts, mark_words = _with_word_vectors(corpus, settings, None)
    return known, replace(texts, sentences=sentences), mark_words, mark


def _with_word_vectors(
    corpus: Corpus, settings: ModelSettings, encode: Callable[[Sequence[str]], Floats] | None
) -> tuple[Corpus, Texts, Marking]:
    """A corpus with word vectors: one per distinct word or, with `contextual:ENCODER`, one per occurrence."""
    encoder = settings.vectors.encoder
    if encode:
        vectors = [encode(corpus.words(document)) for document in range(len(corpus))]
        return corpus, corpus.contextual_texts(np.concatenate(vectors).astype(np.float32)), mark_by_text(encode)
    if encoder:
        return corpus, _contextual(corpus, settings, encoder), mark_by_text(lambda words: encoder.encode([words])[0])
    tables = load_vectors(settings.vectors.words, rescaled=settings.vectors.length > 0)
    length = np.float32(settings.vectors.length or 1)
    table = length * tables.lookup(corpus.vocabulary.words)
    known = corpus.keep_words((table != 0).any(axis=1))
    return known, known.texts(table), mark_by_table(corpus.vocabulary, table, lambda words: length * tables.lookup(words))


def _sentence_encoder(name: str, encode: Callable[[Sequence[str]], Floats] | None) -> SentenceEncoder:
    """A sentence encoder by its name, whose vectors are kept in the cache folder, or a function in its place."""
    if encode:
        return SentenceEncoder(name, SimpleNamespace(encode=encode), named=False)
    file = cache_folder() / "sentences.sqlite"
    return SentenceEncoder(name, CachedEncoder(find_encoder(name), most=1, file=file), named=True)


def _contextual(corpus: Corpus, settings: ModelSettings, encoder: Encoder) -> Texts:
    if settings.representation == "cls":  # it reads the words itself, so vectors are not needed
        table = np.broadcast_to(np.float32(0), (len(corpus.ids), encoder.dim))
    else:
        table = contextual_table(encoder, [corpus.words(document) for document in range(len(corpus))])
    pieces = encoder.pieces(corpus.vocabulary.words) if settings.trains_encoder else None
    return replace(corpus.contextual_texts(table), pieces=pieces)


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
    return replace(settings, vectors=replace(settings.vectors, sentence_dim=_sentence_dim(inputs.texts)))


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
