"""Oracle attention: how near each way to weigh words comes to one that was trained on all texts of the classes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...attention import AttentionGenerator
from ...corpus import Texts
from ...episodes import Episode
from ...functional import Floats, Ints, segment_sum
from ...heads import part_of
from ...progress import progress_bar
from ...representations import Attention
from ...training import Arrays
from ..figures import COLOURS, HATCHES, Figure, panels
from ..grid import whole_of
from ..tables import PAPER
from .fitting import Network, Schedule, as_tensors, batch_like, fit_network, in_parts, predict
from .subject import Subject
from .weighting import WEIGHTINGS, check_attention, data_title, episode_sentences, query_episode, word_weights

HIDDEN = 50  # units of the perceptron
WATCHED = 0.1  # share of the texts that decide when to stop
ORACLES, QUICK_ORACLES = 3, 1  # trained from different weights
ATTENTION = Attention(AttentionGenerator(signals=(), embeddings=True))
NETWORK = Network(ATTENTION, (HIDDEN,), 0.1)


@dataclass(frozen=True, eq=False)
class Oracle:
    """A trained oracle, and its accuracy on the texts that decided when to stop."""

    parameters: Arrays
    accuracy: float

    def weights(self, texts: Texts) -> Floats:
        """Its attention to each word: (words,)."""
        own = part_of(as_tensors(self.parameters), "representation")
        return in_parts(texts, lambda part: ATTENTION.weights(own, batch_like(part, own)))


def train_oracle(
    texts: Texts,
    labels: Ints,
    seed: int = 0,
    schedule: Schedule | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Oracle:
    """A classifier whose attention comes from all these texts and their labels.

    A biLSTM (25 units a direction, as the generator's) reads the vectors of a text's words and gives each word a share of
    attention. The shares weigh the word vectors themselves, not the states of the biLSTM, and a perceptron with one hidden
    layer classifies the weighted mean. A tenth of the texts decides when to stop.
    """
    watched = np.random.default_rng([seed, 2]).permutation(len(texts))[: max(1, round(WATCHED * len(texts)))]
    parameters = fit_network(NETWORK, texts, labels, watched, seed, schedule, tell)
    answers = predict(NETWORK, parameters, texts.select(watched)).argmax(1)
    return Oracle(parameters, float(np.mean(answers == labels[watched])))


def mean_cosine(first: Floats, second: Floats, texts: Texts) -> float:
    """The mean over texts of the cosine between two weightings of the words of each."""
    products = [segment_sum(a * b, texts.offsets) for a, b in ((first, second), (first, first), (second, second))]
    filled = texts.lengths > 0
    return float(np.mean(products[0][filled] / np.sqrt(products[1][filled] * products[2][filled])))


def oracle_cosines(subject: Subject, episode: Episode, oracles: int) -> list[dict[str, Any]]:
    """For each oracle its accuracy and the mean cosine of each weighting to its attention, over the queries of the episode."""
    documents = np.flatnonzero(np.isin(subject.corpus.labels, episode.classes))
    place = np.empty(len(subject.corpus.classes), np.int64)
    place[episode.classes] = np.arange(len(episode.classes))
    texts, labels = subject.texts.select(documents), place[subject.corpus.labels[documents]]
    queries = subject.texts.select(episode.query)
    weights, lines = word_weights(subject, episode, queries), []
    with progress_bar("Oracle attention", oracles, subject.quiet) as bar:
        for number in range(oracles):
            oracle = train_oracle(texts, labels, subject.seed + number, tell=_steps(bar.update, number))
            attention = oracle.weights(queries)
            cosines = {name: mean_cosine(weights[name], attention, queries) for name in WEIGHTINGS}
            lines.append({"accuracy": oracle.accuracy, **cosines})
    return lines


def _steps(update: Callable[[float], None], done: int) -> Callable[[float], None]:
    """Tell a bar that counts oracles of a share of the next one."""
    return lambda share: update(done + share)


def paper_cosines(data: str) -> dict[str, float]:
    """The paper's figures for a data set; none where it has none."""
    names = {"avg": "mean", "s": "s", "t": "t", "our": "ours"}
    with PAPER.open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["table"] == "oracle_cosine" and row["dataset"] == whole_of(data)]
    return {names[row["representation"]]: float(row["accuracy"]) for row in rows}


def figures(subject: Subject) -> list[Figure]:
    """A bar for each weighting, beside the paper's."""
    check_attention(subject)
    episode, oracles = query_episode(subject), QUICK_ORACLES if subject.quick else ORACLES
    lines, paper = oracle_cosines(subject, episode, oracles), paper_cosines(subject.material.dataset.name)
    rows: list[dict[str, Any]] = [
        {
            "weighting": name,
            "cosine": float(np.mean([line[name] for line in lines])),
            "deviation_over_oracles": float(np.std([line[name] for line in lines])),
            "paper": paper.get(name),
        }
        for name in WEIGHTINGS
    ]
    trained = "a classifier that learned" if oracles == 1 else f"{oracles} classifiers that learned"
    caption = (
        f"{episode_sentences(subject, episode)} The oracle is {trained} from all texts of these classes which words tell them "
        "apart: it reads a text with a biLSTM, gives each word a share of attention, and classifies the mean of the word "
        f"vectors weighted by it; it is right about {np.mean([line['accuracy'] for line in lines]):.0%} of texts that it did "
        "not learn from. A bar is the cosine between its attention and a weighting of the words that is known from a few "
        "labelled texts alone, on average over the queries: 1 is the same, 0 is attention to other words."
        + (" Hatched: the paper's figures." if paper else " The paper has no figures for this data set.")
    )
    alt = "Bar chart of the mean cosine to oracle attention: " + ", ".join(
        f"{WEIGHTINGS[row['weighting']]} {row['cosine']:.2f}" + (f" (paper {row['paper']:.2f})" if paper else "")
        for row in rows
    )
    title = f"How near each weighting of words comes to an oracle's ({data_title(subject)})"
    return [Figure("oracle-attention", title, caption, alt + ".", rows, lambda: draw(rows))]


def draw(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Bars in pairs: here and in the paper."""
    drawing, axis = panels(7.2, 3.6)
    places, both = np.arange(len(rows)), rows[0]["paper"] is not None
    width = 0.38 if both else 0.6
    kinds = {"cosine": "here", "paper": "the paper"} if both else {"cosine": "here"}
    for number, (column, label) in enumerate(kinds.items()):
        look = {"color": COLOURS[number], "hatch": HATCHES[number], "label": label}
        shift = (number - (len(kinds) - 1) / 2) * width
        bars = axis.bar(places + shift, [row[column] for row in rows], width * 0.94, linewidth=0, **look)
        axis.bar_label(bars, fmt="%.2f", padding=2)
    axis.set_xticks(places, [WEIGHTINGS[row["weighting"]] for row in rows])
    axis.set_ylabel("mean cosine to the oracle's attention")
    axis.set_ylim(0, 1.12 * max(row[column] for row in rows for column in kinds))
    if both:
        axis.legend(loc="upper left")
    return drawing
