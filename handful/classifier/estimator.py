"""FewShotClassifier: a classifier from a handful of examples that explains its answers, with scikit-learn's interface.

scikit-learn itself is imported only if it calls (`clone`, `check_estimator`) or if its own error is raised, so that a process
starts quickly.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..data.corpus import MAX_WORDS
from ..embeddings.encoders import encoder_names, find_encoder, known_name
from ..embeddings.words import WordLookup
from ..errors import DataError, HandfulError, ModelError, SettingError
from ..models.generator import DEFAULT_VECTORS, SHIPPED_GENERATOR, load_generator
from ..models.heads import ReadyHead
from ..models.sentence_encoder import SentenceEncoder, SentenceModel
from ..models.side_by_side import SideBySide
from ..models.text_encoders import AttentionBag, TextEncoder
from ..utils.functional import Ints
from ..utils.wording import listed
from .checks import check_example_positions, check_texts, check_weights, sample_unlabeled, warn_of_mistakes
from .explanation import Explanation, explain_text
from .fitted import FittedClassifier, fit_classifier
from .labels import Array, Examples, Labels, class_texts
from .storage import load_classifier, save_classifier
from .suggestion import suggest_texts

WORDS = "words"  # the encoder that ships: static word vectors with the method's attention
BESIDE = f"{WORDS}+"  # followed by the name of a sentence encoder: both, side by side


class FewShotClassifier:
    """Text classification with at least one example per class, without training, GPU or network.

    `encoder` turns texts into vectors: `words`, static word vectors with the method's attention, which needs no download; a
    sentence encoder by name, such as `handful`, or by its folder; `words+handful`, both side by side; or any object with
    `encode(texts)`, which returns one vector per text. The other settings are for `words`: `vectors` names word tables (see
    `handful.load_vectors`), `language` is the code of the language whose word frequencies serve as background, `max_words` is
    how many words of a text are read, and `generator` is the folder of an attention generator in place of the one that ships.

    >>> clf = FewShotClassifier().fit(["great food", "the train was late"], ["restaurant", "travel"])
    >>> clf.predict(["a tasty dinner"]).tolist()
    ['restaurant']
    """

    def __init__(
        self,
        vectors: str = DEFAULT_VECTORS,
        language: str = "en",
        max_words: int = MAX_WORDS,
        generator: str | Path | None = None,
        encoder: Any = WORDS,
    ) -> None:
        self.vectors, self.language, self.max_words, self.generator = vectors, language, max_words, generator
        self.encoder = encoder

    # Learning

    def fit(
        self,
        X: Iterable[str],  # noqa: N803 - scikit-learn's name
        y: Any = None,
        class_names: Mapping[Any, str] | Sequence[Any] | bool | None = None,
        unlabeled: Iterable[str] | None = None,
        sample_weight: Any = None,
    ) -> FewShotClassifier:
        """Learn from texts and their labels, and forget what was learned before.

        A label is a number or a string; a text may have several, as a list of labels each or as an indicator matrix.

        Labels that read as words, such as `card_arrival`, say what their classes are about. They are used unless
        `class_names=False`, as far as the examples confirm them. `class_names={label: words}` describes classes more fully; a
        list of labels that are words needs no examples at all.

        `unlabeled` are texts like those to be classified, such as an inbox. Those that are similar to the examples are
        assigned to classes, and the classifier learns from them too. An example of `sample_weight` 2 counts as two equal ones.
        """
        self._check_settings()
        texts, named = check_texts(X), class_texts(class_names, self.language)
        labels = Labels.of([] if y is None and named and not texts else y, len(texts))
        others = sample_unlabeled(check_texts([] if unlabeled is None else unlabeled), labels.format)
        language = None if class_names is False else self.language
        examples = Examples(texts, labels, named, check_weights(sample_weight, len(texts)), language, others)
        encoder = self._encoder()
        return self._learn(encoder, encoder.ready_head(), examples)

    def partial_fit(
        self,
        X: Iterable[str],  # noqa: N803
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> FewShotClassifier:
        """Learn from more examples, including examples of new classes: the same as `fit` on all examples together.

        `classes` is ignored: it is an argument because scikit-learn passes it.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight=sample_weight)
        fitted, known = self.fitted_, self._kept_examples("learn more")
        texts = check_texts(X)
        more = Examples(texts, Labels.of(y, len(texts)), {}, check_weights(sample_weight, len(texts)))
        return self._learn(fitted.encoder.encoder, fitted.head, known.joined(more))

    def remove_examples(self, positions: Sequence[int]) -> FewShotClassifier:
        """Forget the examples at these positions (of `examples_.texts`) and learn from the others."""
        fitted, known = self._fitted(), self._kept_examples("remove some of them")
        gone = check_example_positions(positions, len(known.texts))
        rest = known.select(np.setdiff1d(np.arange(len(known.texts)), gone))
        return self._learn(fitted.encoder.encoder, fitted.head, rest)

    def relabel(self, positions: Sequence[int], labels: Any) -> FewShotClassifier:
        """Give the examples at these positions (of `examples_.texts`) other labels, including new ones, and learn again."""
        fitted, known = self._fitted(), self._kept_examples("relabel some of them")
        changed = check_example_positions(positions, len(known.texts))
        labelled = known.relabelled(changed, Labels.of(labels, len(changed)))
        return self._learn(fitted.encoder.encoder, fitted.head, labelled)

    def _learn(self, encoder: TextEncoder, head: ReadyHead, examples: Examples) -> FewShotClassifier:
        warn_of_mistakes(encoder, examples)
        self.fitted_ = fit_classifier(encoder, head, examples)
        self.examples_: Examples | None = examples
        return self

    def _kept_examples(self, purpose: str) -> Examples:
        if self.examples_ is None:
            raise DataError(f"This classifier was saved without its examples: save it with `keep_examples=True` to {purpose}.")
        return self.examples_

    def _encoder(self) -> TextEncoder:
        if self.encoder == WORDS:
            return self._words()
        if isinstance(self.encoder, str) and self.encoder.startswith(BESIDE):
            return SideBySide(self._words(), _encoder_beside(self.encoder.removeprefix(BESIDE)))
        if self.vectors != DEFAULT_VECTORS:
            raise SettingError("`vectors` is for `encoder='words'`: remove one of the two.")
        return sentence_encoder(self.encoder)

    def _words(self) -> AttentionBag:
        model = load_generator(Path(self.generator) if self.generator else SHIPPED_GENERATOR)
        return AttentionBag(WordLookup(self.vectors, self.language, self.max_words), model)

    def _check_settings(self) -> None:
        if not isinstance(self.max_words, (int, np.integer)) or self.max_words < 1:
            raise SettingError(f"`max_words` is {self.max_words!r}: it must be at least 1.")
        for name in ("vectors", "language"):
            if not isinstance(getattr(self, name), str):
                raise SettingError(f"`{name}` is {getattr(self, name)!r}: it must be a name.")

    # Answering

    @property
    def classes_(self) -> Array:
        """The classes, in the order of the columns of probabilities."""
        return self.fitted_.classes

    def predict(
        self,
        X: Iterable[str],  # noqa: N803
        reject_below: float | None = None,
        threshold: float | None = None,
    ) -> Any:
        """The label of each text; None where the probability of the best one is below `reject_below`.

        If texts may have several labels: those whose probability is above `threshold`, which is learned by default.
        """
        fitted = self._fitted()
        single = fitted.label_format == "single"
        if reject_below is not None and not single:
            raise SettingError("`reject_below` is for texts that have one label each: use `threshold` for several labels.")
        if threshold is not None and single:
            raise SettingError("`threshold` is for texts that may have several labels: use `reject_below` for one label each.")
        for name, value in (("reject_below", reject_below), ("threshold", threshold)):
            if value is not None and not 0 <= value <= 1:
                raise SettingError(f"`{name}` is {value}: it must be a probability, from 0 to 1.")
        return fitted.predict(check_texts(X), reject_below if single else threshold)

    def predict_proba(self, X: Iterable[str]) -> Array:  # noqa: N803
        """The probability of each class: (texts, classes); those of a text sum to one, unless it may have several labels."""
        fitted = self._fitted()
        return fitted.probabilities(fitted.scores(check_texts(X)))

    def decision_function(self, X: Iterable[str]) -> Array:  # noqa: N803
        """Logits of the probabilities: (texts, classes); for two classes (texts,), the logit of the second class."""
        fitted = self._fitted()
        scores = fitted.scores(check_texts(X))
        return scores[:, 1] - scores[:, 0] if fitted.binary else scores

    def transform(self, X: Iterable[str]) -> Array:  # noqa: N803
        """The vectors of texts, as the classifier sees them: (texts, dimensions)."""
        return self._fitted().vectors(check_texts(X))

    def score(self, X: Iterable[str], y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of texts whose label is right, or all of whose labels are."""
        fitted, texts = self._fitted(), check_texts(X)
        truth = Labels.of(y, len(texts))
        if truth.format != fitted.label_format:
            raise DataError("The labels are of another kind than those of the examples: give labels of the same kind.")
        found = Labels(fitted.label_format, fitted.predict(texts)).values
        right = [np.array_equal(mine, other) for mine, other in zip(found, truth.values, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def _fitted(self) -> FittedClassifier:
        """The fitted state; each method takes it once, so that another thread may learn meanwhile."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted_error()("This FewShotClassifier is not fitted yet: call fit with examples before asking it.")
        return self.fitted_

    # Saying why, and what next

    @overload
    def explain(self, text: str) -> Explanation: ...  # type: ignore[overload-overlap]

    @overload
    def explain(self, text: Iterable[str]) -> list[Explanation]: ...

    def explain(self, text: str | Iterable[str]) -> Explanation | list[Explanation]:
        """Why a text, or each of several texts, gets its answer, word by word.

        An explanation has the attention of each word and its contribution to each class's `decision_function`.
        """
        fitted = self._fitted()
        if isinstance(text, str):
            return explain_text(fitted, text)
        return [explain_text(fitted, one) for one in check_texts(text)]

    def suggest(self, texts: Iterable[str], n: int = 10) -> Ints:
        """Positions of the n texts to label next: together they represent those that the classifier is unsure about.

        If there are many texts, an even sample is considered.
        """
        fitted, candidates = self._fitted(), check_texts(texts)
        if n < 1:
            raise SettingError(f"`n` is {n}: it must be at least 1.")
        return suggest_texts(fitted, candidates, n)

    # Keeping it

    def save(self, folder: str | Path, keep_examples: bool = False) -> None:
        """Write a folder of plain files: all that prediction needs, and the examples if `keep_examples`."""
        fitted = self._fitted()
        if keep_examples and self.examples_ is None:
            raise ModelError(
                "This classifier was loaded without examples, so it has none to keep: save without `keep_examples`."
            )
        save_classifier(Path(folder), fitted, self.examples_ if keep_examples else None)

    @classmethod
    def load(cls, folder: str | Path, vectors: str | None = None, encoder: Any = None) -> FewShotClassifier:
        """Read such a folder, which may come from an untrusted source.

        `vectors` is the file of word vectors, and `encoder` the object, if it was fitted with one of your own.
        """
        model = sentence_encoder(encoder).model if encoder is not None else None
        fitted, examples = load_classifier(Path(folder), vectors, model)
        classifier = cls(**_parameters(fitted.encoder.encoder, encoder))
        classifier.fitted_, classifier.examples_ = fitted, examples
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
                raise SettingError(f"There is no parameter {name!r}: choose one of {', '.join(self._parameter_names())}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != signature[name].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_label=True),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
        )


def _parameters(encoder: Any, given: Any) -> dict[str, Any]:
    """The arguments of the constructor that make a classifier with this encoder."""
    if isinstance(encoder, SentenceEncoder):
        return {"encoder": given if given is not None else encoder.name}
    if isinstance(encoder, SideBySide):
        return {"encoder": BESIDE + encoder.sentences.name, **_parameters(encoder.words, None)}
    lookup = encoder.lookup
    return {"vectors": lookup.vectors, "language": lookup.language, "max_words": lookup.max_words}


def sentence_encoder(encoder: Any) -> SentenceEncoder:
    """An encoder by its name, by its folder, or as an object with `encode(texts)`."""
    if isinstance(encoder, (str, Path)):
        return SentenceEncoder(Path(encoder).name, find_encoder(str(encoder)), named=str(encoder) in encoder_names())
    known = known_name(encoder)
    if known is not None:
        return SentenceEncoder(known, encoder, named=True)
    if not isinstance(encoder, SentenceModel):
        raise SettingError(f"encoder is {type(encoder).__name__}: give a name, a folder, or an object with encode(texts).")
    return SentenceEncoder(type(encoder).__name__, encoder, named=False)


def _encoder_beside(name: str) -> SentenceEncoder:
    if name not in encoder_names():
        raise SettingError(f"There is no encoder {name!r} to use next to words: choose {listed(encoder_names(), 'or')}.")
    return sentence_encoder(name)


def _not_fitted_error() -> type[Exception]:
    """scikit-learn's error, which is also one of Handful's."""
    from sklearn.exceptions import NotFittedError

    return type("NotFittedError", (NotFittedError, HandfulError), {})
