"""Values that are computed from a project, kept in memory, and computed again when the project has changed."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

from ...errors import HandfulError

Value = TypeVar("Value")
Key = tuple[int, int]  # the version of a project's labels and classes, and the number of its texts
REST = 4.0  # times as long as it took is waited before a value is computed again in the background


@dataclass(frozen=True)
class Kept(Generic[Value]):
    """A value, the state of the project that it belongs to, and the seconds that it took."""

    key: Key
    value: Value
    seconds: float
    ended: float


class Computed(Generic[Value]):
    """One value per project. Each is computed by one thread at a time; those used last are kept."""

    def __init__(self, compute: Callable[[str], tuple[Key, Value]], pool: ThreadPoolExecutor, most: int) -> None:
        self._compute, self._pool, self._most = compute, pool, most
        self._kept: OrderedDict[str, Kept[Value]] = OrderedDict()
        self._locks: dict[str, Lock] = {}
        self._waiting: set[str] = set()
        self._guard = Lock()

    def current(self, project: str, key: Key) -> Kept[Value]:
        """The value for this state of the project, or a later one; computed now if it is not there."""
        with self._guard:
            lock = self._locks.setdefault(project, Lock())
        with lock:
            kept = self.kept(project)
            if kept and _is_current(kept.key, key):
                return kept
            start = time.monotonic()
            found, value = self._compute(project)
            kept = Kept(found, value, time.monotonic() - start, time.monotonic())
            self._keep(project, kept)
            return kept

    def latest(self, project: str, key: Key) -> Kept[Value] | None:
        """The last value that was computed, at once; if it is out of date, it is computed again in the background."""
        kept = self.kept(project)
        if kept is None or not _is_current(kept.key, key):
            self.refresh(project, key)
        return kept

    def refresh(self, project: str, key: Key) -> None:
        """Compute the value in the background, unless that is being done or was done a moment ago."""
        kept = self.kept(project)
        if kept and time.monotonic() < kept.ended + REST * kept.seconds:
            return
        with self._guard:
            if project in self._waiting:
                return
            self._waiting.add(project)
        with suppress(RuntimeError):  # the server is stopping
            self._pool.submit(self._refresh, project, key)

    def _refresh(self, project: str, key: Key) -> None:
        try:
            with suppress(HandfulError):  # the next request for it gets the sentence
                self.current(project, key)
        finally:
            with self._guard:
                self._waiting.discard(project)

    def kept(self, project: str) -> Kept[Value] | None:
        """The last value, whatever its age."""
        with self._guard:
            return self._kept.get(project)

    def forget(self, project: str) -> None:
        """Keep nothing of a project that is gone."""
        with self._guard:
            self._kept.pop(project, None)
            self._locks.pop(project, None)

    def _keep(self, project: str, kept: Kept[Value]) -> None:
        with self._guard:
            self._kept[project] = kept
            self._kept.move_to_end(project)
            while len(self._kept) > self._most:
                gone, _ = self._kept.popitem(last=False)
                if not self._locks.get(gone, _UNLOCKED).locked():
                    self._locks.pop(gone, None)


_UNLOCKED = Lock()


def key_of(project: Any) -> Key:
    """The state of a project, from its row."""
    return project.version, project.visible


def _is_current(found: Key, wanted: Key) -> bool:
    return found[0] >= wanted[0] and found[1] >= wanted[1]
