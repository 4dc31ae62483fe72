"""Presets: methods by their names in the paper's tables, each a few options for `handful train`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..errors import SettingError
from ..utils.files import read_json
from ..utils.paths import resource

PRESETS, PAPER = resource("presets"), resource("paper_presets.json")
ABOUT = "about"  # a preset's description, next to its options
AS_IN_PAPER = "-paper"  # ends the name of a preset that follows the paper to the letter


@cache
def preset_names() -> tuple[str, ...]:
    """The names of all presets, in alphabetical order."""
    ours = [path.stem for path in PRESETS.glob("*.json")]
    on_tables = [name for name in ours if "vectors" not in _read(name)]  # P-MAML brings an encoder of its own
    return tuple(sorted(ours + [name + AS_IN_PAPER for name in on_tables]))


def load_preset(name: str) -> dict[str, Any]:
    """The options of a preset, by their names on the command line, and `about`, its one-line description.

    A preset may also be written as a representation and a head, which may be those of other packages.

    >>> load_preset("avg-nn")["head"], load_preset("sif+ridge")["representation"]
    ('nearest', 'sif')
    >>> load_preset("our-paper")["estimator"]
    'softmax'
    """
    representation, plus, head = name.partition("+")
    if plus:
        return {
            ABOUT: f"the representation {representation} with the head {head}",
            "representation": representation,
            "head": head,
        }
    if name not in preset_names():
        raise SettingError(
            f"There is no preset {name!r}: list all of them with handful train --list-presets, or give REPRESENTATION+HEAD."
        )
    return dict(_read(name))


@cache  # a grid loads the same ones hundreds of times
def _read(name: str) -> Mapping[str, Any]:
    if not name.endswith(AS_IN_PAPER):
        options: dict[str, Any] = json.loads((PRESETS / f"{name}.json").read_text("utf-8"))
        return options
    ours = _read(name.removesuffix(AS_IN_PAPER))
    papers = read_json(PAPER)  # options for every method, and for a representation or a head
    changed = [papers.get(part, {}) for part in ("every", ours["representation"], ours["head"])]
    return {**ours, **changed[0], **changed[1], **changed[2], ABOUT: f"{ours[ABOUT]}; as in the paper"}
