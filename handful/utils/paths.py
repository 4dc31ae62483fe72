"""Paths of packaged files, generated vectors, downloads and data sets, and a check that no output overwrites an input."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from ..errors import SettingError

DATA_VARIABLE = "HANDFUL_DATA"


def resource(name: str) -> Path:
    """The path of a file or folder that ships with the package."""
    return Path(str(files("handful") / "resources" / name))


def cache_folder() -> Path:
    """The folder for generated and downloaded files: HANDFUL_CACHE, or the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HANDFUL_CACHE") or Path(base) / "handful")


def data_folder() -> Path:
    """The folder of the data sets: HANDFUL_DATA, or `data` in the cache folder."""
    return Path(os.environ.get(DATA_VARIABLE) or cache_folder() / "data")


def check_not_input(out: Path, inputs: Iterable[str | Path | None]) -> None:
    """Raise a SettingError if `out` is an input, whatever path or link leads to it; `inputs` are files or folders of files."""
    for path in (Path("/dev/stdin" if given == "-" else given) for given in inputs if given):
        if any(_is_same_file(out, file) for file in (path.iterdir() if path.is_dir() else [path])):
            raise SettingError(f"{out} is the input {path}, which would be replaced: choose another place for the output.")


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them does not exist
        return False
