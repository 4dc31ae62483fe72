"""Earlier names of settings: old lines of results are read with the current names, and cells keep their original names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..meta.settings import OPEN_OPTIONS, RunSettings
from ..utils.settings import flat_settings, settings_from_flat, settings_to_dict, settings_to_flat

RENAMED = {"longest": "max_words", "pool": "word_frequencies"}  # old name: new name
SECTIONS = ("episode", "model", "signature", "training")  # of settings before they were grouped by method
# settings added later: they are part of a cell's name only if they differ from their defaults
ADDED = (
    *("curve_episodes", "rarity", "sentence_dim", "format", "text", "label", "delimiter", "encoding"),
    *("min_count", "parameter_free", "ridge_scale", "loss"),
    *("outputs", "pretraining_head", "finetuning_rate", "finetuning_steps"),
    *("representation_options", "head_options", *OPEN_OPTIONS),
)


def upgrade_result(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of results of any age, with its settings and options in today's form."""
    today = {"options": _renamed(line["options"]), "settings": _upgrade_settings(line["settings"])}
    return {"auroc": None, "signal_variation": {}, **line, **today}


def _upgrade_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if "attention" in settings["model"]:  # grouped by method, as today
        return settings
    return settings_to_dict(settings_from_flat(RunSettings, _renamed(dict(_leaves(settings)))))


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in options.items()}


def _leaves(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings by name, without their sections."""
    for name, value in settings.items():
        yield from _leaves(value) if isinstance(value, Mapping) else [(name, value)]


def first_form(settings: RunSettings) -> dict[str, Any]:
    """Settings in their original sections and with their original names, so that the folders of cells keep their names."""
    former = {new: old for old, new in RENAMED.items()}
    form = dict[str, Any]()
    values = settings_to_flat(settings)
    for name, setting in flat_settings(RunSettings).items():
        place = form
        for section in setting.path[:-1]:
            place = place.setdefault(section, {}) if section in SECTIONS else place
        if name == "positions":
            place[name] = bool(values[name])  # unknown until the data is read; a cell says which
        elif name not in ADDED or values[name] not in (setting.default, []):
            place[former.get(name, name)] = values[name]
    return form
