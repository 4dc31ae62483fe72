"""Raw texts of data sets, draws of examples from them, and the peers of FewShotClassifier."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
from _encoders import MiniLM, bge_small, few_shot_classifier, minilm_folder, potion, unit_vectors

from handful import FewShotClassifier
from handful.data.corpus import MAX_WORDS
from handful.data.datasets import find_data, load_dataset
from handful.data.registry import known_datasets
from handful.embeddings.words import WordLookup
from handful.making.generator import CLASSES
from handful.models.generator import DEFAULT_VECTORS, SHIPPED_GENERATOR
from handful.models.heads import RefinedRidge
from handful.models.signatures import mean_vectors
from handful.utils.files import read_json, read_lines
from handful.utils.functional import Floats, one_hot, ridge_weights, segments, unit_length, weighted_bag
from handful.utils.paths import data_folder

MOST_SHOTS = 10
UNLABELLED = 5000  # texts in the setting of this name
EXAMPLES, NAMES, POOL = INDUCTIVE = ("examples", "names", "unlabelled")  # each adds to the one before it
TRANSDUCTIVE = "transductive"  # with the queries themselves in place of other unlabelled texts
SETTINGS = (*INDUCTIVE, TRANSDUCTIVE)


# Data


@dataclass(frozen=True, eq=False)
class Material:
    """Raw texts, each with the number of its class."""

    texts: list[str]
    labels: np.ndarray[Any, Any]
    classes: list[str]


def load_texts(data: str) -> Material:
    """The texts of all classes of a data set, or of some parts: raw if available, otherwise their words."""
    name, _, part = data.partition(":")
    raw = data_folder() / f"{name}.raw.jsonl.xz"
    rows = [json.loads(line) for _, line in read_lines(raw if raw.is_file() else find_data(name)[0])]
    names = known_datasets()[name].classes if name in known_datasets() else {}
    labels = [str(row.get("label", row.get("group"))) for row in rows]
    labels = [names.get(label, label) for label in labels]
    wanted = set().union(*(_classes_of(name, one) for one in part.split("+"))) if part else set(labels)
    pairs = [(_text_of(row), label) for row, label in zip(rows, labels, strict=True) if label in wanted]
    pairs = [(text, label) for text, label in pairs if text.strip()]
    classes = sorted(wanted)
    return Material([text for text, _ in pairs], np.array([classes.index(label) for _, label in pairs]), classes)


def _classes_of(name: str, part: str) -> set[str]:
    used = read_json(SHIPPED_GENERATOR / CLASSES).get(name, {}).get(part)  # to train or to choose the generator
    if used:
        return set(used)
    if name not in known_datasets():  # packaged texts, or a file with a split next to it
        dataset = load_dataset(name)
        return {dataset.corpus.classes[label] for label in getattr(dataset.split, part)}
    record = known_datasets()[name]
    return {record.classes.get(str(label), str(label)) for label in record.split[part]}


def _text_of(row: dict[str, Any]) -> str:
    text = row.get("text", row.get("sentence", row.get("body")))
    return text if isinstance(text, str) else " ".join(text)


@dataclass(frozen=True, eq=False)
class Draw:
    """Positions of the examples, of the queries, and of unlabelled texts that are neither."""

    support: np.ndarray[Any, Any]
    query: np.ndarray[Any, Any]
    pool: np.ndarray[Any, Any]


def draw(labels: np.ndarray[Any, Any], shots: int, queries: int, *seed: int, per_class: int = 0) -> Draw:
    """Draw `shots` examples per class; the rest is the same for any number of shots up to MOST_SHOTS.

    There are `queries` queries of any class, or exactly `per_class` of each.
    """
    rng = np.random.default_rng(seed)
    members = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    support = np.concatenate([positions[:shots] for positions in members])
    if per_class:
        first = MOST_SHOTS + per_class
        query, pool = (
            np.concatenate([positions[part] for positions in members])
            for part in (slice(MOST_SHOTS, first), slice(first, None))
        )
        return Draw(support, query, rng.permutation(pool))
    rest = rng.permutation(np.concatenate([positions[MOST_SHOTS:] for positions in members]))
    return Draw(support, rest[:queries], rest[queries:])


@dataclass(frozen=True, eq=False)
class Task:
    """Labelled examples and queries, all classes, and unlabelled texts, none of which is also a query."""

    texts: list[str]
    labels: np.ndarray[Any, Any]
    queries: list[str]
    truth: np.ndarray[Any, Any]
    classes: list[str]
    unlabelled: list[str]


def draw_classes(inputs: Material, ways: int, rng: np.random.Generator) -> tuple[Material, Material]:
    """The material of some classes, or of all if `ways` is 0, and that of the others."""
    chosen = rng.permutation(len(inputs.classes))[: ways or None]
    inside = np.isin(inputs.labels, chosen)
    parts = [[text for text, wanted in zip(inputs.texts, here, strict=True) if wanted] for here in (inside, ~inside)]
    return tuple(
        Material(texts, inputs.labels[here], inputs.classes) for texts, here in zip(parts, (inside, ~inside), strict=True)
    )


def make_task(inputs: Material, shots: int, queries: int, *seed: int, unlabelled: int = UNLABELLED, per_class: int = 0) -> Task:
    """A task with all classes of the material; labels are names."""
    chosen = draw(inputs.labels, shots, queries, *seed, per_class=per_class)
    names = np.array(inputs.classes)[inputs.labels]
    support, query, pool = ([inputs.texts[i] for i in part] for part in (chosen.support, chosen.query, chosen.pool))
    known = set(query)  # some texts occur twice in a data set
    others = [text for text in pool if text not in known][:unlabelled]
    return Task(support, names[chosen.support], query, names[chosen.query], np.unique(names).tolist(), others)


# Peers


class Classifier(Protocol):
    """The interface of the classifiers being compared."""

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Any:
        """Learn."""

    def predict(self, texts: Sequence[str]) -> Any:
        """Answer."""


def fit_in_setting(classifier: Classifier, task: Task, setting: str, names: bool = True) -> Classifier:
    """Learn from what the setting gives, or without label words; only FewShotClassifier can use unlabelled texts.

    The other classifiers get the words of a class's label as one more example of the class.
    """
    labels = task.labels.tolist()
    names = names and setting != EXAMPLES
    if isinstance(classifier, FewShotClassifier):
        named = False if not names else None if labels else task.classes
        others = {POOL: task.unlabelled, TRANSDUCTIVE: task.queries}.get(setting)
        return classifier.fit(task.texts, labels, class_names=named, unlabeled=others)
    named = task.classes if names else []
    return classifier.fit([*task.texts, *map(spoken, named)], [*labels, *named])  # type: ignore[no-any-return]


def spoken(label: str) -> str:
    """A label with spaces in place of signs; no word is dropped, so that no peer has less to learn from.

    >>> spoken("talk.politics.mideast"), spoken("reverted_card_payment?")
    ('talk politics mideast', 'reverted card payment')
    """
    return " ".join(re.findall(r"[^\W_]+", label))


def static_vectors(texts: Iterable[str], epsilon: float = np.inf) -> Floats:
    """Means of word vectors, (texts, dim), weighted by ε / (ε + P(word)); plain means if ε is infinite."""
    parts = []
    for words in WordLookup(DEFAULT_VECTORS, "en", MAX_WORDS).batches(texts):
        if np.isinf(epsilon):
            parts.append(mean_vectors(words.texts))
            continue
        weights = (epsilon / (epsilon + words.frequencies))[words.texts.ids]
        owners = segments(words.texts.offsets)
        weights = weights / np.bincount(owners, weights, minlength=len(words.texts))[owners]
        parts.append(weighted_bag(words.texts.table, words.texts.rows, weights.astype(np.float32), words.texts.offsets))
    return np.concatenate(parts)


def weighted_vectors(texts: Iterable[str]) -> Floats:
    """Means weighted by rarity, scaled to length 1: (texts, dim)."""
    return unit_length(static_vectors(texts, epsilon=1e-3))  # type: ignore[no-any-return]


@dataclass
class FrequencyRidge:
    """The vectors of FewShotClassifier with frequency weights and ridge regression: the baseline for its generator."""

    epsilon: float = 1e-3
    penalty: float = 1.0  # times the mean squared length of the vectors, chosen on validation classes (docs/log.md)
    same: bool = False  # use the classifier's own head instead: unit vectors, an intercept, refined

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
    """Vectors of texts with scikit-learn's logistic regression; C = 10 is up to 6 points better than 1 with 77 classes."""

    vectors: Callable[[Sequence[str]], Any]

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Logistic:
        """Learn on the vectors."""
        from sklearn.linear_model import LogisticRegression

        self.head = LogisticRegression(C=10, max_iter=1000).fit(self.vectors(texts), labels)
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        """Predict from the vectors."""
        return self.head.predict(self.vectors(texts))


def tfidf() -> Classifier:
    """TF-IDF over the words of the examples, and logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))  # type: ignore[no-any-return]


@dataclass
class SetFit:
    """The packaged encoder fine-tuned on pairs of examples: SetFit's defaults (one epoch, batches of 16) except for the pairs.

    There are twenty similar and twenty dissimilar pairs per example, as in the SetFit paper; the default uses all pairs,
    146,000 for 77 classes with five examples each.
    """

    @cached_property
    def model(self) -> Any:
        """The encoder with an untrained head."""
        from setfit import SetFitModel

        return SetFitModel.from_pretrained(minilm_folder(), device="cpu")

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> SetFit:
        """Fine-tune the encoder, then fit the head."""
        from datasets import Dataset
        from setfit import Trainer, TrainingArguments

        self.__dict__.pop("model", None)  # do not reuse the model that an earlier draw fine-tuned
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
    """One row of the table."""

    title: str
    make: Callable[[Path | None], Classifier] | None  # from a file of vectors, if any; None if it was measured in the past
    settings: tuple[str, ...] = (EXAMPLES, NAMES)
    slow: bool = False  # it gets fewer draws


PEERS = {
    "words": Peer("FewShotClassifier, `words`", partial(few_shot_classifier, "words"), SETTINGS),
    "handful": Peer("FewShotClassifier, `handful`", partial(few_shot_classifier, "handful"), SETTINGS),
    "bge-small": Peer("FewShotClassifier, `bge-small`", partial(few_shot_classifier, "bge-small"), SETTINGS),
    "words+bge-small": Peer("FewShotClassifier, `words+bge-small`", partial(few_shot_classifier, "words+bge-small"), SETTINGS),
    "tfidf": Peer("TF-IDF + logistic regression", lambda cache: tfidf()),
    "potion": Peer("potion-base-8M + logistic regression", lambda cache: Logistic(potion())),
    "minilm": Peer("MiniLM + logistic regression", lambda cache: Logistic(unit_vectors(MiniLM(), cache))),
    "bge": Peer("bge-small + logistic regression", lambda cache: Logistic(unit_vectors(bge_small(), cache))),
    "setfit": Peer("SetFit (MiniLM)", lambda cache: SetFit(), slow=True),
    "ridge": Peer("vectors of `words`, frequency weights + ridge", lambda cache: FrequencyRidge(), (EXAMPLES,)),
    "static": Peer("vectors of `words`, plain mean + logistic regression", lambda cache: Logistic(static_vectors), (EXAMPLES,)),
    "weighted": Peer(
        "vectors of `words`, frequency weights + logistic regression", lambda cache: Logistic(weighted_vectors), (EXAMPLES,)
    ),
    "handful 0.1.0": Peer("FewShotClassifier 0.1.0", None, (EXAMPLES,)),
}
USUAL = ("words", "handful", "bge-small", "tfidf", "potion", "minilm", "bge")  # the others only if asked for
OURS = ("words", "handful", "bge-small")
ENCODERS = (*OURS, "words+handful", "words+bge-small")  # of FewShotClassifier
