"""Meta-testing: accuracies of episodes, their mean with its confidence interval, and paired differences of methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ..data.corpus import Texts
from ..data.episodes import Episode, Sampler
from ..errors import SettingError
from ..models.few_shot import EpisodeBatch, FewShotModel
from ..utils.parallel import compute_ahead, parallel_map, torch_threads
from ..utils.progress import track

Values = np.ndarray[Any, Any]  # one number per episode
NORMAL_95 = 1.959964  # two-sided 95 % of a normal distribution
EPISODES_PER_JOB = 40  # in one parallel job: fixed, so that results do not depend on the number of workers


@dataclass(frozen=True)
class Score:
    """A mean over episodes with the half-width of its 95 % confidence interval."""

    mean: float
    ci95: float
    episodes: int

    @classmethod
    def of(cls, values: Values) -> Score:
        """The score of one value per episode."""
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
        return cls(float(np.mean(values)), NORMAL_95 * deviation / len(values) ** 0.5, len(values))

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.ci95:.1f}"


def paired_difference(first: Values, second: Values) -> Score:
    """Mean of first - second over the same episodes, whose interval is far narrower than that of independent episodes."""
    if len(first) != len(second):
        raise SettingError(f"A paired difference needs the same episodes, but {len(first)} and {len(second)} were given.")
    return Score.of(np.asarray(first) - np.asarray(second))


def score_batch(model: FewShotModel, prepared: EpisodeBatch) -> tuple[Values, Values]:
    """Accuracy and loss of each episode in a batch."""
    logits = np.asarray(model.logits(prepared))[:, : prepared.query_targets.shape[1]]  # (episodes, queries, classes)
    right = logits.argmax(-1) == prepared.query_targets.argmax(-1)
    losses = [model.query_loss(*pair) for pair in zip(logits, prepared.query_targets, strict=True)]
    return right.mean(-1), np.array(losses)


def prepare_batches(model: FewShotModel, texts: Texts, sampler: Sampler, indices: Sequence[int]) -> Iterator[EpisodeBatch]:
    """Episodes in batches of the same shape, each prepared while the one before it is used."""
    return compute_ahead(model.prepare, ((texts, batch) for batch in _batches(sampler, indices, model.at_once)))


def _batches(sampler: Sampler, indices: Sequence[int], most: int) -> Iterator[list[Episode]]:
    for _, alike in groupby((sampler[index] for index in indices), key=_shape):
        together = list(alike)
        yield from (together[start : start + most] for start in range(0, len(together), most))


def _shape(episode: Episode) -> tuple[int, ...]:
    return len(episode.classes), len(episode.support), len(episode.query), len(episode.unlabelled)


def _measure_chunk(model: FewShotModel, texts: Texts, sampler: Sampler, indices: Sequence[int]) -> Values:
    """Accuracies and areas of some episodes: (episodes, 2)."""
    return np.concatenate([_measures(model, prepared) for prepared in prepare_batches(model, texts, sampler, indices)])


def _measures(model: FewShotModel, prepared: EpisodeBatch) -> Values:
    logits = np.asarray(model.logits(prepared))  # (episodes, queries, classes)
    known = prepared.query_targets.shape[1]
    right = logits[:, :known].argmax(-1) == prepared.query_targets.argmax(-1)
    areas = [area_under_curve(scores[:known], scores[known:]) for scores in logits.max(-1)]
    return np.stack([right.mean(-1), areas], axis=1)


def area_under_curve(higher: Values, lower: Values) -> float:
    """The area under the ROC curve: the share of pairs in which the first is higher than the second; ties count half.

    >>> area_under_curve(np.array([3, 2, 2]), np.array([1, 2]))
    0.8333333333333334
    """
    if not len(lower):
        return float("nan")
    ranks = np.sort(lower)
    below = np.searchsorted(ranks, higher, "left") + np.searchsorted(ranks, higher, "right")
    return float(below.mean() / 2 / len(lower))


def evaluate(
    model: FewShotModel, texts: Texts, sampler: Sampler, episodes: int = 1000, workers: int = 1, quiet: bool = False
) -> Values:
    """Accuracy of each of the episodes 0, 1, ... of the sampler: the same numbers for any number of workers."""
    accuracies: Values = measure_episodes(model, texts, sampler, episodes, workers, quiet)[:, 0]
    return accuracies


def measure_episodes(
    model: FewShotModel, texts: Texts, sampler: Sampler, episodes: int = 1000, workers: int = 1, quiet: bool = False
) -> Values:
    """Accuracy, and the area under the ROC curve of the largest score (NaN without queries of no class): (episodes, 2)."""
    chunks = [range(start, min(start + EPISODES_PER_JOB, episodes)) for start in range(0, episodes, EPISODES_PER_JOB)]
    results = parallel_map(_measure_chunk, ((model, texts, sampler, chunk) for chunk in chunks), workers)
    with torch_threads(model.threads):
        return np.concatenate(list(track(results, "Testing", len(chunks), quiet)))
