from __future__ import annotations

from collections import Counter

import numpy as np

from handful.utils.sampling import Reservoir, even_sample


def kept(items: range, most: int, seed: int | list[int]) -> list[int]:
    reservoir = Reservoir[int](most, seed)
    for item in items:
        reservoir.add(item)
    return reservoir.items


def test_every_item_is_as_likely_and_a_seed_decides() -> None:
    counts = Counter(item for seed in range(2000) for item in kept(range(10), 3, seed))
    assert min(counts.values()) > 500
    assert max(counts.values()) < 700
    assert kept(range(100), 5, [0, 7]) == kept(range(100), 5, [0, 7]) != kept(range(100), 5, [0, 8])


def test_the_draws_are_those_of_numpys_generator_for_each_item_after_the_first() -> None:
    """What data sets were made with, and what was suggested, stays what it is."""
    expected, rng = list(range(4)), np.random.default_rng([0, 3])
    for item in range(4, 50):
        place = int(rng.integers(item + 1))
        if place < 4:
            expected[place] = item
    assert kept(range(50), 4, [0, 3]) == expected


def test_few_items_and_none() -> None:
    assert kept(range(3), 5, 0) == even_sample(range(3), 5) == [0, 1, 2]
    assert kept(range(3), 0, 0) == even_sample(range(3), 0) == []
