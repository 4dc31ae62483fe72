"""Open episodes: tasks with class names, unlabelled texts, unbalanced queries, or queries of no class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError
from ..utils.functional import Ints
from .episodes import Episode, EpisodeSampler
from .label_words import label_words

CONCENTRATION = 2.0  # of the Dirichlet distribution of unbalanced queries (Veilleux et al., 2021)
OWN_STREAM = 2  # of random numbers: an open episode has the same examples and queries as the plain one


class OpenSampler(EpisodeSampler):
    """Draws the episodes of an `EpisodeSampler`, and adds to each what its spec asks for.

    `names` is the document with the words of each class's name, -1 for a class without one.
    """

    def __init__(self, names: Ints, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.names = names
        if self.spec.none_share and len(self.classes) == self.spec.way:
            raise DataError(
                f"All {self.spec.way} classes are in every episode, so no query can be of another: lower the way (--way), or "
                "set --none-share to 0."
            )

    def __getitem__(self, index: int) -> Episode:
        episode, spec = super().__getitem__(index), self.spec
        rng = np.random.default_rng([self.seed, index, OWN_STREAM])
        if spec.unbalanced:
            kept = _unbalanced(rng, episode.query_labels, spec.way)
            episode = replace(episode, query=episode.query[kept], query_labels=episode.query_labels[kept])
        unlabelled = self._others(rng, episode) if spec.unlabelled else episode.unlabelled
        if spec.none_share:
            episode = replace(episode, query=np.concatenate([episode.query, self._strangers(rng, episode)]))
        if spec.transductive:
            unlabelled = np.concatenate([unlabelled, episode.query])
        episode = replace(episode, unlabelled=unlabelled)
        return self._named(episode) if spec.class_names else episode

    def _others(self, rng: np.random.Generator, episode: Episode) -> Ints:
        """Further texts of each class of the episode, fewer if it has no more."""
        used = np.concatenate([episode.support, episode.query])
        drawn = [rng.permutation(np.setdiff1d(self.members[c], used))[: self.spec.unlabelled] for c in episode.classes]
        return np.concatenate(drawn)

    def _strangers(self, rng: np.random.Generator, episode: Episode) -> Ints:
        """Texts of other classes of the same part."""
        other = np.concatenate([self.members[c] for c in np.setdiff1d(self.classes, episode.classes)])
        share = self.spec.none_share
        wanted = max(1, round(share / (1 - share) * len(episode.query)))
        return rng.permutation(other)[:wanted]

    def _named(self, episode: Episode) -> Episode:
        """The episode with the words of its classes before its examples."""
        documents = self.names[episode.classes]
        known = np.flatnonzero(documents >= 0)
        return replace(
            episode,
            support=np.concatenate([documents[known], episode.support]),
            support_labels=np.concatenate([known, episode.support_labels]),
            names=len(known),
        )


def _unbalanced(rng: np.random.Generator, labels: Ints, way: int) -> Ints:
    """Positions of queries such that classes are as frequent as a draw from a Dirichlet distribution says.

    The most frequent class keeps all of its queries.
    """
    shares = rng.dirichlet(np.full(way, CONCENTRATION))
    counts = np.bincount(labels, minlength=way)
    kept = np.round(shares / shares.max() * counts).astype(int)
    return np.concatenate([np.flatnonzero(labels == label)[: kept[label]] for label in range(way)])


def name_documents(classes: Sequence[str], wanted: bool = True) -> tuple[list[list[str]], Ints]:
    """The words of each class's name that reads as words, and the number of each class's among them, -1 if it has none.

    >>> name_documents(["style & beauty", "Q4", "tech"])
    ([['style', 'beauty'], ['tech']], array([ 0, -1,  1]))
    """
    named = [label_words(name).split() if wanted else [] for name in classes]
    present = np.array([bool(words) for words in named])
    return [words for words in named if words], np.where(present, np.cumsum(present) - 1, -1)
