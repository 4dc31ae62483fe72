"""Static word tables made from an encoder: the vectors of single words, fitted so that their means resemble sentences.

Several such tables can be blended into one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.frequencies import background_frequencies
from ..data.text import words_of
from ..embeddings.contextual import Encoder, digest, sentence_vectors
from ..errors import DataError
from ..utils.files import atomic_writer
from ..utils.functional import TINY, Floats, ridge_weights
from ..utils.paths import cache_folder
from ..utils.progress import track

RARITY_LEVEL = 1e-3  # words are weighted by level / (level + frequency), as in the classifier
MAP_PENALTY = 0.01
PULL = 0.1  # of a word towards its initial vector, in units of texts
STEPS, EXACT = 40, 1e-3  # most steps of conjugate gradients, and how small the error has to get, relative to the first
PIECES_PENALTY = 1.0
WORDS_SHARE = 0.5  # of the spread of words, compared with that of texts, in what a blend keeps
LEAST_COUNT = 3  # of a word in the texts, if no list of the language has it
TEXT_SHARE = 0.2  # how much a word's share in the texts counts against its share in the language


def distill(encoder: Encoder, words: Sequence[str], components: int = 2, dim: int | None = None) -> Floats:
    """The vector that the encoder computes for each word on its own: (words, dim).

    Vectors are scaled to unit length, stripped of the mean and the leading common components, and reduced to `dim` principal
    components.
    """
    step = 32 * encoder.batch
    starts = range(0, len(words), step)
    parts = [encoder.encode([[word] for word in words[i : i + step]]) for i in track(starts, "Distilling", len(starts))]
    return without_common(np.concatenate([vector for part in parts for vector in part]), components, dim)


def without_common(vectors: Floats, components: int = 2, dim: int | None = None) -> Floats:
    """Vectors of length 1 without their mean and leading common components, in `dim` principal components: (words, dim)."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    vectors -= vectors.mean(axis=0)
    _, directions = np.linalg.eigh(vectors.T @ vectors)  # ascending
    kept = directions[:, ::-1][:, components : None if dim is None else components + dim]
    reduced: Floats = (vectors @ kept).astype(np.float32)
    return reduced


def fit_to_sentences(
    words: Sequence[str], vectors: Floats, documents: Sequence[Sequence[str]], sentences: Floats, dim: int, pull: float = PULL
) -> Floats:
    """Word vectors whose weighted means approximate the vectors of sentences: (words, dim).

    They minimise Σ |Σᵢ wᵢ vᵢ - s|² + pull Σ |v - M v₀|², where s is a sentence in `dim` principal components, v₀ a word's own
    vector, and M the linear map from weighted means of these to sentences. A word that occurs in no text keeps M v₀.
    """
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge

    bags = weighted_bags(words, documents)  # (documents, words)
    known = np.diff(bags.indptr) > 0
    _check_number(int(known.sum()), dim)
    bags = bags[known]
    targets = PCA(dim, random_state=0).fit_transform(sentences[known])
    start = Ridge(MAP_PENALTY).fit(bags @ vectors, targets).predict(vectors)  # (words, dim)
    fitted: Floats = (start + sparse_ridge(bags, targets - bags @ start, pull)).astype(np.float32)
    return fitted


def sparse_ridge(bags: Any, targets: Floats, penalty: float) -> Floats:
    """X that minimises |BX - Y|² + λ|X|² for a sparse B, by conjugate gradients on all columns at once: (words, columns)."""
    transposed = bags.T.tocsr()
    curvature = bags.multiply(bags).sum(axis=0)[:, None] + penalty  # of each row of X, to make their scales alike
    left = transposed @ targets
    solution, ahead = np.zeros_like(left), left / curvature
    error = first = np.sum(left * ahead, axis=0)  # (columns,)
    for _ in range(STEPS):
        bent = transposed @ (bags @ ahead) + penalty * ahead
        step = error / np.maximum(np.sum(ahead * bent, axis=0), TINY)
        solution += step * ahead
        left -= step * bent
        former, error = error, np.sum(left * left / curvature, axis=0)
        if np.sum(error) <= EXACT**2 * np.sum(first):
            break
        ahead = left / curvature + error / np.maximum(former, TINY) * ahead
    return solution  # type: ignore[no-any-return]


def blending(tables: Sequence[Floats], bags: Any, dim: int) -> Floats:
    """A linear map that reduces several tables side by side to `dim` numbers: (dims of all, dim).

    It keeps the directions in which weighted means of texts differ, and to a lesser extent those in which words differ.
    """
    words = np.concatenate(tables, axis=1)  # (words, dims of all)
    spreads = [_covariance(bags @ words), WORDS_SHARE * _covariance(words)]
    _, directions = np.linalg.eigh(sum(spreads))  # ascending
    leading: Floats = directions[:, ::-1][:, :dim].astype(np.float32)
    return leading


def _covariance(vectors: Floats) -> Floats:
    """The covariance of vectors, scaled to a trace of 1: (dim, dim)."""
    centred = vectors - vectors.mean(axis=0)
    products: Floats = centred.T @ centred
    return products / np.trace(products)  # type: ignore[no-any-return]


def guessing(pieces: Floats, vectors: Floats) -> Floats:
    """The linear map that guesses the vectors of words from their vectors by pieces: (dim of pieces, dim)."""
    guessed: Floats = ridge_weights(pieces, vectors, np.float32(PIECES_PENALTY))
    return guessed


def frequent_words(documents: Sequence[Sequence[str]], most: int) -> list[str]:
    """The most frequent words, clitics and signs of English and of some texts, as this package splits texts, in this order."""
    from wordfreq import top_n_list

    counts = Counter(word for document in documents for word in document)
    listed = [word for word in top_n_list("en", 2 * most) if words_of(word) == [word]]
    words = list(dict.fromkeys([*listed, *(word for word, count in counts.items() if count >= LEAST_COUNT)]))
    shares = TEXT_SHARE * np.array([counts[word] for word in words]) / max(counts.total(), 1)
    shares[: len(listed)] = np.maximum(shares[: len(listed)], background_frequencies(listed))
    order = np.argsort(-shares, kind="stable")
    return [words[i] for i in order[:most]]


def _check_number(texts: int, dim: int) -> None:
    if texts < dim:
        raise DataError(
            f"A table with {dim} numbers per word needs at least {dim} texts with known words, not {texts}: give more."
        )


def weighted_bags(words: Sequence[str], documents: Sequence[Sequence[str]]) -> Any:
    """One sparse row per document: the weights of its words, which sum to 1; (documents, words)."""
    from scipy.sparse import csr_array

    row_of = {word: row for row, word in enumerate(words)}
    weights = RARITY_LEVEL / (RARITY_LEVEL + background_frequencies(words))
    found = [[row_of[word] for word in document if word in row_of] for document in documents]
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in found])])
    shares = [weights[rows] / weights[rows].sum() for rows in found]
    columns = np.array([row for rows in found for row in rows], np.int64)
    return csr_array((np.concatenate(shares), columns, offsets), (len(documents), len(words)), dtype=np.float32)


def save_table(path: Path, words: Sequence[str], vectors: Floats) -> None:
    """Save a word table as `.npz`, in half precision."""
    with atomic_writer(path) as stream:
        np.savez(stream, words=np.array(words), vectors=vectors.astype(np.float16))


def distilled_file(
    source: str, words: int = 60_000, dim: int = 256, documents: Sequence[Sequence[str]] = (), folder: Path | None = None
) -> Path:
    """The table distilled from an encoder for a language's most frequent words, created once and kept in the cache.

    If documents are given, each a list of words, the table is fitted to the encoder's vectors of them.
    """
    from wordfreq import top_n_list

    encoder = Encoder(source)
    fitted = f"-{digest(documents)}" if documents else ""
    path = (folder or cache_folder() / "tables") / f"{encoder.key}-{words}-{dim}{fitted}.npz"
    if not path.exists():
        if documents:
            _check_number(len(documents), dim)  # before the work starts
        frequent = top_n_list("en", words)
        vectors = distill(encoder, frequent, dim=dim)
        if documents:
            vectors = fit_to_sentences(frequent, vectors, documents, sentence_vectors(encoder, documents), dim)
        save_table(path, frequent, vectors)
    return path
