"""What can go wrong, as sentences: what happened, where, what to do about it."""

from __future__ import annotations


class HandfulError(Exception):
    """Root of every error that Handful raises on purpose; the command line turns it into one line and exit code 2."""


class DataError(HandfulError, ValueError):
    """A data, split or vector file that cannot be used as it is."""


class SettingError(HandfulError, ValueError):
    """A setting outside its range, or settings that contradict each other."""


class ModelError(HandfulError, ValueError):
    """A saved model that is damaged, of another version, or not a model at all."""


class TrainingError(HandfulError, RuntimeError):
    """Meta-training met a number that is not one."""


class MissingExtraError(HandfulError, ImportError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency: install it with pip install 'handful[{extra}]'.")


class HandfulWarning(UserWarning):
    """Input that can be used, but is probably not what was meant."""
