"""A few-shot model: a representation and a head with their meta-learned parameters. Only here do names become objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from .attention import AttentionGenerator, Parameters
from .corpus import LONGEST, Texts, join_texts
from .embeddings.contextual import Encoder, encoder_of
from .episodes import Episode, SourcePool
from .errors import MissingExtraError, SettingError
from .finetuning import Finetune
from .functional import Array, Floats, Ints, as_like, cross_entropy, one_hot
from .heads import (
    Centroid,
    Distance,
    Head,
    Induction,
    Logistic,
    Nearest,
    Prototype,
    RefinedRidge,
    Ridge,
    Routing,
    Scorer,
    UniversalRidge,
    part_of,
)
from .maml import Maml
from .parallel import available_threads
from .representations import (
    ENTITIES,
    POSITION_NUMBERS,
    Attention,
    Batch,
    Cnn,
    FirstToken,
    Idf,
    Mean,
    Representation,
    SelfAttentive,
    WeightedBag,
)
from .signatures import SignatureSettings, measure_signals


@dataclass(frozen=True)
class ModelSettings:
    """Everything that decides what a model computes, but for its parameters."""

    representation: Literal["mean", "idf", "cnn", "lstm", "cls", "attention"] = "attention"
    head: Literal[
        "ridge",
        "universal",
        "refined",
        "logistic",
        "nearest",
        "centroid",
        "prototype",
        "routing",
        "induction",
        "maml",
        "finetune",
    ] = "ridge"
    first_order: bool = False  # maml: leave second derivatives out
    inner_steps: int = 10  # maml
    inner_rate: float = 0.1  # maml
    hidden: int = 300  # maml: ReLU units; 0 for a softmax layer alone
    classes: int = 0  # finetune: of the training corpus; a run fills it in
    distance: Distance = "euclidean"  # of nearest, centroid, prototype and routing
    signals: tuple[str, ...] = ("s", "t")
    network: Literal["bilstm", "mlp"] = "bilstm"
    embeddings: bool = False
    rarity: float = 0.0  # the share of the attention that goes by how rare words are alone; needs the signal f
    positions: bool = False  # show attention and cnn where a word stands from head and tail, for relations
    signature: SignatureSettings = field(default_factory=SignatureSettings)
    vectors: str = "wordllama"
    length: float = 1.0  # of a frequent word's vector in the tables; networks learn better from longer ones
    train_vectors: bool = False  # fine-tune the vectors of the training words, or the encoder they come from, too
    pool: Literal["source", "background"] = "source"  # whose word frequencies s(x) is made of
    longest: int = LONGEST

    @property
    def trains_encoder(self) -> bool:
        """Whether an encoder is trained, not a table."""
        return self.representation == "cls" or (self.train_vectors and encoder_of(self.vectors) is not None)

    @property
    def trains_table(self) -> bool:
        """Whether a table of word vectors is trained."""
        return self.train_vectors and not self.trains_encoder

    def __post_init__(self) -> None:
        if self.representation not in REPRESENTATIONS:
            raise SettingError(
                f"There is no representation {self.representation!r}: choose one of {', '.join(REPRESENTATIONS)}."
            )
        if self.head not in HEADS:
            raise SettingError(f"There is no head {self.head!r}: choose one of {', '.join(HEADS)}.")
        if self.distance not in ("euclidean", "squared", "cosine"):
            raise SettingError(f"There is no distance {self.distance!r}: choose euclidean, squared or cosine.")
        if self.network not in ("bilstm", "mlp"):
            raise SettingError(f"There is no network {self.network!r}: choose bilstm or mlp.")
        if not self.signals or not set(self.signals) <= {"s", "t", "f", "u", "r"}:
            raise SettingError(f"The signals {', '.join(self.signals) or '(none)'} are not some of s, t, f, u and r.")
        if self.pool not in ("source", "background"):
            raise SettingError(f"There is no pool {self.pool!r}: choose source or background.")
        if self.representation == "cls" and (self.train_vectors or not encoder_of(self.vectors)):
            raise SettingError(
                "The representation cls is an encoder, trained as such: name it with --vectors contextual:ENCODER, "
                "without --train-vectors."
            )
        if self.inner_steps < 1 or not self.inner_rate > 0 or self.hidden < 0:
            raise SettingError("MAML takes 1 inner step at least, of a rate above 0, and no fewer than 0 hidden units.")
        if not 0 < self.length < float("inf"):
            raise SettingError(f"A vector's length of {self.length} is nothing to learn from: choose one above 0 (--length).")
        if not 0 <= self.rarity <= 1 or (self.rarity and "f" not in self.signals):
            raise SettingError(f"rarity is {self.rarity}: it is a share from 0 to 1, of attention that sees the signal f.")
        if self.longest < 1:
            raise SettingError(f"A text cut after {self.longest} words has none: keep 1 at least (--longest).")


REPRESENTATIONS: dict[str, Callable[[ModelSettings], Representation]] = {
    "mean": lambda settings: Mean(),
    "idf": lambda settings: Idf(),
    "cnn": lambda settings: Cnn(positions=settings.positions * ENTITIES * POSITION_NUMBERS),
    "lstm": lambda settings: SelfAttentive(),
    "cls": lambda settings: FirstToken(encoder_of(settings.vectors) or Encoder()),
    "attention": lambda settings: Attention(
        AttentionGenerator(
            settings.signals, settings.network, settings.embeddings, settings.positions * ENTITIES * POSITION_NUMBERS
        ),
        settings.rarity,
    ),
}
HEADS: dict[str, Callable[[ModelSettings], Head | Maml | Finetune]] = {
    "ridge": lambda settings: Ridge(),
    "universal": lambda settings: UniversalRidge(),
    "refined": lambda settings: RefinedRidge(),
    "logistic": lambda settings: Logistic(),
    "nearest": lambda settings: Nearest(settings.distance),
    "centroid": lambda settings: Centroid(settings.distance),
    "prototype": lambda settings: Prototype(settings.distance),
    "maml": lambda settings: Maml(settings.first_order, settings.inner_steps, settings.inner_rate, settings.hidden),
    "finetune": lambda settings: Finetune(settings.classes),
    "routing": lambda settings: Routing(settings.distance),
    "induction": lambda settings: Induction(),
}
VECTORS = "vectors.table"  # the name of a table that is trained
AT_ONCE = 10  # episodes of one pass: more gains no speed and costs memory
ADAPTING = (Maml, Finetune)  # heads that adapt the representation too: they want documents where others want vectors


@dataclass(frozen=True, eq=False)
class EpisodeBatch:
    """Episodes of one shape, ready for a pass: support documents first, then queries, episode after episode."""

    batch: Batch  # signals are NumPy
    support_targets: Floats  # (episodes, examples, classes), one-hot
    query_targets: Floats  # (episodes, queries, classes), one-hot
    classes: Ints  # (episodes, examples + queries): of each document, in the corpus


class FewShotModel:
    """`model.fit(support, ...) -> Task`, `task.score(texts) -> logits`. Holds no state of any task, so it serves any number.

    Parameters are NumPy arrays by name for using the model, torch tensors for training it (`to_torch`); formulas are the same.
    """

    def __init__(self, settings: ModelSettings, parameters: Parameters) -> None:
        self.settings, self.parameters = settings, dict(parameters)
        self.representation = REPRESENTATIONS[settings.representation](settings)
        self.head = HEADS[settings.head](settings)
        self._encoder = encoder_of(settings.vectors) if settings.train_vectors else None
        self._array: Callable[[np.ndarray[Any, Any]], Array] = np.asarray

    @classmethod
    def initial(cls, settings: ModelSettings, dim: int, seed: int = 0) -> FewShotModel:
        """An untrained model for word vectors of `dim` numbers."""
        model, rng = cls(settings, {}), np.random.default_rng([seed, 0])
        width = model.representation.width(dim)
        parts = {"representation": model.representation.initial(rng, dim), "head": model.head.initial(rng, width)}
        if model._encoder:
            parts["vectors"] = model._encoder.initial()
        return cls(settings, {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()})

    def with_parameters(self, parameters: Mapping[str, Array]) -> FewShotModel:
        """The same model with other parameters of the same kind."""
        model = FewShotModel(self.settings, parameters)
        model._array = self._array
        return model

    def to_torch(self) -> FewShotModel:
        """A copy that computes with torch."""
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("Training", "train") from error
        model = self.with_parameters({name: torch.tensor(np.asarray(value)) for name, value in self.parameters.items()})
        model._array = torch.from_numpy
        return model

    def to_numpy(self) -> FewShotModel:
        """A copy that computes with NumPy."""
        return FewShotModel(self.settings, {name: np.asarray(value).copy() for name, value in self.parameters.items()})

    @property
    def at_once(self) -> int:
        """How many episodes one pass can take: those of an encoder that is trained would not fit memory together."""
        return 1 if self.settings.trains_encoder else AT_ONCE

    @property
    def threads(self) -> int:
        """Threads that torch can use well: an encoder all of them, small matrices one."""
        return available_threads() if self.settings.trains_encoder else 1

    def represent(self, batch: Batch, noise: np.random.Generator | None = None) -> Array:
        """φ of each document: (documents, dim)."""
        return self.representation(part_of(self.parameters, "representation"), self._arrays(batch), noise)

    def _arrays(self, batch: Batch) -> Batch:
        texts, signals = batch.texts, self._array(batch.signals)
        if self._encoder:
            table = as_like(self._encoder.word_vectors(texts, part_of(self.parameters, "vectors")), signals)
            texts = replace(texts, table=table, rows=np.arange(len(texts.ids)))
        elif VECTORS in self.parameters:
            texts = replace(texts, table=self.parameters[VECTORS])
        else:
            texts = texts.gathered()
        return replace(batch, texts=texts, signals=signals)

    def with_vectors(self, table: Floats) -> FewShotModel:
        """The model with the table of word vectors as one more parameter, to be trained; statistics keep the old one."""
        return self.with_parameters({**self.parameters, VECTORS: table.copy()})

    def weights(self, batch: Batch) -> np.ndarray[Any, Any]:
        """The weight of each word in φ: (words,)."""
        if not isinstance(self.representation, WeightedBag):
            raise SettingError(
                f"The representation {self.settings.representation} does not weigh words: use mean, idf or attention."
            )
        return np.asarray(self.representation.weights(part_of(self.parameters, "representation"), self._arrays(batch)))

    def learn(self, support: Batch, targets: Floats, noise: np.random.Generator | None = None) -> Callable[[Batch], Array]:
        """Learn tasks from their support documents, one task after the other, with one-hot targets (tasks, examples, classes).

        What comes back scores the documents of one task after the other: (tasks, documents, classes).
        """
        tasks = len(targets)
        if isinstance(self.head, ADAPTING):
            if self._array is np.asarray:
                score = self.to_torch().learn(support, targets)
                return lambda queries: np.asarray(score(queries))
            adapted = self.head.adapt(self.representation, self.parameters, self._arrays(support), self._array(targets), noise)
            return lambda queries: adapted(self._arrays(queries))
        scorer = self._fit_head(self._stack(self.represent(support, noise), tasks), targets, noise)
        return lambda queries: scorer(self._stack(self.represent(queries, noise), tasks))

    def _fit_head(self, vectors: Array, targets: Floats, noise: np.random.Generator | None) -> Scorer:
        assert not isinstance(self.head, ADAPTING)  # noqa: S101 - for the type checker: learn() has seen to it
        return self.head.fit(part_of(self.parameters, "head"), vectors, self._array(targets), noise)

    @staticmethod
    def _stack(vectors: Array, tasks: int) -> Array:
        return vectors.reshape(tasks, -1, vectors.shape[-1])  # (tasks, documents, dim)

    def fit(
        self, support: Texts, labels: Ints, pool: SourcePool, classes: int | None = None, training: SourcePool | None = None
    ) -> Task:
        """Learn a task from a few labelled texts; labels are 0, 1, ... `classes` - 1, any number of each."""
        return Task(self, support, labels, classes or int(labels.max()) + 1, pool, training or pool)

    # Many episodes in one pass

    def prepare(self, texts: Texts, episodes: Sequence[Episode]) -> EpisodeBatch:
        """The words of the episodes (of one shape) with their statistics: all that does not depend on the parameters."""
        parts, signals = [], []
        for episode in episodes:
            part = texts.select(np.concatenate([episode.support, episode.query]))
            support = part.select(np.arange(len(episode.support)))
            task = self.fit_statistics(support, episode.support_labels, len(episode.classes), episode.pool, episode.training)
            parts.append(part)
            signals.append(task(part))
        way = len(episodes[0].classes)
        return EpisodeBatch(
            Batch(join_texts(parts), np.concatenate(signals)),
            np.stack([one_hot(episode.support_labels, way) for episode in episodes]),
            np.stack([one_hot(episode.query_labels, way) for episode in episodes]),
            np.stack([e.classes[np.concatenate([e.support_labels, e.query_labels])] for e in episodes]),
        )

    def fit_statistics(
        self, support: Texts, labels: Ints, classes: int, pool: SourcePool, training: SourcePool
    ) -> Callable[[Texts], Floats]:
        """What the support set and the pools decide about words: a function from texts to signals (words, signals)."""
        names, settings = self.representation.signals, self.settings.signature
        return lambda texts: measure_signals(names, support, labels, classes, pool, training, texts, settings)

    def logits(self, prepared: EpisodeBatch, noise: np.random.Generator | None = None) -> Array:
        """Logits of every query: (episodes, queries, classes)."""
        targets = prepared.support_targets
        episodes, examples, _ = targets.shape
        if isinstance(self.head, ADAPTING):
            documents = np.arange(len(prepared.batch.texts)).reshape(episodes, -1)  # (episodes, examples + queries)
            support, queries = documents[:, :examples].ravel(), documents[:, examples:].ravel()
            return self.learn(prepared.batch.select(support), targets, noise)(prepared.batch.select(queries))
        vectors = self._stack(self.represent(prepared.batch, noise), episodes)  # one pass over support and queries
        return self._fit_head(vectors[:, :examples], targets, noise)(vectors[:, examples:])

    def loss(self, prepared: EpisodeBatch, noise: np.random.Generator | None = None) -> tuple[Array, float]:
        """What training lowers, and the accuracy: on the queries of the episodes or, in pre-training, over all classes."""
        if isinstance(self.head, Finetune):
            logits = self.head.class_logits(part_of(self.parameters, "head"), self.represent(prepared.batch, noise))
            targets = one_hot(prepared.classes.ravel(), self.head.classes)
        else:
            logits, targets = self.logits(prepared, noise), prepared.query_targets
        right = np.asarray(logits.detach()).argmax(-1) == targets.argmax(-1)
        return cross_entropy(logits, self._array(targets)), float(right.mean())


class Task:
    """What one support set decided: the statistics of words, and the head's weights."""

    def __init__(
        self, model: FewShotModel, support: Texts, labels: Ints, classes: int, pool: SourcePool, training: SourcePool
    ) -> None:
        self.model = model
        self._signals = model.fit_statistics(support, labels, classes, pool, training)
        self._score = model.learn(self.batch(support), one_hot(labels, classes)[None])

    def batch(self, texts: Texts) -> Batch:
        """Texts with the statistics of their words in this task."""
        return Batch(texts, self._signals(texts))

    def weights(self, texts: Texts) -> np.ndarray[Any, Any]:
        """The weight of each word: (words,)."""
        return self.model.weights(self.batch(texts))

    def score(self, texts: Texts) -> Array:
        """Logits: (documents, classes)."""
        return self._score(self.batch(texts))[0]
