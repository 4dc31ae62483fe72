"""Data sets of the Hugging Face hub, read through the library datasets; nothing is downloaded unless one is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError
from .text_tables import ParsedFile, ParsedRow

PREFIX = "hf:"
ROWS_AT_ONCE = 1000
NO_CLASS = -1  # how the hub marks a row whose class is not published


def is_on_hub(data: str) -> bool:
    """Whether a name is that of a data set on the hub, such as `hf:mteb/banking77`."""
    return data.startswith(PREFIX)


def hub_table(data: str) -> ParsedFile:
    """The rows of all parts of a data set, `hf:NAME` or `hf:NAME:CONFIGURATION`; NAME may be a folder in the hub's layout.

    Classes have their names instead of numbers, and rows without a class are skipped.
    """
    parts = _load(data)
    features = parts[0].features
    names = {column: feature.names for column, feature in features.items() if hasattr(feature, "int2str")}
    number = count(1)

    def records(wanted: Sequence[str]) -> Iterator[ParsedRow]:
        batches = (batch for part in parts for batch in part.select_columns(list(wanted)).iter(ROWS_AT_ONCE))
        classes = [names.get(column) for column in wanted]
        for values in (values for batch in batches for values in zip(*(batch[column] for column in wanted), strict=True)):
            place = next(number)
            if all(value != NO_CLASS for value, known in zip(values, classes, strict=True) if known):
                yield place, [_named(value, known) for value, known in zip(values, classes, strict=True)]

    return ParsedFile(tuple(features), records, total=sum(map(len, parts)), unit="row", may_have=features.__contains__)


def _named(value: Any, names: Sequence[str] | None) -> Any:
    return value if names is None or value is None else names[value]


def _load(data: str) -> list[Any]:
    """The parts of a data set, such as train and test."""
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingExtraError(f"{data}", "hf") from error
    name = data.removeprefix(PREFIX)
    name, _, configuration = (name, "", "") if Path(name).is_dir() else name.partition(":")
    try:
        parts = list(load_dataset(name, configuration or None).values())
    except Exception as error:  # the library raises many kinds, for names, networks, configurations and files
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{data} cannot be loaded ({reason}): check the name, the configuration and the network.") from error
    if any(part.features != parts[0].features for part in parts):
        raise DataError(f"The parts of {data} have different columns: save one of them as a file, and give its path.")
    return parts
