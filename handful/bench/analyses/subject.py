"""What an analysis looks at: a run with its data and model, and what to compare it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ...corpus import Corpus, Texts
from ...episodes import Episode, EpisodeSampler, EpisodeSpec, SourcePool
from ...errors import HandfulError, SettingError
from ...model import FewShotModel, Task
from ...runs import Material, RunSettings, load_material, load_run
from ...storage import load_pool, load_vectors_over
from ..grid import without_folders


class NotApplicableError(HandfulError):
    """An analysis that this run has nothing for: the sentence says why, and what would give it something."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A finished run, loaded when first asked for and then kept, and the wishes of who looks at it."""

    folder: Path
    data: str | None = None  # other than the run's own
    split: str | None = None  # of that data
    seed: int = 0  # of episodes, and of what an analysis trains
    against: tuple[Subject, ...] = ()  # other runs, to compare with
    classes: tuple[str, ...] = ()  # of the episode to show; drawn where none is named
    document: int | None = None  # the query to show, by its place in the data
    quick: bool = False  # less of what is long: fewer episodes, epochs or repetitions
    quiet: bool = False  # no progress bar

    @property
    def name(self) -> str:
        """Of the run, for a legend."""
        return self.folder.name

    @cached_property
    def _run(self) -> tuple[RunSettings, FewShotModel]:
        settings, model = load_run(self.folder)
        return replace(settings, data=self.data, split=self.split) if self.data else settings, model

    @property
    def settings(self) -> RunSettings:
        """Of the run, with the data that is looked at."""
        return self._run[0]

    @property
    def model(self) -> FewShotModel:
        """As it was trained, computing with NumPy."""
        return self._run[1]

    @property
    def method(self) -> str:
        """The model in two words."""
        return f"{self.settings.model.representation} + {self.settings.model.head}"

    @property
    def vectors(self) -> str:
        """Names of its word vectors, without folders: a page is shown to others."""
        return without_folders(self.settings.model.vectors)

    @cached_property
    def material(self) -> Material:
        """The data set and its vectors."""
        return load_material(self.settings)

    @property
    def corpus(self) -> Corpus:
        """The documents, without words that have no vector."""
        return self.material.corpus

    @cached_property
    def texts(self) -> Texts:
        """The documents with their vectors, those that the run trained included."""
        texts = self.material.texts
        if not self.settings.model.trains_table:
            return texts
        return replace(texts, table=load_vectors_over(self.folder, self.corpus.vocabulary, texts.table))

    @cached_property
    def pool(self) -> SourcePool:
        """The training examples, as the run counted them."""
        return load_pool(self.folder, self.corpus.vocabulary)

    def sampler(self, part: str = "test", spec: EpisodeSpec | None = None) -> EpisodeSampler:
        """Episodes of the classes of one part of the split, in the run's shape or another."""
        training = None if part == "train" else self.pool  # a training episode's pool leaves its own classes out
        return self.material.sampler(part, spec or self.settings.episode, self.seed, training)

    def task(self, episode: Episode) -> Task:
        """What the model learns from the support set of an episode."""
        support = self.texts.select(episode.support)
        return self.model.fit(support, episode.support_labels, episode.pool, len(episode.classes), episode.training)

    def class_numbers(self, names: Sequence[str]) -> list[int]:
        """Classes by their names."""
        known = {name: number for number, name in enumerate(self.corpus.classes)}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SettingError(f"There is no class {', '.join(unknown)}: the classes are {', '.join(known)}.")
        return [known[name] for name in names]

    def episode_of(self, names: Sequence[str], spec: EpisodeSpec, document: int | None = None) -> Episode:
        """An episode of named classes, of a shape but for its way; `document`, if given, is the first query of its class.

        The examples of a class depend on the seed and the class alone, so that it has the same ones in any company.
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
        """Without the episode's own classes, should the run have been trained on some of them."""
        part = "train" if set(classes) & set(self.material.dataset.split.train) else "test"
        return self.sampler(part, EpisodeSpec(2, 1, 1)).pool_without(np.array(classes))

    def _check_document(self, classes: Sequence[int], document: int | None) -> None:
        if document is None:
            return
        if not 0 <= document < len(self.corpus):
            raise SettingError(f"There is no document {document}: the data has {len(self.corpus)}, counted from 0.")
        if self.corpus.labels[document] not in classes:
            label = self.corpus.classes[self.corpus.labels[document]]
            raise SettingError(f"Document {document} is of the class {label}, which the episode lacks: name it (--classes).")
