"""The data sets that Handful knows: their facts, which ship as `data/datasets.json`. The texts themselves do not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from .errors import DataError, SettingError

Labels = list[int] | list[str]


@dataclass(frozen=True)
class Place:
    """Where files of a data set can be had, and the reader that understands them."""

    reader: str
    page: str = ""  # for a person
    urls: tuple[str, ...] = ()  # for a program; none where an account is asked for, and only the list of documents for RCV1


@dataclass(frozen=True)
class Record:
    """What is known of a data set. Labels are as its file writes them."""

    name: str
    title: str
    home: str
    licence: str
    made: str  # how its texts became examples
    places: tuple[Place, ...]
    split: Mapping[str, Labels]
    split_rule: str
    statistics: Mapping[str, int]
    classes: Mapping[str, str]  # label to name, for labels that are numbers
    each: int = 0  # examples that every class has at least
    part_of: str = ""  # the data set of which this is a part, and whose file it may be read from
    skip_empty: bool = False
    note: str = ""
    splits: Mapping[str, Mapping[str, Labels]] = field(default_factory=dict)  # others than its own, by name

    @property
    def labels(self) -> list[str]:
        """The labels of all classes."""
        return [str(label) for part in self.split.values() for label in part]

    def check_whole(self, sizes: Mapping[str, int], place: str) -> None:
        """Refuse data that lacks classes or has short ones: a part of a benchmark is not called by its name."""
        if self.fits(sizes):
            return
        missing = [label for label in self.labels if not sizes.get(label)]
        short = [label for label in self.labels if sizes.get(label, 0) < self.each]
        lack = f"lacks {len(missing)} of" if missing else f"has too few examples for {len(short)} of"
        part = next((other.name for other in catalogue().values() if other.part_of == self.name and other.fits(sizes)), "")
        remedy = f"use it by the name of that part, {part}" if part else f"fetch it again (handful datasets get {self.name})"
        raise DataError(f"{place} {lack} the {len(self.labels)} classes of {self.name}: {remedy}.")

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Whether data with so many examples of each label has all that this record promises."""
        return all(sizes.get(label, 0) >= max(1, self.each) for label in self.labels)


@lru_cache
def catalogue() -> dict[str, Record]:
    """All records by name."""
    facts = json.loads((files("handful") / "data" / "datasets.json").read_text("utf-8"))
    return {name: _record(name, facts, fact) for name, fact in facts.items()}


def _record(name: str, facts: dict[str, Any], fact: dict[str, Any]) -> Record:
    """A record; a part takes what it does not say from the data set it is a part of."""
    whole = facts.get(fact.get("part_of", ""), {})
    inherited = {key: whole[key] for key in ("home", "licence", "made", "places", "classes", "skip_empty") if key in whole}
    fact = {"classes": {}, **inherited, **fact}
    places = tuple(Place(**{**place, "urls": tuple(place.get("urls", ()))}) for place in fact.pop("places"))
    return Record(name=name, places=places, **fact)


def find_record(name: str) -> Record:
    """The record of a data set.

    >>> find_record("reuters").title
    'Reuters-21578'
    """
    if name not in catalogue():
        raise SettingError(f"There is no data set {name!r}: choose one of {', '.join(catalogue())}.")
    return catalogue()[name]
