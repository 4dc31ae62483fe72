"""Recreate the packaged word tables.

HANDFUL_DATA=/path/to/data python benchmarks/make_vectors.py minilm --out handful/resources/minilm        (extra contextual)
python benchmarks/make_vectors.py blend --texts texts.json --work FOLDER --out handful/resources/blend      (extra encoder)

minilm  distilled from the packaged encoder, and fitted to texts: the first words of several thousand documents of each data
        set, without labels, from the classes that the generator is trained on
blend   words of bge-small, fitted to its vectors of the texts in a JSON list, blended with `wordllama` and `minilm`; the texts
        that were used are the first 237,568 of those written by benchmarks/make_encoder.py

Encoded texts are kept, so an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from _encoders import bge_small

from handful.data.datasets import load_dataset
from handful.data.text import words_of
from handful.embeddings import load_vectors
from handful.embeddings.blended import MAPS_FILE, PIECES
from handful.embeddings.files import FileTable
from handful.embeddings.packed import FREQUENT, npy, pack_table
from handful.embeddings.wordllama import RAW_SCALE
from handful.making.generator import CLASSES, DATASETS
from handful.making.word_table import (
    blending,
    distilled_file,
    fit_to_sentences,
    frequent_words,
    guessing,
    weighted_bags,
    without_common,
)
from handful.models.generator import SHIPPED_GENERATOR
from handful.utils.files import write_atomic
from handful.utils.functional import Floats, unit_length

LONGEST = 50  # words per text
MOST = 15_000  # texts per data set
SHORTEST = 3
BLEND_LONGEST = 110  # words per text
BLEND_TEXTS = 237_568
BLEND_WORDS, FITTED_WORDS = 50_000, 150_000  # in the table, and fitted together with these
FITTED_DIM, BLEND_DIM = 256, 384
BGE_WEIGHT = 0.85  # of the fitted table, beside the other two
BLEND_PULL = 0.3
AT_ONCE = 8192  # texts that are encoded before their vectors are stored
Files = dict[str, bytes]


def documents_of(name: str) -> Iterator[list[str]]:
    """The beginnings of texts from a data set's training classes."""
    dataset = load_dataset(name, SHIPPED_GENERATOR / CLASSES, LONGEST, skip_empty=True)
    members = np.flatnonzero(np.isin(dataset.corpus.labels, dataset.split.train))
    for document in np.random.default_rng(0).permutation(members)[:MOST]:
        words = dataset.corpus.words(int(document))
        if len(words) >= SHORTEST:
            yield words


def minilm_table() -> Files:
    """The files of the table `minilm`."""
    documents = [document for name in DATASETS for document in documents_of(name)]
    print(f"{len(documents):,} texts")
    words, vectors = FileTable(distilled_file("minilm", documents=documents)).arrays
    return pack_table(words, vectors.astype("float32"))


def blend_table(texts: Sequence[str], work: Path) -> Files:
    """The files of the table `blend`."""
    documents = [words_of(text, BLEND_LONGEST) for text in texts]
    words = frequent_words(documents, FITTED_WORDS)
    alone = without_common(encoded(words, work / "words"))
    minilm, pieces = (load_vectors(name).lookup(words) for name in ("minilm", "wordllama"))
    known = np.concatenate([alone, minilm, pieces], axis=1)  # (words, dims of all)
    sentences = encoded(texts, work / "texts")
    fitted = fit_to_sentences(words, known, documents, sentences - sentences.mean(axis=0), FITTED_DIM, BLEND_PULL)
    fitted /= frequent_length(fitted)  # as long as the other two
    weighted = [BGE_WEIGHT * fitted, minilm, pieces]
    directions = blending([table[:BLEND_WORDS] for table in weighted], weighted_bags(words[:BLEND_WORDS], documents), BLEND_DIM)
    vectors = np.concatenate(weighted, axis=1)[:BLEND_WORDS] @ directions
    maps = np.concatenate([directions, guessing(pieces[:BLEND_WORDS], vectors)])
    maps[:FITTED_DIM] *= BGE_WEIGHT
    maps[-2 * PIECES.dim :] *= RAW_SCALE  # the table on disk is not scaled
    files = pack_table(words[:BLEND_WORDS], fitted[:BLEND_WORDS])
    return {**files, MAPS_FILE: npy((maps / frequent_length(vectors)).astype(np.float32))}


def frequent_length(vectors: Floats) -> np.float32:
    """The root mean square of the lengths of the frequent words."""
    return np.sqrt(np.mean(np.sum(vectors[:FREQUENT] ** 2, axis=1)))  # type: ignore[no-any-return]


def encoded(texts: Sequence[str], folder: Path) -> Floats:
    """The vectors of length 1 that bge-small gives to texts, stored in parts."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder, parts = bge_small(), []
    for first in range(0, len(texts), AT_ONCE):
        path = folder / f"{first:07d}.npy"
        if not path.exists():
            unfinished = path.with_suffix(".part.npy")
            np.save(unfinished, encoder.encode(texts[first : first + AT_ONCE]).astype(np.float16))
            unfinished.rename(path)
        parts.append(unit_length(np.load(path).astype(np.float32)))
    return np.concatenate(parts)


def main() -> None:
    """Write the files of a packed table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("minilm", "blend"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=Path, help="JSON list of texts, for blend.")
    parser.add_argument("--work", type=Path, help="Folder for vectors of texts, for blend.")
    arguments = parser.parse_args()
    if arguments.table == "minilm":
        files = minilm_table()
    elif arguments.texts and arguments.work:
        files = blend_table(json.loads(arguments.texts.read_text())[:BLEND_TEXTS], arguments.work)
    else:
        parser.error("blend needs --texts and --work.")
    for name, content in files.items():
        write_atomic(arguments.out / name, content)
        print(f"{arguments.out / name}: {len(content) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
