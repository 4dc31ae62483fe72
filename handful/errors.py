"""Errors and warnings, each one sentence: what is wrong, where, and what to do.

A message names an argument in backquotes, with a value if needed; the command line replaces it with its own option.
"""

from __future__ import annotations


class HandfulError(Exception):
    """Base class of every error that Handful raises on purpose; the command line prints its message and exits with code 2."""


class DataError(HandfulError, ValueError):
    """A data, split or vector file cannot be used as it is."""


class SettingError(HandfulError, ValueError):
    """A setting is out of range, or two settings contradict each other."""


class ModelError(HandfulError, ValueError):
    """A saved model is damaged, has another version, or is not a model at all."""


class TrainingError(HandfulError, RuntimeError):
    """Meta-training produced a loss that is not finite."""


class MissingExtraError(HandfulError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency: install it with pip install 'handful[{extra}]'.")


class HandfulWarning(UserWarning):
    """The input can be used, but is probably not what was intended."""
