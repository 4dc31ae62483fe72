"""The grid: data sets × methods × shots × seeds. A cell is plain settings; a grid is a small file that lists cells."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..catalogue import catalogue
from ..corpus import read_json
from ..episodes import EpisodeSpec
from ..errors import SettingError
from ..model import ModelSettings
from ..presets import load_preset
from ..runs import RunSettings, settings_from_options
from ..signatures import SignatureSettings
from ..storage import settings_from_dict, settings_to_dict
from ..training import TrainingSettings

FOLDER = Path(__file__).parent / "grids"
TEST_EPISODES = 1000
PAPER_DATA = ("20newsgroups", "amazon", "huffpost", "rcv1", "reuters", "fewrel")  # in the order of the paper's tables
RELATIONS = "fewrel"
POSITIONED = ("cnn", "attention")  # see, in the paper, where a word stands from head and tail of a relation
SETTINGS = (RunSettings, EpisodeSpec, ModelSettings, SignatureSettings, TrainingSettings)
OPTIONS = {option.name for kind in SETTINGS for option in fields(kind)} - {"episode", "model", "signature", "training"}


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed: all that decides a line of results."""

    data: str
    shot: int
    vectors: str
    preset: str
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()  # as on the command line, and test_episodes
    reference: str | None = None  # the preset to pair with, episode by episode

    @cached_property
    def settings(self) -> RunSettings:
        """The settings of the cell's run. What a preset says about vectors wins over the grid."""
        preset = load_preset(self.preset)
        positions = whole_of(self.data) == RELATIONS and preset["representation"] in POSITIONED
        options = {"vectors": self.vectors, "positions": positions, **preset, **dict(self.options)}
        return settings_from_options({**options, "data": self.data, "shot": self.shot, "seed": self.seed})

    @property
    def portable_settings(self) -> dict[str, Any]:
        """The settings as JSON types, with files of vectors by name alone: the same on every machine."""
        settings = settings_to_dict(self.settings)
        settings["model"]["vectors"] = without_folders(settings["model"]["vectors"])
        return settings

    @property
    def test_episodes(self) -> int:
        """How many episodes the run is tested on."""
        return int(dict(self.options).get("test_episodes", TEST_EPISODES))

    @property
    def title(self) -> str:
        """The cell in words that `--only` can match."""
        trained = "-trained" if dict(self.options).get("train_vectors") else ""
        return f"{self.data}-{self.shot}shot-{without_folders(self.vectors)}{trained}-{self.preset}-seed{self.seed}"

    @property
    def key(self) -> str:
        """Equal for cells that give the same numbers."""
        return cell_key(self.preset, self.test_episodes, self.portable_settings)

    @property
    def folder(self) -> str:
        """A folder name of its own for every choice of settings."""
        readable = re.sub(r"[^\w.+-]+", "_", self.title)
        return f"{readable}-{hashlib.sha256(self.key.encode()).hexdigest()[:8]}"

    @property
    def rival(self) -> Cell | None:
        """The cell to pair with."""
        if self.reference in (None, self.preset):
            return None
        options = tuple((name, value) for name, value in self.options if name != "pretraining_epochs")  # an encoder's alone
        return replace(self, preset=self.reference, options=options, reference=None)


def whole_of(data: str) -> str:
    """The data set that this is a part of, or itself.

    >>> whole_of("amazon-17"), whole_of("reuters")
    ('amazon', 'reuters')
    """
    record = catalogue().get(data)
    return record.part_of or data if record else data


def without_folders(vectors: str) -> str:
    """Names of tables without the folders of files.

    >>> without_folders("wordllama+/home/me/glove.npz:raw")
    'wordllama+glove.npz:raw'
    """
    return re.sub(r"[^+:]*/", "", vectors)


def cell_key(preset: str, test_episodes: int, settings: Mapping[str, Any]) -> str:
    """What a cell is, in one string; settings that an older line lacks have their defaults."""
    whole = settings_to_dict(settings_from_dict(RunSettings, settings))
    for part, name in (("training", "curve_episodes"), ("model", "rarity")):
        if not whole[part][name]:
            del whole[part][name]  # it came later: cells without it keep their names
    return json.dumps([preset, test_episodes, whole], sort_keys=True)


# Grid files


@dataclass(frozen=True)
class Block:
    """Every combination of these."""

    data: tuple[str, ...]
    presets: tuple[str, ...]
    shots: tuple[int, ...] = (1, 5)
    vectors: tuple[str, ...] = ("wordllama",)
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Grid:
    """Blocks in the order of their worth, and other grids to take in before them."""

    about: str
    include: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    reference: str | None = "idf-rr"


@dataclass(frozen=True)
class Selection:
    """What of a grid is wanted, and what stands in the place of its data and vectors."""

    data: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    only: str = ""


def grid_names() -> list[str]:
    """The grids that ship, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read_grid(name: str) -> Grid:
    """A grid by its name, or from a file."""
    if name in grid_names():
        path = FOLDER / f"{name}.json"
    elif Path(name).is_file():
        path = Path(name)
    else:
        raise SettingError(f"There is no grid {name!r}: give a file or one of {', '.join(grid_names())}.")
    value = read_json(path)
    blocks = value.pop("blocks", [])
    grid = settings_from_dict(Grid, value, f"{path}: ")
    return replace(grid, blocks=tuple(_block(block, f"{path}, block {number}: ") for number, block in enumerate(blocks, 1)))


def _block(value: Any, place: str) -> Block:
    options = value.pop("options", {}) if isinstance(value, dict) else {}
    unknown = sorted(set(options) - OPTIONS - {"test_episodes"})
    if unknown:
        raise SettingError(f"{place}there is no option {', '.join(unknown)}: see handful train --help.")
    return replace(settings_from_dict(Block, value, place), options=tuple(sorted(options.items())))


def load_cells(name: str, selection: Selection | None = None) -> list[Cell]:
    """The cells of a grid, the most informative first: the first seed of everything, then the second."""
    selection = selection or Selection()
    found = dict.fromkeys(_cells(name, selection))  # once each
    return sorted((cell for cell in found if selection.only in cell.title), key=lambda cell: cell.seed)


def _cells(name: str, selection: Selection) -> Iterator[Cell]:
    grid = read_grid(name)
    for other in grid.include:
        yield from _cells(other, selection)
    for block in grid.blocks:
        for data in _chosen_data(block.data, selection.data):
            for vectors in _chosen_vectors(block.vectors, selection.vectors):
                for shot in block.shots:
                    for preset in block.presets:
                        for seed in selection.seeds or grid.seeds:
                            yield Cell(data, shot, vectors, preset, seed, block.options, grid.reference)


def _chosen_data(listed: Sequence[str], wanted: Sequence[str]) -> Sequence[str]:
    """A part of a data set stands in the place of the whole; data that the paper has not is wanted in every block."""
    chosen = [data for data in wanted if {data, whole_of(data)} & {*listed} or whole_of(data) not in PAPER_DATA]
    return chosen if wanted else listed


def _chosen_vectors(listed: Sequence[str], wanted: Sequence[str]) -> Sequence[str]:
    """Static tables stand in the place of static ones, contextual encoders in that of contextual ones."""
    contextual = listed[0].startswith("contextual")
    return [vectors for vectors in wanted if vectors.startswith("contextual") == contextual] or listed
