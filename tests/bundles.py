"""Saved classifiers as an attacker would change them: a file with other content, and the checksum that fits it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from handful.utils.bundle import write_bundle

MODEL, ENCODER, EXAMPLES = "model.safetensors", "encoder.json", "examples.json"


def config_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


def part(folder: Path, name: str) -> Path:
    """The file that holds a part of a saved classifier."""
    return folder / config_of(folder)["files"][name]["file"]


def rewrite(folder: Path, **changed: bytes) -> None:
    """Other contents for some parts (`model`, `encoder`, `examples`), with checksums that fit."""
    config = config_of(folder)
    contents = {name: part(folder, name).read_bytes() for name in config.pop("files")}
    named = {"model": MODEL, "encoder": ENCODER, "examples": EXAMPLES}
    write_bundle(folder, config, {**contents, **{named[key]: value for key, value in changed.items()}})


def change_config(folder: Path, **values: Any) -> None:
    (folder / "config.json").write_text(json.dumps({**config_of(folder), **values}))


def change_facts(folder: Path, **values: Any) -> None:
    """Other facts of the encoder."""
    facts = json.loads(part(folder, ENCODER).read_text())
    rewrite(folder, encoder=json.dumps({**facts, **values}).encode())


def change_array(folder: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    arrays = load(part(folder, MODEL).read_bytes())
    rewrite(folder, model=save({**arrays, name: np.asarray(change(arrays.get(name, np.zeros(1, np.float32))), order="C")}))


def change_bytes(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Other bytes, and the old checksum."""
    path = part(folder, name)
    path.write_bytes(change(path.read_bytes()))
