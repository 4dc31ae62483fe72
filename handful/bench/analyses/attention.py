"""Attention on text: which words of a query count by s(x), by t(x) and by the generated attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...corpus import Texts, join_texts
from ...episodes import Episode, EpisodeSpec
from ...functional import Floats, Ints, softmax
from ...model import Task
from ...representations import WeightedBag
from ...signatures import class_importance, general_importance
from ..figures import Figure
from .shading import Shaded, ShadedTable, Weights
from .subject import NotApplicableError, Subject

QUERIES = 10  # texts shown of an episode
S, T, OURS = "s(x), rare in general", "t(x), uneven over the classes", "generated attention"
FINE = ("jobs", "retail", "ipi", "wpi", "cpi")  # Reuters' economic indicators
COARSE = ("jobs", "cocoa", "alum", "copper", "reserves")
BEGINNING = ["finnish", "unemployment"]  # of the text of jobs that the paper shows
MIDDLE_AGED = "fifty"  # the class of HuffPost that the paper shows
GRANDMOTHER = ["this", "gorgeous", "grandma"]  # the beginning of its text of that class
SHADES = "The darker a word, the more it weighs beside the heaviest word of the same text."


@dataclass(frozen=True, eq=False)
class Reader:
    """Queries as a model reads them in one episode."""

    subject: Subject
    episode: Episode

    @cached_property
    def task(self) -> Task:
        """What the model learned from the support set."""
        return self.subject.task(self.episode)

    def _query(self, document: int) -> Texts:
        return self.subject.texts.select(np.array([document]))

    def s(self, document: int) -> Floats:
        """How rare each word is in the source pool."""
        return general_importance(self.episode.pool, self._query(document).ids, self.subject.model.settings.signature.epsilon)

    def t(self, document: int) -> Floats:
        """How unevenly each word falls over the classes of the support set."""
        support, way = self.subject.texts.select(self.episode.support), len(self.episode.classes)
        signature = self.subject.model.settings.signature
        return class_importance(support, self.episode.support_labels, way, self._query(document), signature)

    def attention(self, document: int) -> Weights:
        """The weight of each word in the text's vector."""
        return self.task.weights(self._query(document))

    def probabilities(self, documents: Ints) -> Floats:
        """Of each class of the episode: (documents, classes)."""
        return self._probabilities(self.subject.texts.select(documents))

    def _probabilities(self, texts: Texts) -> Floats:
        probabilities: Floats = softmax(np.asarray(self.task.score(texts)))
        return probabilities

    def importance(self, document: int) -> Weights:
        """By how much the probability of the text's own class falls when a word is left out."""
        query = self._query(document)
        if len(query.ids) < 2:
            return np.ones(len(query.ids))
        mine = int(np.flatnonzero(self.episode.classes == self.subject.corpus.labels[document])[0])
        probabilities = self._probabilities(join_texts([query, *_each_left_out(query)]))[:, mine]
        return np.asarray(probabilities[0] - probabilities[1:])

    def shaded(self, document: int, weights: Weights) -> Shaded:
        """All words of a text; one that has no vector weighs nothing."""
        full, kept = self.subject.material.dataset.corpus.words(document), self.subject.corpus.words(document)
        spread, place = np.zeros(len(full)), 0
        for i, word in enumerate(full):
            if place < len(kept) and word == kept[place]:  # words are left out by their kind, so the next one fits or is out
                spread[i] = weights[place]
                place += 1
        return Shaded(full, spread)


def _each_left_out(query: Texts) -> list[Texts]:
    """A text of several words without its first word, without its second, and so on."""
    kept = [np.delete(np.arange(len(query.ids)), i) for i in range(len(query.ids))]
    return [
        replace(query, ids=query.ids[k], rows=query.rows[k], positions=query.positions[k], offsets=np.array([0, len(k)]))
        for k in kept
    ]


def generating(subject: Subject) -> None:
    """Refuse a run whose model does not generate attention."""
    kind = subject.settings.model.representation
    if kind != "attention":
        raise NotApplicableError(
            f"The representation {kind} generates no attention: report a run of the representation attention."
        )


def shown_episode(subject: Subject) -> Episode:
    """The episode of the classes that were asked for, or the first one of the test classes."""
    if subject.classes:
        return subject.episode_of(subject.classes, subject.settings.episode, subject.document)
    if subject.document is not None:
        names = [subject.corpus.classes[number] for number in subject.sampler()[0].classes]
        return subject.episode_of(names, subject.settings.episode, subject.document)
    return subject.sampler()[0]


def shown_queries(subject: Subject, episode: Episode, number: int = QUERIES) -> list[int]:
    """The document that was asked for, or so many queries, spread over the classes."""
    if subject.document is not None:
        return [subject.document]
    places = np.linspace(0, len(episode.query), min(number, len(episode.query)), endpoint=False).astype(int)
    return [int(document) for document in episode.query[places]]


def attention_table(subject: Subject, number: int = QUERIES) -> ShadedTable:
    """Queries of an episode, each shaded by s, by t and by attention."""
    generating(subject)
    episode = shown_episode(subject)
    documents, names = shown_queries(subject, episode, number), subject.corpus.classes
    reader, rows = Reader(subject, episode), []
    answers = episode.classes[reader.probabilities(np.array(documents)).argmax(axis=1)]
    for document, given in zip(documents, answers, strict=True):
        truth, answer = names[subject.corpus.labels[document]], names[given]
        name = truth if truth == answer else f"{truth} (taken for {answer})"
        cells = [reader.shaded(document, measure(document)) for measure in (reader.s, reader.t, reader.attention)]
        rows.append((name, cells))
    return ShadedTable("class", (S, T, OURS), rows)


def print_attention(subject: Subject, number: int = QUERIES) -> None:
    """The same on the terminal."""
    from rich.console import Console

    Console(highlight=False).print(attention_table(subject, number).terminal())


def figures(subject: Subject) -> list[Figure]:
    """Queries of an episode."""
    table = attention_table(subject)
    shot, way = subject.settings.episode.shot, len(subject.classes) or subject.settings.episode.way
    trained = set(subject.class_numbers(subject.classes)) & set(subject.material.dataset.split.train)
    return [
        Figure(
            "attention",
            "Which words the model looks at",
            f"Texts of {subject.material.dataset.name}, from classes the model {'saw some of' if trained else 'never saw'} in "
            f"training, to be sorted after {shot} labelled example{'s' * (shot > 1)} of each of {way} classes. Each text "
            "stands here three times: shaded by s(x), high for words that are rare in other texts; by t(x), high for words "
            "that occur in the examples of few classes; and by the attention that the model makes of "
            f"{' and '.join(subject.settings.model.signals)}, with which a word enters the decision. {SHADES} A word that has "
            "no vector stays blank.",
            f"{len(table.rows)} texts, each with its words shaded by s, by t and by attention.",
            table.numbers(),
            table.draw,
            table.html(),
        )
    ]


# The same text in two companies


def granularity(subject: Subject) -> list[Figure]:
    """A text of Reuters' class jobs among close and among distant classes."""
    generating(subject)
    missing = {*FINE, *COARSE} - set(subject.corpus.classes)
    if missing:
        raise NotApplicableError("Fine and coarse tasks are shown on Reuters' classes: report a run on reuters.")
    seen = set(subject.class_numbers([*FINE, *COARSE])) & set(subject.material.dataset.split.train)
    if seen:
        raise NotApplicableError(
            "The classes of the fine and the coarse task were trained on: train a run with --data reuters --split granularity."
        )
    document = subject.document if subject.document is not None else _beginning(subject, FINE[0], BEGINNING)
    spec = EpisodeSpec(len(FINE), 5, 15)
    readers = [Reader(subject, subject.episode_of(names, spec, document)) for names in (FINE, COARSE)]
    measures = {S: Reader.s, T: Reader.t, OURS: Reader.attention}
    rows = [
        (name, [reader.shaded(document, measure(reader, document)) for reader in readers]) for name, measure in measures.items()
    ]
    table = ShadedTable("shaded by", [f"among {', '.join(names[1:])}" for names in (FINE, COARSE)], rows)
    return [
        Figure(
            "granularity",
            "The same text, among close and among distant classes",
            "One Reuters article of the class jobs, in two tasks of five classes with five labelled examples each: beside "
            "other economic indicators (retail sales, industrial production, wholesale prices, consumer prices) and beside "
            "distant classes (cocoa, aluminium, copper, foreign reserves). The examples of jobs are the same in both, and so "
            "is s(x), which does not know the task. What t(x) and the attention single out depends on which classes have to be "
            f"told apart. None of these classes was seen in training (the split granularity). {SHADES}",
            "A text of the class jobs shaded by s, t and attention, once in a fine-grained and once in a coarse-grained task.",
            table.numbers(),
            table.draw,
            table.html(),
        )
    ]


def _beginning(subject: Subject, name: str, words: Sequence[str]) -> int:
    """The text of a class that begins with these words; where there is none, its first."""
    corpus, (number,) = subject.material.dataset.corpus, subject.class_numbers([name])
    members = [int(document) for document in np.flatnonzero(corpus.labels == number)]
    return next((document for document in members if corpus.words(document)[: len(words)] == list(words)), members[0])


# Importance of words to models that do not weigh them


def importance(subject: Subject) -> list[Figure]:
    """How much each word of a text matters to this run and to others, by leaving it out."""
    if not subject.against:
        raise NotApplicableError("Word importance compares runs: name others, such as prototypical networks (--against RUN).")
    name = subject.classes[0] if subject.classes else MIDDLE_AGED
    if name not in subject.corpus.classes:
        raise NotApplicableError(f"The data has no class {name}: choose one of its classes (--classes).")
    document = subject.document if subject.document is not None else _beginning(subject, name, GRANDMOTHER)
    names = _company(subject, name)
    rows = []
    for run in (*subject.against, subject):
        reader = Reader(run, run.episode_of(names, EpisodeSpec(len(names), 5, 25), document))
        seen = run.class_numbers([name])[0] in run.material.dataset.split.train
        label = f"{run.method}, class {'seen' if seen else 'not seen'} in training"
        rows.append((f"{label}: by leaving out", [reader.shaded(document, reader.importance(document))]))
        if isinstance(run.model.representation, WeightedBag):
            rows.append((f"{label}: its weights", [reader.shaded(document, reader.attention(document))]))
    table = ShadedTable("run", [f"a text of the class {name}, among {', '.join(names[1:])}"], rows)
    return [
        Figure(
            "importance",
            f"What matters in a text of the class {name}",
            "The importance of a word here is how much the probability of the right class falls when that word is left out; a "
            "word is blue where the probability rises. It can be measured for any model, also for one that gives words no "
            "weights, such as a prototypical network. Where the model weighs words, its weights stand below. A model that "
            "learned words of its training classes may know what matters in a class it was trained on, and not in a new one. "
            f"All runs get the same five examples of the same {len(names)} classes. {SHADES}",
            f"A text of the class {name} shaded by the importance of its words to {len(rows)} models.",
            table.numbers(),
            table.draw,
            table.html(),
        )
    ]


def _company(subject: Subject, name: str) -> list[str]:
    """The classes to tell a class from: those asked for, or four that no run was trained on."""
    if len(subject.classes) > 1:
        return list(subject.classes)
    (mine,) = subject.class_numbers([name])
    test = [number for number in subject.material.dataset.split.test if number != mine]
    others = np.random.default_rng(subject.seed).choice(test, min(4, len(test)), replace=False)
    return [name, *(subject.corpus.classes[number] for number in others)]
