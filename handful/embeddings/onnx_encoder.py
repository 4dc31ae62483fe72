"""Sentence encoders in ONNX, which turn texts into vectors on a CPU with onnxruntime and a tokenizer, without torch.

Texts of similar length are encoded together, which keeps padding small and memory bounded. A text longer than the encoder's
input is read in overlapping windows; its vector is the mean of their vectors, weighted by their lengths.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, MissingExtraError
from ..utils.functional import Floats, Ints, unit_length
from ..utils.parallel import available_threads

MODEL, TOKENIZER, POOLING = "model.onnx", "tokenizer.json", "1_Pooling/config.json"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LARGEST_MODEL, LARGEST_TOKENIZER = 1 << 30, 1 << 26  # bytes
EXTERNAL = re.compile(rb"[\x08\x00]location")  # a length and a key, with which an ONNX file refers to weights in another file
WIDEST = 1 << 14  # maximum length of a vector
PIECES_AT_ONCE = 8192  # per pass, including padding: bounds memory
TEXTS_AT_ONCE = 4096  # sorted by length together
WINDOW = 512  # pieces, including special ones
OVERLAP = 64  # pieces that two windows of a long text share


@dataclass(frozen=True)
class OnnxEncoder:
    """A folder with an ONNX encoder, `model.onnx`, and its tokenizer, `tokenizer.json`.

    `pooling` says how pieces give the vector of a text: `cls` takes the first piece, `mean` the mean of all pieces. By default
    it is read from `1_Pooling/config.json` in the folder, as sentence-transformers writes it. `checksums` are pairs of a file
    name and the SHA-256 that the file must have.
    """

    folder: Path
    pooling: str | None = None
    threads: int | None = None
    checksums: tuple[tuple[str, str], ...] = ()

    @cached_property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._pass([self._special(np.zeros(1, np.int64))]).shape[1])

    @cached_property
    def identity(self) -> str:
        """A checksum of everything that determines the vectors: the network, the tokenizer and the pooling."""
        parts = self._content(MODEL, LARGEST_MODEL), self._content(TOKENIZER, LARGEST_TOKENIZER), bytes([self._pools_first])
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

    def encode(self, texts: Sequence[str]) -> Floats:
        """A unit vector for each text, (texts, dim); zeros for a text without any pieces."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            part = slice(first, first + TEXTS_AT_ONCE)
            vectors[part] = self._encode(texts[part])
        return vectors

    def _encode(self, texts: Sequence[str]) -> Floats:
        windows: list[Ints] = []
        owners: list[int] = []
        for number, pieces in enumerate(self._pieces(texts)):
            for window in _windows(pieces, WINDOW - len(self._around[0]) - len(self._around[1])):
                windows.append(self._special(window))
                owners.append(number)
        lengths = np.array([len(window) for window in windows], np.int64)
        states = np.zeros((len(windows), self.dim), np.float32)
        for chosen in _batches(lengths):
            states[chosen] = self._pass([windows[i] for i in chosen])
        sums = np.zeros((len(texts), self.dim), np.float32)
        np.add.at(sums, owners, unit_length(states) * lengths[:, None])
        return unit_length(sums)  # type: ignore[no-any-return]

    def _content(self, name: str, largest: int) -> bytes:
        path = self.folder / name
        expected = dict(self.checksums).get(name)
        content = _read(path, largest)
        if expected is not None and hashlib.sha256(content).hexdigest() != expected:
            raise DataError(
                f"{path} is not the published file (its checksum differs): download it again, or reinstall its package."
            )
        return content

    # The tokenizer

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        content = self._content(TOKENIZER, LARGEST_TOKENIZER)
        try:
            tokenizer = Tokenizer.from_buffer(content)
            tokenizer.no_padding()
            tokenizer.no_truncation()
            tokenizer.encode("a")
        except BaseException as error:  # a panic of the tokenizers library is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            raise DataError(f"{self.folder / TOKENIZER} is not a tokenizer ({error}): download the encoder again.") from error
        return tokenizer

    @cached_property
    def _around(self) -> tuple[list[int], list[int]]:
        """The special pieces before and after a text."""
        encoding = self._tokenizer.encode("a")
        inside = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        first, last = (inside[0], inside[-1]) if inside else (len(encoding.ids), len(encoding.ids) - 1)
        return encoding.ids[:first], encoding.ids[last + 1 :]

    def _pieces(self, texts: Sequence[str]) -> list[Ints]:
        readable = [text if text.isascii() else text.encode("utf-8", "replace").decode() for text in texts]
        found = self._tokenizer.encode_batch_fast(readable, add_special_tokens=False)
        return [np.array(encoding.ids, np.int64) for encoding in found]

    def _special(self, pieces: Ints) -> Ints:
        before, after = self._around
        return np.concatenate([before, pieces, after]).astype(np.int64)

    # The network

    @cached_property
    def _session(self) -> Any:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("A sentence encoder", "encoder") from error
        path = self.folder / MODEL
        content = self._content(MODEL, LARGEST_MODEL)
        if EXTERNAL.search(content):
            raise DataError(f"{path} keeps its weights in other files: give an encoder whose weights are in a single file.")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads or available_threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.load_model_format", "ONNX")  # accept no other format
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a separate class for each kind of error
            raise DataError(f"{path} is not a usable ONNX model ({_first_line(error)}): download it again.") from error
        names = [each.name for each in session.get_inputs()]
        if INPUTS[0] not in names or not set(names) <= set(INPUTS):
            raise DataError(f"{path} has the inputs {', '.join(names)}, not {', '.join(INPUTS)}: give a text encoder.")
        return session

    @cached_property
    def _pools_first(self) -> bool:
        if self.pooling is not None:
            return self.pooling == "cls"
        path = self.folder / POOLING
        if not path.is_file():
            return False
        try:
            return bool(json.loads(_read(path, 1 << 16)).get("pooling_mode_cls_token", False))
        except (ValueError, AttributeError, RecursionError) as error:
            raise DataError(f"{path} does not say how to pool vectors ({error}): download the encoder again.") from error

    def _pass(self, rows: Sequence[Ints]) -> Floats:
        """The pooled last layer for rows of pieces: (rows, dim)."""
        longest = max(len(row) for row in rows)
        ids, mask = np.zeros((len(rows), longest), np.int64), np.zeros((len(rows), longest), np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        values = dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
        session = self._session
        try:
            found = session.run(None, {each.name: values[each.name] for each in session.get_inputs()})[0]
            states = np.asarray(found, np.float32)
        except Exception as error:
            raise DataError(f"{self.folder / MODEL} cannot encode texts ({_first_line(error)}): download it again.") from error
        return self._pooled(states, mask)

    def _pooled(self, states: Floats, mask: Ints) -> Floats:
        rows, longest = mask.shape
        if states.shape[:-1] not in ((rows,), (rows, longest)) or not 1 <= states.shape[-1] <= WIDEST:
            raise DataError(f"{self.folder / MODEL} returns an array of shape {states.shape}: give a text encoder.")
        if states.ndim == 3:
            shares = mask[:, :, None] / mask.sum(axis=1)[:, None, None]
            states = states[:, 0] if self._pools_first else (states * shares).sum(axis=1)
        if not np.isfinite(states).all():
            raise DataError(f"{self.folder / MODEL} returns numbers that are not finite: download it again.")
        return states.astype(np.float32)


def _read(path: Path, largest: int) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{path} cannot be read (it is not a regular file): give the folder of an encoder.")
        if status.st_size > largest:
            raise DataError(f"{path} is too large to be part of an encoder: give another encoder.")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): give the folder of an encoder.") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _windows(pieces: Ints, most: int) -> list[Ints]:
    """Overlapping windows of pieces that fit the encoder; empty if there are no pieces."""
    if len(pieces) <= most:
        return [pieces] if len(pieces) else []
    starts = range(0, len(pieces) - OVERLAP, most - OVERLAP)
    return [pieces[start : start + most] for start in starts]


def _batches(lengths: Ints) -> list[Ints]:
    """Positions in batches of similar length, each of at most PIECES_AT_ONCE pieces including padding."""
    order = np.argsort(lengths, kind="stable")
    batches: list[Ints] = []
    first = 0
    for last in range(1, len(order) + 1):
        if last == len(order) or (last - first + 1) * lengths[order[last]] > PIECES_AT_ONCE:
            batches.append(order[first:last])
            first = last
    return batches
