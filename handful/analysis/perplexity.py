"""Perplexity: how well a masked language model trained on the training classes predicts the words of other classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..meta.checkpoints import PRETRAINING, load_history
from ..meta.pretraining import MEASURED
from .figures import COLOURS, DASHES, MARKERS, Figure, panels
from .inspected_run import InspectedRun, NotApplicableError
from .weighting import data_title

LINES = {
    "seen_perplexity": "training classes (seen)",
    "val_perplexity": "validation classes (unseen)",
    "unseen_perplexity": "test classes (unseen)",
}
PerplexityRows = Sequence[Mapping[str, Any]]


def perplexity_rows(inspected: InspectedRun) -> list[dict[str, Any]]:
    """The perplexities that a run's pre-training recorded after each epoch; empty for a run without pre-training.

    Perplexity is exp of the mean cross-entropy over the masked pieces: the number of equally likely pieces to guess among.
    """
    inspected = replace(inspected, data=None)  # the history belongs to the data that was trained on
    history = load_history(inspected.folder / PRETRAINING)
    shared = {"run": inspected.name, "data": data_title(inspected), "encoder": inspected.vectors}
    return [{**shared, "epoch": int(line["epoch"]), **{name: line[name] for name in LINES}} for line in history]


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure of perplexity by epoch, with one panel per pre-trained run."""
    runs = [rows for run in (inspected, *inspected.against) if (rows := perplexity_rows(run))]
    if not runs:
        raise NotApplicableError(f"{inspected.name} did not pre-train a masked language model: give a run of --preset p-maml.")
    caption = (
        "Before P-MAML is meta-trained, its encoder reads the texts of the training classes and predicts masked pieces of "
        "words. Perplexity measures its uncertainty, as the number of equally likely pieces to guess among; lower is better. "
        f"It is measured after each epoch, always with the same masks, on up to {MEASURED} texts each of the classes that it "
        "reads (seen), of the validation classes, which decide when to stop, and of the test classes (unseen). Where only the "
        "line of the seen classes falls, what it learns about words does not carry over to other classes. "
    ) + " ".join(f"{rows[0]['data']}: {_changes(rows)}, by {rows[0]['encoder']} (the paper: BERT base)." for rows in runs)
    alt = "Line charts of perplexity by epoch of pre-training. " + " ".join(f"{r[0]['data']}: {_changes(r)}." for r in runs)
    title = "Perplexity of the masked language model during pre-training on the training classes"
    return [Figure("perplexity", title, caption, alt, [row for rows in runs for row in rows], lambda: draw(runs))]


def _changes(rows: PerplexityRows) -> str:
    """The change from the first epoch to the last, as text."""
    ends = ", ".join(f"{label} {rows[0][name]:.1f} to {rows[-1][name]:.1f}" for name, label in LINES.items())
    return f"epoch {rows[0]['epoch']} to {rows[-1]['epoch']}, {ends}"


def draw(runs: Sequence[PerplexityRows]) -> Any:
    """Draw three lines per panel."""
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
