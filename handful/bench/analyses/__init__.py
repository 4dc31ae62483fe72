"""The paper's analyses, each a function from a run to figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..figures import Figure
from .subject import NotApplicableError, Subject

__all__ = ["ANALYSES", "Analysis", "NotApplicableError", "Subject"]


@dataclass(frozen=True)
class Analysis:
    """One chapter of the report. Its function says so (NotApplicableError) where a run has nothing for it."""

    about: str  # in one line
    figures: Callable[[Subject], list[Figure]]
    needs: str = "any run"


ANALYSES: dict[str, Analysis] = {}
