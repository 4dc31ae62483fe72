"""Learning curves: accuracy on classes that were trained on and on classes that were not, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...storage import load_history
from ...training import badness
from ..figures import COLOURS, DASHES, INK, Figure, panels
from .subject import NotApplicableError, Subject
from .weighting import counted, data_title

EPISODES = 50  # of each kind, in the paper
ACROSS = 2  # panels side by side


@dataclass(frozen=True)
class Curve:
    """One run's accuracies, a number an epoch."""

    run: str
    data: str
    way: int
    shot: int
    method: str
    vectors: str  # of words
    seen: tuple[float, ...]
    unseen: tuple[float, ...]
    best_epoch: int  # whose model was kept
    episodes: int  # of each kind; 0 where the history has no curves, and training and validation stand for them

    @property
    def gap(self) -> float:
        """How much better the classes that were trained on are known, at the epoch whose model was kept."""
        return self.seen[self.best_epoch - 1] - self.unseen[self.best_epoch - 1]


def learning_curve(subject: Subject) -> Curve | None:
    """The curve in a run's history; none for a method that learns nothing in training.

    Trained with curve episodes, the run noted after each epoch its accuracy, without dropout, on the same episodes of training
    classes (seen) and of test classes (unseen); they have no part in training or stopping. Without, the accuracy on the
    training episodes, each before its update and with dropout, and on the validation episodes stand for them.
    """
    subject = replace(subject, data=None)  # the history is that of the data that was trained on
    settings, history = subject.settings, load_history(subject.folder)
    if not history:
        return None
    episodes = settings.training.curve_episodes
    seen, unseen = ("seen_accuracy", "unseen_accuracy") if episodes else ("train_accuracy", "val_accuracy")
    return Curve(
        subject.name,
        data_title(subject),
        settings.episode.way,
        settings.episode.shot,
        subject.method,
        subject.vectors,
        tuple(line[seen] for line in history),
        tuple(line[unseen] for line in history),
        1 + int(np.argmin([badness(line, settings.training) for line in history])),
        episodes,
    )


def figures(subject: Subject) -> list[Figure]:
    """A panel for each run."""
    curves = [curve for run in (subject, *subject.against) if (curve := learning_curve(run))]
    if not curves:
        raise NotApplicableError(f"{subject.name} learned nothing in training, so it has no curve: give a run that did.")
    rows = [
        {
            "run": curve.run,
            "data": curve.data,
            "shot": curve.shot,
            "method": curve.method,
            "epoch": epoch,
            "seen_accuracy": seen,
            "unseen_accuracy": unseen,
            "kept": epoch == curve.best_epoch,
            "measured_on": f"{curve.episodes} curve episodes" if curve.episodes else "training and validation episodes",
        }
        for curve in curves
        for epoch, (seen, unseen) in enumerate(zip(curve.seen, curve.unseen, strict=True), 1)
    ]
    alt = "Line charts of accuracy by epoch. " + " ".join(
        f"{curve.method} on {curve.data}, {curve.shot} shot: after {counted(len(curve.seen), 'epoch')} {curve.seen[-1]:.1%} on "
        f"seen and {curve.unseen[-1]:.1%} on unseen classes."
        for curve in curves
    )
    title = "Learning curves: classes seen in training, and classes that were not"
    return [Figure("learning-curves", title, " ".join(_sentences(curves)), alt, rows, lambda: draw(curves))]


def _sentences(curves: Sequence[Curve]) -> Iterator[str]:
    yield (
        "Accuracy after each epoch of training, on tasks of classes that the model is trained on (seen) and of classes that "
        "it never meets in training (unseen). Where the line of the seen classes leaves the other behind, the model learns "
        "what does not carry over to new classes. The dotted upright marks the epoch whose model is kept, by validation "
        "classes that are neither."
    )
    for curve in curves:
        shape = f"{curve.data}, {curve.way} classes, {counted(curve.shot, 'labelled text')} a class, vectors {curve.vectors}"
        on = f" ({curve.episodes} tasks of each kind, always the same)" if curve.episodes else ""
        yield f"{curve.run}: {curve.method} on {shape}{on}, {100 * curve.gap:.1f} points from unseen to seen at that epoch."
    without = [curve.run for curve in curves if not curve.episodes]
    if without:
        yield (
            f"The history of {', '.join(without)} has no curve episodes (handful train --curve-episodes {EPISODES}): seen is "
            "the accuracy on the training tasks, each before the model learned from it and with dropout, unseen that on "
            "validation classes, which decide when to stop."
        )
    if any(curve.episodes != EPISODES for curve in curves):
        yield f"The paper has {EPISODES} tasks each of training and of test classes."
    yield "The paper's word vectors are fastText's."


def draw(curves: Sequence[Curve]) -> Any:
    """Two lines in each panel, the same scale in all."""
    across = min(ACROSS, len(curves))
    down = -(-len(curves) // across)
    drawing, axes = panels(7.2, 0.8 + 2.8 * down, down, across, sharey=True, squeeze=False)
    for axis, curve in zip(axes.flat, curves, strict=False):
        epochs = np.arange(1, len(curve.seen) + 1)
        mark = {"marker": "o"} if len(epochs) == 1 else {}
        for number, (name, values) in enumerate({"seen classes": curve.seen, "unseen classes": curve.unseen}.items()):
            look = {"color": COLOURS[3 * number], "linestyle": DASHES[number], **mark}
            axis.plot(epochs, 100 * np.array(values), label=name, **look)
        axis.axvline(curve.best_epoch, color=INK, linestyle=":", linewidth=1, alpha=0.6)
        axis.set_title(f"{curve.method}\n", fontsize=10)
        shape = f"{curve.data}, {curve.way}-way {curve.shot}-shot"
        axis.text(0, 1.02, shape if curve.episodes else f"{shape} (training, validation)", transform=axis.transAxes)
        axis.set_xlabel("epoch")
        axis.xaxis.get_major_locator().set_params(integer=True)
    for axis in axes.flat[len(curves) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("accuracy, %")
    drawing.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing
