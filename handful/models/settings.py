"""The settings of a model, grouped by method, each with its default, limits and help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..data.corpus import MAX_WORDS
from ..embeddings.contextual import Encoder, encoder_of
from ..errors import SettingError
from ..utils.settings import check_settings, option

Signal = Literal["s", "t", "frequency", "unevenness", "reach"]
FREQUENCY: Signal = "frequency"  # the signal that rarity is computed from


@dataclass(frozen=True)
class VectorSettings:
    """The word vectors, which every method uses."""

    names: str = option(
        "wordllama",
        "Word vectors: tables joined by + (wordllama, minilm, paths), each :raw, :unit or :centred; or contextual:ENCODER.",
        name="vectors",
    )
    length: float = option(
        1.0, "Typical length of the tables' word vectors; networks learn better from longer ones (10).", above=0
    )
    trained: bool = option(
        False, "Fine-tune the vectors of the training words, or the encoder that computes them.", name="train_vectors"
    )

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def encoder(self) -> Encoder | None:
        """The encoder that computes them; None for tables."""
        return encoder_of(self.names)


@dataclass(frozen=True)
class AttentionSettings:
    """The attention generator."""

    signals: tuple[Signal, ...] = option(("s", "t"), "attention: generator inputs, some of {choices}, separated by commas.")
    word_frequencies: Literal["source", "background"] = option(
        "source",
        "attention: the word frequencies for s(x), {choices}: those of the source pool, or of the language (wordfreq).",
    )
    network: Literal["bilstm", "mlp"] = option(
        "bilstm", "attention: the generator's network, {choices} (mlp treats each word separately)."
    )
    embeddings: bool = option(False, "attention: also show the word vectors to the generator.")
    rarity: float = 0.0  # the share of the attention that follows word rarity alone

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 <= self.rarity <= 1:
            raise SettingError(f"rarity must be from 0 to 1, not {self.rarity}.")
        if self.rarity and FREQUENCY not in self.signals:
            raise SettingError(f"rarity needs the signal {FREQUENCY}: add it to the signals, or set rarity to 0.")


@dataclass(frozen=True)
class SignatureSettings:
    """How the signals s and t are measured.

    `estimator` estimates P(y | x): `softmax` (the paper's regularised linear classifier), `ridge` (closed form) or `count`
    (maximum likelihood with additive smoothing, for which Theorem 1 is proved). `measure` is `entropy` (its inverse, the
    paper's t) or, for `ridge`, `max` (the largest absolute score over the classes, as in the released code). `penalty` is the
    weight of the squared norm (`softmax`, `ridge`), and `smoothing` the count added to every class (`count`). The softmax
    classifier stops when the norm of its gradient is below `tolerance` times the initial norm or, with `stop="absolute"`,
    below `tolerance`.
    """

    epsilon: float = option(1e-3, "s: ε in s(x) = ε / (ε + P(x)).", above=0)
    estimator: Literal["softmax", "ridge", "count"] = option("count", "t: the estimator of P(class | word), {choices}.")
    measure: Literal["entropy", "max"] = option(
        "entropy", "t: how P(class | word) is summarised, {choices}: the inverse entropy, or (for ridge) the largest score."
    )
    penalty: float = option(0.01, "t: penalty of the softmax or ridge classifier.", above=0)
    smoothing: float = option(0.1, "t: pseudo-count added to every class (for count).", above=0)
    tolerance: float = option(0.1, "t: gradient norm below which the softmax classifier stops.", above=0)
    stop: Literal["relative", "absolute"] = option(
        "relative", "t: whether that norm is {choices}: a share of the initial norm, or the norm itself."
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.measure == "max" and self.estimator != "ridge":
            raise SettingError(f"--measure max works only with --estimator ridge, not {self.estimator}: choose entropy.")


@dataclass(frozen=True)
class MamlSettings:
    """Settings of the head maml."""

    first_order: bool = option(False, "maml: ignore second derivatives.")
    inner_steps: int = option(10, "maml: gradient steps on a support set.", at_least=1)
    inner_rate: float = option(0.1, "maml: size of those steps.", above=0)
    hidden: int = option(300, "maml: ReLU units; 0 for only a softmax layer.", at_least=0)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True)
class FinetuneSettings:
    """Settings of the head finetune."""

    classes: int = 0  # in the training corpus; set by a run


@dataclass(frozen=True)
class ModelSettings:
    """Everything that determines what a model computes, except its parameters."""

    representation: Literal["mean", "idf", "cnn", "lstm", "cls", "attention"] = option(
        "attention", "How a text becomes a vector: {choices}."
    )
    head: Literal[
        "ridge",
        "unit-ridge",
        "refined-ridge",
        "logistic",
        "nearest",
        "centroid",
        "prototype",
        "routing",
        "induction",
        "maml",
        "finetune",
    ] = option("ridge", "How vectors are classified: {choices}.")
    max_words: int = option(MAX_WORDS, "Number of words to keep of each text.", at_least=1)
    vectors: VectorSettings = field(default_factory=VectorSettings)
    positions: bool = option(False, "attention, cnn: also use the positions of words relative to head and tail, for relations.")
    attention: AttentionSettings = field(default_factory=AttentionSettings)
    signature: SignatureSettings = field(default_factory=SignatureSettings)
    distance: Literal["euclidean", "squared", "cosine"] = option(
        "euclidean", "nearest, centroid, prototype, routing: distance between vectors, {choices}."
    )
    maml: MamlSettings = field(default_factory=MamlSettings)
    finetune: FinetuneSettings = field(default_factory=FinetuneSettings)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.representation == "cls" and (self.vectors.trained or not self.vectors.encoder):
            raise SettingError(
                "The representation cls always trains an encoder: name it with --vectors contextual:ENCODER, "
                "without --train-vectors."
            )

    @property
    def trains_encoder(self) -> bool:
        """Whether an encoder is trained."""
        return self.representation == "cls" or (self.vectors.trained and self.vectors.encoder is not None)

    @property
    def trains_table(self) -> bool:
        """Whether a table of word vectors is trained."""
        return self.vectors.trained and not self.trains_encoder
