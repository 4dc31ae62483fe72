"""One parallel map, through joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")


def parallel_map(function: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], workers: int = 1) -> Iterator[Result]:
    """`function(*job)` of each job, in order; in this process for one worker, in others for more."""
    if workers == 1:
        yield from (function(*job) for job in jobs)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=workers, return_as="generator")(delayed(function)(*job) for job in jobs)
