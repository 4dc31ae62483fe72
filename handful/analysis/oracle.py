"""Oracle attention: how close each weighting of words comes to that of a model trained on all texts of the classes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bench.grid import whole_of
from ..bench.tables import PAPER
from ..data.corpus import Texts
from ..data.episodes import Episode
from ..meta.training import Arrays
from ..models.attention import AttentionGenerator
from ..models.heads import part_of
from ..models.representations import Attention
from ..utils.functional import Floats, Ints, segment_sum
from ..utils.progress import progress_bar
from .figures import COLOURS, HATCHES, Figure, panels
from .fitting import Network, Schedule, as_tensors, batch_like, fit_network, in_parts, predict
from .inspected_run import InspectedRun
from .weighting import WEIGHTINGS, check_attention, data_title, episode_sentences, query_episode, word_weights

HIDDEN = 50  # units of the perceptron
WATCHED = 0.1  # share of the texts that decide when to stop
ORACLES, QUICK_ORACLES = 3, 1  # trained from different initial weights
ATTENTION = Attention(AttentionGenerator(signals=(), embeddings=True))
NETWORK = Network(ATTENTION, (HIDDEN,), 0.1)


@dataclass(frozen=True, eq=False)
class Oracle:
    """A trained oracle, and its accuracy on the texts that decided when to stop training."""

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
    """Train a classifier that learns its attention from all these texts and their labels.

    A biLSTM (25 units per direction, as in the generator) reads the word vectors of a text and gives each word a share of
    attention. The shares weight the word vectors themselves, not the states of the biLSTM, and a perceptron with one hidden
    layer classifies the weighted mean. A tenth of the texts decides when to stop.
    """
    watched = np.random.default_rng([seed, 2]).permutation(len(texts))[: max(1, round(WATCHED * len(texts)))]
    parameters = fit_network(NETWORK, texts, labels, watched, seed, schedule, tell)
    answers = predict(NETWORK, parameters, texts.select(watched)).argmax(1)
    return Oracle(parameters, float(np.mean(answers == labels[watched])))


def mean_cosine(first: Floats, second: Floats, texts: Texts) -> float:
    """The cosine between two weightings of a text's words, averaged over texts."""
    products = [segment_sum(a * b, texts.offsets) for a, b in ((first, second), (first, first), (second, second))]
    filled = texts.lengths > 0
    return float(np.mean(products[0][filled] / np.sqrt(products[1][filled] * products[2][filled])))


def oracle_cosines(inspected: InspectedRun, episode: Episode, oracles: int) -> list[dict[str, Any]]:
    """The accuracy of each oracle, and the mean cosine between its attention and each weighting, over the episode's queries."""
    documents = np.flatnonzero(np.isin(inspected.corpus.labels, episode.classes))
    place = np.empty(len(inspected.corpus.classes), np.int64)
    place[episode.classes] = np.arange(len(episode.classes))
    texts = inspected.texts.select(documents)
    labels = place[inspected.corpus.labels[documents]]
    queries = inspected.texts.select(episode.query)
    weights = word_weights(inspected, episode, queries)
    lines = []
    with progress_bar("Oracle attention", oracles, inspected.quiet) as bar:
        for number in range(oracles):
            oracle = train_oracle(texts, labels, inspected.seed + number, tell=_steps(bar.update, number))
            attention = oracle.weights(queries)
            cosines = {name: mean_cosine(weights[name], attention, queries) for name in WEIGHTINGS}
            lines.append({"accuracy": oracle.accuracy, **cosines})
    return lines


def _steps(update: Callable[[float], None], done: int) -> Callable[[float], None]:
    """A function that adds the share of the current oracle to a bar that counts oracles."""
    return lambda share: update(done + share)


def paper_cosines(data: str) -> dict[str, float]:
    """The paper's figures for a data set; empty if there are none."""
    names = {"avg": "mean", "s": "s", "t": "t", "our": "ours"}
    with PAPER.open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["table"] == "oracle_cosine" and row["dataset"] == whole_of(data)]
    return {names[row["representation"]]: float(row["accuracy"]) for row in rows}


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure with one bar per weighting, next to the paper's."""
    check_attention(inspected)
    episode = query_episode(inspected)
    oracles = QUICK_ORACLES if inspected.quick else ORACLES
    lines = oracle_cosines(inspected, episode, oracles)
    paper = paper_cosines(inspected.inputs.dataset.name)
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
        f"{episode_sentences(inspected, episode)} The oracle is {trained} from all texts of these classes which words "
        "distinguish them: it reads a text with a biLSTM, gives each word a share of attention, and classifies the weighted "
        f"mean of the word vectors; it is right on {np.mean([line['accuracy'] for line in lines]):.0%} of texts that it did "
        "not learn from. Each bar is the cosine between its attention and a weighting that is computed from only a few "
        "labelled texts, averaged over the queries: 1 means the same attention, 0 attention to other words."
        + (" Hatched: the paper's figures." if paper else " The paper has no figures for this data set.")
    )
    alt = "Bar chart of the mean cosine with oracle attention: " + ", ".join(
        f"{WEIGHTINGS[row['weighting']]} {row['cosine']:.2f}" + (f" (paper {row['paper']:.2f})" if paper else "")
        for row in rows
    )
    title = f"How close each weighting of words comes to that of an oracle ({data_title(inspected)})"
    return [Figure("oracle-attention", title, caption, alt + ".", rows, lambda: draw(rows))]


def draw(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Draw bars in pairs: measured here, and in the paper."""
    drawing, axis = panels(7.2, 3.6)
    places = np.arange(len(rows))
    both = rows[0]["paper"] is not None
    width = 0.38 if both else 0.6
    kinds = {"cosine": "here", "paper": "the paper"} if both else {"cosine": "here"}
    for number, (column, label) in enumerate(kinds.items()):
        look = {"color": COLOURS[number], "hatch": HATCHES[number], "label": label}
        shift = (number - (len(kinds) - 1) / 2) * width
        bars = axis.bar(places + shift, [row[column] for row in rows], width * 0.94, linewidth=0, **look)
        axis.bar_label(bars, fmt="%.2f", padding=2)
    axis.set_xticks(places, [WEIGHTINGS[row["weighting"]] for row in rows])
    axis.set_ylabel("mean cosine with the oracle's attention")
    axis.set_ylim(0, 1.12 * max(row[column] for row in rows for column in kinds))
    if both:
        axis.legend(loc="upper left")
    return drawing
