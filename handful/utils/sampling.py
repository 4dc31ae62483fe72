"""Uniform samples of streams of unknown length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Generic, TypeVar

import numpy as np

Item = TypeVar("Item")


class Reservoir(Generic[Item]):
    """A uniform sample of at most `most` items of a stream (reservoir sampling), always the same for the same seed."""

    def __init__(self, most: int, seed: int | Sequence[int]) -> None:
        self.items: list[Item] = []
        self._most = most
        self._rng = np.random.default_rng(seed)
        self._seen = 0

    def add(self, item: Item) -> None:
        """Add the next item of the stream to the sample, possibly replacing an earlier one, or drop it."""
        place = self._seen if self._seen < self._most else int(self._rng.integers(self._seen + 1))
        self._seen += 1
        if place < self._most:
            self.items[place : place + 1] = [item]


def even_sample(items: Iterable[Item], most: int) -> list[Item]:
    """All items if there are at most `most`, otherwise a uniform sample of `most`; in order, and always the same."""
    kept = Reservoir[tuple[int, Item]](most, 0)
    for numbered in enumerate(items):
        kept.add(numbered)
    return [item for _, item in sorted(kept.items, key=itemgetter(0))]
