"""Arrays from safetensors files, checked before use: names, shapes, types, finite numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from ..errors import ModelError

LARGEST_NUMBER = 1e8  # in a parameter: training does not give larger ones, and they would lead to infinite numbers
Arrays = dict[str, np.ndarray[Any, Any]]


def read_tensors(path: Path) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a safetensors file, and its metadata."""
    if not path.is_file():
        raise ModelError(f"{path} is missing: the model is incomplete, so create it again.")
    try:
        with safe_open(path, "np") as stream:
            return {name: stream.get_tensor(name) for name in stream.keys()}, stream.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise ModelError(f"{path} is damaged ({error}): create the model again.") from error


def read_parameters(path: Path, expected: Mapping[str, Any]) -> Arrays:
    """The arrays of a file; names and shapes are compared with the expected ones before anything is read into memory."""
    try:
        with safe_open(path, "np") as stream:
            shapes = {name: tuple(stream.get_slice(name).get_shape()) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is missing or damaged ({error}): create the model again.") from error
    for name in sorted(shapes.keys() & expected.keys()):
        if shapes[name] != expected[name].shape:
            raise ModelError(f"{path} has {name} of shape {shapes[name]}, not {expected[name].shape}: create the model again.")
    found = read_tensors(path)[0] if shapes.keys() == expected.keys() else dict.fromkeys(shapes, np.empty(0))
    check_parameters(found, expected, path)
    return found


def check_parameters(found: Arrays, expected: Mapping[str, Any], place: Path) -> None:
    """Raise a ModelError unless names, shapes and types are as expected and all numbers are finite."""
    if set(found) != set(expected):
        wrong = ", ".join(sorted(set(found) ^ set(expected)))
        raise ModelError(f"{place} does not fit its settings (see {wrong}): create the model again.")
    for name, array in found.items():
        if array.shape != expected[name].shape or array.dtype != expected[name].dtype:
            wanted = f"{expected[name].dtype} {expected[name].shape}"
            raise ModelError(f"{place} has {name} as {array.dtype} {array.shape}, not {wanted}: create the model again.")
        if not np.isfinite(array).all() or np.abs(array).max(initial=0) > LARGEST_NUMBER:
            raise ModelError(f"{place} has numbers in {name} that are not finite or too large: create the model again.")
