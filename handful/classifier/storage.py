"""A saved classifier: a folder of plain files, no pickle, which changes as one (see `utils.bundle`) and is checked when read.

config.json                  the labels and classes, the format version, and the other files with their checksums
encoder.….json               how texts are read: word tables by name, words of the examples, the generator's settings
model.….safetensors          what the examples decided, and the generator
examples.….json              the examples themselves, only if they were to be kept

A folder may come from an untrusted source: nothing in it is run, no file elsewhere is named, and every array is checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..data.frequencies import check_language
from ..embeddings.encoders import encoder_names, find_encoder
from ..embeddings.tables import PACKAGED_TABLES
from ..errors import HandfulError, ModelError, SettingError
from ..models.heads import CentredScorer, ReadyHead, RefinedRidge, UnitRidge
from ..models.sentence_encoder import SENTENCE_HEAD, SentenceEncoder, SentenceModel, restore_sentence_encoder
from ..models.side_by_side import FittedSideBySide
from ..models.text_encoders import FittedAttentionBag, FittedEncoder, restore_attention_bag
from ..utils.bundle import CONFIG, has_only_leftovers, read_bundle, read_bundle_config, write_bundle
from ..utils.tensors import Arrays, check_parameters
from .calibration import Calibration
from .fitted import FittedClassifier, Sources
from .labels import Examples, Labels, classes_from_json, classes_to_json

CLASSIFIER_FORMAT = 3
UNDAMPED = 2  # a format that is still read: scores were not damped
MODEL_FILE, ENCODER_FILE, EXAMPLES_FILE = "model.safetensors", "encoder.json", "examples.json"
OLD_FILES = ("model.safetensors", "words.json", "examples.json")  # of format 1
LABEL_FORMATS = ("single", "lists", "indicator")
MOST_WORDS_READ = 10_000_000  # of a text: no setting of a person asks for more
DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, SafetensorError)


# Writing


def save_classifier(folder: Path, fitted: FittedClassifier, examples: Examples | None) -> None:
    """Write a classifier into a folder, with its examples if given; an older classifier there is replaced."""
    known = read_bundle_config(folder) if (folder / CONFIG).is_file() else {}
    if folder.exists() and known.get("kind") != "classifier" and not has_only_leftovers(folder):
        raise ModelError(f"{folder} exists and is not a saved classifier: choose another folder.")
    files = {MODEL_FILE: save(_contiguous(_arrays(fitted))), ENCODER_FILE: _json_bytes(_encoder_facts(fitted))}
    if examples is not None:
        files[EXAMPLES_FILE] = _json_bytes(_examples_to_json(examples))
    write_bundle(folder, _config(fitted), files)
    if known.get("format") == 1:
        for name in OLD_FILES:
            (folder / name).unlink(missing_ok=True)


def _config(fitted: FittedClassifier) -> dict[str, Any]:
    classes = classes_to_json(fitted.classes)
    sources = asdict(fitted.sources) | {"named": [fitted.classes.tolist().index(label) for label in fitted.sources.named]}
    about = {"labels": fitted.label_format, "classes": classes, "sources": sources}
    return {"format": CLASSIFIER_FORMAT, "kind": "classifier", **about}


def _encoder_facts(fitted: FittedClassifier) -> dict[str, Any]:
    head = next(name for name, known in SAVED_HEADS.items() if fitted.head.head == known)
    return {"encoder": fitted.encoder.kind, "head": head, **fitted.encoder.facts()}


def _arrays(fitted: FittedClassifier) -> Arrays:
    own = {
        "centre": fitted.scorer.centre,
        "weights": fitted.scorer.weights,
        "scale": np.asarray(fitted.scorer.scale, np.float32),
        "factor": np.asarray(fitted.calibration.factor, np.float64),
        "shift": fitted.calibration.shift,
        "threshold": np.asarray(fitted.calibration.threshold, np.float64),
        "damping": np.asarray(fitted.calibration.damping, np.float64),
    }
    learned = {f"head.{name}": np.asarray(value) for name, value in fitted.head.parameters.items()}
    return own | learned | {f"encoder.{name}": array for name, array in fitted.encoder.arrays().items()}


def _contiguous(arrays: Arrays) -> Arrays:
    return {name: np.asarray(array, order="C") for name, array in arrays.items()}


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()  # ASCII, so that any text can be written


def _examples_to_json(examples: Examples) -> dict[str, Any]:
    labels = examples.labels
    values = labels.values if labels.format == "lists" else labels.values.tolist()
    named = [[label, words] for label, words in examples.named.items()]
    rest = {"label_language": examples.label_language, "unlabeled": examples.unlabeled}
    return {"texts": examples.texts, "labels": values, "named": named, "weights": examples.weights.tolist(), **rest}


# Reading


def load_classifier(
    folder: Path, vectors: str | None = None, model: SentenceModel | None = None
) -> tuple[FittedClassifier, Examples | None]:
    """Read and check a folder; `vectors` or `model` are what it was fitted with, where the folder may not or cannot say.

    Word vectors in a file are given by their path again, and a sentence encoder of the user's own as the object itself.
    """
    _check_kind(folder, read_bundle_config(folder))
    config, files = read_bundle(folder, (MODEL_FILE, ENCODER_FILE, EXAMPLES_FILE))
    place = folder / CONFIG
    try:
        classes = classes_from_json(config["classes"], str(place))
        if config["labels"] not in LABEL_FORMATS:
            raise ValueError("it names labels of another kind")
        facts = json.loads(files[ENCODER_FILE])
        arrays = load(files[MODEL_FILE])
        if config["format"] == UNDAMPED:
            arrays["damping"] = np.zeros(())
        restore = RESTORED_ENCODERS[facts["encoder"]]
        encoder = restore(facts, _part(arrays, "encoder."), len(classes), folder / MODEL_FILE, vectors or model)
        fitted = _restore(classes, config["labels"], encoder, facts["head"], arrays, folder / MODEL_FILE)
        fitted = replace(fitted, sources=_sources_from_json(config["sources"], classes))
        examples = _examples_from_json(json.loads(files[EXAMPLES_FILE]), fitted) if EXAMPLES_FILE in files else None
    except HandfulError:
        raise
    except DAMAGE as error:
        raise ModelError(f"{place} or a file that it names is damaged ({error!r}): create the model again.") from error
    return fitted, examples


def classifier_digest(folder: Path) -> str:
    """The same for folders that hold the same classifier: the config knows the checksums of all its files."""
    return hashlib.sha256(json.dumps(read_bundle_config(folder), sort_keys=True).encode()).hexdigest()


def _check_kind(folder: Path, config: Mapping[str, Any]) -> None:
    if config.get("kind") != "classifier":
        raise ModelError(f"{folder} is not a saved classifier: give a folder that FewShotClassifier.save wrote.")
    if config.get("format") not in (CLASSIFIER_FORMAT, UNDAMPED):
        raise ModelError(
            f"{folder} was saved in format {config.get('format')!r}, and this version of Handful reads {CLASSIFIER_FORMAT}: "
            "fit the classifier again, or use the version that saved it."
        )


def _restore_words(
    facts: Mapping[str, Any], arrays: Arrays, classes: int, place: Path, vectors: str | SentenceModel | None
) -> FittedAttentionBag:
    """An attention bag; a saved model may neither name files nor set absurd limits."""
    named, language, most = facts["vectors"], facts["language"], facts["max_words"]
    if type(named) is not str or type(language) is not str or type(most) is not int or not 1 <= most <= MOST_WORDS_READ:
        raise ValueError("vectors and language should be names, max_words a number of words")
    try:
        check_language(language)
    except SettingError as error:
        raise ModelError(f"{place.parent} cannot be used: {error}") from error
    words = facts["words"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or len(set(words)) < len(words):
        raise ValueError("words should be different strings")
    if vectors is not None and not isinstance(vectors, str):
        raise ModelError(f"{place.parent} was fitted on word vectors, not with an encoder: remove `encoder`.")
    if vectors is None and not all(part.split(":")[0] in PACKAGED_TABLES for part in named.split("+")):
        raise ModelError(
            f"{place.parent} was fitted with the vectors {named!r}, and a model may not name files: if you trust that file, "
            "load with `vectors=PATH`."
        )
    return restore_attention_bag({**facts, "vectors": vectors or named}, arrays, classes, place)


def _restore_sentences(
    facts: Mapping[str, Any], arrays: Arrays, classes: int, place: Path, model: str | SentenceModel | None
) -> SentenceEncoder:
    """A sentence encoder, found by its name or given again."""
    name = facts["name"]
    if type(name) is not str or type(facts["named"]) is not bool:
        raise ValueError("an encoder has a name")
    if facts["named"] and name not in encoder_names():  # it may be a path, which a model may not name
        raise ModelError(
            f"{place.parent} was fitted with the encoder {name!r}, but there is no encoder of this name: "
            "install the package that provides it."
        )
    if isinstance(model, str):
        raise ModelError(f"{place.parent} was fitted with the encoder {name}, not on word vectors: remove `vectors`.")
    if model is None and not facts["named"]:
        raise ModelError(f"{place.parent} was fitted with an encoder of your own ({name}): give it again with `encoder`.")
    return restore_sentence_encoder(facts, arrays, model or find_encoder(name), place)


def _restore_side_by_side(
    facts: Mapping[str, Any], arrays: Arrays, classes: int, place: Path, given: str | SentenceModel | None
) -> FittedEncoder:
    """Both encoders; word vectors in a file are given again, the sentence encoder is always found by its name."""
    if not isinstance(given, (str, type(None))):
        raise ModelError(f"{place.parent} was fitted with an encoder that is found by its name: remove `encoder`.")
    words = _restore_words(facts["words"], _part(arrays, "words."), classes, place, given)
    sentences = _restore_sentences(facts["sentences"], _part(arrays, "sentences."), classes, place, None)
    return FittedSideBySide(words, sentences)


RESTORED_ENCODERS: dict[str, Callable[..., FittedEncoder]] = {
    "attention-bag": _restore_words,
    "sentence-encoder": _restore_sentences,
    "side-by-side": _restore_side_by_side,
}
SAVED_HEADS = {"refined-ridge": RefinedRidge(), "sentence-ridge": SENTENCE_HEAD, "unit-ridge": UnitRidge()}


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _restore(
    classes: Any, label_format: Any, encoder: FittedEncoder, head: str, arrays: Arrays, place: Path
) -> FittedClassifier:
    expected: Arrays = {
        "centre": np.empty((1, encoder.dim), np.float32),
        "weights": np.empty((encoder.dim, len(classes)), np.float32),
        "scale": np.empty((), np.float32),
        "factor": np.empty((), np.float64),
        "shift": np.empty(len(classes), np.float32),
        "threshold": np.empty((), np.float64),
        "damping": np.empty((), np.float64),
        "head.scale": np.empty(3, np.float32),
    }
    rest = {name: array for name, array in arrays.items() if not name.startswith("encoder.")}
    check_parameters(rest, expected, place)
    scorer = CentredScorer(rest["centre"], rest["weights"], rest["scale"])
    calibration = Calibration(float(rest["factor"]), rest["shift"], float(rest["threshold"]), float(rest["damping"]))
    ready = ReadyHead(SAVED_HEADS[head], _part(rest, "head."), calibration.damping)
    return FittedClassifier(classes, label_format, encoder, ready, scorer, calibration)


def _sources_from_json(value: Mapping[str, Any], classes: Any) -> Sources:
    named, weight, unlabeled, pooled = (value[name] for name in ("named", "name_weight", "unlabeled", "pooled"))
    if not all(type(number) is int and number >= 0 for number in (unlabeled, pooled, *named)):
        raise ValueError("sources must be counted from 0")
    if not isinstance(weight, (int, float)) or not 0 <= weight < float("inf"):
        raise ValueError("the weight of names must be a number from 0")
    return Sources(tuple(classes[np.array(named, np.int64)].tolist()), float(weight), unlabeled, pooled)


def _examples_from_json(value: Mapping[str, Any], fitted: FittedClassifier) -> Examples:
    texts, labels, named = list(value["texts"]), value["labels"], dict(value["named"])
    weights = np.array(value["weights"], np.float32)
    language, unlabeled = value["label_language"], list(value["unlabeled"])
    strings = [*texts, *named.values(), *unlabeled, language or ""]
    if not all(isinstance(text, str) for text in strings) or not len(labels) == len(texts) == len(weights):
        raise ValueError("texts, labels and weights do not fit")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError("weights should be above 0")
    kind = np.int64 if fitted.label_format == "indicator" else fitted.classes.dtype
    values = labels if fitted.label_format == "lists" else np.array(labels, kind)
    examples = Examples(texts, Labels(fitted.label_format, values), named, weights, language, unlabeled)
    examples.labels.targets(fitted.classes)  # every label is a class
    return examples
