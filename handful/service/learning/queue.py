"""What to label next: texts chosen ahead of time, so that nobody waits."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

from ...classifier.suggestion import suggest_texts, uncertainty
from ..store.database import Database
from ..store.names import TextState
from ..store.projects import ProjectRow, read_row
from ..store.texts import TextFilter, find_among, find_numbers, page_of_texts, recently_labelled, texts_by_number
from .computed import Key, key_of
from .models import ProjectModel

Strategy = Literal["suggest", "uncertain", "random", "order", "search", "test", "second", "disputed"]
CANDIDATES = 1_000  # texts that stand for all: enough for a good choice, few enough for a choice in less than a second
AHEAD = 40  # texts chosen at once
UNDECIDED: tuple[TextState, ...] = ("open", "skipped", "unsure")
DECIDED: tuple[TextState, ...] = ("labelled", "none", "unsure")
LEASE = 120.0  # seconds for which a text that one person got is not suggested to another


@dataclass(frozen=True)
class Queue:
    """Texts by number, the most useful first."""

    suggested: tuple[int, ...]
    uncertain: tuple[int, ...]


def choose_ahead(database: Database, model: ProjectModel, project: str) -> tuple[Key, Queue]:
    """Choose texts of a project that the model should learn next."""
    with database.reading() as connection:
        row = read_row(connection, project)
        numbers = find_numbers(connection, row, TextFilter(states=UNDECIDED, test=False))
        chosen = random.Random(row.version).sample(numbers, min(CANDIDATES, len(numbers)))  # noqa: S311
        found = texts_by_number(connection, row, sorted(chosen))
        if model.fitted is None or not found:
            return key_of(row), Queue((), ())
        known = TextFilter(states=("labelled",), test=False)
        recent = recently_labelled(connection, row, known, 0, len(model.fitted.classes))
        labelled = [one.text for one in texts_by_number(connection, row, recent)]
    texts, order = [one.text for one in found], [one.number for one in found]
    suggested = suggest_texts(model.fitted, texts, AHEAD, labelled)
    unsure = uncertainty(model.fitted.probabilities(model.fitted.scores(texts)), "single")
    ranked = (-unsure).argsort(kind="stable")[:AHEAD]
    return key_of(row), Queue(tuple(order[i] for i in suggested), tuple(order[i] for i in ranked))


@dataclass
class Leases:
    """Who was given which text a moment ago; only in this process, since the same text for two does no damage."""

    _held: dict[tuple[str, int], tuple[str, float]] = field(default_factory=dict)
    _guard: Lock = field(default_factory=Lock)

    def free(self, project: str, annotator: str, numbers: Sequence[int]) -> list[int]:
        """The texts that nobody else was given."""
        now = time.monotonic()
        with self._guard:
            held = {number: self._held.get((project, number)) for number in numbers}
        return [number for number, one in held.items() if one is None or one[0] == annotator or one[1] < now]

    def take(self, project: str, annotator: str, numbers: Sequence[int]) -> None:
        """Keep texts from others for a while."""
        now = time.monotonic()
        with self._guard:
            if len(self._held) > 10_000:
                self._held = {key: one for key, one in self._held.items() if one[1] > now}
            self._held.update({(project, number): (annotator, now + LEASE) for number in numbers})


def candidates(strategy: Strategy, annotator: str, search: str) -> TextFilter:
    """Which texts a strategy may choose for a person."""
    if strategy == "second":
        return TextFilter(states=DECIDED, unseen_by=annotator, test=False)
    if strategy == "disputed":
        return TextFilter(states=("disputed",))
    if strategy == "test":
        return TextFilter(unseen_by=annotator, test=True)
    return TextFilter(search=search, states=UNDECIDED, unseen_by=annotator, test=False)


def at_random(database: Database, project: ProjectRow, wanted: TextFilter, count: int, excluded: set[int]) -> list[int]:
    """Texts at random: some are tried by their numbers, and only if too few of them fit, all are looked at."""
    source = random.SystemRandom()
    tried = source.sample(range(project.visible), min(20 * count + 100, project.visible))
    with database.reading() as connection:
        fitting = find_among(connection, project, wanted, tried)
        left = [number for number in tried if number in fitting and number not in excluded]
        if len(left) < count:
            every = [number for number in find_numbers(connection, project, wanted) if number not in excluded]
            left = source.sample(every, min(count, len(every)))
    return left[:count]


def in_order(database: Database, project: ProjectRow, wanted: TextFilter, count: int, excluded: set[int]) -> list[int]:
    """Texts in order of their numbers."""
    with database.reading() as connection:
        found = page_of_texts(connection, project, wanted, False, 0, count + len(excluded))
    return [number for number in found if number not in excluded][:count]
