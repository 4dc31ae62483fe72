"""Presets: methods by their names in the paper's tables, each a small file of options for `handful train`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from ..errors import SettingError
from ..utils.paths import resource

PRESETS = resource("presets")
ABOUT = "about"  # a preset's description, next to its options


@cache
def preset_names() -> tuple[str, ...]:
    """The names of all presets, in alphabetical order."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.json")))


def load_preset(name: str) -> dict[str, Any]:
    """The options of a preset, by their names on the command line, and `about`, its one-line description.

    >>> load_preset("avg-nn")["head"]
    'nearest'
    """
    if name not in preset_names():
        raise SettingError(f"There is no preset {name!r}: list all of them with handful train --list-presets.")
    return dict(_read(name))


@cache  # a grid loads the same ones hundreds of times
def _read(name: str) -> dict[str, Any]:
    options: dict[str, Any] = json.loads((PRESETS / f"{name}.json").read_text("utf-8"))
    return options
