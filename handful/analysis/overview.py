"""How it works: one real episode, from the texts to the decision, for readers who have not read the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..data.episodes import Episode, EpisodeSpec
from ..errors import SettingError
from ..utils.functional import entropy
from .attention import EpisodeReading
from .figures import COLOURS, HEAVIEST, INK, Figure
from .inspected_run import InspectedRun, NotApplicableError
from .shaded_texts import sheet, text_width
from .weighting import check_attention

WAY = 3  # classes: as many as a reader can take in at once
MOST_QUERY_WORDS = 8  # drawn
FEWEST_WORDS = 6
QUERIES_TRIED = 40  # per class, to choose one from
WIDTH = 640.0  # points
TITLE, SMALL = 10.0, 8.5


@dataclass(frozen=True, eq=False)
class Story:
    """The content of the drawing: the texts, numbers and names of one episode."""

    data: str
    pool_classes: Sequence[str]
    pool_documents: int
    pool_words: int
    classes: Sequence[str]
    shot: int
    examples: Sequence[str]  # one text per class
    truth: int  # the query's class
    words: Sequence[str]  # those of the query, or its heaviest ones
    whole: bool  # whether these are all its words
    s: np.ndarray[Any, Any]
    t: np.ndarray[Any, Any]
    attention: np.ndarray[Any, Any]
    probabilities: np.ndarray[Any, Any]
    network: str  # the generator's

    @property
    def right(self) -> bool:
        """Whether the query is classified correctly."""
        return int(self.probabilities.argmax()) == self.truth


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure of an episode, its source pool and the model's data flow."""
    check_attention(inspected)
    model = inspected.settings.model
    if (model.representation, model.attention.signals, model.head) != ("attention", ("s", "t"), "ridge"):
        raise NotApplicableError("The overview explains s, t and ridge regression: give a run of --preset our.")
    story = tell(inspected)
    columns = zip(story.words, story.s, story.t, story.attention, strict=True)
    answers = zip(story.classes, story.probabilities, strict=True)
    return [
        Figure(
            "overview",
            "How it works, on a real episode",
            f"A task of {len(story.classes)} classes that the model never saw in training, with {story.shot} labelled "
            f"example{'s' * (story.shot > 1)} of each (the support set; one text per class is shown), and a text to classify "
            f"(the query{'' if story.whole else '; its heaviest words are shown'}). Each word of the query gets two numbers: "
            "s(x), which is high if the word is rare in the texts of the training classes (the source pool), and t(x), which "
            "is high if the word points to few classes of the support set. A small network, trained on many such tasks, turns "
            "these numbers into a share of attention for each word. It never sees the word itself, so what it learned also "
            "holds for new words. The text's vector is the mean of its word vectors, weighted by attention, and a ridge "
            "regression fitted to the support set makes the decision. All texts and numbers come from the "
            f"run{'; the query is one that it classifies correctly' if story.right else ''}.",
            f"A diagram: from the source pool to s(x), from the support set to t(x), from both to attention over the words "
            f"{' '.join(story.words)}, and from there to the class {story.classes[story.truth]}.",
            [{"word": word, "s(x)": float(s), "t(x)": float(t), "attention": float(a)} for word, s, t, a in columns]
            + [{"class": name, "probability": float(share)} for name, share in answers],
            partial(_draw, story),
        )
    ]


# Choosing the episode and the query


def tell(inspected: InspectedRun) -> Story:
    """The story of one query in an episode."""
    episode = _episode(inspected)
    reader = EpisodeReading(inspected, episode)
    corpus = inspected.inputs.dataset.corpus
    document = inspected.document if inspected.document is not None else _telling(reader)
    weights = [reader.shaded(document, measure(document)).weights for measure in (reader.s, reader.t, reader.attention)]
    names = corpus.classes
    split = inspected.inputs.dataset.split
    firsts = [int(episode.support[np.flatnonzero(episode.support_labels == i)[0]]) for i in range(len(episode.classes))]
    words = corpus.words(document)
    heaviest = _heaviest(words, weights[2]) if len(words) > MOST_QUERY_WORDS else list(range(len(words)))
    return Story(
        inspected.inputs.dataset.name,
        [names[number] for number in split.train],
        inspected.pool.size,
        int(inspected.pool.total),
        [names[number] for number in episode.classes],
        int(np.sum(episode.support_labels == 0)),
        [" ".join(corpus.words(first)) for first in firsts],
        int(np.flatnonzero(episode.classes == corpus.labels[document])[0]),
        [words[i] for i in heaviest],
        len(words) <= MOST_QUERY_WORDS,
        weights[0][heaviest],
        weights[1][heaviest],
        weights[2][heaviest],
        reader.probabilities(np.array([document]))[0],
        "a biLSTM" if inspected.settings.model.attention.network == "bilstm" else "a small network",
    )


def _heaviest(words: Sequence[str], weights: np.ndarray[Any, Any]) -> list[int]:
    """The positions of the heaviest words, each word once, in the order of the text."""
    first: dict[str, int] = {}
    for place in np.argsort(-weights, kind="stable").tolist():
        first.setdefault(words[place], place)
    return sorted(list(first.values())[:MOST_QUERY_WORDS])


def _episode(inspected: InspectedRun) -> Episode:
    spec = EpisodeSpec(WAY, inspected.settings.episode.shot, QUERIES_TRIED)
    if len(inspected.classes) > 6:
        raise SettingError("The overview has room for six classes: give fewer (--classes).")
    if inspected.classes:
        return inspected.episode_of(inspected.classes, spec, inspected.document)
    return inspected.sampler("test", spec)[0]


def _telling(reader: EpisodeReading) -> int:
    """The query with the most uneven attention among those that fit and are classified correctly."""
    episode = reader.episode
    corpus = reader.inspected.inputs.dataset.corpus
    lengths = np.diff(corpus.offsets)[episode.query]
    fitting = (lengths >= FEWEST_WORDS) & (lengths <= MOST_QUERY_WORDS)
    right = reader.probabilities(episode.query).argmax(axis=1) == episode.query_labels
    chosen = episode.query[next(choice for choice in (fitting & right, fitting, right, fitting | True) if choice.any())]
    return int(max(chosen, key=lambda document: _unevenness(reader.attention(int(document)))))


def _unevenness(weights: np.ndarray[Any, Any]) -> float:
    """How far attention is from uniform, in nats."""
    return float(np.log(len(weights)) - entropy(weights[None])[0]) if len(weights) else 0.0


# Drawing


def _draw(story: Story) -> Any:
    extra = len(story.classes) - WAY  # rows
    axes = sheet(WIDTH, 512.0 + (22 + 18) * extra)
    middle, gap = 262.0, 14.0
    bottom = 128.0 + 22 * extra
    _pool(axes, story, 6, 6, middle - 6, bottom)
    _support(axes, story, middle + gap, 6, WIDTH - 6, bottom)
    top = bottom + 42
    _arrow(axes, (134, bottom + 3), (134, top - 3), "how rare is a word in general?", COLOURS[0])
    _arrow(axes, (420, bottom + 3), (420, top - 3), "how unevenly is it spread over the classes?", COLOURS[1])
    end = _query(axes, story, top)
    _arrow(axes, (134, end + 3), (134, end + 39), "the word vectors, averaged with these weights", HEAVIEST)
    _decision(axes, story, end + 42)
    return axes.figure


def _box(axes: Any, left: float, top: float, right: float, bottom: float, colour: str, fill: float = 0.1) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    shape = FancyBboxPatch((left, top), right - left, bottom - top, boxstyle="round,pad=0,rounding_size=6", linewidth=1)
    shape.set(facecolor=to_rgba(colour, fill), edgecolor=to_rgba(colour, 0.8))
    axes.add_patch(shape)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], words: str, colour: str) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 13}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)
    axes.text(start[0] + 10, (start[1] + end[1]) / 2, words, fontsize=SMALL, va="center", style="italic")


def _heading(axes: Any, left: float, top: float, title: str, words: str) -> None:
    axes.text(left, top + 17, title, fontsize=TITLE, weight="bold")
    axes.text(left, top + 31, words, fontsize=SMALL, alpha=0.75)


def _chip(axes: Any, left: float, baseline: float, name: str, colour: str) -> float:
    """Draw a class name on its colour, and return the width."""
    width = text_width(name, SMALL) + 10
    _box(axes, left, baseline - 10, left + width, baseline + 4, colour, 0.25)
    axes.text(left + 5, baseline, name, fontsize=SMALL)
    return width


def _pool(axes: Any, story: Story, left: float, top: float, right: float, bottom: float) -> None:
    _box(axes, left, top, right, bottom, COLOURS[0])
    size = f"{story.pool_documents:,} texts of {len(story.pool_classes)} classes, {story.pool_words:,} words"
    _heading(axes, left + 10, top, "Source pool: texts seen in training", size)
    x, y = left + 10, top + 52.0
    for number, name in enumerate(story.pool_classes):
        width = text_width(name, SMALL) + 10
        rest = len(story.pool_classes) - number
        room = right - 10 - x
        if y + 19 > bottom - 6 and room < width + 40 * (rest > 1):  # the last row leaves room for a number
            axes.text(x + 2, y, f"+ {rest}", fontsize=SMALL)
            return
        if room < width:
            x, y = left + 10, y + 19
        x += _chip(axes, x, y, name, COLOURS[0]) + 6


def _support(axes: Any, story: Story, left: float, top: float, right: float, bottom: float) -> None:
    _box(axes, left, top, right, bottom, COLOURS[1])
    shots = f"{story.shot} labelled example{'s' * (story.shot > 1)} of each of {len(story.classes)} new classes"
    _heading(axes, left + 10, top, "Support set: the task at hand", shots)
    chips = max(text_width(name, SMALL) for name in story.classes) + 10
    for number, (name, text) in enumerate(zip(story.classes, story.examples, strict=True)):
        baseline = top + 54 + 22 * number
        _chip(axes, left + 10, baseline, name, COLOURS[1])
        more = f" + {story.shot - 1}" if story.shot > 1 else ""
        room = right - left - chips - 32 - text_width(more, SMALL)
        axes.text(left + 20 + chips, baseline, _cut(text, room), fontsize=SMALL)
        axes.text(right - 10, baseline, more, fontsize=SMALL, ha="right", alpha=0.75)


def _cut(text: str, room: float) -> str:
    """As much of a text as fits."""
    if text_width(text, SMALL) <= room:
        return text
    words = text.split(" ")
    while words and text_width(" ".join(words) + " …", SMALL) > room:
        words.pop()
    return " ".join(words) + " …"


def _query(axes: Any, story: Story, top: float) -> float:
    """Draw the query's words with a row of bars for each number, and return where the drawing ends."""
    rows = [
        ("s(x)", "from the source pool", story.s, COLOURS[0]),
        ("t(x)", "from the support set", story.t, COLOURS[1]),
        ("attention", f"from both, by {story.network}", story.attention, HEAVIEST),
    ]
    labels = 150.0
    tall = 34.0
    end = top + 38 + 3 * 54
    _box(axes, 6, top, WIDTH - 6, end, INK, 0.04)
    axes.text(16, top + 17, "Query", fontsize=TITLE, weight="bold")
    axes.text(16, top + 31, "which class does it belong to?", fontsize=SMALL, alpha=0.75)
    step = (WIDTH - labels - 22) / len(story.words)
    for number, word in enumerate(story.words):
        size = min(9.5, 9.5 * (step - 5) / text_width(word, 9.5, bold=True))
        axes.text(labels + (number + 0.5) * step, top + 24, word, fontsize=size, weight="bold", ha="center")
    for line, (name, about, values, colour) in enumerate(rows):
        floor = top + 38 + 54 * (line + 1) - 8
        axes.text(16, floor - 14, name, fontsize=TITLE, weight="bold")
        axes.text(16, floor - 1, about, fontsize=SMALL, alpha=0.75)
        axes.plot([labels, WIDTH - 18], [floor, floor], color=INK, alpha=0.25, linewidth=0.8)
        for number, value in enumerate(values):
            centre = labels + (number + 0.5) * step
            high = tall * float(value) / max(float(values.max()), 1e-12)
            axes.bar(centre, -high, min(34.0, 0.62 * step), bottom=floor, color=colour, alpha=0.85, linewidth=0)
            written = f"{value:.0%}" if name == "attention" else f"{value:.2f}"
            axes.text(centre, floor - high - 3, written, fontsize=7.5, ha="center")
    return end


def _decision(axes: Any, story: Story, top: float) -> None:
    end = top + 44 + 18 * len(story.classes)
    _box(axes, 6, top, WIDTH - 6, end, INK, 0.04)
    _heading(axes, 16, top, "Decision", "a ridge regression fitted to the support set gives each class a probability")
    left = 26 + max(text_width(name, SMALL, bold=True) for name in story.classes)
    room = WIDTH - left - 130
    for number, (name, share) in enumerate(zip(story.classes, story.probabilities, strict=True)):
        y = top + 49 + 18 * number
        mine = number == story.truth
        axes.text(16, y, name, fontsize=SMALL, weight="bold" if mine else "normal")
        axes.barh(y - 3.2, room * float(share), 9, left=left, color=HEAVIEST if mine else INK, alpha=0.85 if mine else 0.35)
        note = " ✓ its true class" if mine else ""
        axes.text(left + room * float(share) + 5, y, f"{share:.0%}{note}", fontsize=SMALL, weight="bold" if mine else "normal")
