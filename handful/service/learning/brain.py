"""All that is learned from the projects of a store."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...classifier.estimator import WORDS
from ...utils.functional import Floats, Ints
from ..settings import Limits
from ..store.database import Database
from ..store.projects import ProjectRow, read_row
from ..store.texts import find_among
from . import cleaning, validation
from .computed import Computed, Kept, Key, key_of
from .models import ProjectModel, fit_project, open_encoder
from .queue import Leases, Queue, Strategy, at_random, candidates, choose_ahead, in_order
from .snapshot import Snapshot, principal_map, take_snapshot
from .validation import Validation

THREADS = 2  # that compute in the background


class Brain:
    """Models, predictions, estimates and choices, each computed when it is asked for and kept for some projects."""

    def __init__(self, database: Database, folder: Path, limits: Limits) -> None:
        self._database, self._folder, self._limits = database, folder, limits
        self._pool = ThreadPoolExecutor(THREADS, "learning")
        most = limits.models_in_memory
        self.models = Computed(self._fit, self._pool, most)
        self.snapshots = Computed(self._snapshot, self._pool, most)
        self.validations = Computed(self._validate, self._pool, most)
        self.curves = Computed(self._curve, self._pool, most)
        self.queues = Computed(self._queue, self._pool, most)
        self.maps = Computed(self._map, self._pool, most)
        self.duplicates = Computed(self._duplicates, self._pool, most)
        self.leases = Leases()
        self.fits = 0  # counted for metrics
        self.fit_seconds = 0.0

    def warm_up(self) -> None:
        """Read the default word vectors in the background, so that the first label does not wait for them."""
        self._pool.submit(self._read_words)

    def _read_words(self) -> None:
        encoder = open_encoder(WORDS, "en", self._folder)
        encoder.read(["words"])

    def model(self, project: ProjectRow) -> ProjectModel:
        """The model of a project as it stands."""
        return self.models.current(project.id, key_of(project)).value

    def learn(self, project: str, key: Key) -> None:
        """Learn in the background what a new label says, and choose again what comes next."""
        self.models.refresh(project, key)
        self.queues.refresh(project, key)

    def next_texts(
        self, project: ProjectRow, annotator: str, strategy: Strategy, search: str, count: int, excluded: set[int]
    ) -> list[int]:
        """The numbers of the texts that a person should label next."""
        wanted = candidates(strategy, annotator, search)
        found: list[int] = []
        if strategy in ("suggest", "uncertain"):
            kept = self._chosen(project)
            ranked = kept.suggested if strategy == "suggest" else kept.uncertain
            free = self.leases.free(project.id, annotator, [number for number in ranked if number not in excluded])
            with self._database.reading() as connection:
                fitting = find_among(connection, project, wanted, free)
            found = [number for number in free if number in fitting][:count]
        if len(found) < count:
            more = at_random if strategy in ("suggest", "uncertain", "random") else in_order
            found += more(self._database, project, wanted, count - len(found), excluded | set(found))
        self.leases.take(project.id, annotator, found)
        return found

    def _chosen(self, project: ProjectRow) -> Queue:
        kept = self.queues.latest(project.id, key_of(project))
        return (kept or self.queues.current(project.id, key_of(project))).value

    def forget(self, project: str) -> None:
        """Keep nothing of a project that is gone."""
        for one in (self.models, self.snapshots, self.validations, self.curves, self.queues, self.maps, self.duplicates):
            one.forget(project)

    def close(self) -> None:
        """Stop computing."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    # How each is computed; each gives the state of the project that it belongs to

    def _fit(self, project: str) -> tuple[Key, ProjectModel]:
        start = time.monotonic()
        key, model = fit_project(self._database, self._folder, self._limits.training_examples, project)
        self.fits += 1
        self.fit_seconds += time.monotonic() - start
        return key, model

    def _model_of(self, project: str, key: Key) -> Kept[ProjectModel]:
        return self.models.current(project, key)

    def _snapshot(self, project: str) -> tuple[Key, Snapshot]:
        return take_snapshot(self._database, lambda one, key: self._model_of(one, key).value, project)

    def _validate(self, project: str) -> tuple[Key, Validation | None]:
        kept = self._model_now(project)
        return kept.key, validation.validate(kept.value)

    def _curve(self, project: str) -> tuple[Key, list[dict[str, Any]]]:
        kept = self._model_now(project)
        return kept.key, validation.learning_curve(kept.value)

    def _queue(self, project: str) -> tuple[Key, Queue]:
        return choose_ahead(self._database, self._model_now(project).value, project)

    def _map(self, project: str) -> tuple[Key, tuple[Ints, Floats]]:
        kept = self._snapshot_now(project)
        return kept.key, (kept.value.numbers, principal_map(kept.value.vectors))

    def _duplicates(self, project: str) -> tuple[Key, list[dict[str, Any]]]:
        kept = self._snapshot_now(project)
        with self._database.reading() as connection:
            row = read_row(connection, project)
            same = cleaning.same_words(connection, row)
        return kept.key, [*same, *cleaning.alike(kept.value, same)]

    def _model_now(self, project: str) -> Kept[ProjectModel]:
        return self.models.current(project, self._now(project))

    def _snapshot_now(self, project: str) -> Kept[Snapshot]:
        return self.snapshots.current(project, self._now(project))

    def _now(self, project: str) -> Key:
        with self._database.reading() as connection:
            return key_of(read_row(connection, project))
