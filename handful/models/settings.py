"""The settings of a model, grouped by method, each with its default, limits and help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..data.corpus import MAX_WORDS
from ..embeddings.contextual import Encoder, encoder_of
from ..errors import SettingError
from ..utils.settings import check_settings, option
from .components import HEADS, REPRESENTATIONS

Signal = Literal["s", "t", "t-count", "t-softmax", "t-ridge", "frequency", "unevenness", "reach"]
FREQUENCY: Signal = "frequency"  # the signal that rarity is computed from


@dataclass(frozen=True)
class VectorSettings:
    """The word vectors, which every method uses."""

    names: str = option(
        "wordllama",
        "Word vectors: tables joined by + (wordllama, minilm, blend, paths), each :raw, :unit or :centred; or "
        "contextual:ENCODER; or sentence:ENCODER, one vector per text; or both, as in blend+sentence:ENCODER.",
        name="vectors",
    )
    length: float = option(
        1.0,
        "Typical length of the tables' word vectors; networks learn better from longer ones (10). 0: the tables' own lengths.",
        at_least=0,
    )
    trained: bool = option(
        False, "Fine-tune the vectors of the training words, or the encoder that computes them.", name="train_vectors"
    )
    sentence_dim: int = 0  # length of the vectors of whole texts that stand next to those of words; set by a run

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def encoder(self) -> Encoder | None:
        """The encoder that computes those of words; None for tables."""
        return encoder_of(self.words)

    @property
    def words(self) -> str:
        """The names of the vectors of words; empty if there are only vectors of whole texts."""
        return split_vectors(self.names)[0]

    @property
    def sentence_encoder(self) -> str:
        """The name or folder of the sentence encoder that computes one vector per text; empty for vectors of words."""
        return split_vectors(self.names)[1]


def split_vectors(names: str) -> tuple[str, str]:
    """The names of the vectors of words, and the sentence encoder of the vectors of whole texts; one may be empty.

    >>> split_vectors("blend+sentence:bge-small"), split_vectors("sentence:bge-small"), split_vectors("blend")
    (('blend', 'bge-small'), ('', 'bge-small'), ('blend', ''))
    """
    words, _, encoder = f"+{names}".partition("+sentence:")
    return (words[1:], encoder) if encoder else (names, "")


@dataclass(frozen=True)
class AttentionSettings:
    """The attention generator."""

    signals: tuple[Signal, ...] = option(("s", "t"), "attention: generator inputs, some of {choices}, separated by commas.")
    word_frequencies: Literal["source", "background"] = option(
        "source",
        "attention: the word frequencies for s(x), {choices}: those of the source pool, or of the language (wordfreq).",
    )
    network: Literal["bilstm", "mlp", "pooled"] = option(
        "bilstm",
        "attention: the generator's network, {choices} (mlp treats each word separately, pooled with its text's mean).",
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
    classifier stops when the norm of its gradient is below `tolerance`. With `stop="relative"`, its vectors are divided by
    their spread and the norm by the initial one, so that t does not depend on the scale of the vectors; with
    `stop="absolute"`, as in the paper, both are taken as they are.

    The signal t uses `estimator` and `measure`. The signals t-count, t-softmax and t-ridge each use their own estimator, with
    `entropy`, or `max` for t-ridge, so that one generator can see several.
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
        "relative", "t: whether that norm is {choices}: relative to the vectors' spread and the first norm, or as it is."
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

    classes: int = 0  # in the corpus; set by a run
    outputs: tuple[int, ...] = ()  # those that pre-training predicts, the training classes; set by a run
    pretraining_head: Literal["cosine", "perceptron"] = option(
        "cosine", "finetune: pre-training compares classes with a text's vector (cosine), or with 300 ReLU units (perceptron)."
    )
    rate: float = option(0.01, "finetune: learning rate for Adam on a support set.", name="finetuning_rate", above=0)
    steps: int = option(500, "finetune: maximum number of steps on a support set.", name="finetuning_steps", at_least=1)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True)
class ModelSettings:
    """Everything that determines what a model computes, except its parameters."""

    representation: str = option("attention", "How a text becomes a vector: {choices}.", components=REPRESENTATIONS)
    head: str = option("ridge", "How vectors are classified: {choices}.", components=HEADS)
    max_words: int = option(MAX_WORDS, "Number of words to keep of each text.", at_least=1)
    min_count: int = option(1, "Drop words that occur fewer times than this in the whole corpus.", at_least=1)
    vectors: VectorSettings = field(default_factory=VectorSettings)
    positions: bool | None = option(
        None,
        "attention, cnn: also use the positions of words relative to head and tail. Default: yes if the data has them.",
    )
    attention: AttentionSettings = field(default_factory=AttentionSettings)
    signature: SignatureSettings = field(default_factory=SignatureSettings)
    distance: Literal["euclidean", "squared", "cosine"] = option(
        "euclidean", "nearest, centroid, prototype, routing: distance between vectors, {choices}."
    )
    parameter_free: bool = option(
        False, "centroid, routing: learn no scale for distances, and compare queries as they are, as in the paper."
    )
    ridge_scale: float = option(5.0, "ridge: initial factor of the scores.", above=0)
    loss: Literal["cross-entropy", "squared"] = option(
        "cross-entropy", "Loss on the queries, {choices}: of a softmax, or of a sigmoid per class (induction networks)."
    )
    maml: MamlSettings = field(default_factory=MamlSettings)
    finetune: FinetuneSettings = field(default_factory=FinetuneSettings)
    representation_options: tuple[str, ...] = option(
        (), "Options of the representation itself, such as removed=2; --list-methods shows them."
    )
    head_options: tuple[str, ...] = option((), "Options of the head itself, as name=value; --list-methods shows them.")

    def __post_init__(self) -> None:
        check_settings(self)
        if self.representation == "cls" and (self.vectors.trained or not self.vectors.encoder):
            raise SettingError(
                "The representation cls always trains an encoder: name it with --vectors contextual:ENCODER, "
                "without --train-vectors."
            )
        self._check_sentences()

    def _check_sentences(self) -> None:
        """Raise a SettingError unless vectors of whole texts are where the representation needs them."""
        whole = bool(self.vectors.sentence_encoder)
        next_to_words = whole and bool(self.vectors.words)
        needed = {"sentence": (True, False), "attention-sentence": (True, True)}.get(self.representation, (False, False))
        if (whole, next_to_words) != needed or (whole and self.vectors.trained):
            raise SettingError(
                "Vectors of whole texts go with two representations and are not trained: give --representation sentence and "
                "--vectors sentence:ENCODER, or --representation attention-sentence and --vectors TABLES+sentence:ENCODER, "
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
