"""Texts of a project: adding, finding and counting them."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, insert, select, true, update

from ..errors import NotFoundError
from .consensus import chunks
from .names import STATES, TextState
from .projects import ProjectRow
from .tables import CLASSES, LABELS, TEXTS

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class NewText:
    """A text to add, the class that it comes with, and other columns of its row."""

    text: str
    folded: str
    digest: int
    extra: str | None = None  # JSON
    label: int | None = None


def folded(text: str) -> str:
    """A text as it is searched: compatible letters, no case, single spaces.

    >>> folded("  My ＣＡＲＤ\\n was  lost")
    'my card was lost'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def words_digest(text: str) -> int:
    """The same for texts with the same words, whatever their case and punctuation; texts without words differ.

    >>> words_digest("My card, please!") == words_digest("my card please")
    True
    """
    words = " ".join(WORD.findall(folded(text))) or text
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "big", signed=True)


def new_text(text: str, extra: dict[str, Any] | None = None) -> NewText:
    """A text to add; all that takes time is done here, before a transaction keeps others waiting."""
    return NewText(text, folded(text), words_digest(text), json.dumps(extra) if extra else None)


def insert_texts(connection: Connection, project: str, start: int, texts: Sequence[NewText]) -> None:
    """Write texts with the numbers from `start` on."""
    rows = [
        {
            "project": project,
            "number": number,
            "text": one.text,
            "folded": one.folded,
            "digest": one.digest,
            "extra": one.extra,
            "state": "open" if one.label is None else "labelled",
            "label": one.label,
            "test": False,
        }
        for number, one in enumerate(texts, start)
    ]
    if rows:
        connection.execute(insert(TEXTS), rows)


def insert_labels(
    connection: Connection, project: str, start: int, texts: Sequence[NewText], annotator: str, made: float
) -> None:
    """Write the labels that texts come with."""
    rows = [
        {
            "project": project,
            "text": number,
            "annotator": annotator,
            "mark": "class",
            "label": one.label,
            "final": False,
            "made": made,
        }
        for number, one in enumerate(texts, start)
        if one.label is not None
    ]
    if rows:
        connection.execute(insert(LABELS), rows)


def delete_text(connection: Connection, project: ProjectRow, number: int) -> None:
    """Remove a text and its labels for good."""
    here = (TEXTS.c.project == project.id) & (TEXTS.c.number == number) & (TEXTS.c.number < project.visible)
    if not connection.execute(delete(TEXTS).where(here)).rowcount:
        raise missing(number)
    connection.execute(delete(LABELS).where(LABELS.c.project == project.id, LABELS.c.text == number))


def missing(number: int) -> NotFoundError:
    """The error about a text that is not there."""
    return NotFoundError(f"There is no text {number} in this project: reload the list.")


# Finding


@dataclass(frozen=True)
class TextFilter:
    """Which texts are wanted."""

    search: str = ""
    states: tuple[TextState, ...] = ()
    label: int | None = None
    annotator: str | None = None  # has labelled it
    unseen_by: str | None = None  # has not labelled it
    test: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it lets every text pass."""
        return self == TextFilter()


def condition(project: ProjectRow, wanted: TextFilter) -> ColumnElement[bool]:
    """The condition of a query for these texts."""
    parts: list[ColumnElement[bool]] = [TEXTS.c.project == project.id, TEXTS.c.number < project.visible]
    parts += [TEXTS.c.folded.contains(word, autoescape=True) for word in [folded(wanted.search)] if word]
    if wanted.states:
        parts.append(TEXTS.c.state.in_(wanted.states))
    if wanted.label is not None:
        parts.append(TEXTS.c.label == wanted.label)
    if wanted.test is not None:
        parts.append(TEXTS.c.test == wanted.test)
    for annotator, is_there in ((wanted.annotator, True), (wanted.unseen_by, False)):
        if annotator is not None:
            here = and_(LABELS.c.project == project.id, LABELS.c.text == TEXTS.c.number, LABELS.c.annotator == annotator)
            found = exists().where(here)
            parts.append(found if is_there else ~found)
    return and_(true(), *parts)


def find_numbers(connection: Connection, project: ProjectRow, wanted: TextFilter) -> list[int]:
    """The numbers of texts, in order."""
    query = select(TEXTS.c.number).where(condition(project, wanted)).order_by(TEXTS.c.number)
    return list(connection.scalars(query))


def find_among(connection: Connection, project: ProjectRow, wanted: TextFilter, numbers: Sequence[int]) -> set[int]:
    """Those of some numbers whose texts are wanted."""
    found: set[int] = set()
    for some in chunks(numbers):
        found.update(connection.scalars(select(TEXTS.c.number).where(condition(project, wanted), TEXTS.c.number.in_(some))))
    return found


def count_texts(connection: Connection, project: ProjectRow, wanted: TextFilter) -> int:
    """How many texts there are."""
    return connection.scalar(select(func.count()).select_from(TEXTS).where(condition(project, wanted))) or 0


def page_of_texts(
    connection: Connection, project: ProjectRow, wanted: TextFilter, descending: bool, offset: int, limit: int
) -> list[int]:
    """The numbers of texts on one page, in order of their numbers."""
    order = TEXTS.c.number.desc() if descending else TEXTS.c.number
    query = select(TEXTS.c.number).where(condition(project, wanted)).order_by(order).offset(offset).limit(limit)
    return list(connection.scalars(query))


def recently_labelled(connection: Connection, project: ProjectRow, wanted: TextFilter, offset: int, limit: int) -> list[int]:
    """The numbers of texts on one page, those labelled last first."""
    last = select(LABELS.c.text, func.max(LABELS.c.made).label("made")).where(LABELS.c.project == project.id)
    latest = last.group_by(LABELS.c.text).subquery()
    query = select(TEXTS.c.number).join(latest, latest.c.text == TEXTS.c.number).where(condition(project, wanted))
    return list(connection.scalars(query.order_by(latest.c.made.desc(), TEXTS.c.number).offset(offset).limit(limit)))


def texts_by_number(connection: Connection, project: ProjectRow, numbers: Iterable[int]) -> list[Any]:
    """Rows of texts, in the order of the numbers; those that are not there are left out."""
    wanted, found = list(numbers), dict[int, Any]()
    for some in chunks(wanted):
        here = (TEXTS.c.project == project.id) & TEXTS.c.number.in_(some) & (TEXTS.c.number < project.visible)
        found |= {row.number: row for row in connection.execute(select(TEXTS).where(here))}
    return [found[number] for number in wanted if number in found]


def labels_by_text(connection: Connection, project: str, numbers: Sequence[int]) -> dict[int, list[Any]]:
    """All labels of some texts, the first one first."""
    found: dict[int, list[Any]] = {number: [] for number in numbers}
    for some in chunks(numbers):
        query = select(LABELS).where(LABELS.c.project == project, LABELS.c.text.in_(some)).order_by(LABELS.c.made)
        for row in connection.execute(query):
            found[row.text].append(row)
    return found


def text_batch(connection: Connection, project: ProjectRow, after: int, size: int) -> list[Any]:
    """The next texts (number, text) after a number, in order."""
    mine = (TEXTS.c.project == project.id) & (TEXTS.c.number > after) & (TEXTS.c.number < project.visible)
    return list(connection.execute(select(TEXTS.c.number, TEXTS.c.text).where(mine).order_by(TEXTS.c.number).limit(size)))


# Counting


def state_counts(connection: Connection, project: ProjectRow) -> dict[str, int]:
    """How many texts there are in each state."""
    query = select(TEXTS.c.state, func.count()).where(condition(project, TextFilter())).group_by(TEXTS.c.state)
    found: dict[str, int] = {row[0]: row[1] for row in connection.execute(query)}
    return {state: found.get(state, 0) for state in STATES}


def class_counts(connection: Connection, project: ProjectRow) -> dict[int, int]:
    """How many texts have each class."""
    mine = condition(project, TextFilter()) & TEXTS.c.label.is_not(None)
    return {
        row[0]: row[1] for row in connection.execute(select(TEXTS.c.label, func.count()).where(mine).group_by(TEXTS.c.label))
    }


def text_classes(connection: Connection, project: ProjectRow) -> dict[int, int]:
    """The class of each text that has one."""
    mine = condition(project, TextFilter()) & TEXTS.c.label.is_not(None)
    return {row[0]: row[1] for row in connection.execute(select(TEXTS.c.number, TEXTS.c.label).where(mine))}


def annotator_counts(connection: Connection, project: ProjectRow) -> list[dict[str, Any]]:
    """How many labels each person gave, and when the last one."""
    query = select(LABELS.c.annotator, func.count().label("labels"), func.max(LABELS.c.made).label("last"))
    mine = (LABELS.c.project == project.id) & (LABELS.c.text < project.visible)
    rows = connection.execute(query.where(mine).group_by(LABELS.c.annotator).order_by(LABELS.c.annotator))
    return [{"annotator": row.annotator, "labels": row.labels, "last": row.last} for row in rows]


# What models learn from


@dataclass(frozen=True)
class LabelledText:
    """A text on whose class people agree."""

    number: int
    text: str
    label: int
    test: bool


def labelled_texts(connection: Connection, project: ProjectRow) -> list[LabelledText]:
    """The texts with a class, in the order in which they got it."""
    last = select(LABELS.c.text, func.min(LABELS.c.made).label("made")).where(LABELS.c.project == project.id)
    first = last.group_by(LABELS.c.text).subquery()
    live = select(CLASSES.c.number).where(CLASSES.c.project == project.id, CLASSES.c.state == "live")
    mine = condition(project, TextFilter()) & TEXTS.c.label.in_(live)
    query = select(TEXTS.c.number, TEXTS.c.text, TEXTS.c.label, TEXTS.c.test).join(first, first.c.text == TEXTS.c.number)
    rows = connection.execute(query.where(mine).order_by(first.c.made, TEXTS.c.number))
    return [LabelledText(row.number, row.text, row.label, row.test) for row in rows]


def set_test(connection: Connection, project: ProjectRow, numbers: Sequence[int] | None) -> None:
    """Put texts into the test set; None takes all of them out."""
    if numbers is None:
        connection.execute(update(TEXTS).where(TEXTS.c.project == project.id, TEXTS.c.test).values(test=False))
        return
    for some in chunks(numbers):
        connection.execute(update(TEXTS).where(TEXTS.c.project == project.id, TEXTS.c.number.in_(some)).values(test=True))
