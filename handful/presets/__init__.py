"""Methods by their names in the paper's tables: a preset is a small file of options for `handful train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import SettingError

FOLDER = Path(__file__).parent


def preset_names() -> list[str]:
    """All presets, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load_preset(name: str) -> dict[str, Any]:
    """The options of a preset, by the names they have on the command line, and `about`: what it is, in one line.

    >>> load_preset("avg-nn")["head"]
    'nearest'
    """
    if name not in preset_names():
        raise SettingError(f"There is no preset {name!r}: handful train --list-presets shows all of them.")
    options: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return options
