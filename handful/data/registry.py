"""Facts about the known data sets, from the packaged file `resources/datasets.json`; the texts themselves are not included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..errors import DataError, SettingError
from ..utils.paths import resource

ClassLabels = list[int] | list[str]


@dataclass(frozen=True)
class Place:
    """A place to get the files of a data set from, and the reader for them."""

    reader: str
    page: str = ""  # for people
    urls: tuple[str, ...] = ()  # for downloads; empty if an account is required, and only the list of documents for RCV1


@dataclass(frozen=True)
class DatasetFacts:
    """The facts about a data set. Labels are written as in its file."""

    name: str
    title: str
    home: str
    licence: str
    made: str  # how its texts became examples
    places: tuple[Place, ...]
    split: Mapping[str, ClassLabels]
    split_rule: str
    statistics: Mapping[str, int]
    classes: Mapping[str, str]  # name by label, for labels that are numbers
    each: int = 0  # minimum number of examples in every class
    part_of: str = ""  # the data set that contains this one, and from whose file it may be read
    skip_empty: bool = False
    note: str = ""
    splits: Mapping[str, Mapping[str, ClassLabels]] = field(default_factory=dict)  # further splits, by name

    @property
    def labels(self) -> list[str]:
        """The labels of all classes."""
        return [str(label) for part in self.split.values() for label in part]

    def check_whole(self, sizes: Mapping[str, int], place: str) -> None:
        """Raise a DataError if classes or examples are missing: part of a benchmark must not go by the name of the whole."""
        if self.fits(sizes):
            return
        missing = [label for label in self.labels if not sizes.get(label)]
        short = [label for label in self.labels if sizes.get(label, 0) < self.each]
        lack = f"lacks {len(missing)} of" if missing else f"has too few examples for {len(short)} of"
        part = next((other.name for other in known_datasets().values() if other.part_of == self.name and other.fits(sizes)), "")
        remedy = f"use it under its own name, {part}" if part else f"download it again (handful datasets get {self.name})"
        raise DataError(f"{place} {lack} the {len(self.labels)} classes of {self.name}: {remedy}.")

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Whether data with these numbers of examples per label has all that this record requires."""
        return all(sizes.get(label, 0) >= max(1, self.each) for label in self.labels)


@lru_cache
def known_datasets() -> dict[str, DatasetFacts]:
    """All records by name."""
    facts = json.loads(resource("datasets.json").read_text("utf-8"))
    return {name: _record(name, facts, fact) for name, fact in facts.items()}


def _record(name: str, facts: dict[str, Any], fact: dict[str, Any]) -> DatasetFacts:
    """One record; a part inherits missing facts from the data set that contains it."""
    whole = facts.get(fact.get("part_of", ""), {})
    inherited = {key: whole[key] for key in ("home", "licence", "made", "places", "classes", "skip_empty") if key in whole}
    fact = {"classes": {}, **inherited, **fact}
    places = tuple(Place(**{**place, "urls": tuple(place.get("urls", ()))}) for place in fact.pop("places"))
    return DatasetFacts(name=name, places=places, **fact)


def find_dataset_facts(name: str) -> DatasetFacts:
    """The record of a data set.

    >>> find_dataset_facts("reuters").title
    'Reuters-21578'
    """
    if name not in known_datasets():
        raise SettingError(f"There is no data set {name!r}: choose one of {', '.join(known_datasets())}.")
    return known_datasets()[name]
