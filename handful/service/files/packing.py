"""Saved classifiers as zip archives: downloaded, and uploaded through the same checks as any saved classifier."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from ...classifier.estimator import FewShotClassifier
from ...classifier.storage import save_classifier
from ...errors import ModelError
from ...utils.bundle import is_bundle_name
from ..errors import InvalidError, TooLargeError
from ..learning.models import ProjectModel
from .uploads import UploadedRow

LARGEST = 1 << 30  # bytes that a model may unpack to
FOLDER = "model"


def write_model(model: ProjectModel, path: Path) -> None:
    """Write a project's model, with its examples, to an archive with one folder."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        folder = Path(scratch) / FOLDER
        save_classifier(folder, model.require(), model.examples)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, f"{FOLDER}/{file.name}")


def read_model(path: Path) -> tuple[list[UploadedRow], dict[str, str]]:
    """The examples of an uploaded classifier, and the words of its classes."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        folder = Path(scratch)
        _unpack(path, folder)
        try:
            classifier = FewShotClassifier.load(folder)
        except ModelError as error:
            raise InvalidError(str(error).replace(str(folder), "The archive")) from error
    examples = classifier.examples_
    if examples is None:
        raise InvalidError(
            "The model was saved without its examples, so there is nothing to label: save it with keep_examples."
        )
    if examples.labels.format != "single":
        raise InvalidError("The model gives several labels per text, and a text of a project has one.")
    labels = examples.labels.values.tolist()
    rows = [UploadedRow(text, str(label), {}) for text, label in zip(examples.texts, labels, strict=True)]
    return rows, {str(name): words for name, words in examples.named.items()}


def _unpack(path: Path, folder: Path) -> None:
    """Unpack files with the names that a saved classifier has; a path in the archive decides nothing."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > LARGEST:
                raise TooLargeError(f"The archive unpacks to more than {LARGEST:,} bytes: it is not a model of Handful.")
            for one in archive.infolist():
                name = one.filename.rsplit("/", 1)[-1]
                if is_bundle_name(name) and not one.is_dir():
                    (folder / name).write_bytes(archive.read(one))
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
        raise InvalidError(f"The archive cannot be read ({error}): give a zip of a saved classifier.") from error
