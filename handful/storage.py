"""A saved model: plain files, a format version, no pickle; written whole or not at all, checked when read.

config.json          every setting, the format version
model.safetensors    the parameters
vocabulary.json      the source pool: words, counts, documents
vectors.safetensors  the vectors of these words, if they were trained
history.jsonl        a line an epoch
pretraining/         the history of an encoder's pre-training, and its checkpoint
checkpoint.safetensors   while training: what the next epoch depends on
"""

from __future__ import annotations

import dataclasses
import json
import os
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .episodes import SourcePool
from .errors import ModelError, SettingError
from .model import FewShotModel, ModelSettings
from .text import Vocabulary
from .training import TrainingState

FORMAT = 1
CONFIG, MODEL, VOCABULARY = "config.json", "model.safetensors", "vocabulary.json"
WORD_VECTORS = "vectors.safetensors"
HISTORY, CHECKPOINT, PRETRAINING = "history.jsonl", "checkpoint.safetensors", "pretraining"
Arrays = dict[str, np.ndarray[Any, Any]]
Settings = TypeVar("Settings")


def write_atomic(path: Path, content: bytes) -> None:
    """The whole file or none of it: written beside its place, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """A JSON file, atomically."""
    write_atomic(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


# Settings


def settings_to_dict(settings: Any) -> dict[str, Any]:
    """A dataclass of settings as JSON types."""
    return json.loads(json.dumps(dataclasses.asdict(settings)))  # type: ignore[no-any-return]


def settings_from_dict(kind: type[Settings], values: Any, place: str = "") -> Settings:
    """A dataclass of settings from JSON types; unknown names and wrong types are errors that name their place."""
    if not isinstance(values, Mapping):
        raise SettingError(f"{place or 'The settings'} should be an object, not {values!r}.")
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise SettingError(f"There is no setting {', '.join(place + name for name in unknown)}: remove it.")
    return kind(**{name: _setting(hints[name], value, place + name) for name, value in values.items()})


def _setting(hint: Any, value: Any, place: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return settings_from_dict(typing.cast("type[Any]", hint), value, place + ".")
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if not isinstance(value, list):
            raise SettingError(f"The setting {place} is {value!r}: it should be a list.")
        return tuple(value)
    if origin is typing.Literal:
        return value  # the class itself says which values it takes
    allowed = tuple(a for a in arguments if isinstance(a, type)) if origin in (typing.Union, types.UnionType) else (hint,)
    if float in allowed:
        allowed = (*allowed, int)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise SettingError(f"The setting {place} is {value!r}: it should be {' or '.join(a.__name__ for a in allowed)}.")
    return value


# Reading back


def read_config(folder: Path) -> dict[str, Any]:
    """The settings of a saved model, after a look at its format version."""
    if not (folder / CONFIG).is_file():
        raise ModelError(f"{folder} is not a saved model: it has no {CONFIG}. Give the folder that was written by training.")
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except ValueError as error:
        raise ModelError(f"{folder / CONFIG} is damaged ({error}): make the model again.") from error
    version = config.get("format") if isinstance(config, dict) else None
    if version != FORMAT:
        raise ModelError(
            f"{folder} has format {version!r}, this version of Handful reads {FORMAT}: install the one that wrote it."
        )
    return typing.cast("dict[str, Any]", config)


def read_tensors(path: Path) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a safetensors file, and its notes."""
    if not path.is_file():
        raise ModelError(f"{path} is missing: the model is incomplete, make it again.")
    try:
        with safe_open(path, "np") as stream:
            return {name: stream.get_tensor(name) for name in stream.keys()}, stream.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise ModelError(f"{path} is damaged ({error}): make the model again.") from error


def read_parameters(path: Path, expected: Mapping[str, Any]) -> Arrays:
    """The arrays of a file that should have these names, shapes and types: looked at before they are read into memory."""
    try:
        with safe_open(path, "np") as stream:
            shapes = {name: tuple(stream.get_slice(name).get_shape()) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is missing or damaged ({error}): make the model again.") from error
    for name in sorted(shapes.keys() & expected.keys()):
        if shapes[name] != expected[name].shape:
            raise ModelError(f"{path} has {name} of shape {shapes[name]}, not {expected[name].shape}: make the model again.")
    found = read_tensors(path)[0] if shapes.keys() == expected.keys() else dict.fromkeys(shapes, np.empty(0))
    check_parameters(found, expected, path)
    return found


def check_parameters(found: Arrays, expected: Mapping[str, Any], place: Path) -> None:
    """The same names, shapes and types as expected, and only finite numbers."""
    if set(found) != set(expected):
        wrong = ", ".join(sorted(set(found) ^ set(expected)))
        raise ModelError(f"{place} does not fit its settings, look at {wrong}: make the model again.")
    for name, array in found.items():
        if array.shape != expected[name].shape or array.dtype != expected[name].dtype:
            wanted = f"{expected[name].dtype} {expected[name].shape}"
            raise ModelError(f"{place} has {name} as {array.dtype} {array.shape}, not {wanted}: make the model again.")
        if not np.isfinite(array).all():
            raise ModelError(f"{place} has numbers in {name} that are not finite: make the model again.")


def save_model(folder: Path, model: FewShotModel) -> None:
    """The parameters; settings are in the config that the caller writes first."""
    arrays = {name: np.asarray(value, order="C") for name, value in model.to_numpy().parameters.items()}
    write_atomic(folder / MODEL, save(arrays))


def load_model(folder: Path, settings: ModelSettings, dim: int) -> FewShotModel:
    """The model of these settings, its parameters checked."""
    parameters, _ = read_tensors(folder / MODEL)
    check_parameters(parameters, FewShotModel.initial(settings, dim).parameters, folder / MODEL)
    return FewShotModel(settings, parameters)


def save_pool(folder: Path, vocabulary: Vocabulary, pool: SourcePool) -> None:
    """The words of the source pool with their counts."""
    present = np.flatnonzero(pool.counts)
    value = {
        "words": [vocabulary.words[i] for i in present],
        "counts": pool.counts[present].tolist(),
        "documents": pool.documents[present].tolist(),
        "size": pool.size,
    }
    write_atomic(folder / VOCABULARY, json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def load_pool(folder: Path, vocabulary: Vocabulary) -> SourcePool:
    """The saved source pool in the ids of a vocabulary; a word it never counted has 0."""
    path, value = folder / VOCABULARY, _read_vocabulary(folder)
    try:
        known = Vocabulary(value["words"]).find(vocabulary.words)
        columns = [np.array([*value[name], 0], np.int64) for name in ("counts", "documents")]  # -1 finds the 0
        if any(len(column) != len(value["words"]) + 1 or column.min() < 0 for column in columns):
            raise ValueError("counts do not fit the words")
        return SourcePool(columns[0][known], columns[1][known], int(value["size"]), float(columns[0].sum()))
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is missing or damaged ({error}): make the model again.") from error


def _read_vocabulary(folder: Path) -> dict[str, Any]:
    path = folder / VOCABULARY
    try:
        value: dict[str, Any] = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
        return {**value, "words": list(value["words"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is missing or damaged ({error}): make the model again.") from error


# Trained word vectors: only words of the training examples have moved


def save_vectors(folder: Path, table: np.ndarray[Any, Any], pool: SourcePool) -> None:
    """The rows of the words of the source pool, in the order of the saved vocabulary."""
    write_atomic(folder / WORD_VECTORS, save({"table": np.asarray(table[np.flatnonzero(pool.counts)], order="C")}))


def load_vectors_over(folder: Path, vocabulary: Vocabulary, table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A table for the words of a vocabulary with the trained rows in their places."""
    rows = read_tensors(folder / WORD_VECTORS)[0].get("table")
    words = _read_vocabulary(folder)["words"]
    if rows is None:
        raise ModelError(f"{folder / WORD_VECTORS} has no table: make the model again.")
    check_parameters({"table": rows}, {"table": np.empty((len(words), table.shape[1]), np.float32)}, folder / WORD_VECTORS)
    known = Vocabulary(words).find(vocabulary.words)
    moved = table.copy()
    moved[known >= 0] = rows[known[known >= 0]]
    return moved


# Checkpoints


def save_checkpoint(folder: Path, state: TrainingState) -> None:
    """The state of a training run, and its history as JSON lines."""
    groups = {"parameters": state.parameters, "best": state.best, "moments": state.moments}
    arrays = {f"{group}/{name}": np.asarray(a, order="C") for group, named in groups.items() for name, a in named.items()}
    notes = {"best_epoch": str(state.best_epoch), "history": json.dumps(state.history)}
    write_atomic(folder / CHECKPOINT, save(arrays, notes))
    write_atomic(folder / HISTORY, "".join(json.dumps(line) + "\n" for line in state.history).encode())


def load_checkpoint(folder: Path, parameters: Mapping[str, Any]) -> TrainingState | None:
    """The state that a killed run left, if there is one."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    arrays, notes = read_tensors(path)
    groups: dict[str, Arrays] = {"parameters": {}, "best": {}, "moments": {}}
    for name, array in arrays.items():
        group, _, rest = name.partition("/")
        groups.setdefault(group, {})[rest] = array
    check_parameters(groups["parameters"], parameters, path)
    return TrainingState(**groups, best_epoch=int(notes["best_epoch"]), history=json.loads(notes["history"]))


def load_history(folder: Path) -> list[dict[str, float]]:
    """The lines of a history, one an epoch; none where nothing was trained."""
    path = folder / HISTORY
    if not path.is_file():
        return []
    try:
        return [
            {name: float(value) for name, value in json.loads(line).items()} for line in path.read_text("utf-8").splitlines()
        ]
    except (ValueError, AttributeError, TypeError) as error:
        raise ModelError(f"{path} is damaged ({error}): make the model again.") from error
