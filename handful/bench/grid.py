"""Grids of data sets × methods × shots × seeds. A cell is plain settings; a grid is a small file that lists cells."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..data.registry import known_datasets
from ..embeddings.contextual import encoder_of
from ..errors import SettingError
from ..meta.experiment import POSITIONED
from ..meta.presets import ABOUT, AS_IN_PAPER, load_preset
from ..meta.settings import OPEN_OPTIONS, RunSettings, settings_from_options
from ..models.settings import split_vectors
from ..utils.files import read_json
from ..utils.paths import resource
from ..utils.settings import flat_settings, settings_from_dict, settings_to_dict
from .old_names import first_form

GRIDS = resource("grids")
TEST_EPISODES = 1000
PAPER_DATA = ("20newsgroups", "amazon", "huffpost", "rcv1", "reuters", "fewrel")  # in the order of the paper's tables
RELATIONS = "fewrel"
OWN_OPTIONS = ("test_episodes",)  # of a cell; all others belong to its run
NOT_FOR_RIVALS = ("pretraining_epochs", "class_names", "unlabelled", "transductive")  # which not every method can use


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed: everything that determines a line of results."""

    data: str
    shot: int
    vectors: str
    preset: str
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()  # as on the command line, plus test_episodes
    reference: str | None = None  # the preset to compare with, episode by episode

    @cached_property
    def settings(self) -> RunSettings:
        """The settings of the cell's run. A preset keeps its own vectors, unless the grid has an encoder of the same kind."""
        preset = load_preset(self.preset)
        kind = vector_kind(self.vectors)
        if kind and kind == vector_kind(preset.get("vectors", "")):
            preset["vectors"] = self.vectors
        positions = whole_of(self.data) == RELATIONS and preset["representation"] in POSITIONED
        options = {"vectors": self.vectors, "positions": positions, **preset, **dict(self.options)}
        run = {name: value for name, value in options.items() if name not in (ABOUT, *OWN_OPTIONS)}
        return settings_from_options({**run, "data": self.data, "shot": self.shot, "seed": self.seed})

    @property
    def portable_settings(self) -> dict[str, Any]:
        """The settings as JSON types, with vector files given by name only, so that they are the same on every machine."""
        settings = settings_to_dict(self.settings)
        settings["model"]["vectors"]["names"] = without_folders(settings["model"]["vectors"]["names"])
        return settings

    @property
    def test_episodes(self) -> int:
        """Number of test episodes."""
        return int(dict(self.options).get("test_episodes", TEST_EPISODES))

    @property
    def title(self) -> str:
        """The name of the cell, which `--only` matches."""
        options = dict(self.options)
        trained = "-trained" if options.get("train_vectors") else ""
        extras = "".join(f"-{name}" for name in OPEN_OPTIONS if options.get(name))
        return f"{self.data}-{self.shot}shot-{without_folders(self.vectors)}{trained}-{self.preset}{extras}-seed{self.seed}"

    @cached_property
    def key(self) -> str:
        """Equal for cells that give the same numbers."""
        return cell_key(self.preset, self.test_episodes, self.portable_settings)

    @property
    def folder(self) -> str:
        """The name of its folder, unique for every choice of settings."""
        readable = re.sub(r"[^\w.+-]+", "_", self.title)
        return f"{readable}-{hashlib.sha256(self.key.encode()).hexdigest()[:8]}"

    @property
    def rival(self) -> Cell | None:
        """The cell to compare with, if there is one: as in the paper if this one is."""
        suffix = AS_IN_PAPER if self.preset.endswith(AS_IN_PAPER) else ""
        if self.reference is None or self.reference + suffix == self.preset:
            return None
        options = tuple((name, value) for name, value in self.options if name not in NOT_FOR_RIVALS)
        return replace(self, preset=self.reference + suffix, options=options, reference=None)


def whole_of(data: str) -> str:
    """The data set that contains this one, or this one itself.

    >>> whole_of("amazon-17"), whole_of("reuters")
    ('amazon', 'reuters')
    """
    record = known_datasets().get(data)
    return record.part_of or data if record else data


def without_folders(vectors: str) -> str:
    """The names of vector tables, without the folders of files.

    >>> without_folders("wordllama+/home/me/glove.npz:raw")
    'wordllama+glove.npz:raw'
    """
    return re.sub(r"[^+:]*/", "", vectors)


def vector_kind(vectors: str) -> str:
    """The kind of vectors: contextual, sentence, words+sentence for both of words and of whole texts, or empty for tables.

    >>> vector_kind("sentence:bge-small"), vector_kind("blend+sentence:bge-small"), vector_kind("wordllama+glove.npz:raw")
    ('sentence', 'words+sentence', '')
    """
    words, sentences = split_vectors(vectors)
    if sentences:
        return "words+sentence" if words else "sentence"
    return "contextual" if encoder_of(vectors) else ""


def cell_key(preset: str, test_episodes: int, settings: Mapping[str, Any]) -> str:
    """A string that identifies a cell; missing settings have their defaults."""
    return json.dumps([preset, test_episodes, first_form(settings_from_dict(RunSettings, settings))], sort_keys=True)


# Grid files


@dataclass(frozen=True)
class Block:
    """Every combination of these values."""

    data: tuple[str, ...]
    presets: tuple[str, ...]
    shots: tuple[int, ...] = (1, 5)
    vectors: tuple[str, ...] = ("wordllama",)
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Grid:
    """Blocks, the most important first, and other grids to include before them."""

    about: str
    include: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    reference: str | None = "idf-rr"


@dataclass(frozen=True)
class Selection:
    """The part of a grid to run, and replacements for its data and vectors."""

    data: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    only: str = ""


def grid_names() -> list[str]:
    """The names of the packaged grids, in alphabetical order."""
    return sorted(path.stem for path in GRIDS.glob("*.json"))


def read_grid(name: str) -> Grid:
    """Read a grid, given by name or as a file."""
    if name in grid_names():
        path = GRIDS / f"{name}.json"
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
    unknown = sorted(set(options) - {*flat_settings(RunSettings), *OWN_OPTIONS})
    if unknown:
        raise SettingError(f"{place}there is no option {', '.join(unknown)}: see handful train --help.")
    return replace(settings_from_dict(Block, value, place), options=tuple(sorted(options.items())))


def load_cells(name: str, selection: Selection | None = None) -> list[Cell]:
    """The cells of a grid, the most informative first: everything with the first seed, then with the second."""
    selection = selection or Selection()
    found = dict.fromkeys(_cells(name, selection))  # without duplicates
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
    """The selected data: part of a data set replaces the whole, and data that is not in the paper joins every block."""
    chosen = [data for data in wanted if {data, whole_of(data)} & {*listed} or whole_of(data) not in PAPER_DATA]
    return chosen if wanted else listed


def _chosen_vectors(listed: Sequence[str], wanted: Sequence[str]) -> Sequence[str]:
    """The selected vectors: static tables replace static ones, and encoders replace encoders of the same kind."""
    return [vectors for vectors in wanted if vector_kind(vectors) == vector_kind(listed[0])] or listed
