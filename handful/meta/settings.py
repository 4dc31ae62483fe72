"""All settings of a run, defined once: command-line options, presets, grids and config files come from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..data.episodes import EpisodeSpec
from ..models.settings import ModelSettings
from ..utils.settings import option, settings_from_flat
from .training import TrainingSettings

EPISODE_HELP = {
    "way": "Classes per episode.",
    "shot": "Labelled examples per class.",
    "queries": "Queries per class.",
    "class_names": "Add the words of each class's name to its examples.",
    "unlabelled": "Number of further texts per class to learn from without their labels; the head must be able to.",
    "transductive": "Also learn from the queries, without their labels; the head must be able to.",
    "unbalanced": "Test with queries whose classes are unequally frequent.",
    "none_share": "Share of the test queries that belong to no class of the episode, from 0 to below 1.",
}
OPEN_OPTIONS = ("class_names", "unlabelled", "transductive", "unbalanced", "none_share")  # of episodes, reported if set


@dataclass(frozen=True)
class ReadingSettings:
    """How to read a data file, if that is not obvious."""

    form: str | None = option(
        None, "Format of the data file, if its ending does not tell: csv, tsv, jsonl, parquet, xlsx.", name="format"
    )
    text: str | None = option(None, "Column of the texts in the data file, if it is not obvious.")
    label: str | None = option(None, "Column of the labels in the data file, if it is not obvious.")
    delimiter: str | None = option(None, "Delimiter of a CSV file, if it is not obvious.")
    encoding: str | None = option(None, "Encoding of the data file, such as windows-1252; UTF-8 by default.")


@dataclass(frozen=True)
class RunSettings:
    """All settings of a run: the same settings give the same numbers."""

    data: str = option(
        "demo",
        "Data: demo, requests, a file (CSV, TSV, JSON, Parquet, Excel), a name in the data folder, or hf:NAME on the hub.",
    )
    split: str | None = option(None, "JSON file with the classes of train, val and test, or the name of a packaged split.")
    skip_empty: bool = option(False, "Skip texts without words instead of stopping at them.")
    reading: ReadingSettings = field(default_factory=ReadingSettings)
    seed: int = option(0, "Seed for episodes, initial weights and dropout.")
    episode: EpisodeSpec = field(default_factory=EpisodeSpec, metadata={"about": EPISODE_HELP})
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


def settings_from_options(options: Mapping[str, Any]) -> RunSettings:
    """The nested settings of a run from flat options, with the names and values of the command line and presets."""
    return settings_from_flat(RunSettings, options)
