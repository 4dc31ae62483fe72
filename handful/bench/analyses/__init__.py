"""The paper's analyses, each a function from a run to figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..figures import Figure
from . import attention, mismatch, words
from .subject import NotApplicableError, Subject

__all__ = ["ANALYSES", "Analysis", "NotApplicableError", "Subject"]


@dataclass(frozen=True)
class Analysis:
    """One chapter of the report. Its function says so (NotApplicableError) where a run has nothing for it."""

    about: str  # in one line
    figures: Callable[[Subject], list[Figure]]
    needs: str = "any run"


ANALYSES: dict[str, Analysis] = {
    "attention": Analysis(
        "Words of queries, shaded by s, by t and by attention.", attention.figures, "a model that weighs words"
    ),
    "granularity": Analysis(
        "The same text among close and among distant classes.",
        attention.granularity,
        "a run with --data reuters --split granularity",
    ),
    "importance": Analysis(
        "What a word matters to several models, by leaving it out.",
        attention.importance,
        "other runs (--against), such as cnn-proto with --data huffpost, and with --split fifty-seen",
    ),
    "words": Analysis("The words of each class, by local mutual information.", words.figures),
    "mismatch": Analysis("Words of the training classes that test classes lack, and the reverse.", mismatch.figures),
}
