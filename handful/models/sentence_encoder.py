"""Sentence encoders behind the seam of `text_encoders`: a text is the vector that an encoder gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from ..data.text import tokenize
from ..embeddings.vector_cache import CachedEncoder
from ..errors import DataError, ModelError
from ..utils.functional import Floats, Ints, unit_length
from ..utils.progress import track
from ..utils.tensors import check_parameters
from .heads import CentredScorer, ReadyHead, RefinedRidge
from .text_encoders import Slopes, WordPart

TEXTS_PER_STEP = 512  # of the progress bar
BATCH_TEXTS = 2048  # that are encoded and scored together: bounds memory
MOST_WORDS_LEFT_OUT = 300  # of a text that is explained: each costs a pass of the encoder
PROBE = ("a lost card", "the weather tomorrow", "refund", "book a flight to Rome")  # texts that an encoder is known by
LEAST_ALIKE = 0.95  # cosine of the same text by the same encoder: int8 engines differ in some digits
# On the validation tasks of docs/log.md, with vectors of bge-small
PHRASINGS = ("{}", "{}?", "topic: {}", "I have a question about {}.", "This text is about {}.")  # of a label's words
SENTENCE_HEAD = RefinedRidge(anchor=1.0, pull=0.1)
SENTENCE_SCALE = np.array([1.563, -0.091, -0.249], np.float32)
SENTENCE_DAMPING, SENTENCE_DOUBT = 0.25, 0.2


@runtime_checkable
class SentenceModel(Protocol):
    """Anything that turns texts into vectors: an ONNX encoder, a sentence-transformers model, a client of an API."""

    def encode(self, texts: list[str]) -> Any:
        """A vector for each text: (texts, dim)."""
        ...


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Texts that were read: their vectors."""

    vectors: Floats  # (texts, dim)
    cut: ClassVar[int] = 0  # long texts are read in windows

    def __len__(self) -> int:
        return len(self.vectors)

    def select(self, positions: Ints) -> EncodedTexts:
        """These texts, in this order."""
        return replace(self, vectors=self.vectors[positions])


@dataclass(frozen=True, eq=False)
class SentenceEncoder:
    """An encoder by the name under which it is found again; it is its own fitted form, since examples do not change it."""

    name: str
    model: SentenceModel
    named: bool  # whether the name is enough to find it again
    kind: ClassVar[str] = "sentence-encoder"
    additive: ClassVar[bool] = False

    def read(self, texts: Iterable[str]) -> EncodedTexts:
        """Read texts to learn from; their vectors are remembered, so that learning again is quick."""
        waiting = list(texts)
        parts = [waiting[first : first + TEXTS_PER_STEP] for first in range(0, len(waiting), TEXTS_PER_STEP)]
        found = [self._memory.encode(part) for part in track(parts, "Encoding texts", len(parts), quiet=len(parts) < 2)]
        return EncodedTexts(np.concatenate(found) if found else np.empty((0, self.dim), np.float32))

    def read_examples(self, texts: Sequence[str], names: Sequence[str]) -> EncodedTexts:
        """The vector of a label's words is the mean over some phrasings, which are more like texts than the words alone."""
        examples = self.read(texts).vectors
        if not names:
            return EncodedTexts(examples)
        phrased = self.read(phrasing.format(words) for words in names for phrasing in PHRASINGS).vectors
        means = unit_length(phrased).reshape(len(names), len(PHRASINGS), -1).mean(axis=1)  # (names, dim)
        return EncodedTexts(np.concatenate([examples, means]))

    def reading_notes(self, texts: Sequence[str]) -> list[str]:
        return []

    def fit(self, examples: EncodedTexts, targets: Floats, weights: Floats) -> SentenceEncoder:
        return self

    @property
    def encoder(self) -> SentenceEncoder:
        return self

    def batches(self, texts: Iterable[str]) -> Iterator[EncodedTexts]:
        waiting = iter(texts)
        while part := list(islice(waiting, BATCH_TEXTS)):
            yield EncodedTexts(self._encode(part))

    def vectors(self, documents: EncodedTexts) -> Floats:
        return documents.vectors

    def word_parts(self, text: str, scorer: CentredScorer, slopes: Slopes) -> list[WordPart]:
        return effects_of_words(text, scorer, slopes, self._encode)

    def _encode(self, texts: list[str]) -> Floats:
        """Vectors of texts, checked; zeros for a text without a character."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        found = np.asarray(self.model.encode(texts), np.float32)
        if found.ndim != 2 or len(found) != len(texts):
            raise DataError(
                f"The encoder {self.name} gave an array of shape {found.shape} for {len(texts)} texts: "
                "its encode(texts) must return one vector per text."
            )
        if not np.isfinite(found).all():
            raise DataError(f"The encoder {self.name} gave numbers that are not finite: check it, and the texts.")
        found[[not text.strip() for text in texts]] = 0
        return found

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._probe.shape[1])

    @property
    def _memory(self) -> CachedEncoder:
        known = self.__dict__.get("_known_memory")
        if known is None:
            known = CachedEncoder(_Plain(self))
            object.__setattr__(self, "_known_memory", known)
        return known

    @property
    def _probe(self) -> Floats:
        known = self.__dict__.get("_known_probe")
        if known is None:
            known = np.asarray(self.model.encode(list(PROBE)), np.float32)
            object.__setattr__(self, "_known_probe", known)  # computed once, with the same result in any thread
        return known

    def ready_head(self) -> ReadyHead:
        return ReadyHead(SENTENCE_HEAD, {"scale": SENTENCE_SCALE}, SENTENCE_DAMPING, SENTENCE_DOUBT)

    # What a saved classifier keeps of it

    def facts(self) -> dict[str, Any]:
        """Its name: the encoder itself is not saved."""
        return {"name": self.name, "named": self.named}

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Vectors of some texts, which tell one encoder from another."""
        return {"probe": self._probe}


def effects_of_words(text: str, scorer: CentredScorer, slopes: Slopes, encode: Callable[[list[str]], Floats]) -> list[WordPart]:
    """Each word with what the logits would lose without it: true effects, which do not add up."""
    words = tokenize(text, MOST_WORDS_LEFT_OUT)
    without = [text[: word.start] + text[word.end :] for word in words]
    scores = scorer(encode([text, *without]).astype(np.float64))  # (1 + words, classes)
    logits = scores * slopes(scores)
    effects = logits[0] - logits[1:]
    return [
        WordPart(text[word.start : word.end], word.start, word.end, 0.0, tuple(effect))
        for word, effect in zip(words, effects.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class _Plain:
    """A sentence encoder as `CachedEncoder` wants it."""

    encoder: SentenceEncoder

    @property
    def dim(self) -> int:
        return self.encoder.dim

    @property
    def identity(self) -> str:
        return self.encoder.name

    def encode(self, texts: Sequence[str]) -> Floats:
        return self.encoder._encode(list(texts))


def restore_sentence_encoder(
    facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]], model: SentenceModel, place: Path
) -> SentenceEncoder:
    """The encoder that a classifier was fitted with, compared with the one at hand."""
    encoder = SentenceEncoder(str(facts["name"]), model, facts["named"] is True)
    check_parameters(dict(arrays), {"probe": np.empty((len(PROBE), encoder.dim), np.float32)}, place)
    mine, theirs = (unit_length(probe) for probe in (encoder._probe, arrays["probe"]))
    if float((mine * theirs).sum(axis=1).min()) < LEAST_ALIKE:
        raise ModelError(f"{place.parent} was fitted with another encoder than the {encoder.name} found here: fit it again.")
    return encoder
