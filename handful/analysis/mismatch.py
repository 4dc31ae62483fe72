"""Lexical mismatch: how many words of the training classes do not occur in the test classes, and the reverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..data.corpus import Corpus
from ..data.splits import ClassSplit
from .figures import COLOURS, HATCHES, INK, Figure, panels
from .inspected_run import InspectedRun

PAPER_MISMATCH = {
    "amazon": (15095, 28591, 21049, 34545),
    "reuters": (3604, 6372, 2481, 5249),
}  # absent, types: for train, then for test
WHOLE = {"amazon-17": "amazon"}  # the data set whose figures a part is compared with


@dataclass(frozen=True)
class Mismatch:
    """The numbers of distinct words in the training and in the test classes, and of those that do not occur in the other."""

    train_only: int
    train: int
    test_only: int
    test: int

    @property
    def shares(self) -> tuple[float, float]:
        """The share of the training vocabulary that is absent from test, and the reverse."""
        return self.train_only / self.train, self.test_only / self.test


def lexical_mismatch(corpus: Corpus, split: ClassSplit) -> Mismatch:
    """Count the distinct words of each part of a split, however rare."""
    present = corpus.word_counts() > 0  # (classes, vocabulary)
    train, test = (present[list(part)].any(axis=0) for part in (split.train, split.test))
    return Mismatch(*(int(np.sum(types)) for types in (train & ~test, train, test & ~train, test)))


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure of the two shares, compared with the paper's if it gives them."""
    dataset = inspected.inputs.dataset
    data = inspected.settings.data
    found = {"measured": lexical_mismatch(dataset.corpus, dataset.split)}
    name = WHOLE.get(data, data)
    if name in PAPER_MISMATCH:
        found["the paper"] = Mismatch(*PAPER_MISMATCH[name])
    note = ", for 24 categories instead of the 17 here, with another split" if data in WHOLE else ""
    beside = f" The paper's figures are shown next to them{note}." if name in PAPER_MISMATCH else ""
    forward, back = found["measured"].shares
    return [
        Figure(
            "mismatch",
            "New classes come with new words",
            f"Of the {found['measured'].train:,} distinct words in the texts of the training classes of {dataset.name}, "
            f"{forward:.1%} never occur in the texts of the test classes; of the {found['measured'].test:,} words of the test "
            f"classes, {back:.1%} never occurred in training. All words are counted, even those that occur once.{beside} A "
            "model that learns about individual words has learned nothing about these.",
            f"Bars: {forward:.1%} of the training words are absent from test, {back:.1%} of the test words from training.",
            [
                {"source": source, "words of": part, "types": types, "absent from the other": absent, "share": absent / types}
                for source, m in found.items()
                for part, types, absent in (("train", m.train, m.train_only), ("test", m.test, m.test_only))
            ],
            partial(_draw, found),
        )
    ]


def _draw(found: dict[str, Mismatch]) -> Any:
    drawing, axes = panels(6.4, 0.9 + 0.75 * len(found))
    kinds = ("training words that test classes lack", "test words that training classes lack")
    for number, (kind, colour, hatch) in enumerate(zip(kinds, COLOURS, HATCHES, strict=False)):
        places = np.arange(len(found)) + (number - 0.5) * 0.38
        shares = [100 * mismatch.shares[number] for mismatch in found.values()]
        bars = axes.barh(places, shares, 0.34, label=kind, color=colour, hatch=hatch, linewidth=0)
        axes.bar_label(bars, [f"{share:.1f} %" for share in shares], padding=4, color=INK)
    axes.set_yticks(range(len(found)), list(found))
    axes.set(xlim=(0, 100), xlabel="% of the vocabulary")
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    drawing.legend(loc="outside upper left", ncols=2, fontsize=8.5)
    return drawing
