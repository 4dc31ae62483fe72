"""A model's answers to all texts of a project, with short vectors of the texts for maps and near-duplicates."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...utils.functional import Floats, Ints
from ..store.database import Database
from ..store.projects import read_row
from ..store.texts import text_batch
from .computed import Key, key_of
from .models import ProjectModel

WIDTH = 128  # of the short vectors, which are random projections: cosines of similar texts are kept to half a percent
BATCH = 1_000  # texts read from the store at once


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Answers to all texts: one row per text, in order of their numbers."""

    numbers: Ints  # (texts,)
    classes: Ints  # (texts,): the number of the most probable class
    probabilities: Floats  # (texts,): of that class
    margins: Floats  # (texts,): how much more probable it is than the next one
    vectors: Floats  # (texts, WIDTH) in half precision; zeros for a text without known words

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The rows of some texts, and which of the texts have one."""
        rows = np.minimum(np.searchsorted(self.numbers, numbers), max(len(self.numbers) - 1, 0))
        found = self.numbers[rows] == numbers if len(self.numbers) else np.zeros(len(numbers), bool)
        return rows[found], np.flatnonzero(found)


def take_snapshot(database: Database, model_of: Callable[[str, Key], ProjectModel], project: str) -> tuple[Key, Snapshot]:
    """Let the present model answer all texts, some at a time, so that memory stays bounded."""
    with database.reading() as connection:
        row = read_row(connection, project)
    model = model_of(project, key_of(row))
    fitted = model.require()
    shorten = projection(fitted.encoder.dim)
    parts: list[tuple[Ints, Ints, Floats, Floats, Floats]] = []
    last = -1
    while True:
        with database.reading() as connection:
            some = text_batch(connection, row, last, BATCH)
        if not some:
            break
        last = some[-1].number
        vectors = np.concatenate(
            [fitted.encoder.vectors(documents) for documents in fitted.encoder.batches(one.text for one in some)]
        )
        scores = fitted.logits(vectors.astype(np.float64))
        found = np.sort(fitted.probabilities(scores), axis=1)
        best = model.numbers[scores.argmax(axis=1)]
        short = (fitted.scorer.centred(vectors) @ shorten).astype(np.float16)
        numbers = np.array([one.number for one in some], np.int64)
        parts.append((numbers, best, found[:, -1].astype(np.float32), (found[:, -1] - found[:, -2]).astype(np.float32), short))
    return key_of(row), _joined(parts)


def _joined(parts: list[tuple[Ints, Ints, Floats, Floats, Floats]]) -> Snapshot:
    if not parts:
        nothing = np.empty(0, np.int64)
        return Snapshot(nothing, nothing, np.empty(0, np.float32), np.empty(0, np.float32), np.empty((0, WIDTH), np.float32))
    return Snapshot(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def projection(dim: int) -> Floats:
    """A random projection to short vectors, always the same: (dim, WIDTH)."""
    made: Floats = (np.random.default_rng(0).normal(size=(dim, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
    return made


# A map of the texts

SAMPLE = 5_000  # texts that decide the axes


def principal_map(vectors: Floats) -> Floats:
    """Two principal components of short vectors, each from -1 to 1: (texts, 2)."""
    if len(vectors) < 3:
        return np.zeros((len(vectors), 2), np.float32)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(vectors), min(SAMPLE, len(vectors)), replace=False)
    sample = vectors[chosen].astype(np.float32)
    centre = sample.mean(axis=0)
    axes = np.linalg.svd(sample - centre, full_matrices=False)[2][:2]
    axes *= np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]  # a sign that does not depend on the machine
    points = np.concatenate([(part.astype(np.float32) - centre) @ axes.T for part in _blocks(vectors)])
    return (points / max(float(np.abs(points).max()), 1e-9)).astype(np.float32)


def _blocks(vectors: Floats, size: int = 10_000) -> list[Floats]:
    return [vectors[start : start + size] for start in range(0, len(vectors), size)]


# Near-duplicates

TABLES, BITS = 8, 12  # of random hyperplanes: pairs with a cosine of 0.97 share one of the tables' cells in 98 of 100 cases
LEAST_ALIKE = 0.97  # cosine of near-duplicates
LARGEST_CELL = 2_000  # texts compared with each other; a larger cell is compared in parts
MOST_PAIRS = 10_000


def near_duplicates(vectors: Floats) -> list[tuple[int, int, float]]:
    """Pairs of rows whose cosine is at least LEAST_ALIKE, the most alike first."""
    lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
    rows = np.flatnonzero(lengths > 0)
    unit = (vectors[rows] / lengths[rows, None]).astype(np.float32)
    found: dict[tuple[int, int], float] = {}
    rng = np.random.default_rng(1)
    for _ in range(TABLES):
        bits = unit @ rng.normal(size=(unit.shape[1], BITS)).astype(np.float32) > 0
        cells = bits @ (1 << np.arange(BITS))
        order = np.argsort(cells, kind="stable")
        edges = np.flatnonzero(np.diff(cells[order], prepend=-1, append=-1))
        for start, end in itertools.pairwise(edges):
            _compare(unit, order[start:end], found)
            if len(found) >= MOST_PAIRS:
                break
    pairs = [(int(rows[a]), int(rows[b]), alike) for (a, b), alike in found.items()]
    return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))[:MOST_PAIRS]


def _compare(unit: Floats, cell: Ints, found: dict[tuple[int, int], float]) -> None:
    for start in range(0, len(cell), LARGEST_CELL):
        part = cell[start : start + LARGEST_CELL]
        if len(part) < 2:
            continue
        alike = np.triu(unit[part] @ unit[part].T, 1)
        for a, b in zip(*np.nonzero(alike >= LEAST_ALIKE), strict=True):
            first, second = sorted((int(part[a]), int(part[b])))
            found[first, second] = float(min(alike[a, b], 1.0))
