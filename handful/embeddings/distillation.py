"""Static word tables made from an encoder: each word's own vector, then fitted so that means of words are like sentences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..episodes import background_frequencies
from ..errors import DataError
from ..folders import cache_folder
from ..functional import Floats
from ..progress import track
from .contextual import Encoder, digest, sentence_vectors

RARE = 1e-3  # words are weighed by RARE / (RARE + frequency), as the classifier weighs them
MAP_PENALTY = 0.01
PULL = 0.1  # of a word towards the vector it started from, in texts


def distill(encoder: Encoder, words: Sequence[str], components: int = 2, dim: int | None = None) -> Floats:
    """Each word's own vector, alone in front of the encoder: (words, dim).

    Made unit length, without the mean and the leading common components, and reduced to `dim` by principal components.
    """
    step = 32 * encoder.batch
    starts = range(0, len(words), step)
    parts = [encoder.encode([[word] for word in words[i : i + step]]) for i in track(starts, "Distilling", len(starts))]
    vectors = np.concatenate([vector for part in parts for vector in part])
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
    """Word vectors whose weighted means come near the vectors of sentences: (words, dim).

    min Σ |Σᵢ wᵢ vᵢ - s|² + pull Σ |v - M v₀|², where s is a sentence in `dim` principal components, v₀ a word's own vector, and
    M the linear map that takes weighted means of these to sentences. A word that occurs in no text keeps M v₀.
    """
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge

    bags = _weighted_bags(words, documents)  # (documents, words)
    known = np.diff(bags.indptr) > 0
    _check_number(int(known.sum()), dim)
    bags, targets = bags[known], PCA(dim, random_state=0).fit_transform(sentences[known])
    start = Ridge(MAP_PENALTY).fit(bags @ vectors, targets).predict(vectors)  # (words, dim)
    shift = Ridge(pull, fit_intercept=False, solver="sparse_cg").fit(bags, targets - bags @ start).coef_.T
    fitted: Floats = (start + shift).astype(np.float32)
    return fitted


def _check_number(texts: int, dim: int) -> None:
    if texts < dim:
        raise DataError(
            f"A table of {dim} numbers a word is fitted to at least {dim} texts of known words, not {texts}: give more."
        )


def _weighted_bags(words: Sequence[str], documents: Sequence[Sequence[str]]) -> Any:
    """A sparse row a document: the weights of its words, which sum to 1."""
    from scipy.sparse import csr_array

    row_of, weights = {word: row for row, word in enumerate(words)}, RARE / (RARE + background_frequencies(words))
    found = [[row_of[word] for word in document if word in row_of] for document in documents]
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in found])])
    shares = [weights[rows] / weights[rows].sum() for rows in found]
    columns = np.array([row for rows in found for row in rows], np.int64)
    return csr_array((np.concatenate(shares), columns, offsets), (len(documents), len(words)))


def save_table(path: Path, words: Sequence[str], vectors: Floats) -> None:
    """A word table as `.npz`, in half precision."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        np.savez(temporary, words=np.array(words), vectors=vectors.astype(np.float16))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def distilled_file(
    source: str, words: int = 60_000, dim: int = 256, documents: Sequence[Sequence[str]] = (), folder: Path | None = None
) -> Path:
    """The table distilled from an encoder for a language's most frequent words, made once and kept in the cache.

    With documents, each a list of words, it is fitted to the vectors that the encoder gives these.
    """
    from wordfreq import top_n_list

    encoder = Encoder(source)
    fitted = f"-{digest(documents)}" if documents else ""
    path = (folder or cache_folder() / "tables") / f"{encoder.key}-{words}-{dim}{fitted}.npz"
    if not path.exists():
        if documents:
            _check_number(len(documents), dim)  # before all the work
        frequent = top_n_list("en", words)
        vectors = distill(encoder, frequent, dim=dim)
        if documents:
            vectors = fit_to_sentences(frequent, vectors, documents, sentence_vectors(encoder, documents), dim)
        save_table(path, frequent, vectors)
    return path
