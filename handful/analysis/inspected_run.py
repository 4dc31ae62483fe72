"""The subject of an analysis: a run with its data and model, and the runs to compare it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..bench.grid import TEST_EPISODES, without_folders
from ..data.corpus import Corpus, Texts
from ..data.episodes import Episode, EpisodeSampler, EpisodeSpec
from ..data.frequencies import SourcePool
from ..errors import HandfulError, SettingError
from ..meta.evaluation import Score
from ..meta.experiment import LoadedRun, evaluate_run, load_run
from ..meta.inputs import ExperimentData
from ..meta.settings import RunSettings
from ..models.few_shot import FewShotModel, Task

QUICK_EPISODES = 100  # to measure the accuracy for a first look


class NotApplicableError(HandfulError):
    """An analysis does not apply to a run; the message says why, and what the run would need."""


@dataclass(frozen=True, eq=False)
class InspectedRun:
    """A finished run, loaded on first use and then kept, with the options of the inspection."""

    folder: Path
    data: str | None = None  # instead of the run's own
    split: str | None = None  # of that data
    seed: int = 0  # for episodes, and for models that an analysis trains
    against: tuple[InspectedRun, ...] = ()  # other runs, to compare with
    classes: tuple[str, ...] = ()  # of the episode to show; drawn at random if empty
    document: int | None = None  # the query to show, by its position in the data
    quick: bool = False  # fewer episodes, epochs or repetitions
    quiet: bool = False  # no progress bar

    @property
    def name(self) -> str:
        """The run's name, for legends."""
        return self.folder.name

    @cached_property
    def _run(self) -> LoadedRun:
        return load_run(self.folder).on(self.data, self.split)

    @property
    def settings(self) -> RunSettings:
        """The run's settings, with the data being inspected."""
        return self._run.settings

    @property
    def model(self) -> FewShotModel:
        """The trained model, with NumPy parameters."""
        return self._run.model

    @property
    def method(self) -> str:
        """The model's representation and head."""
        return f"{self.settings.model.representation} + {self.settings.model.head}"

    @property
    def vectors(self) -> str:
        """The names of its word vectors, without folders, as reports are shown to others."""
        return without_folders(self.settings.model.vectors.names)

    @cached_property
    def inputs(self) -> ExperimentData:
        """The data set and its vectors."""
        return self._run.load_data()

    @property
    def corpus(self) -> Corpus:
        """The documents, without words that have no vector."""
        return self.inputs.corpus

    @cached_property
    def texts(self) -> Texts:
        """The documents with their vectors, including those that the run trained."""
        return self._run.texts(self.inputs)

    @cached_property
    def pool(self) -> SourcePool:
        """The statistics of the training examples, as counted by the run."""
        return self._run.pool(self.inputs)

    @cached_property
    def score(self) -> Score:
        """The accuracy on tasks of test classes, with its interval."""
        episodes = QUICK_EPISODES if self.quick else TEST_EPISODES
        return evaluate_run(self._run, episodes=episodes, inputs=self.inputs, quiet=self.quiet).score

    def sampler(self, part: str = "test", spec: EpisodeSpec | None = None) -> EpisodeSampler:
        """Episodes from one part of the split, with the run's shape or another."""
        training = None if part == "train" else self.pool  # the pool of a training episode excludes its own classes
        return self.inputs.sampler(part, spec or self.settings.episode, self.seed, training)

    def task(self, episode: Episode) -> Task:
        """The task that the model learns from the support set of an episode."""
        support = self.texts.select(episode.support)
        return self.model.fit(support, episode.support_labels, episode.pool, len(episode.classes), episode.training)

    def class_numbers(self, names: Sequence[str]) -> list[int]:
        """The numbers of classes, given by name."""
        known = {name: number for number, name in enumerate(self.corpus.classes)}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SettingError(f"There is no class {', '.join(unknown)}: choose from {', '.join(known)}.")
        return [known[name] for name in names]

    def episode_of(self, names: Sequence[str], spec: EpisodeSpec, document: int | None = None) -> Episode:
        """An episode of the named classes, with the shot and queries of `spec`; `document` is the first query of its class.

        The examples of a class depend only on the seed and the class, so they are the same whatever the other classes.
        """
        classes = self.class_numbers(names)
        self._check_document(classes, document)
        support, query = [], []
        for number in classes:
            members = np.flatnonzero(self.corpus.labels == number)
            drawn = np.random.default_rng([self.seed, number]).permutation(members)
            wanted, others = drawn[drawn == document], drawn[drawn != document]
            support.append(others[: spec.shot])
            query.append(np.concatenate([wanted, others[spec.shot :]])[: spec.queries])
        return Episode(
            index=0,
            classes=np.array(classes),
            support=np.concatenate(support),
            support_labels=np.repeat(np.arange(len(classes)), [len(part) for part in support]),
            query=np.concatenate(query),
            query_labels=np.repeat(np.arange(len(classes)), [len(part) for part in query]),
            pool=self._source_pool(classes),
            training=self.pool,
        )

    def _source_pool(self, classes: Sequence[int]) -> SourcePool:
        """The source pool, without the episode's own classes if the run was trained on some of them."""
        part = "train" if set(classes) & set(self.inputs.dataset.split.train) else "test"
        return self.sampler(part, EpisodeSpec(2, 1, 1)).pool_without(np.array(classes))

    def _check_document(self, classes: Sequence[int], document: int | None) -> None:
        if document is None:
            return
        if not 0 <= document < len(self.corpus):
            raise SettingError(f"There is no document {document}: the data has {len(self.corpus)}, counted from 0.")
        if self.corpus.labels[document] not in classes:
            label = self.corpus.classes[self.corpus.labels[document]]
            raise SettingError(f"Document {document} is in the class {label}, which the episode lacks: add it (--classes).")
