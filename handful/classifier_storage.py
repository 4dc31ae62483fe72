"""A saved classifier: a folder of plain files, no pickle, written whole or not at all, and checked when read.

config.json        the settings, the classes, the format version, and whether examples were kept
model.safetensors  what the examples decided, and the generator
words.json         the words of the examples, and the word counts of unlabelled texts
examples.json      the examples themselves, only if they were to be kept

A folder may come from a stranger: nothing in it is run, nothing in it names a file elsewhere, and the shape of every array is
checked before it is read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from .decision import Decision, table_of
from .embeddings.tables import PACKAGED
from .errors import HandfulError, ModelError
from .functional import Floats
from .labels import Examples, Kind, Labels, classes_from_json, classes_to_json
from .model import FewShotModel, ModelSettings
from .signatures import Evidence
from .storage import CONFIG, FORMAT, MODEL, read_config, read_parameters, write_atomic, write_json
from .text import Vocabulary
from .universal import HEADS_IN_USE

WORDS, EXAMPLES = "words.json", "examples.json"
LARGEST_TEXT_FILE = 1 << 28  # bytes
KINDS = ("one", "lists", "matrix")
PROBE, PROBED = "probe", 64  # a tensor that the word vectors are known by, and of how many words it is made
GENERATOR = ("network", "rarity", "head")  # of its settings, beside the signals


@dataclass(frozen=True, eq=False)
class Fitted:
    """All there is to a classifier that has learned."""

    parameters: dict[str, Any]  # vectors, language, longest
    classes: np.ndarray[Any, Any]
    kind: Kind
    decision: Decision
    generator: FewShotModel
    counts: Mapping[str, int]
    examples: Examples | None


# Writing


def save_classifier(folder: Path, fitted: Fitted, keep_examples: bool) -> None:
    """Write the folder beside its place, then move it there; an older classifier in that place is replaced."""
    if keep_examples and fitted.examples is None:
        raise ModelError("This classifier was loaded without examples, so it has none to keep: save without keep_examples.")
    if folder.exists() and not _is_classifier(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"{folder} exists and is not a saved classifier: choose another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary, former = (folder.with_name(f".{folder.name}.{os.getpid()}.{state}") for state in ("new", "old"))
    try:
        _write(temporary, fitted, keep_examples)
        if folder.exists():
            folder.replace(former)
        temporary.replace(folder)
    finally:
        if former.exists() and not folder.exists():
            former.replace(folder)
        for leftover in (temporary, former):
            shutil.rmtree(leftover, ignore_errors=True)


def _is_classifier(folder: Path) -> bool:
    try:
        return read_config(folder).get("kind") == "classifier"
    except HandfulError:
        return False


def _write(folder: Path, fitted: Fitted, keep_examples: bool) -> None:
    decision, settings = fitted.decision, fitted.generator.settings
    config = {
        "format": FORMAT,
        "kind": "classifier",
        "settings": fitted.parameters,
        "labels": fitted.kind,
        "classes": classes_to_json(fitted.classes),
        "generator": {"signals": list(settings.signals), **{name: getattr(settings, name) for name in GENERATOR}},
        "examples": keep_examples,
    }
    words = [decision.vocabulary.words[i] for i in decision.evidence.words]
    arrays = {**_arrays(decision, fitted.generator), PROBE: _probe(fitted.parameters["vectors"], words)}
    write_atomic(folder / MODEL, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
    write_atomic(folder / WORDS, json.dumps({"words": words, "unlabeled": dict(fitted.counts)}).encode())
    if keep_examples and fitted.examples:
        write_atomic(folder / EXAMPLES, json.dumps(_examples_to_json(fitted.examples)).encode())
    write_json(folder / CONFIG, config)


def _arrays(decision: Decision, generator: FewShotModel) -> dict[str, np.ndarray[Any, Any]]:
    evidence = decision.evidence
    own = {
        "centre": decision.centre,
        "weights": decision.weights,
        "constants": decision.constants,
        "uneven": evidence.uneven,
        "directions": evidence.directions,
        "usual": evidence.usual,
    }
    return own | {f"generator.{name}": np.asarray(value) for name, value in generator.parameters.items()}


def _probe(vectors: str, words: Sequence[str]) -> Floats:
    """The mean vector of some words, which tells one table of vectors from another: (dim,)."""
    table = table_of(vectors)
    found = table.lookup(words[:PROBED]) if words else np.zeros((1, table.dim))
    return found.mean(axis=0).astype(np.float32)  # type: ignore[no-any-return]


def _examples_to_json(examples: Examples) -> dict[str, Any]:
    labels = examples.labels
    values = labels.values if labels.kind == "lists" else labels.values.tolist()
    named = [[label, words] for label, words in examples.named.items()]
    return {"texts": examples.texts, "labels": values, "named": named}


# Reading


def load_classifier(folder: Path, vectors: str | None = None) -> Fitted:
    """Read and check a folder; `vectors` names the word vectors where the classifier was fitted with a file."""
    for name in (CONFIG, MODEL, WORDS, EXAMPLES):
        _check_file(folder, name)
    config = read_config(folder)
    if config.get("kind") != "classifier":
        raise ModelError(f"{folder} is a saved model but not a classifier: give a folder that FewShotClassifier.save wrote.")
    try:
        parameters = _settings(folder, dict(config["settings"]), vectors)
        classes, kind = classes_from_json(config["classes"], str(folder / CONFIG)), config["labels"]
        signals, named = config["generator"]["signals"], {name: config["generator"][name] for name in GENERATOR}
        if kind not in KINDS or not set(signals) <= {"f", "u", "r"} or named["head"] not in HEADS_IN_USE:
            raise ValueError("it names labels, signals or a head of another kind")
        settings = ModelSettings(signals=(*signals,), pool="background", **named)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{folder / CONFIG} is damaged ({error!r}): make the model again.") from error
    words, counts = _read_words(folder)
    decision, generator = _read_arrays(folder, words, len(classes), parameters["vectors"], settings)
    examples = _read_examples(folder, kind, classes, counts) if config.get("examples") is True else None
    return Fitted(parameters, classes, kind, decision, generator, counts, examples)


def _check_file(folder: Path, name: str) -> None:
    """A file of the folder itself, of a size that fits memory."""
    path = folder / name
    if not path.exists() and not path.is_symlink():
        return  # whoever reads it says so, if it has to be there
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ModelError(f"{path} leads out of its folder: do not use this model.")
    if name != MODEL and path.stat().st_size > LARGEST_TEXT_FILE:
        raise ModelError(f"{path} is too large to be a part of a model: make the model again.")


def _settings(folder: Path, values: dict[str, Any], vectors: str | None) -> dict[str, Any]:
    kinds = {"vectors": str, "language": str, "longest": int}
    if (
        set(values) != set(kinds)
        or not all(type(values[name]) is kind for name, kind in kinds.items())
        or values["longest"] < 1
    ):
        raise ValueError(f"its settings should be {', '.join(kinds)}")
    named = values["vectors"]
    if vectors is None and not all(part.split(":")[0] in PACKAGED for part in named.split("+")):
        raise ModelError(
            f"{folder} was fitted with the vectors {named!r}, and a model may not name files: if you trust that file, load "
            "with vectors=PATH (--vectors PATH)."
        )
    return {**values, "vectors": vectors or named}


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is missing or damaged ({error}): make the model again.") from error


def _read_words(folder: Path) -> tuple[list[str], dict[str, int]]:
    value = _read_json(folder / WORDS)
    words, counts = (value.get("words"), value.get("unlabeled")) if isinstance(value, dict) else (None, None)
    good = isinstance(words, list) and all(isinstance(word, str) for word in words) and len(set(words)) == len(words)
    if not good or not isinstance(counts, dict) or not all(type(n) is int and n > 0 for n in counts.values()):
        raise ModelError(f"{folder / WORDS} does not hold words and counts: make the model again.")
    return words, counts  # type: ignore[return-value]


def _read_arrays(
    folder: Path, words: list[str], classes: int, vectors: str, settings: ModelSettings
) -> tuple[Decision, FewShotModel]:
    dim = table_of(vectors).dim
    generator = FewShotModel.initial(settings, dim)
    column, table = np.empty(classes, np.float32), np.empty((dim, classes), np.float32)
    blank = Evidence(np.empty(0, np.int64), np.empty(len(words), np.float32), table, np.empty(2, np.float32))
    expected = _arrays(Decision(Vocabulary(), blank, table[:, 0], table, column), generator)
    found = read_parameters(folder / MODEL, {**expected, PROBE: table[:, 0]})
    if not np.allclose(found[PROBE], _probe(vectors, words), atol=1e-4):
        raise ModelError(
            f"{folder} was fitted with other word vectors than those of {vectors!r} here: fit it again, or give it its own "
            "(--vectors, or the version of Handful that it was made with)."
        )
    evidence = Evidence(np.arange(len(words)), found["uneven"], found["directions"], found["usual"])
    own = {name.removeprefix("generator."): array for name, array in found.items() if name.startswith("generator.")}
    decision = Decision(Vocabulary(words), evidence, found["centre"], found["weights"], found["constants"])
    return decision, generator.with_parameters(own)


def _read_examples(folder: Path, kind: Kind, classes: np.ndarray[Any, Any], counts: dict[str, int]) -> Examples:
    value = _read_json(folder / EXAMPLES)
    try:
        texts, labels, named = value["texts"], value["labels"], dict(value["named"])
        if not all(isinstance(text, str) for text in [*texts, *named.values()]) or len(labels) != len(texts):
            raise ValueError("texts and labels do not fit")
        values = labels if kind == "lists" else np.array(labels, np.int64 if kind == "matrix" else classes.dtype)
        examples = Examples(list(texts), Labels(kind, values), named, counts)
        examples.labels.targets(classes)
        return examples
    except (KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise ModelError(f"{folder / EXAMPLES} is damaged ({error!r}): make the model again.") from error
