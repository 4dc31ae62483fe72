"""Jobs: work that takes long, done by a few threads, with progress and cancellation in the store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from ..errors import HandfulError
from .errors import NO_ROOM, ApiError, InvalidError, is_full
from .files.importing import Progress, undo_import
from .logs import log, log_failure
from .settings import Limits
from .store.database import Database
from .store.jobs import change_job, dead_jobs, fail_dead, hidden_projects, insert_job, is_cancelled
from .store.projects import Person, new_id, remove_hidden

Work = Callable[[str, Progress], dict[str, Any]]  # the job's id and its progress to its result
THREADS = 2
REPORT = 0.5  # seconds between two notes about progress
HEARTBEAT = 10.0  # seconds between two signs of life
KEEP_FILES = 86_400.0  # seconds
LONGEST_WAY = 0.02  # seconds for which a step of a job gives way to requests, so that it gets on however many there are
PATIENCE = 60.0  # seconds that running jobs get when the server stops


class CancelledError(ApiError):
    """Somebody asked to stop the job."""


class JobRunner:
    """Runs jobs of one server, and cleans up after servers that died."""

    def __init__(self, database: Database, folder: Path, limits: Limits, alone: bool, busy: Callable[[], bool]) -> None:
        self._database, self._limits, self._alone, self._busy = database, limits, alone, busy
        self.uploads, self.results = folder / "uploads", folder / "results"
        self.server = new_id()
        self._pool = ThreadPoolExecutor(THREADS, "job")
        self._running: dict[str, Future[None]] = {}
        self._stop = Event()
        self._ticker = Thread(target=self._tick, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Clean up, and begin to give signs of life."""
        for folder in (self.uploads, self.results):
            folder.mkdir(parents=True, exist_ok=True)
        if self._alone:
            for left in self.uploads.iterdir():
                left.unlink(missing_ok=True)
        self._clean_up()
        self._ticker.start()

    def submit(self, person: Person, project: str | None, kind: str, work: Work) -> str:
        """A job that is done as soon as a thread is free."""
        with self._database.writing() as connection:
            job = insert_job(connection, person, project, kind, self.server, self._limits.jobs)
        self._running[job] = self._pool.submit(self._run, job, kind, work)
        return job

    def wait(self, job: str) -> None:
        """Wait until a job of this server is done; for tests, and for small jobs."""
        future = self._running.get(job)
        if future:
            future.result()

    @property
    def active(self) -> int:
        """Jobs that wait or run here."""
        return len(self._running)

    def _run(self, job: str, kind: str, work: Work) -> None:
        start = time.monotonic()
        state, message, result = "failed", "", dict[str, Any]()
        try:
            self._check(job)
            self._change(job, state="running")
            result = work(job, self._progress(job))
            state = "done"
        except CancelledError:
            state, message = "cancelled", "This was cancelled, and nothing of it was kept."
        except HandfulError as error:
            message = str(error)
        except Exception as error:
            message = NO_ROOM if is_full(error) else "This failed because of an error in Handful: see the server's log."
            log_failure("job", job=job, kind=kind)
        finally:
            with suppress(HandfulError):
                self._change(job, state=state, message=message, result=json.dumps(result))
            self._running.pop(job, None)
            log("job", job=job, kind=kind, state=state, seconds=round(time.monotonic() - start, 3))

    def _change(self, job: str, **values: Any) -> None:
        with self._database.writing() as connection:
            change_job(connection, job, **values)

    def _check(self, job: str) -> None:
        with self._database.reading() as connection:
            cancelled = is_cancelled(connection, job)
        if cancelled or self._stop.is_set():
            raise CancelledError("cancelled")

    def _progress(self, job: str) -> Progress:
        last = time.monotonic()

        def progress(done: int, total: int | None) -> None:
            nonlocal last
            self._give_way()
            if time.monotonic() - last < REPORT:
                return
            last = time.monotonic()
            self._check(job)
            self._change(job, done=done, total=total)

        return progress

    def _give_way(self) -> None:
        """Let requests pass that are being answered: a thread that computes would slow them down."""
        deadline = time.monotonic() + LONGEST_WAY
        while self._busy() and time.monotonic() < deadline:
            time.sleep(0.001)

    # Signs of life, and leftovers of others

    def _tick(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            try:
                for job in list(self._running):
                    self._change(job)
                self._clean_up()
            except Exception:
                log_failure("heartbeat")

    def _clean_up(self) -> None:
        """Remove what jobs of dead servers left, old results, and projects that are being deleted."""
        with self._database.reading() as connection:
            dead = dead_jobs(connection, self.server, self._alone)
        for row in dead:
            if row.project:
                undo_import(self._database, row.project, row.id)
            with self._database.writing() as connection:
                fail_dead(connection, row.id)
        with self._database.reading() as connection:
            hidden = hidden_projects(connection)
        for project in hidden:
            self.remove(project)
        for file in (*self.results.iterdir(), *self.uploads.iterdir()):
            with suppress(FileNotFoundError):  # another server may do the same
                if file.stat().st_mtime < time.time() - KEEP_FILES:
                    file.unlink()

    def remove_later(self, project: str) -> None:
        """Remove a hidden project in the background."""
        with suppress(RuntimeError):  # the server is stopping: the next one removes it
            self._pool.submit(self.remove, project)

    def remove(self, project: str) -> None:
        """Remove a hidden project, in steps."""
        while True:
            with self._database.writing() as connection:
                if not remove_hidden(connection, project):
                    return
            time.sleep(0.002)

    def result_path(self, job: str, result: dict[str, Any]) -> Path:
        """The file that a job made."""
        name = result.get("file")
        path = self.results / f"{job}.{name}" if isinstance(name, str) and name.isalnum() else None
        if path is None or not path.is_file():
            raise InvalidError("This job has no file, or it is older than a day: run it again.")
        return path

    def close(self) -> None:
        """Finish the jobs that run; those that take too long are cancelled and leave nothing."""
        deadline = time.monotonic() + PATIENCE
        while self._running and time.monotonic() < deadline:
            time.sleep(0.05)
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
