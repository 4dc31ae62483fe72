"""Learning curves: accuracy on classes seen in training and on unseen classes, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..meta.checkpoints import load_history
from ..meta.training import validation_objective
from ..utils.wording import counted
from .figures import COLOURS, DASHES, INK, MARKERS, Figure, panels
from .inspected_run import InspectedRun, NotApplicableError
from .weighting import data_title

EPISODES = 50  # of each kind, in the paper
ACROSS = 2  # panels side by side
LINES = {  # whether a run has curve episodes: the names of its two lines
    True: ("seen classes (training)", "unseen classes (test)"),
    False: ("training episodes", "validation episodes"),
}
LOOKS: dict[str, dict[str, Any]] = {  # cues besides the name and the colour: dashes, and markers where tasks are trained on
    LINES[True][0]: {"color": COLOURS[0], "linestyle": DASHES[0]},
    LINES[True][1]: {"color": COLOURS[3], "linestyle": DASHES[1]},
    LINES[False][0]: {"color": COLOURS[2], "linestyle": DASHES[0], "marker": MARKERS[0]},
    LINES[False][1]: {"color": COLOURS[4], "linestyle": DASHES[1], "marker": MARKERS[1]},
}
MARKED = 0.12  # from marker to marker, as a share of a panel's diagonal


@dataclass(frozen=True)
class Curve:
    """The accuracies of one run, one number per epoch."""

    run: str
    data: str
    way: int
    shot: int
    method: str
    vectors: str  # the word vectors
    seen: tuple[float, ...]
    unseen: tuple[float, ...]
    best_epoch: int  # whose model was kept
    episodes: int  # of each kind; 0 if the history has no curves, and training and validation accuracies are used instead

    @property
    def lines(self) -> dict[str, tuple[float, ...]]:
        """The two lines, by what they were measured on."""
        return dict(zip(LINES[bool(self.episodes)], (self.seen, self.unseen), strict=True))

    @property
    def gap(self) -> float:
        """The accuracy on seen minus that on unseen classes, at the epoch whose model was kept."""
        return self.seen[self.best_epoch - 1] - self.unseen[self.best_epoch - 1]


def learning_curve(inspected: InspectedRun) -> Curve | None:
    """The curve in a run's history; None for a method that needs no training.

    With curve episodes, the run recorded after each epoch its accuracy, without dropout, on the same episodes of training
    classes (seen) and of test classes (unseen), which influence neither training nor stopping. Without them, the curve has the
    accuracy on the training episodes, each before its update and with dropout, and on the validation episodes.
    """
    inspected = replace(inspected, data=None)  # the history belongs to the data that was trained on
    settings = inspected.settings
    history = load_history(inspected.folder)
    if not history:
        return None
    episodes = settings.training.curve_episodes
    seen, unseen = ("seen_accuracy", "unseen_accuracy") if episodes else ("train_accuracy", "val_accuracy")
    return Curve(
        inspected.name,
        data_title(inspected),
        settings.episode.way,
        settings.episode.shot,
        inspected.method,
        inspected.vectors,
        tuple(line[seen] for line in history),
        tuple(line[unseen] for line in history),
        1 + int(np.argmin([validation_objective(line, settings.training) for line in history])),
        episodes,
    )


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure of the learning curves, with one panel per run."""
    curves = [curve for run in (inspected, *inspected.against) if (curve := learning_curve(run))]
    if not curves:
        raise NotApplicableError(f"{inspected.name} has no learning curve, as its method needs no training: give another run.")
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
        f"{curve.method} on {curve.data}, {curve.shot} shot: after {counted(len(curve.seen), 'epoch')} "
        + " and ".join(f"{values[-1]:.1%} on {name}" for name, values in curve.lines.items())
        + "."
        for curve in curves
    )
    seen = any(curve.episodes for curve in curves)
    title = f"Learning curves: {'seen and unseen classes' if seen else 'training and validation'}"
    return [Figure("learning-curves", title, " ".join(_sentences(curves)), alt, rows, lambda: draw(curves))]


def _sentences(curves: Sequence[Curve]) -> Iterator[str]:
    yield "Accuracy by epoch of training. The dotted vertical line marks the epoch whose model is kept."
    if any(curve.episodes for curve in curves):
        yield (
            "Seen and unseen: after each epoch, on tasks of classes that the model is trained on, and of classes that it never "
            "sees in training. Where the line of the seen classes pulls ahead, the model learns something that does not carry "
            "over to new classes. The epoch is chosen on validation classes, which are in neither group."
        )
    if not all(curve.episodes for curve in curves):
        yield (
            "Training and validation: on the training tasks, each before the model learned from it and with dropout, and on "
            "tasks of validation classes, which choose the epoch. A run has these two lines if it recorded no accuracy on seen "
            f"and unseen classes (handful train --curve-episodes {EPISODES})."
        )
    for curve in curves:
        shape = f"{curve.data}, {curve.way} classes, {counted(curve.shot, 'labelled text')} per class, vectors {curve.vectors}"
        on = f" ({curve.episodes} tasks of each kind, always the same)" if curve.episodes else ""
        names = "seen minus unseen" if curve.episodes else "training minus validation"
        yield f"{curve.run}: {curve.method} on {shape}{on}; {names} at that epoch: {100 * curve.gap:.1f} points."
    if any(curve.episodes != EPISODES for curve in curves):
        yield f"The paper uses {EPISODES} tasks each of training and of test classes."
    yield "The paper uses fastText word vectors."


def draw(curves: Sequence[Curve]) -> Any:
    """Draw two lines per panel, with the same scale in all panels."""
    across = min(ACROSS, len(curves))
    down = -(-len(curves) // across)
    drawing, axes = panels(7.2, 0.8 + 2.8 * down, down, across, sharey=True, squeeze=False)
    for axis, curve in zip(axes.flat, curves, strict=False):
        epochs = np.arange(1, len(curve.seen) + 1)
        for name, values in curve.lines.items():
            look = {"marker": "o", **LOOKS[name]} if len(epochs) == 1 else LOOKS[name]
            axis.plot(epochs, 100 * np.array(values), label=name, markevery=MARKED, **look)
        axis.axvline(curve.best_epoch, color=INK, linestyle=":", linewidth=1, alpha=0.6)
        axis.set_title(f"{curve.method}\n", fontsize=10)
        shape = f"{curve.data}, {curve.way}-way {curve.shot}-shot"
        axis.text(0, 1.02, shape, transform=axis.transAxes)
        axis.set_xlabel("epoch")
        axis.xaxis.get_major_locator().set_params(integer=True)
    for axis in axes.flat[len(curves) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("accuracy, %")
    drawn = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    drawing.legend(drawn.values(), drawn.keys(), loc="outside lower center", ncols=2, handlelength=3.2)
    return drawing
