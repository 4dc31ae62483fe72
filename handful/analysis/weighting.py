"""Parts shared by several analyses: an episode with many queries, its description, and four weightings of its words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..data.corpus import Texts
from ..data.episodes import Episode, EpisodeSpec
from ..data.registry import known_datasets
from ..models.representations import Attention
from ..models.signatures import measure_signals
from ..utils.functional import Floats, segment_sum, segments
from ..utils.wording import counted
from .inspected_run import InspectedRun, NotApplicableError

WAY, SHOT, QUERIES = 5, 5, 500  # of the episodes in the paper's analyses of words and vectors
QUICK_QUERIES = 100
WEIGHTINGS = {"mean": "with equal weights", "s": "by s(x)", "t": "by t(x)", "ours": "by generated attention"}


def check_attention(inspected: InspectedRun) -> None:
    """Raise a NotApplicableError if the run generates no attention."""
    if not isinstance(inspected.model.representation, Attention):
        raise NotApplicableError(
            f"{inspected.name} represents texts by {inspected.settings.model.representation}, which generates no attention: "
            "give a run with --representation attention."
        )


def check_words_alone(inspected: InspectedRun, what: str) -> None:
    """Raise a NotApplicableError if words cannot be changed, because a sentence encoder has read the whole texts."""
    if inspected.settings.model.vectors.sentence_encoder:
        raise NotApplicableError(
            f"{inspected.name} has vectors of whole texts ({inspected.vectors}), so words cannot {what}: give a run with only "
            "vectors of words."
        )


def query_episode(inspected: InspectedRun, usual: Sequence[str] = ()) -> Episode:
    """A 5-way 5-shot task with 500 queries per class: of the requested classes, the usual ones, or else the first test task.

    If there are fewer than five test classes, it has all of them, and a class with too few texts contributes all it has.
    """
    test = {inspected.corpus.classes[number] for number in inspected.inputs.dataset.split.test}
    shot = min(SHOT, smallest_class(inspected) - 1)  # leaves a query even for the smallest class
    spec = EpisodeSpec(min(WAY, len(test)), shot, QUICK_QUERIES if inspected.quick else QUERIES)
    names = inspected.classes or (usual if usual and set(usual) <= test else ())
    return inspected.episode_of(names, spec) if names else inspected.sampler("test", spec)[0]


def smallest_class(inspected: InspectedRun) -> int:
    """Number of texts in the smallest test class."""
    return int(np.bincount(inspected.corpus.labels)[list(inspected.inputs.dataset.split.test)].min())


def data_title(inspected: InspectedRun) -> str:
    """The usual name of the data set."""
    data = inspected.settings.data
    return known_datasets()[data].title if data in known_datasets() else Path(data).name.split(".")[0]


def episode_sentences(inspected: InspectedRun, episode: Episode) -> str:
    """A description of the episode, and of how it and the run differ from the paper's."""
    names = [inspected.corpus.classes[number] for number in episode.classes]
    queries = np.bincount(episode.query_labels, minlength=len(names))
    shots = np.bincount(episode.support_labels, minlength=len(names))
    number = f"{queries[0]}" if len(set(queries)) == 1 else f"{queries.min()} to {queries.max()}"
    shape = f"{len(names)} classes ({', '.join(names)}), {shots.max()} labelled texts and {number} queries per class"
    text = f"One task of {data_title(inspected)}: {shape}."
    known = [names[i] for i in range(len(names)) if episode.classes[i] in inspected.inputs.dataset.split.train]
    text += f" The model was trained on {', '.join(known)}." if known else " The model was trained on other classes."
    return " ".join([text, *deviations(inspected, len(names), int(shots.max()), int(queries.min()))])


def deviations(inspected: InspectedRun, way: int, shot: int, queries: int) -> list[str]:
    """One sentence for each difference from the paper's episode."""
    found = []
    settings = inspected.settings
    if (way, shot) != (WAY, SHOT):
        found.append(f"The paper's task has {WAY} classes and {SHOT} labelled texts per class.")
    if queries < QUERIES:
        why = "this is a quick look" if inspected.quick else "there are no more texts"
        found.append(f"The paper has {QUERIES} queries per class; {why}.")
    if settings.episode.shot != shot:
        found.append(f"The model was trained on tasks with {counted(settings.episode.shot, 'labelled text')} per class.")
    return [*found, f"Word vectors: {inspected.vectors} (the paper: fastText)."]


def word_weights(inspected: InspectedRun, episode: Episode, texts: Texts) -> dict[str, Floats]:
    """The weight of each word for each of the WEIGHTINGS: (words,); the weights of a text sum to 1.

    s(x) and t(x) follow the run's settings, and are divided by their sum over the text.
    """
    support = inspected.texts.select(episode.support)
    signature = inspected.settings.model.signature
    classes = len(episode.classes)
    labels = episode.support_labels
    s, t = measure_signals(("s", "t"), support, labels, classes, episode.pool, episode.training, texts, signature).T
    signals = {"mean": np.ones_like(s), "s": s, "t": t}
    return {name: shares(values, texts) for name, values in signals.items()} | {"ours": inspected.task(episode).weights(texts)}


def shares(values: Floats, texts: Texts) -> Floats:
    """Values of words, divided by their sum over the text."""
    total = segment_sum(values, texts.offsets)
    return values / total[segments(texts.offsets)]  # type: ignore[no-any-return]
