"""The paper's analyses; each is a function that turns a run into figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import attention, curves, mismatch, oracle, overview, perplexity, robustness, space, supervised, words
from .figures import Figure
from .inspected_run import InspectedRun, NotApplicableError

__all__ = ["ANALYSES", "Analysis", "InspectedRun", "NotApplicableError"]


@dataclass(frozen=True)
class Analysis:
    """One chapter of the report. Its function raises a NotApplicableError if the chapter does not apply to a run."""

    about: str  # one line
    figures: Callable[[InspectedRun], list[Figure]]
    needs: str = "any run"
    also: tuple[str, ...] = ()  # names of its figures that differ from its own


ANALYSES: dict[str, Analysis] = {
    "overview": Analysis("How it works, on a real episode.", overview.figures, "a run of the preset our"),
    "attention": Analysis(
        "Words of queries, shaded by s, by t and by attention.", attention.figures, "a model that generates attention"
    ),
    "granularity": Analysis(
        "The same text among close and among distant classes.",
        attention.granularity,
        "a run with --data reuters --split granularity",
    ),
    "importance": Analysis(
        "How much each word matters to several models, measured by leaving it out.",
        attention.importance,
        "other runs (--against), such as cnn-proto with --data huffpost, and with --split fifty-seen",
    ),
    "words": Analysis("The words of each class, by local mutual information.", words.figures, also=("words-map",)),
    "mismatch": Analysis("Words of the training classes that test classes lack, and the reverse.", mismatch.figures),
    "space": Analysis(
        "The queries of a task as points, for four weightings of words.",
        space.figures,
        "a run of attention",
        ("embedding-space",),
    ),
    "curves": Analysis(
        "Accuracy on seen and unseen classes, by epoch.",
        curves.figures,
        "a trained run, best with --curve-episodes 50",
        ("learning-curves",),
    ),
    "oracle": Analysis(
        "How close the attention comes to an oracle's.", oracle.figures, "a run of attention", ("oracle-attention",)
    ),
    "supervised": Analysis(
        "A few labelled texts compared with a network trained on many.",
        supervised.figures,
        "a run of attention, and one with the other shot (--against)",
        ("few-shot-against-supervised",),
    ),
    "perplexity": Analysis(
        "How well pre-training predicts words of seen and unseen classes.", perplexity.figures, "a run of --preset p-maml"
    ),
    "robustness": Analysis(
        "Words replaced by equally frequent ones: Theorem 1 in numbers.",
        robustness.figures,
        "a run of attention on word tables",
    ),
}
