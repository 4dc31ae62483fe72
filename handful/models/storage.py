"""Saved models: plain files with a format version, never pickle; written completely or not at all, and checked when read.

config.json          all settings, and the format version
model.safetensors    the parameters
"""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from ..errors import ModelError
from ..utils.files import write_atomic
from ..utils.tensors import check_parameters, read_tensors
from .few_shot import FewShotModel
from .settings import ModelSettings

FORMAT = 1  # of a classifier and of a generator
RUN_FORMAT = 2  # of a run
CONFIG = "config.json"
MODEL = "model.safetensors"


def read_config(folder: Path, expected: int = FORMAT) -> dict[str, Any]:
    """The settings of a saved model, after checking its format version."""
    if not (folder / CONFIG).is_file():
        raise ModelError(f"{folder} is not a saved model, as it has no {CONFIG}: give a folder written by training.")
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{folder / CONFIG} is damaged ({error}): create the model again.") from error
    version = config.get("format") if isinstance(config, dict) else None
    if version != expected:
        raise ModelError(
            f"{folder} has format {version!r}, but this version of Handful reads format {expected}: train or fit it again, "
            "or use the version that wrote it."
        )
    return typing.cast("dict[str, Any]", config)


def save_model(folder: Path, model: FewShotModel) -> None:
    """Save the parameters; the settings are in the config, which the caller writes first."""
    arrays = {name: np.asarray(value, order="C") for name, value in model.to_numpy().parameters.items()}
    write_atomic(folder / MODEL, save(arrays))


def load_model(folder: Path, settings: ModelSettings, dim: int) -> FewShotModel:
    """Load a model with these settings, and check its parameters."""
    parameters, _ = read_tensors(folder / MODEL)
    check_parameters(parameters, FewShotModel.initial(settings, dim).parameters, folder / MODEL)
    return FewShotModel(settings, parameters)
