"""A saved classifier identified by its path, read once per process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..classifier.storage import classifier_digest
from ..errors import ModelError
from ..utils.bundle import bundle_files

if TYPE_CHECKING:
    from ..classifier.estimator import FewShotClassifier


@dataclass(frozen=True)
class SavedClassifier:
    """A saved classifier identified by its path, so that each worker, even on another machine, reads it once."""

    folder: str
    vectors: str | None
    digest: str

    @classmethod
    def at(cls, folder: Path, vectors: str | None = None) -> SavedClassifier:
        """The classifier in a folder; `vectors` names the word vectors if it was fitted with a file of them."""
        place = str(folder.absolute())
        _load.cache_clear()
        return cls(place, vectors, _load(place, vectors)[1])

    @property
    def files(self) -> list[Path]:
        """The files of the classifier, without others in its folder."""
        return bundle_files(Path(self.folder))

    def load(self) -> FewShotClassifier:
        """The classifier itself."""
        for _ in range(2):
            classifier, digest = _load(self.folder, self.vectors)
            if digest == self.digest:
                return classifier
            _load.cache_clear()  # it was replaced after this process read it
        raise ModelError(f"{self.folder} differs between workers: put the classifier in a folder that all of them share.")


@lru_cache(maxsize=1)
def _load(folder: str, vectors: str | None) -> tuple[FewShotClassifier, str]:
    """A classifier, read once per process, with the digest of the version that was read."""
    from ..classifier.estimator import FewShotClassifier

    while True:
        before = classifier_digest(Path(folder))
        classifier = FewShotClassifier.load(folder, vectors)
        if classifier_digest(Path(folder)) == before:  # not replaced while it was read
            return classifier, before
