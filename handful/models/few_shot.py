"""A few-shot model: a representation and a head with meta-learned parameters. Only this module turns names into objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.corpus import Texts, join_texts
from ..data.episodes import Episode
from ..data.frequencies import SourcePool
from ..errors import MissingExtraError, SettingError
from ..utils.functional import Array, Floats, Ints, as_like, cross_entropy, one_hot, squared_error
from ..utils.parallel import available_threads
from .attention import Parameters
from .components import HEADS, REPRESENTATIONS, make_component
from .examples import scorer_from_vectors
from .finetuning import Finetune
from .heads import Head, ReadyHead, Scorer, UnitRidge, part_of
from .maml import Maml
from .metric_heads import OpenHead
from .representations import Batch, LearnsFromTexts, Noise, Representation, WeightedBag
from .settings import ModelSettings
from .signatures import measure_signals

VECTOR_TABLE = "vectors.table"  # the parameter name of a trained table
AT_ONCE = 10  # episodes per pass: more would not be faster, and costs memory
ADAPTING = (Maml, Finetune)  # heads that also adapt the representation: they take documents instead of vectors


@dataclass(frozen=True, eq=False)
class EpisodeBatch:
    """Episodes of the same shape, prepared for one pass: episode after episode, its support, its queries, its other texts."""

    batch: Batch  # signals are NumPy
    support_targets: Floats  # (episodes, examples, classes), one-hot
    query_targets: Floats  # (episodes, queries, classes), one-hot; there may be more queries, of no class
    classes: Ints  # (episodes, examples + queries): the class of each document, in the corpus
    names: int = 0  # how many of the examples, the first ones, are the words of classes
    unlabelled: int = 0  # number of other texts


class FewShotModel:
    """`model.fit(support, ...) -> Task`, `task.score(texts) -> logits`. The model holds no state of any task.

    Parameters are NumPy arrays for prediction and torch tensors for training (`to_torch`); the formulas are the same.
    """

    def __init__(self, settings: ModelSettings, parameters: Parameters) -> None:
        self.settings, self.parameters = settings, dict(parameters)
        self.representation: Representation = make_component(
            REPRESENTATIONS, settings.representation, settings, settings.representation_options
        )
        self.head: Head | Maml | Finetune = make_component(HEADS, settings.head, settings, settings.head_options)
        self._encoder = settings.vectors.encoder if settings.vectors.trained else None
        self._array: Callable[[np.ndarray[Any, Any]], Array] = np.asarray

    @classmethod
    def initial(cls, settings: ModelSettings, dim: int, seed: int = 0) -> FewShotModel:
        """An untrained model for word vectors of length `dim`."""
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
        """Number of episodes per pass: one if an encoder is trained, as more would not fit in memory."""
        return 1 if self.settings.trains_encoder else AT_ONCE

    @property
    def threads(self) -> int:
        """Number of threads that torch can use efficiently: all for an encoder, one for small matrices."""
        return available_threads() if self.settings.trains_encoder else 1

    def learn_from_texts(self, texts: Texts, labels: Ints, pool: SourcePool) -> FewShotModel:
        """The model with what its representation learns from the training texts, before any training."""
        if not isinstance(self.representation, LearnsFromTexts):
            return self
        if self.settings.vectors.trained:
            raise SettingError(
                f"The representation {self.settings.representation} learns from the vectors of the training texts, which must "
                "not change afterwards: remove --train-vectors."
            )
        signals = self.fit_statistics(texts, labels, int(labels.max()) + 1, pool, pool)(texts)
        learned = self.representation.learn(Batch(texts, signals), labels)
        return self.with_parameters({**self.parameters, **{f"representation.{name}": value for name, value in learned.items()}})

    @property
    def fixed(self) -> dict[str, Array]:
        """The parameters that were learned from the training texts, which training does not change."""
        names = self.representation.fixed if isinstance(self.representation, LearnsFromTexts) else ()
        return {f"representation.{name}": self.parameters[f"representation.{name}"] for name in names}

    @property
    def trainable(self) -> dict[str, Array]:
        """The parameters that training changes."""
        fixed = self.fixed
        return {name: value for name, value in self.parameters.items() if name not in fixed}

    def represent(self, batch: Batch, noise: np.random.Generator | None = None) -> Array:
        """φ of each document: (documents, dim)."""
        return self.representation(part_of(self.parameters, "representation"), self._arrays(batch), noise)

    def _represent_adapted(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        """φ with parameters that were adapted to tasks."""
        return self.representation({**part_of(self.fixed, "representation"), **parameters}, batch, noise)

    def _arrays(self, batch: Batch) -> Batch:
        texts, signals = batch.texts, self._array(batch.signals)
        if self._encoder:
            table = as_like(self._encoder.word_vectors(texts, part_of(self.parameters, "vectors")), signals)
            texts = replace(texts, table=table, rows=np.arange(len(texts.ids)))
        elif VECTOR_TABLE in self.parameters:
            texts = replace(texts, table=self.parameters[VECTOR_TABLE])
        else:
            texts = texts.gathered()
        return replace(batch, texts=texts, signals=signals)

    def with_vectors(self, table: Floats) -> FewShotModel:
        """The model with the table of word vectors as an additional trainable parameter; statistics keep the original table."""
        return self.with_parameters({**self.parameters, VECTOR_TABLE: table.copy()})

    def weights(self, batch: Batch) -> np.ndarray[Any, Any]:
        """The weight of each word in φ: (words,)."""
        if not isinstance(self.representation, WeightedBag):
            raise SettingError(
                f"The representation {self.settings.representation} does not weight words: use mean, idf or attention."
            )
        return np.asarray(self.representation.weights(part_of(self.parameters, "representation"), self._arrays(batch)))

    def learn(self, support: Batch, targets: Floats, noise: np.random.Generator | None = None) -> Callable[[Batch], Array]:
        """Learn tasks from their support documents, ordered by task, with one-hot targets (tasks, examples, classes).

        The returned function scores documents, also ordered by task: (tasks, documents, classes).
        """
        tasks = len(targets)
        if isinstance(self.head, ADAPTING):
            if self._array is np.asarray:
                score = self.to_torch().learn(support, targets)
                return lambda queries: np.asarray(score(queries))
            adapted = self.head.adapt(
                self._represent_adapted, self.trainable, self._arrays(support), self._array(targets), noise
            )
            return lambda queries: adapted(self._arrays(queries))
        scorer = self._fit_head(self._stack(self.represent(support, noise), tasks), targets, noise)
        return lambda queries: scorer(self._stack(self.represent(queries, noise), tasks))

    def _fit_head(self, vectors: Array, targets: Floats, noise: np.random.Generator | None) -> Scorer:
        assert not isinstance(self.head, ADAPTING)  # noqa: S101 - for the type checker: learn() ensures it
        return self.head.fit(part_of(self.parameters, "head"), vectors, self._array(targets), noise)

    def _fit_open(self, vectors: Array, prepared: EpisodeBatch, noise: np.random.Generator | None) -> Scorer:
        """Fit the head to open episodes; a head that does not tell class names from examples takes them for examples."""
        head, parameters, targets = self.head, part_of(self.parameters, "head"), prepared.support_targets
        names, examples = prepared.names, targets.shape[1]
        unlabelled = vectors[:, vectors.shape[1] - prepared.unlabelled :]  # (episodes, texts, width)
        if isinstance(head, UnitRidge) and noise is None:  # as in the classifier; it cannot be differentiated
            ready = ReadyHead(head, {name: np.asarray(value) for name, value in parameters.items()})
            first = np.arange(examples) < names
            tasks = zip(np.asarray(vectors[:, :examples]), targets, np.asarray(unlabelled), strict=True)
            scorers = [scorer_from_vectors(ready, own, labels, first, texts) for own, labels, texts in tasks]
            return lambda queries: np.stack([score(np.asarray(own)) for score, own in zip(scorers, queries, strict=True)])
        if isinstance(head, OpenHead):
            return head.fit_open(parameters, vectors[:, :examples], self._array(targets), names, unlabelled)
        return self._fit_head(vectors[:, :examples], targets, noise)

    @property
    def ready_head(self) -> ReadyHead:
        """The head with its parameters, for callers that compute the vectors; only a unit ridge accepts weighted examples."""
        if not isinstance(self.head, UnitRidge):
            raise SettingError(f"The head {self.settings.head} cannot weight examples: use refined-ridge or unit-ridge.")
        return ReadyHead(self.head, part_of(self.parameters, "head"))

    @staticmethod
    def _stack(vectors: Array, tasks: int) -> Array:
        return vectors.reshape(tasks, -1, vectors.shape[-1])  # (tasks, documents, dim)

    def fit(
        self, support: Texts, labels: Ints, pool: SourcePool, classes: int | None = None, training: SourcePool | None = None
    ) -> Task:
        """Learn a task from a few labelled texts, any number per class; labels are 0, 1, ... `classes` - 1."""
        return Task(self, support, labels, classes or int(labels.max()) + 1, pool, training or pool)

    # Many episodes in one pass

    def prepare(self, texts: Texts, episodes: Sequence[Episode]) -> EpisodeBatch:
        """Words and statistics of episodes of the same shape: everything that does not depend on the parameters."""
        parts, signals = [], []
        for episode in episodes:
            part = texts.select(np.concatenate([episode.support, episode.query, episode.unlabelled]))
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
            episodes[0].names,
            len(episodes[0].unlabelled),
        )

    def fit_statistics(
        self, support: Texts, labels: Ints, classes: int, pool: SourcePool, training: SourcePool
    ) -> Callable[[Texts], Floats]:
        """Fit word statistics to the support set and the pools: returns a function from texts to signals (words, signals)."""
        names, settings = self.representation.signals, self.settings.signature
        return lambda texts: measure_signals(names, support, labels, classes, pool, training, texts, settings)

    def logits(self, prepared: EpisodeBatch, noise: np.random.Generator | None = None) -> Array:
        """Logits of every query: (episodes, queries, classes)."""
        targets = prepared.support_targets
        episodes, examples, _ = targets.shape
        if prepared.unlabelled and not isinstance(self.head, (UnitRidge, OpenHead)):
            raise SettingError(
                f"The head {self.settings.head} cannot learn from texts without labels: use soft-kmeans, unit-ridge or "
                "refined-ridge, or remove --transductive and --unlabelled."
            )
        if isinstance(self.head, ADAPTING):
            documents = np.arange(len(prepared.batch.texts)).reshape(episodes, -1)  # (episodes, examples + queries)
            support, queries = documents[:, :examples].ravel(), documents[:, examples:].ravel()
            return self.learn(prepared.batch.select(support), targets, noise)(prepared.batch.select(queries))
        vectors = self._stack(self.represent(prepared.batch, noise), episodes)  # one pass over all texts
        queries = vectors[:, examples : vectors.shape[1] - prepared.unlabelled]
        if prepared.names or prepared.unlabelled:
            return self._fit_open(vectors, prepared, noise)(queries)
        return self._fit_head(vectors[:, :examples], targets, noise)(queries)

    def loss(self, prepared: EpisodeBatch, noise: np.random.Generator | None = None) -> tuple[Array, float]:
        """The training loss and the accuracy: on the queries of the episodes or, in pre-training, over all classes."""
        if isinstance(self.head, Finetune):
            logits = self.head.class_logits(part_of(self.parameters, "head"), self.represent(prepared.batch, noise))
            targets = self.head.class_targets(prepared.classes.ravel())
            loss = cross_entropy(logits, self._array(targets))
        else:
            logits, targets = self.logits(prepared, noise), prepared.query_targets
            loss = self.query_loss(logits, self._array(targets))
        right = np.asarray(logits.detach()).argmax(-1) == targets.argmax(-1)
        return loss, float(right.mean())

    def query_loss(self, logits: Array, targets: Array) -> Array:
        """The mean loss of queries (..., classes): the one that is trained on and watched on validation classes."""
        return (squared_error if self.settings.loss == "squared" else cross_entropy)(logits, targets)


class Task:
    """A task learned from one support set: the statistics of words, and the head's weights."""

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
