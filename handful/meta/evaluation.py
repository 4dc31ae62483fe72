"""Meta-testing: accuracies of episodes, their mean with its confidence interval, and paired differences of methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ..data.corpus import Texts
from ..data.episodes import Sampler
from ..errors import SettingError
from ..models.few_shot import EpisodeBatch, FewShotModel
from ..utils.functional import cross_entropy
from ..utils.parallel import parallel_map, torch_threads
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
    logits = np.asarray(model.logits(prepared))  # (episodes, queries, classes)
    right = logits.argmax(-1) == prepared.query_targets.argmax(-1)
    losses = [cross_entropy(*pair) for pair in zip(logits, prepared.query_targets, strict=True)]
    return right.mean(-1), np.array(losses)


def prepare_batches(model: FewShotModel, texts: Texts, sampler: Sampler, indices: Sequence[int]) -> Iterator[EpisodeBatch]:
    """Episodes in batches of the same shape."""
    episodes = (sampler[index] for index in indices)
    for _, alike in groupby(episodes, key=lambda episode: (len(episode.classes), len(episode.support), len(episode.query))):
        together = list(alike)
        for start in range(0, len(together), model.at_once):
            yield model.prepare(texts, together[start : start + model.at_once])


def _evaluate_chunk(model: FewShotModel, texts: Texts, sampler: Sampler, indices: Sequence[int]) -> Values:
    """Accuracies of some episodes."""
    scored = [score_batch(model, prepared) for prepared in prepare_batches(model, texts, sampler, indices)]
    return np.concatenate([accuracies for accuracies, _ in scored])


def evaluate(
    model: FewShotModel, texts: Texts, sampler: Sampler, episodes: int = 1000, workers: int = 1, quiet: bool = False
) -> Values:
    """Accuracy of each of the episodes 0, 1, ... of the sampler: the same numbers for any number of workers."""
    chunks = [range(start, min(start + EPISODES_PER_JOB, episodes)) for start in range(0, episodes, EPISODES_PER_JOB)]
    results = parallel_map(_evaluate_chunk, ((model, texts, sampler, chunk) for chunk in chunks), workers)
    with torch_threads(model.threads):
        return np.concatenate(list(track(results, "Testing", len(chunks), quiet)))
