"""A project's model, fitted to the labels in the store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...classifier.estimator import WORDS
from ...classifier.fitted import FittedClassifier, fit_classifier
from ...classifier.labels import Examples, Labels
from ...data.corpus import MAX_WORDS
from ...data.frequencies import check_language
from ...data.label_words import label_words
from ...embeddings.encoders import encoder_names, find_encoder, list_encoders
from ...embeddings.vector_cache import CachedEncoder
from ...embeddings.words import WordLookup
from ...models.generator import DEFAULT_VECTORS, SHIPPED_GENERATOR, load_generator
from ...models.sentence_encoder import SentenceEncoder
from ...models.text_encoders import AttentionBag, TextEncoder
from ...utils.functional import Ints
from ..errors import ConflictError, InvalidError
from ..store.classes import live_classes
from ..store.database import Database
from ..store.projects import ProjectRow, read_row
from ..store.texts import LabelledText, labelled_texts
from .computed import Key, key_of

TOO_FEW = "The project has fewer than two classes: add classes, or import labelled texts."


@dataclass(frozen=True, eq=False)
class ProjectModel:
    """A model of a project; `fitted` is None while there are fewer than two classes."""

    fitted: FittedClassifier | None
    examples: Examples
    sources: list[LabelledText]  # of the examples, in the same order
    tests: list[LabelledText]  # labelled texts of the test set
    names: dict[int, str]  # of all classes, by number
    numbers: Ints  # (classes,): of the fitted classes

    def require(self) -> FittedClassifier:
        """The classifier, or a sentence that says what is missing."""
        if self.fitted is None:
            raise ConflictError(TOO_FEW)
        return self.fitted


def check_encoder(encoder: str, language: str) -> None:
    """Refuse an encoder that is unknown or not installed, and an unknown language."""
    if encoder != WORDS and encoder not in encoder_names():
        raise InvalidError(f"There is no encoder {encoder!r}: choose one of {', '.join((WORDS, *encoder_names()))}.")
    if encoder != WORDS:
        find_encoder(encoder)
    check_language(language)


def available_encoders() -> list[dict[str, Any]]:
    """The encoders, and whether each is here."""
    words = {"name": WORDS, "title": "word vectors with attention", "here": True}
    return [words] + [{"name": one["name"], "title": one["title"], "here": one["path"] is not None} for one in list_encoders()]


@lru_cache(maxsize=8)
def open_encoder(encoder: str, language: str, folder: Path) -> TextEncoder:
    """An encoder; vectors of a sentence encoder are kept in a file of the folder."""
    if encoder == WORDS:
        return AttentionBag(WordLookup(DEFAULT_VECTORS, language, MAX_WORDS), load_generator(SHIPPED_GENERATOR))
    cached = CachedEncoder(find_encoder(encoder), file=folder / "vectors.sqlite")
    return SentenceEncoder(encoder, cached, named=True)


def read_project(database: Database, project: str) -> tuple[ProjectRow, list[Any], list[LabelledText]]:
    """A project, its classes and its labelled texts, all of one moment."""
    with database.reading() as connection:
        row = read_row(connection, project)
        return row, live_classes(connection, project), labelled_texts(connection, row)


def fit_project(database: Database, folder: Path, most: int, project: str) -> tuple[Key, ProjectModel]:
    """Fit the model of a project to its labels, or to an even sample of at most `most` of them."""
    row, classes, labelled = read_project(database, project)
    names = {one.number: one.name for one in classes}
    words = {one.name: one.words or spoken(one.name, row.language) for one in classes} if row.use_class_names else {}
    sources = even_by_class([one for one in labelled if not one.test], most)
    texts = [one.text for one in sources]
    labels = Labels("single", np.array([names[one.label] for one in sources], dtype=np.str_))
    examples = Examples(texts, labels, dict(words), np.ones(len(texts), np.float32))
    tests = [one for one in labelled if one.test]
    known = examples.classes if sources or words else np.empty(0)
    if len(known) < 2:
        return key_of(row), ProjectModel(None, examples, sources, tests, names, np.empty(0, np.int64))
    encoder = open_encoder(row.encoder, row.language, folder)
    fitted = fit_classifier(encoder, encoder.ready_head(), examples)
    places = {name: number for number, name in names.items()}
    numbers = np.array([places[str(name)] for name in fitted.classes], np.int64)
    return key_of(row), ProjectModel(fitted, examples, sources, tests, names, numbers)


def spoken(name: str, language: str = "en") -> str:
    """The words of a class name; the name itself if it does not read as words, for it may be all that is known."""
    return label_words(name, language) or name


def even_by_class(labelled: list[LabelledText], most: int) -> list[LabelledText]:
    """At most this many labelled texts, as evenly as possible over the classes and over time; in order."""
    if len(labelled) <= most:
        return labelled
    by_class: dict[int, list[int]] = {}
    for position, one in enumerate(labelled):
        by_class.setdefault(one.label, []).append(position)
    room, kept = most, list[int]()
    for left, positions in enumerate(sorted(by_class.values(), key=len), 1 - len(by_class)):
        share = min(len(positions), room // (1 - left))
        kept += [positions[i] for i in np.linspace(0, len(positions) - 1, share).astype(int)]
        room -= share
    return [labelled[position] for position in sorted(kept)]
