"""Recreate the packaged word table: distil it from the packaged encoder, fit it to texts, and pack it.

HANDFUL_DATA=/path/to/data python benchmarks/make_vectors.py --out handful/resources/minilm    (extra contextual; 15 minutes)

The texts are unlabelled and come from the classes that the generator is trained on: the first words of several thousand
documents of each data set. Encoded texts are cached, so an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from handful.data.datasets import load_dataset
from handful.embeddings.files import FileTable
from handful.embeddings.packed import pack_table
from handful.making.generator import CLASSES, DATASETS
from handful.making.word_table import distilled_file
from handful.models.generator import SHIPPED_GENERATOR
from handful.utils.files import write_atomic

LONGEST = 50  # words per text
MOST = 15_000  # texts per data set
SHORTEST = 3


def documents_of(name: str) -> Iterator[list[str]]:
    """The beginnings of texts from a data set's training classes."""
    dataset = load_dataset(name, SHIPPED_GENERATOR / CLASSES, LONGEST, skip_empty=True)
    members = np.flatnonzero(np.isin(dataset.corpus.labels, dataset.split.train))
    for document in np.random.default_rng(0).permutation(members)[:MOST]:
        words = dataset.corpus.words(int(document))
        if len(words) >= SHORTEST:
            yield words


def main() -> None:
    """Write the files of the packed table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    documents = [document for name in DATASETS for document in documents_of(name)]
    print(f"{len(documents):,} texts")
    words, vectors = FileTable(distilled_file("minilm", documents=documents)).arrays
    for name, content in pack_table(words, vectors.astype("float32")).items():
        write_atomic(out / name, content)
        print(f"{out / name}: {len(content) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
