"""Parallel maps through joblib, on this machine or on a cluster, and limits on the threads that each process uses."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ..errors import HandfulError, MissingExtraError, SettingError

Result = TypeVar("Result")
Job = TypeVar("Job", bound="tuple[Any, ...]")
BACKENDS = ("processes", "dask", "ray")
ATTEMPTS = 3  # at a job whose worker dies


def available_threads() -> int:
    """Number of threads this process may use: OMP_NUM_THREADS, which joblib sets for its workers, or else all its cores."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def torch_threads(count: int = 1) -> Iterator[None]:
    """Limit torch to `count` threads: idle ones spin, and occupy the cores that the compiled LSTM could use."""
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


_blas_lock = threading.Lock()
_blas_users: list[tuple[ThreadPoolExecutor, Any]] = []  # for each who wants one thread now: who keeps the limit, and the limit


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Use one BLAS thread for small products: on a busy machine, several threads wait for each other most of the time.

    The setting belongs to the process, so the first of several concurrent users sets it and the last one restores it. Only the
    thread that set it may restore it (since threadpoolctl 3.8), so a thread of its own does both.
    """
    with _blas_lock:
        _blas_users.append(_blas_users[0] if _blas_users else _limited_blas())
    try:
        yield
    finally:
        with _blas_lock:
            keeper, limit = _blas_users.pop()
            if not _blas_users:
                keeper.submit(limit.restore_original_limits).result()
                keeper.shutdown()


def _limited_blas() -> tuple[ThreadPoolExecutor, Any]:
    keeper = ThreadPoolExecutor(1)
    return keeper, keeper.submit(_blas_controller().limit, limits=1, user_api="blas").result()


@lru_cache(maxsize=1)
def _blas_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def parallel_map(function: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], workers: int = 1) -> Iterator[Result]:
    """The results `function(*job)` in the order of the jobs; one worker is this process, more are separate processes."""
    if workers == 1:
        yield from (function(*job) for job in jobs)
        return
    from joblib import Parallel, delayed

    with _workers_may_grow():
        yield from Parallel(n_jobs=workers, return_as="generator")(delayed(function)(*job) for job in jobs)


def compute_ahead(function: Callable[..., Result], jobs: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
    """The results `function(*job)` in the order of the jobs; another thread computes the next one meanwhile, if it may."""
    if available_threads() == 1:
        yield from (function(*job) for job in jobs)
        return
    with ThreadPoolExecutor(1) as helper:
        waiting: Future[Result] | None = None
        for job in jobs:
            coming = helper.submit(function, *job)
            if waiting:
                yield waiting.result()
            waiting = coming
        if waiting:
            yield waiting.result()


@contextmanager
def _workers_may_grow() -> Iterator[None]:
    """Ignore the warning with which joblib replaces a worker whose memory has grown, as it does when the worker loads data.

    The warning is raised in a thread that must not die, or all workers wait forever: it must not become an error.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        warnings.filterwarnings("ignore", r"\d+ tasks (have been|which were) ", UserWarning)  # when a person interrupts
        yield


# Long jobs, each independent of the others


@dataclass(frozen=True)
class Workers:
    """Where long jobs run: in processes on this machine, or on the Dask or Ray cluster at an address."""

    processes: int = 1  # ignored on a cluster, which has its own number of workers
    backend: str = "processes"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise SettingError(f"There is no backend {self.backend!r}: choose one of {', '.join(BACKENDS)}.")
        if self.processes < 1:
            raise SettingError(f"`processes` is {self.processes}: it must be at least 1.")
        if (self.backend == "processes") == bool(self.address):
            raise SettingError("A cluster has an address and processes have none: give `address` with the backend dask or ray.")


@dataclass(frozen=True)
class Failure:
    """Why a job failed, as a sentence: it raised an error, or its workers died."""

    reason: str


def dependable_map(
    function: Callable[..., Result], jobs: Iterable[Job], workers: Workers | None = None
) -> Iterator[tuple[Job, Result | Failure]]:
    """Yield each job with its result `function(*job)` or its failure, as they finish. A job is drawn when a worker is free.

    A worker that dies ends joblib's whole call. The jobs that were running are then repeated among the others, and for their
    last attempt alone, so that a job that kills its worker cannot make other jobs fail.
    """
    workers = workers or Workers()
    if workers == Workers():
        yield from ((job, _attempt(function, 0, job)[1]) for job in jobs)
        return
    source = enumerate(jobs)
    again = deque[tuple[int, Job]]()
    alone = deque[tuple[int, Job]]()
    tries = Counter[int]()
    running = dict[int, Job]()

    def draw() -> Iterator[tuple[int, Job]]:
        while item := again.popleft() if again else next(source, None):
            running[item[0]] = item[1]
            yield item

    with _parallel(workers) as run:
        while True:
            try:
                for number, outcome in run(function, draw()):
                    yield running.pop(number), outcome
                break
            except Exception:
                if not running:  # no job is to blame
                    raise
                tries.update(list(running))
                for item in running.items():
                    (again if tries[item[0]] < ATTEMPTS - 1 else alone).append(item)
                running.clear()
        for item in alone:
            yield item[1], _last_attempt(run, function, item)


def _attempt(function: Callable[..., Result], number: int, job: tuple[Any, ...]) -> tuple[int, Result | Failure]:
    """Run one job in this process, and return its result or its failure."""
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
        return Failure(f"Its worker died {ATTEMPTS} times ({type(error).__name__}): check whether it needs more memory.")
    return outcome  # type: ignore[no-any-return]


@contextmanager
def _parallel(workers: Workers) -> Iterator[Callable[..., Iterator[tuple[int, Any]]]]:
    """A function `run(function, numbered jobs)` that yields (number, outcome) from the pool as jobs finish."""
    from joblib import Parallel, delayed, parallel_config

    number = workers.processes if workers.backend == "processes" else -1
    with {"processes": _processes, "dask": _dask, "ray": _ray}[workers.backend](workers.address) as backend:

        def run(function: Callable[..., Any], items: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
            with parallel_config(**backend()):
                parallel = Parallel(n_jobs=number, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
            with _interrupts_for_this_process():
                outcomes: Iterator[tuple[int, Any]] = parallel(delayed(_attempt)(function, *item) for item in items)
            return outcomes

        yield run


@contextmanager
def _interrupts_for_this_process() -> Iterator[None]:
    """Keep Ctrl-C, which a terminal sends to every process, from the processes started here: this process ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # first, because starting it lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _processes(_: str | None) -> Iterator[Callable[[], dict[str, Any]]]:
    """One thread per process, so that processes do not compete for cores."""
    with _workers_may_grow():
        # Workers started by another joblib call do see Ctrl-C; workers with an initializer are not shared with other calls.
        yield lambda: {"backend": "loky", "inner_max_num_threads": 1, "initializer": _ignore_ctrl_c}


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _dask(address: str | None) -> Iterator[Callable[[], dict[str, Any]]]:
    try:
        from distributed import Client
        from joblib._dask import DaskDistributedBackend
    except ImportError as error:
        raise MissingExtraError("The backend dask", "dask") from error

    class Backend(DaskDistributedBackend):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))  # given one worker, joblib would run the jobs in this process

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)  # joblib does not report a task that Dask gave up because its workers died
            future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
            return future

    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise SettingError(f"There is no Dask scheduler at {address} ({error}): check `address`.") from error
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
        supports_return_generator = True  # its pool calls back for each result, which joblib's own pool does not

    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SettingError(f"There is no Ray cluster at {address} ({error}): check `address`.") from error
    try:
        yield lambda: {"backend": Backend()}
    finally:
        ray.shutdown()
