"""Embedding space: where the queries of a task lie, for four ways of weighting words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.episodes import Episode
from ..utils.functional import Floats, Ints, weighted_bag
from ..utils.progress import track
from ..utils.wording import counted
from .figures import COLOURS, MARKERS, Figure, panels
from .inspected_run import InspectedRun
from .weighting import WEIGHTINGS, check_attention, data_title, episode_sentences, query_episode, word_weights

PAPER_CLASSES = {  # in the paper's figures; the one for HuffPost does not name them
    "20newsgroups": (
        *("talk.religion.misc", "soc.religion.christian", "talk.politics.mideast"),
        *("talk.politics.misc", "talk.politics.guns"),
    )
}

OUTSIDE = 0.5  # percent of the points that may lie outside the frame on each side


@dataclass(frozen=True, eq=False)
class Space:
    """Texts as points in a plane, and the separation of their classes."""

    weighting: str
    points: Floats  # (texts, 2)
    variance: float  # share of the variance that the plane shows
    silhouettes: Floats  # (texts,), in the full space
    flat_silhouettes: Floats  # (texts,), in the plane

    @property
    def separation(self) -> float:
        """The mean silhouette in the full space."""
        return float(np.mean(self.silhouettes))

    @property
    def flat_separation(self) -> float:
        """The mean silhouette in the plane."""
        return float(np.mean(self.flat_silhouettes))


def embedding_space(weighting: str, vectors: Floats, labels: Ints) -> Space:
    """The first two principal components of vectors (texts, dim), and the silhouette of each text.

    The silhouette is (b - a) / max(a, b), where a is the mean Euclidean distance to the other texts of its class and b that to
    the texts of the nearest other class: 1 for classes far apart, 0 for overlapping classes, and negative for a text that lies
    in another class.
    """
    from sklearn.decomposition import PCA
    from sklearn.metrics import silhouette_samples

    plane = PCA(2, svd_solver="full")
    points = plane.fit_transform(vectors)
    apart = [silhouette_samples(where, labels) for where in (vectors, points)]
    return Space(weighting, points, float(plane.explained_variance_ratio_.sum()), *apart)


def query_spaces(inspected: InspectedRun, usual: Sequence[str] = ()) -> tuple[list[Space], Episode]:
    """The queries of one task with each weighting, and the task."""
    episode = query_episode(inspected, usual)
    texts = inspected.texts.select(episode.query).gathered()
    weights = word_weights(inspected, episode, texts)
    spaces = [
        embedding_space(name, weighted_bag(texts.table, texts.rows, weights[name], texts.offsets), episode.query_labels)
        for name in track(WEIGHTINGS, "Embedding space", len(WEIGHTINGS), inspected.quiet)
    ]
    return spaces, episode


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure with the four weightings side by side."""
    check_attention(inspected)
    spaces, episode = query_spaces(inspected, PAPER_CLASSES.get(inspected.inputs.dataset.name, ()))
    names = [inspected.corpus.classes[number] for number in episode.classes]
    values = ", ".join(f"{WEIGHTINGS[space.weighting]} {space.separation:.3f}" for space in spaces)
    best = max(spaces, key=lambda space: space.separation)
    caption = (
        f"{episode_sentences(inspected, episode)} Each point is one query: the weighted mean of its word vectors, projected "
        "onto the two directions in which the queries differ most (principal components). Words are weighted in four ways: "
        "equally, by how rare a word is in the training texts (s), by how unevenly it is spread over the classes of the "
        "labelled texts (t), and by the attention that the trained generator computes from s and t. The silhouette measures "
        "how well the classes are separated, in all dimensions and, in brackets, in the plane shown: 1 means far apart, 0 "
        "means overlapping."
    )
    alt = (
        f"Four scatter plots of the queries of {len(names)} classes of {data_title(inspected)}, each class in its own colour. "
        f"Silhouette in all dimensions: {values}. The classes are farthest apart {WEIGHTINGS[best.weighting]}."
    )
    rows = [*(_summary(space) for space in spaces), *_points(spaces, [names[label] for label in episode.query_labels])]
    title = f"Where texts lie, by the weighting of their words ({data_title(inspected)})"
    return [Figure("embedding-space", title, caption, alt, rows, lambda: draw(spaces, episode.query_labels, names))]


def _summary(space: Space) -> dict[str, Any]:
    return {
        "weighting": space.weighting,
        "class": "(all)",
        "silhouette": space.separation,
        "silhouette_2d": space.flat_separation,
        "variance_shown": space.variance,
    }


def _points(spaces: Sequence[Space], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for space in spaces:
        columns = {"silhouette": space.silhouettes, "silhouette_2d": space.flat_silhouettes}
        columns |= {"x": space.points[:, 0], "y": space.points[:, 1]}
        for text, name in enumerate(names):
            numbers = {column: round(float(values[text]), 5) for column, values in columns.items()}
            yield {"weighting": space.weighting, "class": name, **numbers}


def frame(points: Floats) -> tuple[Floats, Floats]:
    """The corners of a frame around nearly all points (texts, 2): a few outliers would squeeze the others together."""
    low, high = np.percentile(points, [OUTSIDE, 100 - OUTSIDE], axis=0)
    margin = 0.25 * (high - low)
    return np.maximum(low - margin, points.min(0) - margin / 5), np.minimum(high + margin, points.max(0) + margin / 5)


def draw(spaces: Sequence[Space], labels: Ints, names: Sequence[str]) -> Any:
    """Draw one panel per weighting."""
    drawing, axes = panels(7.2, 7.4, 2, 2)
    for axis, space in zip(axes.flat, spaces, strict=True):
        for label, name in enumerate(names):
            points = space.points[labels == label]
            look = {"color": COLOURS[label % len(COLOURS)], "marker": MARKERS[label % len(MARKERS)]}
            axis.scatter(points[:, 0], points[:, 1], 9, alpha=0.5, linewidths=0, rasterized=True, label=name, **look)
        axis.set_title(f"{WEIGHTINGS[space.weighting]}\n")
        words = f"silhouette {space.separation:.3f} ({space.flat_separation:.3f} in the plane)".replace("-", "−")
        axis.text(0, 1.02, words, transform=axis.transAxes)
        axis.set_xticks([])
        axis.set_yticks([])
        low, high = frame(space.points)
        axis.set_xlim(low[0], high[0])
        axis.set_ylim(low[1], high[1])
        outside = int(np.any((space.points < low) | (space.points > high), axis=1).sum())
        more = f", {counted(outside, 'text')} outside the frame" if outside else ""
        axis.set_xlabel(f"{100 * space.variance:.0f} % of the variance{more}")
    handles = axes.flat[0].get_legend_handles_labels()
    legend = drawing.legend(*handles, loc="outside lower center", ncols=3, markerscale=2.2)
    for handle in legend.legend_handles:
        handle.set_alpha(1)
    return drawing
