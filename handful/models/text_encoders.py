"""Encoders that turn texts into vectors: the interface between reading texts and learning from vectors.

Reading turns texts into documents and needs no examples; fitting to the examples' documents gives an encoder that computes
vectors. Heads, calibration, suggestions and saving use only the protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from ..data.text import Vocabulary, tokenize
from ..embeddings.words import TokenizedTexts, WordLookup
from ..errors import ModelError
from ..utils.functional import TINY, Floats, Ints
from ..utils.sampling import even_sample
from ..utils.tensors import check_parameters
from .few_shot import FewShotModel
from .generator import generator_facts, generator_settings
from .heads import CentredScorer, ReadyHead
from .representations import Batch
from .signatures import Evidence

TEXTS_CHECKED = 100  # for unknown words
DAMPING = 0.5  # of scores, chosen on the validation tasks of docs/log.md
MOST_UNKNOWN = 0.4  # share of the words of the examples: at most a quarter in English corpora, half in other languages


Slopes = Callable[[Floats], Floats]  # scores of texts (texts, classes) to factors (texts, 1)


class Documents(Protocol):
    """Texts after reading."""

    def __len__(self) -> int: ...

    def select(self, positions: Ints) -> Any:
        """The given documents, in this order."""
        ...


@dataclass(frozen=True)
class WordPart:
    """A word as spelled in its text, its attention, and its contribution to the score of each class."""

    text: str
    start: int
    end: int
    attention: float
    contributions: tuple[float, ...]


class TextEncoder(Protocol):
    """A method of turning raw texts into vectors, before it is fitted to examples."""

    def read(self, texts: Iterable[str]) -> Any:
        """Read texts into documents."""
        ...

    def read_examples(self, texts: Sequence[str], names: Sequence[str]) -> Any:
        """Read examples, followed by the words of labels, into documents to learn from."""
        ...

    def ready_head(self) -> ReadyHead:
        """The head for its vectors."""
        ...

    def reading_notes(self, texts: Sequence[str]) -> list[str]:
        """Warnings about how these texts are read, one sentence each."""
        ...

    def fit(self, examples: Any, targets: Floats, weights: Floats) -> FittedEncoder:
        """Fit to the examples' documents, with targets (examples, classes) and weights (examples,)."""
        ...


class FittedEncoder(Protocol):
    """An encoder fitted to examples, which turns texts into vectors."""

    @property
    def kind(self) -> str:
        """The name by which a saved classifier knows this kind of encoder."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def facts(self) -> dict[str, Any]:
        """Everything to be saved except arrays, as JSON types."""
        ...

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays to be saved, by name."""
        ...

    @property
    def encoder(self) -> Any:
        """The encoder before fitting, for learning other examples."""
        ...

    def batches(self, texts: Iterable[str]) -> Iterator[Any]:
        """Read the texts in batches of documents, so that memory use stays constant."""
        ...

    def vectors(self, documents: Any) -> Floats:
        """One vector per document, (documents, dim); zeros for a document without known words."""
        ...

    @property
    def additive(self) -> bool:
        """Whether the contributions of words add up to the scores; otherwise they are what the scores lose without a word."""
        ...

    def word_parts(self, text: str, scorer: CentredScorer, slopes: Slopes) -> list[WordPart]:
        """Each word of a text with its contribution to the logits, which are the scores times their slopes."""
        ...


@dataclass(frozen=True)
class AttentionBag:
    """The method: a text is the mean of its word vectors, weighted by the attention of a meta-trained model."""

    lookup: WordLookup
    model: FewShotModel  # its representation generates attention from the portable signals; its head has a learned scale

    def read(self, texts: Iterable[str]) -> TokenizedTexts:
        return self.lookup.read(texts)

    def read_examples(self, texts: Sequence[str], names: Sequence[str]) -> TokenizedTexts:
        return self.read([*texts, *names])

    def ready_head(self) -> ReadyHead:
        return replace(self.model.ready_head, damping=DAMPING)

    def reading_notes(self, texts: Sequence[str]) -> list[str]:
        lookup, notes = self.lookup, []
        cut = [position for position, text in enumerate(texts) if lookup.is_cut(text)]
        if cut:
            count = "1 text is" if len(cut) == 1 else f"{len(cut)} texts are"
            notes.append(f"{count} longer than {lookup.max_words} words: only the first {lookup.max_words} words are read.")
        unknown = lookup.unknown_share(even_sample(texts, TEXTS_CHECKED))
        if unknown > MOST_UNKNOWN:
            notes.append(
                f"{unknown:.0%} of the words of the examples are rare in the language {lookup.language!r} or have no vectors, "
                "so probabilities mean little: set `language` and `vectors` to those of your texts."
            )
        return notes

    def fit(self, examples: TokenizedTexts, targets: Floats, weights: Floats) -> FittedAttentionBag:
        return FittedAttentionBag(self, Vocabulary(examples.words), Evidence.of(examples.texts, targets, weights))


@dataclass(frozen=True, eq=False)
class FittedAttentionBag:
    """An attention bag fitted to examples."""

    encoder: AttentionBag
    vocabulary: Vocabulary  # the words of the examples
    evidence: Evidence  # ids are those of the vocabulary
    kind: ClassVar[str] = "attention-bag"
    additive: ClassVar[bool] = True

    @property
    def dim(self) -> int:
        return self.encoder.lookup.dim

    def batches(self, texts: Iterable[str]) -> Iterator[TokenizedTexts]:
        return self.encoder.lookup.batches(texts)

    def attention(self, documents: TokenizedTexts) -> Floats:
        """The weight of each word, (words,); the weights of a text sum to 1."""
        return self.encoder.model.weights(self._batch(documents))

    def vectors(self, documents: TokenizedTexts) -> Floats:
        return cast("Floats", self.encoder.model.represent(self._batch(documents)))

    def _batch(self, documents: TokenizedTexts) -> Batch:
        """The documents with the signals of their distinct words, which equal words share."""
        places, words = documents.texts.ids, np.arange(len(documents.words))
        distinct = replace(documents.texts, ids=self.vocabulary.find(documents.words), rows=words)
        names = self.encoder.model.representation.signals
        signals = [self.evidence.signal(name, distinct, documents.frequencies) for name in names]  # (distinct words,) each
        return Batch(documents.texts, np.stack(signals, axis=1), places)

    def word_parts(self, text: str, scorer: CentredScorer, slopes: Slopes) -> list[WordPart]:
        documents = self.encoder.lookup.read([text])
        texts, attention = documents.texts, self.attention(documents)
        length = max(float(np.linalg.norm(attention @ texts.table[texts.rows])), TINY)
        scores = scorer.scale * ((texts.table / length - scorer.centre) @ scorer.weights)  # (distinct words, classes)
        parts = attention[:, None] * scores[texts.rows]  # (words, classes)
        parts = parts * slopes(parts.sum(axis=0, keepdims=True))
        spelled = [documents.words[i] for i in texts.ids]
        return _every_word(text, self.encoder.lookup.max_words, spelled, attention, parts)

    # For saving a classifier

    def facts(self) -> dict[str, Any]:
        """Everything except arrays, as JSON types; word tables are given by name."""
        lookup = self.encoder.lookup
        return {
            "vectors": lookup.vectors,
            "language": lookup.language,
            "max_words": lookup.max_words,
            "words": self._words,
            "generator": generator_facts(self.encoder.model.settings),
        }

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays, by name; `probe` identifies the table of vectors."""
        evidence, parameters = self.evidence, self.encoder.model.parameters
        own = {"uneven": evidence.uneven, "directions": evidence.directions, "usual": evidence.usual}
        probe = {"probe": self.encoder.lookup.probe(self._words)}
        return own | probe | {f"generator.{name}": np.asarray(value) for name, value in parameters.items()}

    @property
    def _words(self) -> list[str]:
        return [self.vocabulary.words[i] for i in self.evidence.words]


def _every_word(text: str, max_words: int, spelled: Sequence[str], attention: Floats, parts: Floats) -> list[WordPart]:
    """Every word that was read of the text; a word without a vector contributes nothing."""
    known = iter(zip(spelled, attention.tolist(), parts.tolist(), strict=True))
    following = next(known, None)
    found = []
    for word in tokenize(text, max_words):
        share, contributions = 0.0, [0.0] * parts.shape[1]
        if following and following[0] == word.text:
            _, share, contributions = following
            following = next(known, None)
        found.append(WordPart(text[word.start : word.end], word.start, word.end, share, tuple(contributions)))
    return found


def restore_attention_bag(
    facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]], classes: int, place: Path
) -> FittedAttentionBag:
    """Restore an attention bag from `facts` and `arrays`; raises a ModelError if anything in them does not fit."""
    words, settings = list(facts["words"]), generator_settings(facts["generator"])
    lookup = WordLookup(facts["vectors"], facts["language"], facts["max_words"])
    model = FewShotModel.initial(settings, lookup.dim)
    table = np.empty((lookup.dim, classes), np.float32)
    blank = Evidence(np.arange(len(words)), np.empty(len(words), np.float32), table, np.empty(2, np.float32))
    check_parameters(dict(arrays), FittedAttentionBag(AttentionBag(lookup, model), Vocabulary(words), blank).arrays(), place)
    if not np.allclose(arrays["probe"], lookup.probe(words), atol=1e-4):
        raise ModelError(
            f"{place.parent} was fitted with word vectors other than the {lookup.vectors!r} found here: fit it again, or give "
            "it the vectors that it was fitted with (`vectors`)."
        )
    evidence = replace(blank, **{name: arrays[name] for name in ("uneven", "directions", "usual")})
    own = {name.removeprefix("generator."): array for name, array in arrays.items() if name.startswith("generator.")}
    return FittedAttentionBag(AttentionBag(lookup, model.with_parameters(own)), Vocabulary(words), evidence)
