"""The paper's analyses, each a function from a run to figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..figures import Figure
from . import attention, curves, mismatch, oracle, overview, perplexity, robustness, space, supervised, words
from .subject import NotApplicableError, Subject

__all__ = ["ANALYSES", "Analysis", "NotApplicableError", "Subject"]


@dataclass(frozen=True)
class Analysis:
    """One chapter of the report. Its function says so (NotApplicableError) where a run has nothing for it."""

    about: str  # in one line
    figures: Callable[[Subject], list[Figure]]
    needs: str = "any run"


ANALYSES: dict[str, Analysis] = {
    "overview": Analysis("How it works, drawn from a real episode.", overview.figures, "a run of the preset our"),
    "attention": Analysis(
        "Words of queries, shaded by s, by t and by attention.", attention.figures, "a model that generates attention"
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
    "space": Analysis("Where queries lie when words are weighted in four ways.", space.figures, "a run of attention"),
    "curves": Analysis(
        "Accuracy on seen and unseen classes by epoch.", curves.figures, "a trained run, best with --curve-episodes 50"
    ),
    "oracle": Analysis("How near attention comes to an oracle's.", oracle.figures, "a run of attention"),
    "supervised": Analysis(
        "A few labelled texts against a network that has many.",
        supervised.figures,
        "a run of attention, and one of the other shot (--against)",
    ),
    "perplexity": Analysis(
        "What pre-training learns about words, seen and unseen.", perplexity.figures, "a run of --preset p-maml"
    ),
    "robustness": Analysis(
        "Words replaced by others as frequent: Theorem 1 in numbers.", robustness.figures, "a run of attention on word tables"
    ),
}
