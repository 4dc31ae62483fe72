"""Labelled texts as ragged arrays of word ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..utils.functional import Floats, Ints, Offsets, segments
from .text import Vocabulary, words_of

MAX_WORDS = 500  # kept of each text
FARTHEST = 40  # words: larger distances from an entity all count as this one


def ragged_positions(starts: Ints, lengths: Ints) -> Ints:
    """The positions start, start + 1, ... of several ranges, concatenated.

    >>> ragged_positions(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


@dataclass(frozen=True, eq=False)
class Pieces:
    """The word pieces that an encoder reads for each word of a vocabulary: word i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Ints
    offsets: Offsets


@dataclass(frozen=True, eq=False)
class Texts:
    """Ragged documents. A word's id is for statistics, its row for vectors; with a static table the two are equal."""

    ids: Ints  # (words,)
    offsets: Offsets  # (documents + 1,)
    table: Floats  # (rows, dim)
    rows: Ints  # (words,)
    positions: Ints  # (words, entities): where a word is relative to each entity of its text; no column for plain texts
    pieces: Pieces | None = None  # of the word ids, if an encoder is trained
    sentences: Floats | None = None  # (documents, dim): vectors of the whole texts, if they stand next to those of words

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """Number of words in each document."""
        return np.diff(self.offsets)

    def gathered(self) -> Texts:
        """A copy with a single-precision table of just these words, if the table is a large half-precision one on disk."""
        if self.table.dtype == np.float32:
            return self
        return replace(self, table=np.asarray(self.table[self.rows], np.float32), rows=np.arange(len(self.rows)))

    def select(self, documents: Ints) -> Texts:
        """The given documents, in this order."""
        lengths = self.lengths[documents]
        where = ragged_positions(self.offsets[documents], lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        words: dict[str, Any] = {name: getattr(self, name)[where] for name in ("ids", "rows", "positions")}
        sentences = None if self.sentences is None else self.sentences[documents]
        return replace(self, **words, offsets=offsets, sentences=sentences)


def join_texts(parts: Sequence[Texts]) -> Texts:
    """The documents of several parts that share one table, concatenated."""
    names = ["ids", "rows", "positions", *(["sentences"] if parts[0].sentences is not None else [])]
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    lengths = np.concatenate([part.lengths for part in parts])
    return replace(parts[0], **joined, offsets=np.concatenate([[0], np.cumsum(lengths)]))


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled documents as word ids: document i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Ints
    offsets: Offsets
    labels: Ints  # (documents,), positions in `classes`
    classes: tuple[str, ...]
    written: tuple[str, ...]  # the label of each class as it appears in the data: its name, or a number
    vocabulary: Vocabulary
    positions: Ints  # (words, entities): see Texts

    def __len__(self) -> int:
        return len(self.labels)

    def texts(self, table: Floats) -> Texts:
        """The documents with a static table of vectors, one row per word of the vocabulary."""
        return Texts(self.ids, self.offsets, table, self.ids, self.positions)

    def contextual_texts(self, table: Floats) -> Texts:
        """The documents with a contextual table of vectors, one row per occurrence of a word."""
        return Texts(self.ids, self.offsets, table, np.arange(len(self.ids)), self.positions)

    def sentence_texts(self, table: Floats) -> Texts:
        """The documents with a table of vectors that has one row per document."""
        return Texts(self.ids, self.offsets, table, segments(self.offsets), self.positions)

    def words(self, document: int) -> list[str]:
        """The words of one document."""
        return [self.vocabulary.words[i] for i in self.ids[self.offsets[document] : self.offsets[document + 1]]]

    def word_counts(self) -> Ints:
        """How often a word occurs in each class: (classes, vocabulary)."""
        where = np.repeat(self.labels, np.diff(self.offsets)) * len(self.vocabulary) + self.ids
        return np.bincount(where, minlength=len(self.classes) * len(self.vocabulary)).reshape(len(self.classes), -1)

    def document_counts(self) -> Ints:
        """The number of documents of each class that contain each word: (classes, vocabulary)."""
        documents = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        pairs = np.unique(documents * len(self.vocabulary) + self.ids)
        where = self.labels[pairs // len(self.vocabulary)] * len(self.vocabulary) + pairs % len(self.vocabulary)
        return np.bincount(where, minlength=len(self.classes) * len(self.vocabulary)).reshape(len(self.classes), -1)

    def with_documents(self, documents: Sequence[Sequence[str]]) -> Corpus:
        """A copy with further documents at its end, of no class (label -1); their words join the vocabulary."""
        vocabulary = Vocabulary(list(self.vocabulary.words))
        ids = [vocabulary.ids(words) for words in documents]
        lengths = np.cumsum([len(part) for part in ids], dtype=np.int64)
        nowhere = np.zeros((sum(map(len, ids)), self.positions.shape[1]), np.int64)
        return replace(
            self,
            ids=np.concatenate([self.ids, *ids]),
            offsets=np.concatenate([self.offsets, self.offsets[-1] + lengths]),
            labels=np.concatenate([self.labels, np.full(len(ids), -1)]),
            vocabulary=vocabulary,
            positions=np.concatenate([self.positions, nowhere]),
        )

    def first(self, documents: int) -> Corpus:
        """A copy with only the first documents, and the whole vocabulary."""
        words = self.offsets[documents]
        offsets, labels = self.offsets[: documents + 1], self.labels[:documents]
        return replace(self, ids=self.ids[:words], offsets=offsets, labels=labels, positions=self.positions[:words])

    def frequent(self, least: int) -> Corpus:
        """A copy without the words that occur fewer times than `least`, in all texts together."""
        return self.keep_words(np.bincount(self.ids, minlength=len(self.vocabulary)) >= least) if least > 1 else self

    def keep_words(self, known: np.ndarray[Any, np.dtype[np.bool_]]) -> Corpus:
        """A copy with only these words of the vocabulary; the others are neither counted nor attended to."""
        kept = known[self.ids]
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        return replace(self, ids=self.ids[kept], positions=self.positions[kept], offsets=offsets)


def entity_positions(length: int, spans: Sequence[tuple[int, int]]) -> Ints:
    """Positions of words relative to entities, given by their first and last words: (words, entities), from 0 to 2 · FARTHEST.

    FARTHEST means inside the entity, less means before it, more means after it; larger distances are clipped.

    >>> entity_positions(5, [(1, 2)])[:, 0] - FARTHEST
    array([-1,  0,  0,  1,  2])
    """
    words = np.arange(length)
    columns = [np.minimum(words - first, 0) + np.maximum(words - last, 0) for first, last in spans]
    return np.array(columns, np.int64).reshape(len(spans), length).T.clip(-FARTHEST, FARTHEST) + FARTHEST


def make_corpus(
    texts: Iterable[str | Sequence[str]],
    labels: Iterable[str],
    classes: Sequence[str] = (),
    max_words: int = MAX_WORDS,
    entities: Sequence[Sequence[tuple[int, int]]] = (),
) -> Corpus:
    """A corpus from texts (strings, or lists of words) and class names; at most `max_words` words of each text are kept.

    For texts about the relation of two entities, `entities` gives the first and last word of each entity.

    >>> corpus = make_corpus(["Good food!", "bad food"], ["yes", "no"])
    >>> corpus.classes, corpus.words(1)
    (('yes', 'no'), ['bad', 'food'])
    """
    vocabulary = Vocabulary()
    names = Vocabulary(list(classes))
    documents = [vocabulary.ids(words_of(text, max_words)) for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype(np.int64)
    ids = np.concatenate(documents) if documents else np.empty(0, np.int64)
    spans = entities or [()] * len(documents)
    positions = [entity_positions(len(document), spans[i]) for i, document in enumerate(documents)]
    together = np.concatenate(positions) if positions else np.empty((0, 0), np.int64)
    numbers = names.ids(labels)
    written = tuple(names.words)
    return Corpus(ids, offsets, numbers, written, written, vocabulary, together)
