"""Attention on text: the weights of a query's words by s(x), by t(x) and by the generated attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..data.corpus import Texts, join_texts
from ..data.episodes import Episode, EpisodeSpec
from ..models.few_shot import Task
from ..models.representations import WeightedBag
from ..models.signatures import class_importance, general_importance
from ..utils.functional import Floats, Ints, softmax
from .figures import Figure
from .inspected_run import InspectedRun, NotApplicableError
from .shaded_texts import Shaded, ShadedTable, Weights
from .weighting import check_attention, check_words_alone

QUERIES = 10  # shown per episode
S, T, OURS = "s(x), rare in general", "t(x), uneven over the classes", "generated attention"
FINE = ("jobs", "retail", "ipi", "wpi", "cpi")  # Reuters' economic indicators
COARSE = ("jobs", "cocoa", "alum", "copper", "reserves")
BEGINNING = ["finnish", "unemployment"]  # of the text from jobs that the paper shows
MIDDLE_AGED = "fifty"  # the HuffPost class that the paper shows
GRANDMOTHER = ["this", "gorgeous", "grandma"]  # the beginning of the paper's text from that class
SHADES = "The darker a word, the larger its weight relative to the heaviest word of the same text."
BOTH = " The decision also depends on a vector of the whole text, to which no word has a weight of its own."


@dataclass(frozen=True, eq=False)
class EpisodeReading:
    """Queries as a model reads them in one episode."""

    inspected: InspectedRun
    episode: Episode

    @cached_property
    def task(self) -> Task:
        """The task that the model learned from the support set."""
        return self.inspected.task(self.episode)

    def _query(self, document: int) -> Texts:
        return self.inspected.texts.select(np.array([document]))

    def s(self, document: int) -> Floats:
        """How rare each word is in the source pool."""
        return general_importance(self.episode.pool, self._query(document).ids, self.inspected.model.settings.signature.epsilon)

    def t(self, document: int) -> Floats:
        """How unevenly each word is spread over the classes of the support set."""
        support = self.inspected.texts.select(self.episode.support)
        way = len(self.episode.classes)
        signature = self.inspected.model.settings.signature
        return class_importance(support, self.episode.support_labels, way, self._query(document), signature)

    def attention(self, document: int) -> Weights:
        """The weight of each word in the text's vector."""
        return self.task.weights(self._query(document))

    def probabilities(self, documents: Ints) -> Floats:
        """The probability of each class of the episode: (documents, classes)."""
        return self._probabilities(self.inspected.texts.select(documents))

    def _probabilities(self, texts: Texts) -> Floats:
        probabilities: Floats = softmax(np.asarray(self.task.score(texts)))
        return probabilities

    def importance(self, document: int) -> Weights:
        """How much the probability of the text's own class falls when a word is left out."""
        query = self._query(document)
        if len(query.ids) < 2:
            return np.ones(len(query.ids))
        mine = int(np.flatnonzero(self.episode.classes == self.inspected.corpus.labels[document])[0])
        probabilities = self._probabilities(join_texts([query, *_each_left_out(query)]))[:, mine]
        return np.asarray(probabilities[0] - probabilities[1:])

    def shaded(self, document: int, weights: Weights) -> Shaded:
        """All words of a text, shaded; a word without a vector has weight 0."""
        full = self.inspected.inputs.dataset.corpus.words(document)
        kept = self.inspected.corpus.words(document)
        spread = np.zeros(len(full))
        place = 0
        for i, word in enumerate(full):
            if place < len(kept) and word == kept[place]:  # otherwise the word has no vector
                spread[i] = weights[place]
                place += 1
        return Shaded(full, spread)


def _each_left_out(query: Texts) -> list[Texts]:
    """Copies of a text, each with one word left out."""
    kept = [np.delete(np.arange(len(query.ids)), i) for i in range(len(query.ids))]
    return [
        replace(query, ids=query.ids[k], rows=query.rows[k], positions=query.positions[k], offsets=np.array([0, len(k)]))
        for k in kept
    ]


def shown_episode(inspected: InspectedRun) -> Episode:
    """An episode of the requested classes, or the first one of the test classes."""
    if inspected.classes:
        return inspected.episode_of(inspected.classes, inspected.settings.episode, inspected.document)
    if inspected.document is not None:
        names = [inspected.corpus.classes[number] for number in inspected.sampler()[0].classes]
        return inspected.episode_of(names, inspected.settings.episode, inspected.document)
    return inspected.sampler()[0]


def shown_queries(inspected: InspectedRun, episode: Episode, number: int = QUERIES) -> list[int]:
    """The requested document, or `number` queries, spread over the classes."""
    if inspected.document is not None:
        return [inspected.document]
    places = np.linspace(0, len(episode.query), min(number, len(episode.query)), endpoint=False).astype(int)
    return [int(document) for document in episode.query[places]]


def attention_table(inspected: InspectedRun, number: int = QUERIES) -> ShadedTable:
    """Queries of an episode, each shaded by s, by t and by attention."""
    check_attention(inspected)
    episode = shown_episode(inspected)
    documents = shown_queries(inspected, episode, number)
    names = inspected.corpus.classes
    reader = EpisodeReading(inspected, episode)
    rows = []
    answers = episode.classes[reader.probabilities(np.array(documents)).argmax(axis=1)]
    for document, given in zip(documents, answers, strict=True):
        truth, answer = names[inspected.corpus.labels[document]], names[given]
        name = truth if truth == answer else f"{truth} (predicted: {answer})"
        cells = [reader.shaded(document, measure(document)) for measure in (reader.s, reader.t, reader.attention)]
        rows.append((name, cells))
    return ShadedTable("class", (S, T, OURS), rows)


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure of an episode's queries."""
    table = attention_table(inspected)
    shot = inspected.settings.episode.shot
    way = len(inspected.classes) or inspected.settings.episode.way
    trained = set(inspected.class_numbers(inspected.classes)) & set(inspected.inputs.dataset.split.train)
    return [
        Figure(
            "attention",
            "Which words the model attends to",
            f"Texts of {inspected.inputs.dataset.name}, from classes the model {'saw some of' if trained else 'never saw'} in "
            f"training, to be classified after {shot} labelled example{'s' * (shot > 1)} of each of {way} classes. Each text "
            "is shown three times: shaded by s(x), which is high for words that are rare in other texts; by t(x), which is "
            "high for words that occur in the examples of few classes; and by the attention that the model computes from "
            f"{' and '.join(inspected.settings.model.attention.signals)}, the weight of each word in the decision. {SHADES} "
            "A word without a vector stays blank." + (BOTH if inspected.settings.model.vectors.sentence_encoder else ""),
            f"{len(table.rows)} texts, each with its words shaded by s, by t and by attention.",
            table.numbers(),
            table.draw,
            table.html(),
        )
    ]


# The same text among close and among distant classes


def granularity(inspected: InspectedRun) -> list[Figure]:
    """The figure of a text from Reuters' class jobs, among close and among distant classes."""
    check_attention(inspected)
    missing = {*FINE, *COARSE} - set(inspected.corpus.classes)
    if missing:
        raise NotApplicableError("Fine and coarse tasks need the classes of Reuters: give a run with --data reuters.")
    seen = set(inspected.class_numbers([*FINE, *COARSE])) & set(inspected.inputs.dataset.split.train)
    if seen:
        raise NotApplicableError(
            "The run was trained on classes of the two tasks: give one trained with --data reuters --split granularity."
        )
    document = inspected.document if inspected.document is not None else _beginning(inspected, FINE[0], BEGINNING)
    spec = EpisodeSpec(len(FINE), 5, 15)
    readers = [EpisodeReading(inspected, inspected.episode_of(names, spec, document)) for names in (FINE, COARSE)]
    measures = {S: EpisodeReading.s, T: EpisodeReading.t, OURS: EpisodeReading.attention}
    rows = [
        (name, [reader.shaded(document, measure(reader, document)) for reader in readers]) for name, measure in measures.items()
    ]
    table = ShadedTable("shaded by", [f"among {', '.join(names[1:])}" for names in (FINE, COARSE)], rows)
    return [
        Figure(
            "granularity",
            "The same text, among close and among distant classes",
            "One Reuters article of the class jobs, in two tasks of five classes with five labelled examples each: with other "
            "economic indicators (retail sales, industrial production, wholesale prices, consumer prices), and with distant "
            "classes (cocoa, aluminium, copper, foreign reserves). The examples of jobs are the same in both, and so is s(x), "
            "which does not depend on the task. What t(x) and the attention single out depends on which classes have to be "
            f"distinguished. None of these classes was seen in training (the split granularity). {SHADES}",
            "A text of the class jobs shaded by s, t and attention, once in a fine-grained and once in a coarse-grained task.",
            table.numbers(),
            table.draw,
            table.html(),
        )
    ]


def _beginning(inspected: InspectedRun, name: str, words: Sequence[str]) -> int:
    """The text of a class that begins with these words, or else its first text."""
    corpus = inspected.inputs.dataset.corpus
    (number,) = inspected.class_numbers([name])
    members = [int(document) for document in np.flatnonzero(corpus.labels == number)]
    return next((document for document in members if corpus.words(document)[: len(words)] == list(words)), members[0])


# Importance of words to models that do not weight them


def importance(inspected: InspectedRun) -> list[Figure]:
    """The figure of how much each word of a text matters to this run and to others, measured by leaving it out."""
    if not inspected.against:
        raise NotApplicableError("Word importance compares runs: give others, such as prototypical networks (--against RUN).")
    name = inspected.classes[0] if inspected.classes else MIDDLE_AGED
    if name not in inspected.corpus.classes:
        raise NotApplicableError(f"The data has no class {name}: give some of its classes (--classes).")
    document = inspected.document if inspected.document is not None else _beginning(inspected, name, GRANDMOTHER)
    names = _company(inspected, name)
    rows = []
    for run in (*inspected.against, inspected):
        check_words_alone(run, "be left out")
        reader = EpisodeReading(run, run.episode_of(names, EpisodeSpec(len(names), 5, 25), document))
        seen = run.class_numbers([name])[0] in run.inputs.dataset.split.train
        label = f"{run.method}, class {'seen' if seen else 'not seen'} in training"
        rows.append((f"{label}: by leaving words out", [reader.shaded(document, reader.importance(document))]))
        if isinstance(run.model.representation, WeightedBag):
            rows.append((f"{label}: its weights", [reader.shaded(document, reader.attention(document))]))
    table = ShadedTable("run", [f"a text of the class {name}, among {', '.join(names[1:])}"], rows)
    return [
        Figure(
            "importance",
            f"What matters in a text of the class {name}",
            "The importance of a word is how much the probability of the correct class falls when that word is left out; a "
            "word is blue if the probability rises. It can be measured for any model, even one that does not weight words, "
            "such as a prototypical network. If the model weights words, its weights are shown below. A model that learned "
            "words of its training classes may know what matters in a class it was trained on, but not in a new one. All runs "
            f"get the same five examples of the same {len(names)} classes. {SHADES}",
            f"A text of the class {name} shaded by the importance of its words to {len(rows)} models.",
            table.numbers(),
            table.draw,
            table.html(),
        )
    ]


def _company(inspected: InspectedRun, name: str) -> list[str]:
    """The other classes of the task: the requested ones, or four that no run was trained on."""
    if len(inspected.classes) > 1:
        return list(inspected.classes)
    (mine,) = inspected.class_numbers([name])
    test = [number for number in inspected.inputs.dataset.split.test if number != mine]
    others = np.random.default_rng(inspected.seed).choice(test, min(4, len(test)), replace=False)
    return [name, *(inspected.corpus.classes[number] for number in others)]
