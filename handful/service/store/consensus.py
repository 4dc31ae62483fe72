"""The state of a text, from the labels that people gave it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, select, update

from .names import TextState
from .tables import LABELS, TEXTS

AT_ONCE = 5_000  # numbers in one query
Item = TypeVar("Item")
# Built once: see actions.py
_VOTES = LABELS.c.text, LABELS.c.mark, LABELS.c.label, LABELS.c.final, LABELS.c.made
_OF_TEXTS = LABELS.c.text.in_(bindparam("texts", expanding=True))
VOTES = select(*_VOTES).where(LABELS.c.project == bindparam("project"), _OF_TEXTS)
_THESE = TEXTS.c.project == bindparam("project_"), TEXTS.c.number.in_(bindparam("numbers", expanding=True))
SET_STATE = update(TEXTS).where(*_THESE).values(state=bindparam("state"), label=bindparam("label"))


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
        found: dict[int, list[Any]] = {number: [] for number in some}
        for row in connection.execute(VOTES, {"project": project, "texts": some}):
            found[row.text].append(row)
        groups: dict[tuple[TextState, int | None], list[int]] = defaultdict(list)
        for number, labels in found.items():
            groups[consensus(labels)].append(number)
        for (state, label), texts in groups.items():
            given = {"project_": project, "numbers": texts, "state": state, "label": label}
            connection.execute(SET_STATE, given)
