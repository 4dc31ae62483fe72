"""Commands to create or download word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import Commands, reading_options, say


@click.group(cls=Commands)
def vectors() -> None:
    """Create or download word vectors."""


@vectors.command()
@click.option("--encoder", default="minilm", help="Encoder: minilm (packaged), a folder, or a name on the Hugging Face hub.")
@click.option("--words", default=60_000, help="Number of English words, the most frequent ones.")
@click.option("--dim", default=256, help="Length of the vectors, after principal component analysis.")
@click.option("--texts", help="Unlabelled texts to fit the table to: CSV, TSV, JSON, Parquet, Excel or plain lines.")
@reading_options
@click.option("--out", required=True, type=click.Path(path_type=Path), help=".npz file to write.")
def distill(encoder: str, words: int, dim: int, texts: str | None, out: Path, **reading: Any) -> None:
    """Create a static word table from an encoder: the vectors of single frequent words, without common components.

    With --texts, they are then fitted so that their means over your texts approximate the encoder's vectors of these texts.

    \b
    handful vectors distill --out minilm.npz
    handful vectors distill --texts inbox.csv --out ours.npz
    handful fit examples.csv --vectors wordllama+ours.npz:raw --out triage
    """
    from ..data.reader import Source, open_rows
    from ..data.text import words_of
    from ..making.word_table import distilled_file
    from ..utils.files import write_atomic
    from ..utils.paths import check_not_input

    check_not_input(out, [texts, encoder])
    documents: list[list[str]] = []
    if texts:
        with open_rows(Source(texts, **reading)) as rows:
            documents = [found for row in rows if (found := words_of(row.text))]
    table = distilled_file(encoder, words, dim, documents)
    write_atomic(out, table.read_bytes())
    say(f"{out}: {words} words, {dim} numbers each.")


@vectors.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write to; by default in the user's cache.")
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
def get(name: str, out: Path | None, quiet: bool) -> None:
    """Download published vectors: fasttext (the paper's, 6.6 GB), glove-50, glove-100, glove-200 or glove-300 (0.9 GB).

    \b
    handful vectors get glove-100 --out vectors
    handful train --vectors wordllama+vectors/glove.6B.100d.txt --out runs/both
    """
    from ..embeddings.published import get_vectors

    path = get_vectors(name, out, quiet=quiet)
    say(f"{path}: use it with --vectors {path}")
