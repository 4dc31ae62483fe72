"""Probable mistakes: labels that a model would not give, contradictions and near-duplicates."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

import numpy as np
from sqlalchemy import Connection, func, select

from ..store.projects import ProjectRow
from ..store.tables import TEXTS
from ..store.texts import TextFilter, condition
from .snapshot import Snapshot, near_duplicates
from .validation import Validation

Kind = Literal["mistakes", "contradictions", "duplicates"]
SURE = 0.5  # probability of another class from which a label is a probable mistake
LEAST_EXAMPLES = 3  # labelled texts of a class, from which a model can know better than a person
MOST = 1_000  # of one kind


def likely_mistakes(validation: Validation) -> list[dict[str, Any]]:
    """Labelled texts to which a model that had not seen their label would give another class; the surest first."""
    places = {number: place for place, number in enumerate(validation.classes.tolist())}
    found: list[dict[str, Any]] = []
    for row in np.flatnonzero(1 - validation.right):
        given = validation.probabilities[row, places[int(validation.truth[row])]]
        other = validation.probabilities[row].max()
        if other >= SURE and (validation.truth == validation.truth[row]).sum() >= LEAST_EXAMPLES:
            text, label = int(validation.numbers[row]), int(validation.truth[row])
            found.append(
                {
                    "item": f"{text}:{label}",
                    "texts": [text],
                    "class": label,
                    "predicted": int(validation.found[row]),
                    "probability": float(other),
                    "probability_of_label": float(given),
                }
            )
    return sorted(found, key=lambda one: one["probability_of_label"] - one["probability"])[:MOST]


def contradictions(connection: Connection, project: ProjectRow) -> list[dict[str, Any]]:
    """Texts with the same words and different classes."""
    mine = condition(project, TextFilter()) & TEXTS.c.label.is_not(None)
    several = select(TEXTS.c.digest).where(mine).group_by(TEXTS.c.digest).having(func.count(TEXTS.c.label.distinct()) > 1)
    query = select(TEXTS.c.number, TEXTS.c.label, TEXTS.c.digest).where(mine, TEXTS.c.digest.in_(several.limit(MOST)))
    groups: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(query.order_by(TEXTS.c.number)):
        groups[row.digest].append(row)
    return [
        {
            "item": ":".join(f"{row.number}={row.label}" for row in rows[:3]),
            "texts": [row.number for row in rows],
            "classes": [row.label for row in rows],
        }
        for rows in groups.values()
    ]


def same_words(connection: Connection, project: ProjectRow) -> list[dict[str, Any]]:
    """Groups of texts with the same words."""
    mine = condition(project, TextFilter())
    several = select(TEXTS.c.digest).where(mine).group_by(TEXTS.c.digest).having(func.count() > 1).limit(MOST)
    query = select(TEXTS.c.number, TEXTS.c.digest).where(mine, TEXTS.c.digest.in_(several)).order_by(TEXTS.c.number)
    groups: dict[int, list[int]] = defaultdict(list)
    for row in connection.execute(query):
        groups[row.digest].append(row.number)
    return [{"item": f"{texts[0]}:{texts[1]}", "texts": texts, "similarity": 1.0} for texts in groups.values()]


def alike(snapshot: Snapshot, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pairs of texts that are nearly the same to the model, without those that have the same words."""
    group = {text: number for number, one in enumerate(known) for text in one["texts"]}
    found = []
    for a, b, cosine in near_duplicates(snapshot.vectors):
        first, second = int(snapshot.numbers[a]), int(snapshot.numbers[b])
        if first not in group or group.get(second) != group[first]:
            found.append({"item": f"{first}:{second}", "texts": [first, second], "similarity": cosine})
    return found[:MOST]
