"""Representations, which turn the words of a text into one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from ..data.corpus import FARTHEST, Texts, ragged_positions
from ..embeddings.contextual import Encoder
from ..errors import DataError
from ..utils.functional import (
    Array,
    Ints,
    Offsets,
    array_namespace,
    as_like,
    ragged_convolution,
    segment_max,
    segment_softmax,
    segment_sum,
    segments,
    unit_length,
    weighted_bag,
)
from ..utils.settings import option
from .attention import AttentionGenerator, Parameters
from .lstm import Vectors, bilstm, initial_bilstm
from .settings import ModelSettings
from .signatures import rarity

Noise = np.random.Generator | None  # turns on dropout
SENTENCE_SHARE = 0.85  # of a joined vector's squared length; chosen on the validation tasks of docs/log.md


@dataclass(frozen=True, eq=False)
class Batch:
    """The input of a representation: documents with the statistics of their words."""

    texts: Texts
    signals: Array  # (words, signals), or with `places` (distinct words, signals)
    places: Ints | None = None  # (words,): the row of each word in `signals`, if equal words share one

    def select(self, documents: Ints) -> Batch:
        """The given documents, in this order."""
        words = ragged_positions(self.texts.offsets[documents], self.texts.lengths[documents])
        texts = self.texts.select(documents)
        if self.places is not None:
            return replace(self, texts=texts, places=self.places[words])
        return replace(self, texts=texts, signals=self.signals[words])

    def spread(self, values: Array) -> Array:
        """A value for each word, from one for each row of `signals`."""
        return values if self.places is None else values[as_like(self.places, values)]


class Represents(Protocol):
    """A function that computes vectors of texts."""

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        """φ of each document: (documents, width)."""
        ...


class Representation(Represents, Protocol):
    """A method that computes vectors of texts; `signals` names the statistics it needs."""

    @property
    def signals(self) -> tuple[str, ...]: ...

    def width(self, dim: int) -> int:
        """Length of its vectors, given word vectors of length `dim`."""
        ...

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        """Initial parameters for word vectors of length `dim`."""
        ...


@runtime_checkable
class LearnsFromTexts(Representation, Protocol):
    """A representation with parameters that it learns from the training texts, once, before training.

    `fixed` names these parameters: training leaves them as they are, and they are saved with the others.
    """

    @property
    def fixed(self) -> tuple[str, ...]: ...

    def learn(self, batch: Batch, labels: Ints) -> dict[str, np.ndarray[Any, Any]]:
        """The values of the fixed parameters, from all training texts with their classes.

        The signals are measured as if the training texts were one large support set.
        """
        ...


class WeightedBag(ABC):
    """φ(x) = Σ αᵢ f(xᵢ): representations that weight words, and can therefore show which ones mattered."""

    @abstractmethod
    def weights(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        """α: a weight for each word, (words,); the weights of a document sum to 1."""

    def width(self, dim: int) -> int:
        return dim

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        texts, weights = batch.texts, self.weights(parameters, batch, noise)
        return weighted_bag(as_like(texts.table, weights), texts.rows, weights, texts.offsets)


@dataclass(frozen=True)
class Mean(WeightedBag):
    """AVG: the mean of the word vectors. All words have equal weight, so common words dominate. It has no parameters."""

    signals: tuple[str, ...] = field(default=(), init=False)

    def weights(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        lengths = np.maximum(batch.texts.lengths, 1)
        return as_like(np.repeat(1 / lengths, batch.texts.lengths).astype(np.float32), batch.signals)


@dataclass(frozen=True)
class Idf(WeightedBag):
    """IDF: the mean of the word vectors, weighted by inverse document frequency in the training examples (Spärck Jones, 1972).

    Words that occur in few documents get more weight. The weights do not depend on the classes. It has no parameters.
    """

    signals: tuple[str, ...] = field(default=("idf",), init=False)

    def weights(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        return _shares(batch.signals[:, 0], batch.texts.offsets)


def _shares(values: Array, offsets: Offsets) -> Array:
    """Values of words (words,), divided by their sum over the document."""
    return values / segment_sum(values, offsets)[as_like(segments(offsets), values)]


@dataclass(frozen=True)
class Sif(WeightedBag):
    """SIF: the mean of the word vectors, weighted by s(x) and without what all texts have in common (Arora et al., 2017).

    The common components are the leading singular vectors of the training texts' weighted means. They are found once, before
    training. The weights of a text are scaled to sum to 1.
    """

    removed: int = option(1, "Number of common components to remove.", at_least=1)
    signals: ClassVar[tuple[str, ...]] = ("s",)
    fixed: ClassVar[tuple[str, ...]] = ("common",)

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return {"common": np.zeros((self.removed, dim), np.float32)}

    def learn(self, batch: Batch, labels: Ints) -> dict[str, np.ndarray[Any, Any]]:
        means = super().__call__({}, batch)  # (documents, dim)
        _, directions = np.linalg.eigh(means.T @ means)  # ascending
        return {"common": directions[:, -self.removed :].T.astype(np.float32)}

    def weights(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        return _shares(batch.signals[:, 0], batch.texts.offsets)

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        means, common = super().__call__(parameters, batch, noise), parameters["common"]
        return means - (means @ common.T) @ common


@dataclass(frozen=True)
class Attention(WeightedBag):
    """OUR: word vectors weighted by attention generated from distributional signatures (Bao et al., 2020).

    The weights depend on the source pool and the support set, so they suit the task at hand. The generator is learned over many
    tasks. Part of the attention can follow rarity alone (signal `frequency`), for texts unlike those of the training tasks.
    """

    generator: AttentionGenerator = field(default_factory=AttentionGenerator)
    rarity: float = 0.0

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Self:
        own = settings.attention
        generator = AttentionGenerator(own.signals, own.network, own.embeddings, _position_numbers(settings))
        return cls(generator, own.rarity)

    @property
    def signals(self) -> tuple[str, ...]:
        return self.generator.signals

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return self.generator.initial(rng, dim) | initial_positions(rng, self.generator.positions)

    def weights(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        generated = self._attention(parameters, batch, noise)
        if not self.rarity:
            return generated
        rare = batch.spread(rarity(batch.signals[:, self.signals.index("frequency")]))
        return (1 - self.rarity) * generated + self.rarity * _shares(rare, batch.texts.offsets)

    def _attention(self, parameters: Parameters, batch: Batch, noise: Noise) -> Array:
        """The attention that the generator gives to each word: (words,)."""
        generator, texts = self.generator, batch.texts
        if generator.word_wise:  # once for each distinct word
            scores = batch.spread(generator.scores(parameters, batch.signals, texts.offsets, noise=noise))
            return segment_softmax(scores, texts.offsets)
        inputs = batch.spread(batch.signals)
        if generator.positions:
            inputs = array_namespace(inputs).concat([inputs, position_vectors(parameters, texts)], axis=1)
        vectors = word_vectors(batch) if generator.embeddings else None
        return generator.attention(parameters, inputs, texts.offsets, vectors, noise)


def word_vectors(batch: Batch) -> Vectors:
    """The distinct vectors of a batch's words."""
    distinct, rows = distinct_words(batch.texts)
    return Vectors(as_like(batch.texts.table[distinct], batch.signals), rows)


ENTITIES, POSITION_NUMBERS = 2, 5  # head and tail; numbers for a word's position relative to each (Zhang et al., 2017)


def _position_numbers(settings: ModelSettings) -> int:
    """How many numbers describe the position of a word; 0 if positions are not used."""
    return bool(settings.positions) * ENTITIES * POSITION_NUMBERS


def initial_positions(rng: np.random.Generator, wanted: int) -> dict[str, np.ndarray[Any, Any]]:
    """Initial vectors for each distance from each entity, if positions are used."""
    shape = ENTITIES, 2 * FARTHEST + 1, POSITION_NUMBERS
    return {"positions": rng.normal(0, 0.1, shape).astype(np.float32)} if wanted else {}


def check_positions(texts: Texts) -> None:
    """Raise a DataError if the texts have no positions."""
    if texts.positions.shape[1] != ENTITIES:
        raise DataError("Positions need texts with head and tail: add them to the data, or remove --positions.")


def position_vectors(parameters: Parameters, texts: Texts) -> Array:
    """The position of each word relative to the head and tail of its text: (words, 10)."""
    check_positions(texts)
    tables = parameters["positions"]
    xp = array_namespace(tables)
    columns = [xp.take(tables[i], as_like(texts.positions[:, i], tables), axis=0) for i in range(ENTITIES)]
    return xp.concat(columns, axis=1)


@dataclass(frozen=True)
class Cnn:
    """CNN: filters over windows of three, four and five words, with max-pooling over the text and ReLU (Kim, 2014).

    It learns phrases of the training classes from their word vectors. These need not occur in new classes. It has fifty
    filters per window size.
    """

    windows: tuple[int, ...] = (3, 4, 5)
    maps: int = 50
    positions: int = 0  # numbers for a word's position relative to the entities of its text, for relations
    signals: tuple[str, ...] = field(default=(), init=False)

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Cnn:
        return cls(positions=_position_numbers(settings))

    def width(self, dim: int) -> int:
        return self.maps * len(self.windows)

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        parameters = initial_positions(rng, self.positions)
        for window in self.windows:
            bound = (window * (dim + self.positions)) ** -0.5
            shape = window, dim + self.positions, self.maps
            parameters[f"filters{window}"] = rng.uniform(-bound, bound, shape).astype(np.float32)
            parameters[f"bias{window}"] = rng.uniform(-bound, bound, self.maps).astype(np.float32)
        return parameters

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        texts, xp = batch.texts, array_namespace(batch.signals)
        bias = parameters[f"bias{self.windows[0]}"]
        tasks = bias.shape[0] if bias.ndim == 2 else 0  # each with its own parameters, or 0
        distinct, rows = distinct_words(texts, tasks)
        vectors = as_like(texts.table[distinct], batch.signals)  # ([tasks,] distinct words, dim)
        highest, dim = [], vectors.shape[-1]
        for window in self.windows:
            filters, bias = parameters[f"filters{window}"], parameters[f"bias{window}"]
            maps = ragged_convolution(vectors, rows, texts.offsets, filters[..., :dim, :])  # (words, maps)
            if self.positions:  # a sum of convolutions equals one over concatenated vectors
                maps = maps + self._positions(parameters, texts, filters[..., dim:, :], tasks)
            top = segment_max(maps, texts.offsets)  # (documents, maps)
            highest.append((top.reshape(tasks, -1, self.maps) + bias[:, None]).reshape(top.shape) if tasks else top + bias)
        return xp.clip(xp.concat(highest, axis=1), 0, None)  # (documents, maps · windows)

    def _positions(self, parameters: Parameters, texts: Texts, filters: Array, tasks: int) -> Array:
        """The filters' output for the position of each word relative to head and tail: (words, maps)."""
        check_positions(texts)
        task = np.repeat(np.arange(max(tasks, 1)), np.diff(texts.offsets[:: len(texts) // max(tasks, 1)]))  # of each word
        total: Array = 0
        for i in range(ENTITIES):
            part = filters[..., i * POSITION_NUMBERS : (i + 1) * POSITION_NUMBERS, :]
            rows = texts.positions[:, i] + task * (2 * FARTHEST + 1)
            total = total + ragged_convolution(parameters["positions"][..., i, :, :], rows, texts.offsets, part)
        return total


@dataclass(frozen=True)
class SelfAttentive:
    """LSTM: a biLSTM over the word vectors, averaged by self-attention (Lin et al., 2017), as in induction networks.

    It reads a text in order, with 128 units per direction. A small network of 64 units then weights each position. Both are
    learned from the words of the training classes.
    """

    hidden: int = 128  # units per direction
    attention: int = 64
    signals: tuple[str, ...] = field(default=(), init=False)

    def width(self, dim: int) -> int:
        return 2 * self.hidden

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        parameters = initial_bilstm(rng, dim, self.hidden)
        for name, shape in {"inner": (2 * self.hidden, self.attention), "outer": (self.attention,)}.items():
            bound = shape[0] ** -0.5
            parameters[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
        return parameters

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        texts, xp = batch.texts, array_namespace(batch.signals)
        nothing = xp.zeros((len(texts.rows), 0), dtype=batch.signals.dtype)
        states = bilstm(parameters, nothing, texts.offsets, word_vectors(batch))  # (words, 2 hidden)
        weights = segment_softmax(xp.tanh(states @ parameters["inner"]) @ parameters["outer"], texts.offsets)
        return weighted_bag(states, np.arange(len(texts.rows)), weights, texts.offsets)  # (documents, 2 hidden)


@dataclass(frozen=True)
class FirstToken:
    """CLS: the vector that a pre-trained encoder computes for the special token before a text (Devlin et al., 2019).

    Its parameters are those of the encoder, which reads the words themselves, not precomputed vectors. Training is slow, and
    practical only for short texts.
    """

    encoder: Encoder = field(default_factory=Encoder)
    signals: tuple[str, ...] = field(default=(), init=False)

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> FirstToken:
        return cls(settings.vectors.encoder or Encoder())

    def width(self, dim: int) -> int:
        return dim

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return self.encoder.initial()

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        if any(value.ndim == 1 for value in parameters.values()):  # a bias without an axis of tasks
            return as_like(self.encoder.first_vectors(batch.texts, parameters), batch.signals)
        tasks = len(next(iter(parameters.values())))
        documents = np.arange(len(batch.texts)).reshape(tasks, -1)  # (tasks, documents of one)
        own = [{name: value[task] for name, value in parameters.items()} for task in range(tasks)]
        vectors = [self.encoder.first_vectors(batch.texts.select(documents[i]), own[i]) for i in range(tasks)]
        return array_namespace(*vectors).concat(vectors)


@dataclass(frozen=True)
class Sentence:
    """The vector that a frozen sentence encoder computes for a whole text (Reimers and Gurevych, 2019).

    The encoder has read far more text than any corpus here, and nothing of it is learned. So only the head can be trained.
    """

    signals: tuple[str, ...] = field(default=(), init=False)

    def width(self, dim: int) -> int:
        return dim

    def initial(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray[Any, Any]]:
        return {}

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        texts = batch.texts
        vectors = np.zeros((len(texts), texts.table.shape[1]), np.float32)  # a text without words keeps its zeros
        present = texts.lengths > 0
        vectors[present] = texts.table[texts.rows[texts.offsets[:-1][present]]]  # every word has the vector of its text
        return as_like(vectors, batch.signals)


@dataclass(frozen=True)
class AttentionSentence(Attention):
    """OUR next to SENTENCE: word vectors weighted by attention, joined with the vector of a frozen sentence encoder.

    Each knows what the other does not. The attention generator is learned over many tasks, and nothing of the encoder is. The
    classifier does the same for `encoder="words+NAME"`, with the packaged generator.
    """

    sentence_dim: int = 0

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Self:
        return replace(super().from_settings(settings), sentence_dim=settings.vectors.sentence_dim)

    def width(self, dim: int) -> int:
        return dim + self.sentence_dim

    def __call__(self, parameters: Parameters, batch: Batch, noise: Noise = None) -> Array:
        words, sentences = super().__call__(parameters, batch, noise), batch.texts.sentences
        if sentences is None:
            raise DataError("The representation attention-sentence needs texts with --vectors TABLES+sentence:ENCODER.")
        return joined_vectors(words, as_like(sentences, words))


def joined_vectors(words: Array, sentences: Array) -> Array:
    """Vectors of the words and of the whole texts, side by side: each at unit length, then scaled to its share."""
    parts = unit_length(words) * (1 - SENTENCE_SHARE) ** 0.5, unit_length(sentences) * SENTENCE_SHARE**0.5
    return array_namespace(words, sentences).concat(parts, axis=-1)  # (documents, dim of words + dim of sentences)


def distinct_words(texts: Texts, tasks: int = 0) -> tuple[Ints, Ints]:
    """The rows of the table that occur, and the place of each word among them.

    With tasks, which must have equal numbers of consecutive documents, the rows are listed per task: (tasks, longest list).
    """
    if not tasks:
        distinct, places = np.unique(texts.rows, return_inverse=True)
        return distinct, places
    cuts = texts.offsets[:: len(texts) // tasks]
    found = [np.unique(texts.rows[begin:end], return_inverse=True) for begin, end in pairwise(cuts)]
    most = max(len(rows) for rows, _ in found)
    distinct = np.stack([np.pad(rows, (0, most - len(rows))) for rows, _ in found])
    return distinct, np.concatenate([places + number * most for number, (_, places) in enumerate(found)])
