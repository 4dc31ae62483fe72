"""One parallel map, through joblib; and who may use which threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


def available_threads() -> int:
    """Threads that this process may use: OMP_NUM_THREADS, which joblib sets for its workers, or the cores it may run on."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def torch_threads(count: int = 1) -> Iterator[None]:
    """Keep torch to some threads, one by default: idle ones spin, and take the core that the compiled LSTM could use."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def parallel_map(function: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], workers: int = 1) -> Iterator[Result]:
    """`function(*job)` of each job, in order; in this process for one worker, in others for more."""
    if workers == 1:
        yield from (function(*job) for job in jobs)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=workers, return_as="generator")(delayed(function)(*job) for job in jobs)
