"""Lexical mismatch: how many words of the training classes do not occur in the test classes, and the reverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...corpus import ClassSplit, Corpus
from ..figures import COLOURS, HATCHES, INK, Figure, panels
from .subject import Subject

PAPER = {"amazon": (15095, 28591, 21049, 34545), "reuters": (3604, 6372, 2481, 5249)}  # absent, types; train, then test
WHOLE = {"amazon-17": "amazon"}  # the data set whose figures stand beside a part


@dataclass(frozen=True)
class Mismatch:
    """Word types of the training and of the test classes, and how many of each do not occur on the other side."""

    train_only: int
    train: int
    test_only: int
    test: int

    @property
    def shares(self) -> tuple[float, float]:
        """Of the training vocabulary absent from test, and the reverse."""
        return self.train_only / self.train, self.test_only / self.test


def lexical_mismatch(corpus: Corpus, split: ClassSplit) -> Mismatch:
    """All word types are counted, however rare."""
    present = corpus.word_counts() > 0  # (classes, vocabulary)
    train, test = (present[list(part)].any(axis=0) for part in (split.train, split.test))
    return Mismatch(*(int(np.sum(types)) for types in (train & ~test, train, test & ~train, test)))


def figures(subject: Subject) -> list[Figure]:
    """The two shares, beside the paper's where it gives them."""
    dataset, data = subject.material.dataset, subject.settings.data
    found = {"measured": lexical_mismatch(dataset.corpus, dataset.split)}
    name = WHOLE.get(data, data)
    if name in PAPER:
        found["the paper"] = Mismatch(*PAPER[name])
    note = ", whose 24 categories are 17 here, with a split of their own" if data in WHOLE else ""
    beside = f" The paper's figures stand beside them{note}." if name in PAPER else ""
    forward, back = found["measured"].shares
    return [
        Figure(
            "mismatch",
            "New classes come with new words",
            f"Of the {found['measured'].train:,} different words in the texts of the training classes of {dataset.name}, "
            f"{forward:.1%} never occur in the texts of the test classes; of the {found['measured'].test:,} words of the test "
            f"classes, {back:.1%} never occurred in training. All words are counted, also those that occur once.{beside} A "
            "model that learns about words themselves has learned nothing about these.",
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
