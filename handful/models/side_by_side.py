"""Attention over words next to a sentence encoder: the two vectors of a text, joined. Each knows what the other does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from ..embeddings.words import TokenizedTexts
from ..utils.functional import Floats, Ints
from .heads import CentredScorer, ReadyHead
from .representations import joined_vectors
from .sentence_encoder import BATCH_TEXTS, EncodedTexts, SentenceEncoder, effects_of_words
from .text_encoders import AttentionBag, FittedAttentionBag, Slopes, WordPart


@dataclass(frozen=True, eq=False)
class JoinedTexts:
    """Texts that were read both ways."""

    words: TokenizedTexts
    sentences: EncodedTexts

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def cut(self) -> int:
        """How many texts are longer than what is read of their words."""
        return self.words.cut

    def select(self, positions: Ints) -> JoinedTexts:
        """These texts, in this order."""
        return JoinedTexts(self.words.select(positions), self.sentences.select(positions))


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Both encoders, before the attention is fitted to examples."""

    words: AttentionBag
    sentences: SentenceEncoder

    def read(self, texts: Iterable[str]) -> JoinedTexts:
        waiting = list(texts)
        return JoinedTexts(self.words.read(waiting), self.sentences.read(waiting))

    def read_examples(self, texts: Sequence[str], names: Sequence[str]) -> JoinedTexts:
        return JoinedTexts(self.words.read_examples(texts, names), self.sentences.read_examples(texts, names))

    def reading_notes(self, texts: Sequence[str]) -> list[str]:
        return self.words.reading_notes(texts)

    def fit(self, examples: JoinedTexts, targets: Floats, weights: Floats) -> FittedSideBySide:
        return FittedSideBySide(self.words.fit(examples.words, targets, weights), self.sentences)

    def ready_head(self) -> ReadyHead:
        return self.sentences.ready_head()


@dataclass(frozen=True, eq=False)
class FittedSideBySide:
    """Both encoders; examples change only the attention over words."""

    words: FittedAttentionBag
    sentences: SentenceEncoder
    kind: ClassVar[str] = "side-by-side"
    additive: ClassVar[bool] = False

    @property
    def dim(self) -> int:
        return self.words.dim + self.sentences.dim

    @property
    def encoder(self) -> SideBySide:
        return SideBySide(self.words.encoder, self.sentences)

    def batches(self, texts: Iterable[str]) -> Iterator[JoinedTexts]:
        waiting = iter(texts)
        while part := list(islice(waiting, BATCH_TEXTS)):
            for encoded in self.sentences.batches(part):  # one batch
                yield JoinedTexts(self.words.encoder.read(part), encoded)

    def vectors(self, documents: JoinedTexts) -> Floats:
        joined = joined_vectors(self.words.vectors(documents.words), self.sentences.vectors(documents.sentences))
        return np.asarray(joined, np.float32)  # (documents, dim)

    def word_parts(self, text: str, scorer: CentredScorer, slopes: Slopes) -> list[WordPart]:
        return effects_of_words(text, scorer, slopes, self._encode)

    def _encode(self, texts: list[str]) -> Floats:
        return np.concatenate([self.vectors(part) for part in self.batches(texts)])

    # For saving a classifier

    def facts(self) -> dict[str, Any]:
        """Everything except arrays, as JSON types."""
        return {"words": self.words.facts(), "sentences": self.sentences.facts()}

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays of both, by name."""
        parts = {"words": self.words.arrays(), "sentences": self.sentences.arrays()}
        return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
