"""One parallel map, through joblib, on this machine or a cluster; and who may use which threads."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import HandfulError, MissingExtraError, SettingError

Result = TypeVar("Result")
Job = TypeVar("Job", bound="tuple[Any, ...]")
BACKENDS = ("processes", "dask", "ray")
ATTEMPTS = 3  # of a job whose worker dies


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

    with _workers_may_grow():
        yield from Parallel(n_jobs=workers, return_as="generator")(delayed(function)(*job) for job in jobs)


@contextmanager
def _workers_may_grow() -> Iterator[None]:
    """joblib replaces a worker that has grown between two jobs, as one does that loads data, and warns of it.

    It does so in a thread that must not die, or all workers wait for ever: the warning may not become an error.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield


# Long jobs, each on its own


@dataclass(frozen=True)
class Pool:
    """Where long jobs run: in processes of this machine, or on a Dask or Ray cluster at an address."""

    workers: int = 1  # processes; a cluster has as many as it has
    backend: str = "processes"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise SettingError(f"There is no backend {self.backend!r}: choose one of {', '.join(BACKENDS)}.")
        if self.workers < 1:
            raise SettingError(f"{self.workers} workers do no work: give 1 at least (--workers).")
        if (self.backend == "processes") == bool(self.address):
            raise SettingError("A cluster has an address and processes have none: give --address with --backend dask or ray.")


@dataclass(frozen=True)
class Failure:
    """A job that raised an error, or whose workers died: why, as a sentence."""

    reason: str


def dependable_map(
    function: Callable[..., Result], jobs: Iterable[Job], pool: Pool | None = None
) -> Iterator[tuple[Job, Result | Failure]]:
    """Each job with `function(*job)` or the reason why there is none, as they finish. Jobs are drawn when a worker is free.

    A worker that dies ends joblib's whole call. What was running then is run again beside the others, the last time alone,
    so that a job that kills its worker takes no other job with it.
    """
    pool = pool or Pool()
    if pool == Pool():
        yield from ((job, _attempt(function, 0, job)[1]) for job in jobs)
        return
    source, again, alone = enumerate(jobs), deque[tuple[int, Job]](), deque[tuple[int, Job]]()
    tries, running = Counter[int](), dict[int, Job]()

    def draw() -> Iterator[tuple[int, Job]]:
        while item := again.popleft() if again else next(source, None):
            running[item[0]] = item[1]
            yield item

    with _parallel(pool) as run:
        while True:
            try:
                for number, outcome in run(function, draw()):
                    yield running.pop(number), outcome
                break
            except Exception:
                if not running:  # not the fault of a job
                    raise
                tries.update(list(running))
                for item in running.items():
                    (again if tries[item[0]] < ATTEMPTS - 1 else alone).append(item)
                running.clear()
        for item in alone:
            yield item[1], _last_attempt(run, function, item)


def _attempt(function: Callable[..., Result], number: int, job: tuple[Any, ...]) -> tuple[int, Result | Failure]:
    """The result or the failure of one job, in the process that runs it."""
    try:
        return number, function(*job)
    except HandfulError as error:
        return number, Failure(str(error))
    except Exception as error:
        return number, Failure(f"{type(error).__name__}: {error}")


def _last_attempt(run: Callable[..., Any], function: Callable[..., Result], item: tuple[int, Job]) -> Result | Failure:
    try:
        [(_, outcome)] = run(function, [item])
    except Exception as error:
        return Failure(f"Its worker died {ATTEMPTS} times ({type(error).__name__}): see whether it needs more memory.")
    return outcome  # type: ignore[no-any-return]


@contextmanager
def _parallel(pool: Pool) -> Iterator[Callable[..., Iterator[tuple[int, Any]]]]:
    """joblib's call on the pool: `run(function, numbered jobs)` gives (number, outcome) as they finish."""
    from joblib import Parallel, delayed, parallel_config

    workers = pool.workers if pool.backend == "processes" else -1
    with {"processes": _processes, "dask": _dask, "ray": _ray}[pool.backend](pool.address) as backend:

        def run(function: Callable[..., Any], items: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
            with parallel_config(**backend()):
                parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
            outcomes: Iterator[tuple[int, Any]] = parallel(delayed(_attempt)(function, *item) for item in items)
            return outcomes

        yield run


@contextmanager
def _processes(_: str | None) -> Iterator[Callable[[], dict[str, Any]]]:
    """One thread a process, so that they do not fight over cores."""
    with _workers_may_grow():
        yield lambda: {"backend": "loky", "inner_max_num_threads": 1}


@contextmanager
def _dask(address: str | None) -> Iterator[Callable[[], dict[str, Any]]]:
    try:
        from distributed import Client
        from joblib._dask import DaskDistributedBackend
    except ImportError as error:
        raise MissingExtraError("The backend dask", "dask") from error

    class Backend(DaskDistributedBackend):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))  # of one worker joblib makes none, and runs jobs right here

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)  # it says nothing of a task that Dask gave up because its workers died
            future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
            return future

    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise SettingError(f"There is no Dask scheduler at {address} ({error}): check --address.") from error
    with client:
        yield lambda: {"backend": Backend(client=client)}


@contextmanager
def _ray(address: str | None) -> Iterator[Callable[[], dict[str, Any]]]:
    try:
        import ray
        from ray.util.joblib.ray_backend import RayBackend
    except ImportError as error:
        raise MissingExtraError("The backend ray", "ray") from error

    class Backend(RayBackend):  # type: ignore[misc]
        supports_return_generator = True  # its pool calls back for each result; joblib forbids it for its own pool alone

    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SettingError(f"There is no Ray cluster at {address} ({error}): check --address.") from error
    try:
        yield lambda: {"backend": Backend()}
    finally:
        ray.shutdown()
