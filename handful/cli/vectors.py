"""Word vectors: made from an encoder, or fetched."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def vectors() -> None:
    """Make or fetch word vectors."""


@vectors.command()
@click.option("--encoder", default="minilm", help="minilm (packaged), a folder, or a name on the Hugging Face hub.")
@click.option("--words", default=60_000, help="How many of the most frequent English words.")
@click.option("--dim", default=256, help="Numbers of a vector, by principal components.")
@click.option("--texts", help="Unlabelled texts to fit it to: CSV, TSV, JSON lines, Parquet or plain lines.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The table, an .npz file.")
def distill(encoder: str, words: int, dim: int, texts: str | None, out: Path) -> None:
    """Make a static word table from an encoder: each frequent word's own vector, without the common components.

    With texts of your field, the words are then fitted so that their means are like the encoder's vectors of these texts.

    \b
    handful vectors distill --out minilm.npz
    handful vectors distill --texts inbox.csv --out ours.npz
    handful fit examples.csv --vectors wordllama+ours.npz:raw --out triage
    """
    from ..embeddings.distillation import distilled_file
    from ..rows import Source, open_rows
    from ..storage import write_atomic
    from ..text import words_of

    documents: list[list[str]] = []
    if texts:
        with open_rows(Source(texts)) as rows:
            documents = [found for row in rows if (found := words_of(row.text))]
    table = distilled_file(encoder, words, dim, documents)
    write_atomic(out, table.read_bytes())
    click.echo(f"{out}: {words} words, {dim} numbers each.")


@vectors.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="Folder; by default one in the user's cache.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def get(name: str, out: Path | None, quiet: bool) -> None:
    """Fetch published vectors: fasttext (the paper's, 6.6 GB), glove-50, glove-100, glove-200 or glove-300 (0.9 GB).

    \b
    handful vectors get glove-100 --out vectors
    handful train --vectors wordllama+vectors/glove.6B.100d.txt --out runs/both
    """
    from ..bench.vectors import get_vectors

    path = get_vectors(name, out, quiet=quiet)
    click.echo(f"{path}: use it with --vectors {path}")
