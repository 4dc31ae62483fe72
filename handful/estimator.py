"""FewShotClassifier: a classifier from a handful of examples, with scikit-learn's contract, that says why.

scikit-learn itself is imported only where it asks (`clone`, `check_estimator`) or where its own error is due, so that a process
that fits, predicts or explains starts quickly.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .classifier_storage import Fitted, load_classifier, save_classifier
from .corpus import LONGEST
from .decision import Lesson, Reader, Words, decide
from .errors import DataError, HandfulError, HandfulWarning, SettingError
from .explanation import Explanation, WordPart
from .functional import TINY, Floats, Ints, softmax
from .labels import Examples, Labels, answers, class_texts
from .model import FewShotModel
from .text import tokenize, words_of
from .universal import FOLDER, VECTORS, load_generator

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")
CANDIDATES = 2000  # texts of a pool that stand for all of it when some are to be suggested


class FewShotClassifier:
    """Text classification from one example a class on, without training, GPU or network.

    `vectors` names word tables (see `handful.load_vectors`), `language` is the code of the language whose word frequencies
    serve as background, `longest` is how many words of a text are read, `generator` is the folder of an attention generator in
    place of the one that is shipped.

    >>> clf = FewShotClassifier().fit(["great food", "the train was late"], ["restaurant", "travel"])
    >>> clf.predict(["a tasty dinner"]).tolist()
    ['restaurant']
    """

    def __init__(
        self, vectors: str = VECTORS, language: str = "en", longest: int = LONGEST, generator: str | Path | None = None
    ) -> None:
        self.vectors, self.language, self.longest, self.generator = vectors, language, longest, generator

    # Learning

    def fit(
        self,
        X: Iterable[str],  # noqa: N803 - scikit-learn's name
        y: Any = None,
        class_names: Mapping[Any, str] | Sequence[Any] | None = None,
        unlabeled: Iterable[str] | None = None,
    ) -> FewShotClassifier:
        """Learn from texts and their labels, and forget what was learned before.

        A label is a number or a string; a text may have several, as a list of labels each or as an indicator matrix.
        `class_names` describe classes in words, {label: words}, or a list of labels that are words themselves: each counts as
        an example, and no others are needed. `unlabeled` are texts whose word counts join the background.
        """
        self._check_settings()
        texts, named = check_texts(X), class_texts(class_names)
        labels = Labels.of([] if y is None and named and not texts else y, len(texts))
        others = check_texts([] if unlabeled is None else unlabeled)
        counts = Counter(word for text in others for word in words_of(text, self.longest))
        generator = load_generator(Path(self.generator) if self.generator else FOLDER)
        return self._learn(Examples(texts, labels, named, dict(counts)), generator)

    def partial_fit(self, X: Iterable[str], y: Any, classes: Any = None) -> FewShotClassifier:  # noqa: N803
        """Learn from more examples, also of new classes: the same as `fit` on all examples together.

        `classes` is there because scikit-learn passes it: classes are those of the examples.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        known = self.examples_
        if known is None:
            raise DataError("This classifier was saved without its examples: save it with keep_examples=True to learn more.")
        texts = check_texts(X)
        labels = known.labels.joined(Labels.of(y, len(texts))) if len(known.labels) else Labels.of(y, len(texts))
        return self._learn(Examples([*known.texts, *texts], labels, known.named, known.counts), self.generator_)

    def _learn(self, examples: Examples, generator: FewShotModel) -> FewShotClassifier:
        classes = examples.labels.classes(list(examples.named))
        if len(classes) < 2:
            raise DataError(
                f"There is {len(classes)} class in the examples, which leaves nothing to tell apart: give two classes at least."
            )
        _warn_of_repetition(examples)
        reader = Reader(self.vectors, self.language, self.longest, examples.counts)
        self.decision_ = decide(_lesson(examples, classes, reader), generator)
        self.classes_, self.kind_, self.reader_, self.generator_ = classes, examples.labels.kind, reader, generator
        self.examples_: Examples | None = examples
        return self

    def _check_settings(self) -> None:
        if not isinstance(self.longest, (int, np.integer)) or self.longest < 1:
            raise SettingError(f"longest is {self.longest!r}: a text has 1 word at least.")
        for name in ("vectors", "language"):
            if not isinstance(getattr(self, name), str):
                raise SettingError(f"{name} is {getattr(self, name)!r}: give a name.")

    # Answering

    def predict(self, X: Iterable[str], reject_below: float | None = None) -> Any:  # noqa: N803
        """The label of each text; None where the probability of the best one is below `reject_below`."""
        scores = self._scores(X)
        found = answers(self.kind_, self.classes_, scores)
        if reject_below is None:
            return found
        if self.kind_ != "one":
            raise SettingError("reject_below is for texts that have one label each: use predict_proba for several.")
        if not 0 <= reject_below <= 1:
            raise SettingError(f"reject_below is {reject_below}: it is a probability, from 0 to 1.")
        return np.where(self._probabilities(scores).max(axis=1) < reject_below, None, found.astype(object))

    def predict_proba(self, X: Iterable[str]) -> Array:  # noqa: N803
        """The probability of each class: (texts, classes); those of a text sum to one, unless it may have several labels."""
        return self._probabilities(self._scores(X))

    def decision_function(self, X: Iterable[str]) -> Array:  # noqa: N803
        """Logits of the probabilities: (texts, classes); for two classes (texts,), that of the second against the first."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if self._binary else scores

    def score(self, X: Iterable[str], y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of texts whose label (or every one of whose labels) is right."""
        texts = check_texts(X)
        truth = Labels.of(y, len(texts))
        if truth.kind != self._fitted().kind_:
            raise DataError("The labels are of another kind than those of the examples: give labels of the same kind.")
        found = Labels(self.kind_, self.predict(texts)).values
        right = [np.array_equal(mine, other) for mine, other in zip(found, truth.values, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def _fitted(self) -> FewShotClassifier:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted_error()("This FewShotClassifier is not fitted yet: call fit with examples before asking it.")
        return self

    @property
    def _binary(self) -> bool:
        return self.kind_ == "one" and len(self.classes_) == 2

    def _scores(self, X: Iterable[str]) -> Floats:  # noqa: N803
        decision, generator = self._fitted().decision_, self.generator_
        parts = [decision.scores(words, generator) for words in self.reader_.batches(check_texts(X))]
        return np.concatenate(parts) if parts else np.empty((0, len(self.classes_)), np.float32)

    def _probabilities(self, scores: Floats) -> Array:
        scores = scores.astype(np.float64)
        return softmax(scores) if self.kind_ == "one" else 0.5 + 0.5 * np.tanh(scores / 2)

    # Saying why, and what next

    def explain(self, text: str) -> Explanation:
        """The attention of each word, and its exact part in each class's `decision_function`; attention is held fixed."""
        self._fitted()
        check_texts([text])
        words = self.reader_.read([text])
        attention, parts = self.decision_.parts(words, self.generator_)
        scores = self.decision_.scores(words, self.generator_)[0]
        constants, probabilities = self.decision_.constants, self._probabilities(scores[None])[0]
        if self._binary:  # one score, that of the second class; the first has its negative
            parts, scores, constants = (
                np.stack([-difference, difference], -1) for difference in map(_difference, (parts, scores, constants))
            )
        answer = answers(self.kind_, self.classes_, scores[None])[0]
        return Explanation(
            text,
            answer,
            tuple(self.classes_.tolist()),
            tuple(probabilities.tolist()),
            tuple(scores.tolist()),
            tuple(constants.tolist()),
            tuple(self._word_parts(text, words, attention, parts)),
            int(probabilities.argmax()),
        )

    def _word_parts(self, text: str, words: Words, attention: Floats, parts: Floats) -> Iterator[WordPart]:
        """Every word of the text that was read; one without a vector has no part."""
        known = iter(zip((words.distinct[i] for i in words.texts.ids), attention.tolist(), parts.tolist(), strict=True))
        following = next(known, None)
        for word in tokenize(text, self.longest):
            share, contributions = 0.0, [0.0] * len(self.classes_)
            if following and following[0] == word.text:
                _, share, contributions = following
                following = next(known, None)
            yield WordPart(text[word.start : word.end], word.start, word.end, share, tuple(contributions))

    def suggest(self, pool: Iterable[str], n: int = 10) -> Ints:
        """Positions of the n texts of the pool to label next: together they stand for those that it is unsure of.

        Of a large pool an even sample is looked at.
        """
        texts = check_texts(pool)
        if n < 1:
            raise SettingError(f"n is {n}: ask for 1 text at least.")
        candidates = np.array(even_sample(range(len(texts)), max(CANDIDATES, n)), np.int64)
        chosen = [texts[i] for i in candidates]
        uncertain = uncertainty(self.predict_proba(chosen), self.kind_)
        vectors = [self.decision_.represent(words, self.generator_) for words in self.reader_.batches(chosen)]
        return candidates[representatives(np.concatenate(vectors), uncertain, n)] if vectors else candidates

    # Keeping it

    def save(self, folder: str | Path, keep_examples: bool = False) -> None:
        """Write a folder of plain files: all that is needed to predict, and the examples only if they are to be kept."""
        self._fitted()
        parameters = {name: getattr(self, name) for name in ("vectors", "language", "longest")}
        fitted = Fitted(
            parameters, self.classes_, self.kind_, self.decision_, self.generator_, self.reader_.counts, self.examples_
        )
        save_classifier(Path(folder), fitted, keep_examples)

    @classmethod
    def load(cls, folder: str | Path, vectors: str | None = None) -> FewShotClassifier:
        """Read such a folder, which may come from a stranger; `vectors` names the word vectors where they are a file."""
        fitted = load_classifier(Path(folder), vectors)
        classifier = cls(**fitted.parameters)
        classifier.classes_, classifier.kind_, classifier.decision_ = fitted.classes, fitted.kind, fitted.decision
        classifier.reader_ = Reader(**fitted.parameters, counts=fitted.counts)
        classifier.generator_, classifier.examples_ = fitted.generator, fitted.examples
        return classifier

    # scikit-learn's contract

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> FewShotClassifier:
        """Set arguments of the constructor."""
        for name, value in params.items():
            if name not in self._parameter_names():
                raise SettingError(f"There is no parameter {name!r}: choose of {', '.join(self._parameter_names())}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != signature[name].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "decision_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_label=True),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
        )


def check_texts(texts: Any) -> list[str]:
    """A list of strings, or an error that names the first thing in it that is not one."""
    if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable):
        raise DataError(f"The texts are {type(texts).__name__}, not a list of strings: give a list, also for one text.")
    found = list(texts)
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise DataError(f"Text {position} is {type(text).__name__}, not a string: give one string a text.")
    return found


def _lesson(examples: Examples, classes: Array, reader: Reader) -> Lesson:
    """The examples, and the names of classes as further ones."""
    names = Labels("one", np.array(list(examples.named))) if examples.named else None
    parts = [examples.labels.targets(classes)] + ([names.targets(classes)] if names else [])
    words = reader.read([*examples.texts, *examples.named.values()])
    return Lesson(words, np.concatenate(parts), examples.labels.kind == "one")


def _warn_of_repetition(examples: Examples) -> None:
    """Name an example that was given twice, and one that was given with different labels."""
    seen: dict[str, int] = {}
    twice: list[tuple[int, int]] = []
    contradicted: list[tuple[int, int]] = []
    for position, text in enumerate(examples.texts):
        before = seen.setdefault(text.strip() or str(position), position)  # texts without words have nothing to repeat
        if before != position:
            same = np.array_equal(examples.labels.values[before], examples.labels.values[position])
            (twice if same else contradicted).append((before, position))
    for pairs, what in ((twice, "given more than once"), (contradicted, "given with different labels")):
        if pairs:
            named = "; ".join(f"{examples.texts[a][:60]!r} (examples {a} and {b})" for a, b in pairs[:5])
            more = f" and {len(pairs) - 5} more" if len(pairs) > 5 else ""
            warnings.warn(f"Some texts are {what}: {named}{more}.", HandfulWarning, stacklevel=4)


def _difference(values: Floats) -> Floats:
    return values[..., 1] - values[..., 0]


def uncertainty(probabilities: Array, kind: str) -> Array:
    """0 where the answer is certain, 1 where it could as well be another."""
    if kind != "one":
        return 1 - np.abs(2 * probabilities - 1).min(axis=1)  # type: ignore[no-any-return]
    best = np.partition(probabilities, -2, axis=1)
    return 1 - (best[:, -1] - best[:, -2])  # type: ignore[no-any-return]


def even_sample(items: Iterable[Item], most: int) -> list[Item]:
    """The items in order if they are not too many, otherwise so many of them, each as likely as another, always the same."""
    rng, kept = np.random.default_rng(0), list[tuple[int, Item]]()
    for number, item in enumerate(items):
        place = number if number < most else int(rng.integers(number + 1))
        if place < most:
            kept[place : place + 1] = [(number, item)]
    return [item for _, item in sorted(kept, key=itemgetter(0))]


def representatives(vectors: Floats, weights: Array, n: int) -> Ints:
    """Positions of n vectors, one after the other that which adds most to the likeness of every vector to its nearest one.

    The likeness of two vectors is their cosine, without their mean and not below 0; a vector counts by its weight.
    """
    centred = vectors - vectors.mean(axis=0)
    unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), TINY)
    alike = np.maximum(unit @ unit.T, 0)  # (vectors, vectors)
    weights, nearest = weights.astype(np.float32), np.zeros(len(unit), np.float32)
    left, chosen = np.ones(len(unit), bool), []
    for _ in range(min(n, len(unit))):
        gain = weights @ np.maximum(alike - nearest[:, None], 0)
        best = int(np.argmax(np.where(left, gain, -1)))
        chosen.append(best)
        left[best] = False
        nearest = np.maximum(nearest, alike[:, best])
    return np.array(chosen, np.int64)


def _not_fitted_error() -> type[Exception]:
    """scikit-learn's error, which is one of Handful's too."""
    from sklearn.exceptions import NotFittedError

    return type("NotFittedError", (NotFittedError, HandfulError), {})
