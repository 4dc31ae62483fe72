"""Checks of what a caller gives: texts, weights and positions, with warnings about examples that are probably mistakes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.checks import check_examples
from ..errors import DataError, HandfulWarning
from ..models.text_encoders import TextEncoder
from ..utils.functional import Floats, Ints
from ..utils.sampling import even_sample
from .labels import Examples

NAMED = 5  # examples that a warning names
CALLER = 4  # frames from a warning to the line that called fit
MOST_UNLABELED = 50_000  # texts: bounds memory and time


def check_texts(texts: Any) -> list[str]:
    """A list of strings, or an error that names the first item that is not a string."""
    if hasattr(texts, "columns") and hasattr(texts, "shape"):
        named = ", ".join(map(str, list(texts.columns)[:10]))
        raise DataError(f"The texts are a table with the columns {named}: pass the column with the texts, as in table['text'].")
    if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable):
        raise DataError(f"The texts are {type(texts).__name__}, not a list of strings: give a list, even for one text.")
    found = list(texts)
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise DataError(f"Text {position} is {type(text).__name__}, not a string: give one string per text.")
    return found


def sample_unlabeled(texts: list[str], label_format: str) -> list[str]:
    """At most MOST_UNLABELED different texts; a warning says so if there are more, or if they cannot be used."""
    if texts and label_format != "single":
        sentence = "`unlabeled` texts are used only if each text has one label: they are ignored."
        warnings.warn(sentence, HandfulWarning, stacklevel=CALLER - 1)
        return []
    different = list(dict.fromkeys(texts))
    if len(different) > MOST_UNLABELED:
        sentence = f"There are {len(different):,} unlabelled texts: an even sample of {MOST_UNLABELED:,} is used."
        warnings.warn(sentence, HandfulWarning, stacklevel=CALLER - 1)
    return even_sample(different, MOST_UNLABELED)


def check_weights(sample_weight: Any, texts: int) -> Floats:
    """A weight above 0 for each text, 1 by default."""
    if sample_weight is None:
        return np.ones(texts, np.float32)
    weights = np.asarray(sample_weight, np.float32)
    if weights.shape != (texts,):
        raise DataError(f"Found {texts} texts and sample_weight of shape {weights.shape}: give one weight per text.")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise DataError("sample_weight has a weight that is not above 0: remove such examples.")
    return weights


def check_example_positions(positions: Sequence[int], examples: int) -> Ints:
    """Different positions of examples."""
    found = np.asarray(positions, np.int64).ravel()
    wrong = found[(found < 0) | (found >= examples)]
    if len(wrong):
        raise DataError(f"There is no example at position {wrong[0]}: there are {examples}, counted from 0.")
    if len(np.unique(found)) < len(found):
        raise DataError("A position is given twice: give each position once.")
    return found


def warn_of_mistakes(encoder: TextEncoder, examples: Examples) -> None:
    """Warn about probable mistakes in labels and texts, and about how the texts are read."""
    labels = [] if examples.labels.format == "indicator" else examples.labels.values
    notes = encoder.reading_notes([*examples.texts, *examples.named.values()])
    for sentence in (*check_examples(examples.texts, labels), *_repetitions(examples), *notes):
        warnings.warn(sentence, HandfulWarning, stacklevel=CALLER)


def _repetitions(examples: Examples) -> Iterator[str]:
    """Sentences that name examples given twice, and examples given with different labels."""
    seen: dict[str, int] = {}
    twice: list[tuple[int, int]] = []
    contradicted: list[tuple[int, int]] = []
    for position, text in enumerate(examples.texts):
        before = seen.setdefault(text.strip() or str(position), position)  # empty texts are not repetitions
        if before != position:
            same = np.array_equal(examples.labels.values[before], examples.labels.values[position])
            (twice if same else contradicted).append((before, position))
    for pairs, what in ((twice, "given more than once"), (contradicted, "given with different labels")):
        if pairs:
            named = "; ".join(f"{examples.texts[a][:60]!r} (examples {a} and {b})" for a, b in pairs[:NAMED])
            more = f" and {len(pairs) - NAMED} more" if len(pairs) > NAMED else ""
            yield f"Some texts are {what}: {named}{more}."
