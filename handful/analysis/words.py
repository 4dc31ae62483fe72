"""Class-specific words: the most informative words of each class, by local mutual information."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from html import escape
from typing import Any

import numpy as np

from ..data.corpus import Corpus
from ..models.signatures import local_mutual_information
from ..utils.paths import resource
from .figures import INK, Figure, panels, weight_scale
from .inspected_run import InspectedRun
from .shaded_texts import SIZE, sheet

MOST = 10  # words listed per class
MAPPED = 2  # words per class on the map
ABREAST = 5  # classes side by side in the drawing
MEASURE = (
    "Local mutual information is high for a word that is frequent in a class, and more so there than elsewhere: "
    "P(word, class) · log(P(word, class) / (P(word) · P(class))), counted over all texts of all classes. Function words, "
    "punctuation and single letters are left out."
)
Scores = np.ndarray[Any, np.dtype[np.float64]]


@cache
def paper_words() -> dict[str, list[str]]:
    """The ten words that the paper lists for each class of 20 Newsgroups."""
    listed: dict[str, list[str]] = json.loads(resource("paper_words.json").read_text("utf-8"))
    return listed


@cache
def function_words() -> frozenset[str]:
    """Purely grammatical words. Common stop word lists also contain informative words such as bill, fire and interest."""
    return frozenset(resource("function_words.txt").read_text("utf-8").split())


def telling(word: str) -> bool:
    """Whether a word can be informative: it is not a function word, punctuation, a word ending or a single letter."""
    return len(word) > 1 and word[0].isalnum() and not set("'’") & set(word) and word not in function_words()


def class_words(corpus: Corpus, most: int = MOST) -> tuple[list[list[str]], Scores]:
    """The most informative words of each class, best first, and the local mutual information of all: (classes, vocabulary)."""
    scores = local_mutual_information(corpus.word_counts())
    words = corpus.vocabulary.words
    heard = scores * np.array([telling(word) for word in words])
    order = np.argsort(-heard, axis=1, kind="stable")[:, :most]
    return [[words[i] for i in line if row[i] > 0] for line, row in zip(order, heard, strict=True)], scores


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figures: the list of words, and the map of words and classes."""
    corpus, data = inspected.inputs.dataset.corpus, inspected.inputs.dataset.name
    words, scores = class_words(corpus)
    return [_listing(data, corpus.classes, words), word_map(data, corpus, words, scores)]


# The list


def _listing(data: str, classes: Sequence[str], words: Sequence[Sequence[str]]) -> Figure:
    listed = dict(zip(classes, words, strict=True))
    paper = paper_words() if set(classes) == set(paper_words()) else {}
    return Figure(
        "words",
        "The words of each class",
        f"The {MOST} words with the highest local mutual information with each class of {data}, the highest first."
        f"{_beside(listed, paper) if paper else ''} {MEASURE}",
        f"Lists of the {MOST} most informative words for each of {len(classes)} classes.",
        [
            {"class": name, "rank": rank, "word": word} | ({"paper": paper[name][rank - 1]} if paper else {})
            for name, several in listed.items()
            for rank, word in enumerate(several, 1)
        ],
        partial(_draw_list, listed, paper),
        _list_html(listed, paper),
    )


def _beside(listed: Mapping[str, Sequence[str]], paper: Mapping[str, Sequence[str]]) -> str:
    both = np.mean([len(set(listed[name]) & set(paper[name])) for name in paper])
    return (
        f" The paper's ten are on the right; words in both lists are bold, {both:.1f} of ten on average. (The paper tokenized "
        "its texts differently, and does not say which words it left out.)"
    )


def _list_html(listed: Mapping[str, Sequence[str]], paper: Mapping[str, Sequence[str]]) -> str:
    def cell(word: str, others: Sequence[str]) -> str:
        return f"<li{' class=both' if word in others else ''}>{escape(word)}</li>"

    parts = []
    for name, words in listed.items():
        theirs = paper.get(name, ())
        if theirs:
            pairs = zip(words, theirs, strict=True)
            lines = "".join(cell(mine, theirs) + cell(other, words) for mine, other in pairs)
            parts.append(f"<section><h4>{escape(name)}</h4><ol class=pairs>{lines}</ol></section>")
        else:
            parts.append(f"<section><h4>{escape(name)}</h4><p>{escape(', '.join(words))}</p></section>")
    return f'<div class="words">{"".join(parts)}</div>'


def _draw_list(listed: Mapping[str, Sequence[str]], paper: Mapping[str, Sequence[str]]) -> Any:
    width = 200.0 if paper else 140.0
    leading = 12.5
    lines = -(-len(listed) // ABREAST)
    room = (MOST + 2.4) * leading
    axes = sheet(width * ABREAST + 10, lines * room + 10)
    for number, (name, words) in enumerate(listed.items()):
        left, top = 10 + number % ABREAST * width, 4 + number // ABREAST * room + leading
        axes.text(left, top, name, fontsize=SIZE, weight="bold")
        axes.plot([left, left + width - 14], [top + 4, top + 4], color=INK, alpha=0.3, linewidth=0.7)
        theirs = paper.get(name, ())
        for column, (mine, others) in enumerate([(words, theirs), (theirs, words)]):
            for rank, word in enumerate(mine, 1):
                shown = _short(word)
                weight = "bold" if word in others else "normal"
                colour = {"alpha": 0.62} if column and weight == "normal" else {}
                axes.text(left + column * width / 2, top + 4 + rank * leading, shown, fontsize=SIZE, weight=weight, **colour)
    return axes.figure


def _short(word: str, most: int = 16) -> str:
    return word if len(word) <= most else f"{word[: most - 1]}…"


# The map


def word_map(data: str, corpus: Corpus, words: Sequence[Sequence[str]], scores: Scores) -> Figure:
    """The figure of how informative the two best words of each class are about every class."""
    chosen = list(dict.fromkeys(word for several in words for word in several[:MAPPED]))
    values = np.maximum(scores[:, corpus.vocabulary.find(chosen)].T, 0) * 1e6  # (words, classes)
    concentration = float(np.mean(values.max(axis=1) / values.sum(axis=1)))
    return Figure(
        "words-map",
        "Words that identify one class say little about another",
        f"The two most informative words of each class of {data} (rows) and all classes (columns): the darker a field, the "
        f"more the word indicates the class. On average, {concentration:.0%} of a word's information is about a single class: "
        "words that matter for one class matter little for others, so what a model learns about words in training does not "
        "carry over to new classes. The square root is shown, so that weak relations are visible too; a field is blank if "
        f"the word counts against the class. {MEASURE}",
        f"A map of {len(chosen)} words and {len(corpus.classes)} classes, dark along the diagonal and light elsewhere.",
        [
            {"word": word, "class": name, "lmi (millionths)": float(value)}
            for word, row in zip(chosen, values, strict=True)
            for name, value in zip(corpus.classes, row, strict=True)
        ],
        partial(_draw_map, chosen, corpus.classes, values),
    )


def _draw_map(words: Sequence[str], classes: Sequence[str], values: Scores) -> Any:
    from matplotlib.colors import PowerNorm

    drawing, axes = panels(2.2 + 0.19 * len(classes), 1.6 + 0.135 * len(words))
    size = 7.5
    mesh = axes.pcolormesh(values, cmap=weight_scale(), norm=PowerNorm(0.5, 0, values.max()), rasterized=True)
    axes.set_xticks(np.arange(len(classes)) + 0.5, classes, rotation=90, fontsize=size)
    axes.set_yticks(np.arange(len(words)) + 0.5, [_short(word) for word in words], fontsize=size)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    bar = drawing.colorbar(mesh, ax=axes, location="bottom", shrink=0.6, aspect=40, pad=0.01)
    bar.set_label("local mutual information, in millionths", fontsize=size)
    bar.ax.tick_params(labelsize=size)
    bar.outline.set_visible(False)
    return drawing
