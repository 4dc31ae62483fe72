"""What several analyses share: an episode with many queries, told in words, and four ways to weigh its words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...catalogue import catalogue
from ...corpus import Texts
from ...episodes import Episode, EpisodeSpec
from ...functional import Floats, segment_sum, segments
from ...representations import Attention
from ...signatures import measure_signals
from .subject import NotApplicableError, Subject

WAY, SHOT, QUERIES = 5, 5, 500  # of the paper's episodes for looking at words and vectors
QUICK_QUERIES = 100
WEIGHTINGS = {"mean": "every word the same", "s": "by s(x)", "t": "by t(x)", "ours": "by generated attention"}


def check_attention(subject: Subject) -> None:
    """Refuse a run that generates no attention."""
    if not isinstance(subject.model.representation, Attention):
        raise NotApplicableError(
            f"{subject.name} represents texts by {subject.settings.model.representation}, which generates no attention: "
            "give a run with --representation attention."
        )


def query_episode(subject: Subject, usual: Sequence[str] = ()) -> Episode:
    """A 5-way 5-shot task with 500 queries a class: of the classes asked for, else the usual ones, else the first test task.

    Where the test classes are fewer than five it has them all, and a class with fewer texts gives what it has.
    """
    test = {subject.corpus.classes[number] for number in subject.material.dataset.split.test}
    shot = min(SHOT, smallest_class(subject) - 1)  # the smallest class has a query, too
    spec = EpisodeSpec(min(WAY, len(test)), shot, QUICK_QUERIES if subject.quick else QUERIES)
    names = subject.classes or (usual if usual and set(usual) <= test else ())
    return subject.episode_of(names, spec) if names else subject.sampler("test", spec)[0]


def smallest_class(subject: Subject) -> int:
    """Texts of the test class that has the fewest."""
    return int(np.bincount(subject.corpus.labels)[list(subject.material.dataset.split.test)].min())


def data_title(subject: Subject) -> str:
    """The data set by the name people know it by."""
    data = subject.settings.data
    return catalogue()[data].title if data in catalogue() else Path(data).name.split(".")[0]


def episode_sentences(subject: Subject, episode: Episode) -> str:
    """The episode in words, and in what it and the run differ from the paper's."""
    names = [subject.corpus.classes[number] for number in episode.classes]
    queries = np.bincount(episode.query_labels, minlength=len(names))
    shots = np.bincount(episode.support_labels, minlength=len(names))
    number = f"{queries[0]}" if len(set(queries)) == 1 else f"{queries.min()} to {queries.max()}"
    shape = f"{len(names)} classes ({', '.join(names)}), {shots.max()} labelled texts and {number} queries a class"
    text = f"One task of {data_title(subject)}: {shape}."
    known = [names[i] for i in range(len(names)) if episode.classes[i] in subject.material.dataset.split.train]
    text += f" The model was trained on {', '.join(known)}." if known else " The model was trained on other classes."
    return " ".join([text, *deviations(subject, len(names), int(shots.max()), int(queries.min()))])


def deviations(subject: Subject, way: int, shot: int, queries: int) -> list[str]:
    """A sentence for each thing that is not as in the paper's episode."""
    found, settings = [], subject.settings
    if (way, shot) != (WAY, SHOT):
        found.append(f"The paper's task has {WAY} classes and {SHOT} labelled texts a class.")
    if queries < QUERIES:
        why = "this is a quick look" if subject.quick else "there are no more texts"
        found.append(f"The paper has {QUERIES} queries a class; {why}.")
    if settings.episode.shot != shot:
        found.append(f"The model was trained on tasks with {counted(settings.episode.shot, 'labelled text')} a class.")
    return [*found, f"Word vectors: {subject.vectors} (the paper: fastText)."]


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "text"), counted(5, "text")
    ('1 text', '5 texts')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def word_weights(subject: Subject, episode: Episode, texts: Texts) -> dict[str, Floats]:
    """The weight of each word by each of the WEIGHTINGS: (words,); the weights of a text sum to one.

    s(x) and t(x) are those of the run's settings, divided by their sum over the text.
    """
    support, signature = subject.texts.select(episode.support), subject.settings.model.signature
    classes, labels = len(episode.classes), episode.support_labels
    s, t = measure_signals(("s", "t"), support, labels, classes, episode.pool, episode.training, texts, signature).T
    signals = {"mean": np.ones_like(s), "s": s, "t": t}
    return {name: shares(values, texts) for name, values in signals.items()} | {"ours": subject.task(episode).weights(texts)}


def shares(values: Floats, texts: Texts) -> Floats:
    """Values of words as shares of the sum over their text."""
    total = segment_sum(values, texts.offsets)
    return values / total[segments(texts.offsets)]  # type: ignore[no-any-return]
