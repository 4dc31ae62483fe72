"""Explanations: which words of a text counted for its answer, shaded in a terminal or on a page."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.console import Group
from ..models.text_encoders import WordPart
from ..utils.shading import _html, shade, shade_html
from ..utils.terminal import console, one_line
from .fitted import FittedClassifier

STRONGEST = 5  # words listed under a text
NO_WORDS = "No word of this text is known, so the probabilities are the classes' prior."
LEFT_OUT = "A word's contribution is what the score would lose without it; these effects do not add up to the score."


@dataclass(frozen=True)
class Explanation:
    """Why a text got its answer, word by word.

    With word vectors the explanation is additive: the score of a class is its constant plus the contributions of the words,
    exactly. Attention is held fixed, and so is the length of the text's vector, so a contribution is a word's share of this
    score and not what would change if the word were removed: the other words would then get its attention. With a sentence
    encoder a contribution is that change.
    """

    text: str
    answer: Any
    classes: tuple[Any, ...]
    probabilities: tuple[float, ...]
    scores: tuple[float, ...]
    constants: tuple[float, ...]
    words: tuple[WordPart, ...]  # none if none of them is known
    about: int  # the position, in `classes`, of the class that shading is about: the most probable one
    additive: bool = True  # contributions add up to the scores; otherwise they are what the scores would lose without a word

    @property
    def note(self) -> str | None:
        """A sentence about how to read the explanation, if it needs one."""
        if not self.words:
            return NO_WORDS
        return None if self.additive else LEFT_OUT

    @property
    def _shares(self) -> np.ndarray[Any, Any]:
        return np.array([word.contributions[self.about] for word in self.words])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, by name."""
        return {
            "text": self.text,
            "answer": _plain(self.answer),
            "classes": [
                {"class": _plain(name), "probability": probability, "score": score, "constant": constant}
                for name, probability, score, constant in zip(
                    self.classes, self.probabilities, self.scores, self.constants, strict=True
                )
            ],
            "words": [
                {
                    "word": word.text,
                    "start": word.start,
                    "end": word.end,
                    "attention": word.attention,
                    "contributions": list(word.contributions),
                }
                for word in self.words
            ],
            "additive": self.additive,
            "note": self.note,
        }

    def to_json(self) -> str:
        """JSON, in ASCII, so that any text can be written."""
        return json.dumps(self.to_dict())

    def _headline(self) -> str:
        order = np.argsort(self.probabilities)[::-1][:3]
        return " · ".join(f"{one_line(self.classes[i])} {100 * self.probabilities[i]:.0f} %" for i in order)

    def _strongest(self) -> list[WordPart]:
        order = np.argsort(-np.abs(self._shares), kind="stable")[:STRONGEST]
        return [self.words[i] for i in order]

    def __str__(self) -> str:
        parts = ", ".join(f"{one_line(word.text)} {word.contributions[self.about]:+.2f}" for word in self._strongest())
        return "\n".join(line for line in (self._headline(), parts, self.note) if line)

    def __rich__(self) -> Group:
        """For a terminal: the text shaded by contribution to the most probable class, and the strongest words."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        spans = [(word.start, word.end) for word in self.words]
        table = Table("word", *["attention"] * self.additive, box=None)
        table.add_column(Text(f"for {one_line(self.classes[self.about])}"))
        for word in self._strongest():
            attention = [f"{100 * word.attention:.0f} %"] * self.additive
            row = one_line(word.text), *attention, f"{word.contributions[self.about]:+.2f}"
            table.add_row(*(Text(cell) for cell in row))
        shaded = shade(self.text, spans, self._shares)
        below = ([table] if self.words else []) + ([Text(self.note)] if self.note else [])
        return Group(shaded, Text(f"→ {self._headline()}", style="bold"), *below)

    def show(self) -> None:
        """Print it on the terminal."""
        console().print(self)

    def _repr_html_(self) -> str:
        """For a notebook: the same, with a word's numbers when the mouse is over it."""
        numbers = [
            f"attention {100 * word.attention:.1f} %, contribution {word.contributions[self.about]:+.3f}" for word in self.words
        ]
        shaded = shade_html(self.text, [(word.start, word.end) for word in self.words], self._shares, numbers)
        note = f"<div>{_html(self.note)}</div>" if self.note else ""
        return f'<div style="white-space:pre-wrap">{shaded}</div><div><b>→ {_html(self._headline())}</b></div>{note}'


def _plain(value: Any) -> Any:
    """A label as a JSON type."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def explain_text(fitted: FittedClassifier, text: str) -> Explanation:
    """Why a text gets its answer."""
    words = fitted.encoder.word_parts(text, fitted.scorer, fitted.calibration.slopes)
    scores, prior = fitted.scores([text]), fitted.calibration.shift
    probabilities = fitted.probabilities(scores)
    answer = fitted.labels(fitted.choose(probabilities))[0]
    if fitted.binary:  # one score, that of the second class; the first has its negative
        scores, prior = _against(scores), _against(prior)
        words = [replace(word, contributions=tuple(_against(np.array(word.contributions)).tolist())) for word in words]
    known = any(word.attention or any(word.contributions) for word in words)  # an encoder of sentences gives no attention
    return Explanation(
        text,
        answer,
        tuple(fitted.classes.tolist()),
        tuple(probabilities[0].tolist()),
        tuple(scores[0].tolist()),
        tuple(prior.tolist()),
        tuple(words) if known else (),
        int(probabilities[0].argmax()),
        fitted.encoder.additive,
    )


def _against(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values of two classes as their difference: that of the first from the second, and the reverse."""
    difference = values[..., 1] - values[..., 0]
    return np.stack([-difference, difference], -1)
