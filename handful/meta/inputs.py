"""The data set of a run with its vectors, ready for episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace

import numpy as np

from ..data.corpus import Corpus, Texts
from ..data.datasets import Dataset, load_dataset
from ..data.episodes import EpisodeSampler, EpisodeSpec
from ..data.frequencies import SourcePool, background_pool
from ..data.open_episodes import OpenSampler, name_documents
from ..embeddings import load_vectors
from ..embeddings.contextual import Encoder, contextual_table
from ..embeddings.encoders import find_encoder
from ..embeddings.vector_cache import CachedEncoder
from ..errors import DataError
from ..models.sentence_encoder import SentenceEncoder
from ..models.settings import ModelSettings
from ..utils.functional import Floats, Ints
from ..utils.paths import cache_folder
from .settings import RunSettings
from .vector_identity import SENTENCE_TOLERANCE, TOLERANCE, Marking, VectorIdentity, mark_by_table, mark_by_text


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
            sentences = VectorIdentity(sentence_dim(self.texts), self.mark_sentences(words), SENTENCE_TOLERANCE)
        return VectorIdentity(self.texts.table.shape[1], self.mark(words), self.tolerance, sentences)


def sentence_dim(texts: Texts) -> int:
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
    corpus, texts, mark, mark_sentences = _with_vectors(frequent.with_documents(words), len(words), settings.model, encode)
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
    corpus: Corpus, names: int, settings: ModelSettings, encode: Callable[[Sequence[str]], Floats] | None
) -> tuple[Corpus, Texts, Marking, Marking | None]:
    """A corpus with vectors of its words, of its whole texts, or of both; the last marking is for texts next to words.

    The last `names` documents are names of classes.
    """
    name = settings.vectors.sentence_encoder
    if not name:
        return *_with_word_vectors(corpus, settings, encode), None
    encoder = _sentence_encoder(name, encode)
    read = [" ".join(corpus.words(document)) for document in range(len(corpus))]
    sentences = encoder.read_examples(read[: len(read) - names], read[len(read) - names :]).vectors
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
