"""The files of a run besides its model: the source pool, trained word vectors, the history, a checkpoint during training.

vocabulary.json          the source pool: words, counts, documents
vectors.safetensors      the vectors of these words, if they were trained
history.jsonl            one line per epoch
pretraining/             the history of an encoder's pre-training, and its checkpoint
checkpoint.safetensors   during training: everything that the next epoch depends on
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from ..data.frequencies import SourcePool
from ..data.text import Vocabulary
from ..errors import ModelError
from ..utils.files import write_atomic
from ..utils.tensors import Arrays, check_parameters, read_tensors
from .training import TrainingState

VOCABULARY = "vocabulary.json"
WORD_VECTORS = "vectors.safetensors"
HISTORY, CHECKPOINT, PRETRAINING = "history.jsonl", "checkpoint.safetensors", "pretraining"


def save_pool(folder: Path, vocabulary: Vocabulary, pool: SourcePool) -> None:
    """Save the words of the source pool with their counts."""
    present = np.flatnonzero(pool.counts)
    value = {
        "words": [vocabulary.words[i] for i in present],
        "counts": pool.counts[present].tolist(),
        "documents": pool.documents[present].tolist(),
        "size": pool.size,
    }
    write_atomic(folder / VOCABULARY, json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def load_pool(folder: Path, vocabulary: Vocabulary) -> SourcePool:
    """Load the saved source pool, in the ids of a vocabulary; a word that is not in the pool has count 0."""
    path = folder / VOCABULARY
    value = _read_vocabulary(folder)
    try:
        known = Vocabulary(value["words"]).find(vocabulary.words)
        columns = [np.array([*value[name], 0], np.int64) for name in ("counts", "documents")]  # -1 selects the 0
        if any(len(column) != len(value["words"]) + 1 or column.min() < 0 for column in columns):
            raise ValueError("counts do not fit the words")
        return SourcePool(columns[0][known], columns[1][known], int(value["size"]), float(columns[0].sum()))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelError(f"{path} is missing or damaged ({error}): create the model again.") from error


def _read_vocabulary(folder: Path) -> dict[str, Any]:
    path = folder / VOCABULARY
    try:
        if not path.is_file():
            raise FileNotFoundError("not a regular file")
        value: dict[str, Any] = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
        return {**value, "words": list(value["words"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{path} is missing or damaged ({error}): create the model again.") from error


# Trained word vectors: only those of words in the training examples have changed


def save_vectors(folder: Path, table: np.ndarray[Any, Any], pool: SourcePool) -> None:
    """Save the vectors of the words in the source pool, in the order of the saved vocabulary."""
    write_atomic(folder / WORD_VECTORS, save({"table": np.asarray(table[np.flatnonzero(pool.counts)], order="C")}))


def load_vectors_over(folder: Path, vocabulary: Vocabulary, table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A table for the words of a vocabulary, with the trained rows replaced."""
    rows = read_tensors(folder / WORD_VECTORS)[0].get("table")
    words = _read_vocabulary(folder)["words"]
    if rows is None:
        raise ModelError(f"{folder / WORD_VECTORS} has no table: create the model again.")
    check_parameters({"table": rows}, {"table": np.empty((len(words), table.shape[1]), np.float32)}, folder / WORD_VECTORS)
    known = Vocabulary(words).find(vocabulary.words)
    moved = table.copy()
    moved[known >= 0] = rows[known[known >= 0]]
    return moved


# Checkpoints


def save_checkpoint(folder: Path, state: TrainingState) -> None:
    """Save the state of a training run, and its history as JSON lines."""
    groups = {"parameters": state.parameters, "best": state.best, "moments": state.moments}
    arrays = {f"{group}/{name}": np.asarray(a, order="C") for group, named in groups.items() for name, a in named.items()}
    notes = {"best_epoch": str(state.best_epoch), "history": json.dumps(state.history)}
    write_atomic(folder / CHECKPOINT, save(arrays, notes))
    write_atomic(folder / HISTORY, "".join(json.dumps(line) + "\n" for line in state.history).encode())


def load_checkpoint(folder: Path, parameters: Mapping[str, Any]) -> TrainingState | None:
    """Load the state that an interrupted run left, if there is one."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    arrays, notes = read_tensors(path)
    groups: dict[str, Arrays] = {"parameters": {}, "best": {}, "moments": {}}
    for name, array in arrays.items():
        group, _, rest = name.partition("/")
        groups.setdefault(group, {})[rest] = array
    check_parameters(groups["parameters"], parameters, path)
    try:
        return TrainingState(**groups, best_epoch=int(notes["best_epoch"]), history=json.loads(notes["history"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({error!r}): remove it to train again from the start.") from error


def load_history(folder: Path) -> list[dict[str, float]]:
    """The lines of a history, one per epoch; empty if nothing was trained."""
    path = folder / HISTORY
    if not path.is_file():
        return []
    try:
        return [
            {name: float(value) for name, value in json.loads(line).items()} for line in path.read_text("utf-8").splitlines()
        ]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({error}): create the model again.") from error
