"""Word vectors: made, not downloaded."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def vectors() -> None:
    """Make word vectors."""


@vectors.command()
@click.option("--encoder", default="minilm", help="minilm (packaged), a folder, or a name on the Hugging Face hub.")
@click.option("--words", default=60_000, help="How many of the most frequent English words.")
@click.option("--dim", default=256, help="Numbers of a vector, by principal components.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The table, an .npz file.")
def distill(encoder: str, words: int, dim: int, out: Path) -> None:
    """Make a static word table from an encoder: each frequent word's own vector, without the common components.

    \b
    handful vectors distill --out minilm.npz
    handful train --vectors wordllama+minilm.npz:raw --out runs/both
    """
    from ..embeddings.contextual import distilled_file

    table = distilled_file(encoder, words, dim)
    out.write_bytes(table.read_bytes())
    click.echo(f"{out}: {words} words, {dim} numbers each.")
