"""Perplexity: how well a masked language model that reads the training classes comes to know the words of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...pretraining import MEASURED
from ...storage import PRETRAINING, load_history
from ..figures import COLOURS, DASHES, MARKERS, Figure, panels
from .subject import NotApplicableError, Subject
from .weighting import data_title

LINES = {
    "seen_perplexity": "training classes (seen)",
    "val_perplexity": "validation classes (unseen)",
    "unseen_perplexity": "test classes (unseen)",
}
Rows = Sequence[Mapping[str, Any]]


def perplexity_rows(subject: Subject) -> list[dict[str, Any]]:
    """What a run's pre-training noted after each epoch; nothing for a run without.

    Perplexity is exp of the mean cross-entropy over the masked pieces: the model is as unsure as if it guessed among so many.
    """
    subject = replace(subject, data=None)  # the history is that of the data that was read
    history = load_history(subject.folder / PRETRAINING)
    shared = {"run": subject.name, "data": data_title(subject), "encoder": subject.vectors}
    return [{**shared, "epoch": int(line["epoch"]), **{name: line[name] for name in LINES}} for line in history]


def figures(subject: Subject) -> list[Figure]:
    """A panel for each run that was pre-trained."""
    runs = [rows for run in (subject, *subject.against) if (rows := perplexity_rows(run))]
    if not runs:
        raise NotApplicableError(f"{subject.name} did not pre-train a masked language model: give a run of --preset p-maml.")
    caption = (
        "Before P-MAML learns to learn tasks, its encoder reads the texts of the training classes and guesses masked pieces "
        "of words. Perplexity says how unsure it is: as if it guessed among so many pieces, so lower is better. It is "
        f"measured after each epoch, always with the same masks, on up to {MEASURED} texts each of the classes that it reads "
        "(seen), of the validation classes, which decide when to stop, and of the test classes (unseen). Where only the line "
        "of the seen classes falls, what it learns about words does not carry over to other classes. "
    ) + " ".join(f"{rows[0]['data']}: {_changes(rows)}, by {rows[0]['encoder']} (the paper: BERT base)." for rows in runs)
    alt = "Line charts of perplexity by epoch of pre-training. " + " ".join(f"{r[0]['data']}: {_changes(r)}." for r in runs)
    title = "Perplexity of the masked language model while it reads the training classes"
    return [Figure("perplexity", title, caption, alt, [row for rows in runs for row in rows], lambda: draw(runs))]


def _changes(rows: Rows) -> str:
    """From the first epoch to the last."""
    ends = ", ".join(f"{label} {rows[0][name]:.1f} to {rows[-1][name]:.1f}" for name, label in LINES.items())
    return f"epoch {rows[0]['epoch']} to {rows[-1]['epoch']}, {ends}"


def draw(runs: Sequence[Rows]) -> Any:
    """Three lines in each panel."""
    drawing, axes = panels(7.2, 4.0, 1, len(runs), squeeze=False)
    for axis, rows in zip(axes[0], runs, strict=True):
        epochs = [row["epoch"] for row in rows]
        for number, (name, label) in enumerate(LINES.items()):
            look = {"color": COLOURS[(0, 1, 3)[number]], "linestyle": DASHES[number], "marker": MARKERS[number]}
            axis.plot(epochs, [row[name] for row in rows], label=label, **look)
        axis.set_title(rows[0]["data"])
        axis.set_xlabel("epoch of pre-training")
        axis.set_xticks(np.unique(np.linspace(epochs[0], epochs[-1], min(len(epochs), 8)).round()))
        axis.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("perplexity")
    drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawing
