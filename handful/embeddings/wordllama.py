"""The default word vectors: wordllama's sub-word table, read from the installed package, whose own loader needs a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..data.text import MAX_WORD_CHARACTERS
from ..utils.functional import Floats, weighted_bag

FREQUENT = 20_000
MOST_REMEMBERED = 200_000  # words whose pieces are kept: those of most texts, in some tens of megabytes
RAW_SCALE = 0.05958443135023117  # 1 / the root mean square of the frequent words' lengths, for sums of pieces


@dataclass(frozen=True)
class WordLlama:
    """Word vectors as the sum (or the mean) of a word's pieces, so that every word has one."""

    pieces: str = "sum"
    name: str = "wordllama"
    dim: int = 256

    @property
    def raw_scale(self) -> float | None:
        """The factor that gives frequent words a root-mean-square length of 1, if it is known in advance."""
        return RAW_SCALE if self.pieces == "sum" else None

    @cached_property
    def _folder(self) -> Path:
        spec = find_spec("wordllama")  # only located: the package itself is not imported
        if spec is None or spec.origin is None:
            raise ImportError("The default word vectors need wordllama, which is not installed: run pip install wordllama.")
        return Path(spec.origin).parent

    @cached_property
    def _table(self) -> np.ndarray[Any, Any]:
        from safetensors.numpy import load_file

        tensors = load_file(self._folder / "weights" / "l2_supercat_256.safetensors")
        return tensors["embedding.weight"]  # (32000, 256) in half precision: only the rows in use are converted to single

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    def lookup(self, words: Sequence[str]) -> Floats:
        """One row per word: (words, 256)."""
        pieces = self._pieces(words)
        lengths = np.array([len(ids) for ids in pieces], np.int64)
        weights = np.ones(lengths.sum(), np.float32)
        if self.pieces == "mean":
            weights = np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)
        rows = np.concatenate([np.array(ids, np.int64) for ids in pieces]) if pieces else np.empty(0, np.int64)
        vectors: Floats = weighted_bag(self._table, rows, weights, np.concatenate([[0], np.cumsum(lengths)]))
        return vectors

    @cached_property
    def _remembered(self) -> dict[str, list[int]]:
        return {}

    def _pieces(self, words: Sequence[str]) -> list[list[int]]:
        """The pieces of each word; those of words seen before are remembered, since the tokenizer takes most of the time."""
        known = self._remembered
        missing = list({word: None for word in words if word not in known})
        readable = [_readable(word[:MAX_WORD_CHARACTERS]) for word in missing]
        encoded = self._tokenizer.encode_batch_fast(readable, add_special_tokens=False) if missing else []
        fresh = {word: encoding.ids for word, encoding in zip(missing, encoded, strict=True)}
        if len(known) + len(fresh) <= MOST_REMEMBERED:
            known.update(fresh)
        return [fresh[word] if word in fresh else known[word] for word in words]

    def lookup_with_frequent(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """The vectors of the words, and those of the language's most frequent words."""
        return self.lookup(words), self._frequent

    @cached_property
    def _frequent(self) -> Floats:
        from wordfreq import top_n_list

        return self.lookup(top_n_list("en", FREQUENT))


def _readable(word: str) -> str:
    """A word with unpaired surrogates replaced, as the tokenizer cannot read them."""
    return word if word.isascii() else word.encode("utf-8", "replace").decode()
