"""The state of a text, from the labels that people gave it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, select, update

from .names import TextState
from .tables import LABELS, TEXTS

AT_ONCE = 5_000  # numbers in one query
Item = TypeVar("Item")


def chunks(items: Sequence[Item], size: int = AT_ONCE) -> Iterator[Sequence[Item]]:
    """Items in parts that fit a query."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def consensus(labels: Sequence[Any]) -> tuple[TextState, int | None]:
    """The state of a text and its class, from its labels (rows with mark, label, final and made).

    A final label decides, the latest one if there are several. Otherwise people who chose a class, or none of them, may differ:
    then the text is disputed, and its class is that of the majority, if there is one.
    """
    finals = sorted((row for row in labels if row.final), key=lambda row: row.made)
    decided = [(row.mark, row.label) for row in finals[-1:] or labels if row.mark in ("class", "none")]
    votes = Counter(decided).most_common()
    if not votes:
        marks = {row.mark for row in labels}
        return ("unsure" if "unsure" in marks else "skipped" if marks else "open"), None
    (mark, label), count = votes[0]
    if len(votes) == 1:
        return ("labelled" if mark == "class" else "none"), label
    return "disputed", label if count > votes[1][1] else None


def refresh_states(connection: Connection, project: str, numbers: Iterable[int]) -> None:
    """Write the states of texts whose labels changed."""
    for some in chunks(sorted(set(numbers))):
        mine = LABELS.c.project == project
        query = select(LABELS.c.text, LABELS.c.mark, LABELS.c.label, LABELS.c.final, LABELS.c.made)
        found: dict[int, list[Any]] = {number: [] for number in some}
        for row in connection.execute(query.where(mine, LABELS.c.text.in_(some))):
            found[row.text].append(row)
        groups: dict[tuple[TextState, int | None], list[int]] = defaultdict(list)
        for number, labels in found.items():
            groups[consensus(labels)].append(number)
        for (state, label), texts in groups.items():
            these = (TEXTS.c.project == project) & TEXTS.c.number.in_(texts)
            connection.execute(update(TEXTS).where(these).values(state=state, label=label))
