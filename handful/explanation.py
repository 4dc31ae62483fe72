"""Showing which words counted: a text with each word shaded by its weight, and an answer word by word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

FOR = (190, 90, 0)  # orange: over bare paper an ordered scale, in grey and in print too
AGAINST = (50, 120, 195)  # blue, for a word that speaks against; black and white words are both legible on either
STRONGEST = 5  # words listed under a text


def strengths(weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Each weight beside the heaviest one, from -1 to 1."""
    shares: np.ndarray[Any, Any] = weights / max(float(np.abs(weights).max(initial=0)), 1e-12)
    return shares


def colours(weights: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """Red, green and blue of each weight on white paper."""
    mixed = [255 + abs(share) * (np.array(FOR if share >= 0 else AGAINST) - 255) for share in strengths(weights)]
    return [(int(red), int(green), int(blue)) for red, green, blue in mixed]


def shade(text: str, spans: Sequence[tuple[int, int]], weights: np.ndarray[Any, Any]) -> Text:
    """The text for a terminal, the word at each span on a background as strong as its weight: orange, or blue below 0."""
    from rich.text import Text

    shaded = Text(text)
    for (start, end), (red, green, blue) in zip(spans, colours(weights), strict=True):
        shaded.stylize(f"black on rgb({red},{green},{blue})", start, end)
    return shaded


def shade_html(text: str, spans: Sequence[tuple[int, int]], weights: np.ndarray[Any, Any], numbers: Sequence[str]) -> str:
    """The same for a web page, light or dark, with a word's numbers when the mouse is over it."""
    pieces, done = [], 0
    for (start, end), share, note in zip(spans, strengths(weights), numbers, strict=True):
        red, green, blue = FOR if share >= 0 else AGAINST
        style = f"background:rgba({red},{green},{blue},{abs(share):.2f})"
        pieces.append(_html(text[done:start]))
        pieces.append(f'<span style="{style}" title="{_html(note)}">{_html(text[start:end])}</span>')
        done = end
    return "".join([*pieces, _html(text[done:])])


@dataclass(frozen=True)
class WordPart:
    """A word of a text as it is spelled there, its attention, and what it adds to the score of each class."""

    text: str
    start: int
    end: int
    attention: float
    contributions: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """Why a text got its answer: the score of a class is its constant plus the contributions of the words, exactly.

    Attention is held fixed, and so is the length of the text's vector: a contribution is a word's part in this sum, not what
    would change if the word were removed, for then the other words would get its attention.
    """

    text: str
    answer: Any
    classes: tuple[Any, ...]
    probabilities: tuple[float, ...]
    scores: tuple[float, ...]
    constants: tuple[float, ...]
    words: tuple[WordPart, ...]
    about: int  # the position, in `classes`, of the class that shading is about: the most probable one

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
        }

    def to_json(self) -> str:
        """JSON, in ASCII, so that any text can be written."""
        return json.dumps(self.to_dict())

    def _headline(self) -> str:
        order = np.argsort(self.probabilities)[::-1][:3]
        return " · ".join(f"{self.classes[i]} {100 * self.probabilities[i]:.0f} %" for i in order)

    def _strongest(self) -> list[WordPart]:
        order = np.argsort(-np.abs(self._shares), kind="stable")[:STRONGEST]
        return [self.words[i] for i in order]

    def __str__(self) -> str:
        parts = ", ".join(f"{_printable(word.text)} {word.contributions[self.about]:+.2f}" for word in self._strongest())
        return f"{self._headline()}\n{parts}"

    def __rich__(self) -> Group:
        """For a terminal: the text shaded by contribution to the most probable class, and the strongest words."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        spans = [(word.start, word.end) for word in self.words]
        table = Table("word", "attention", f"for {self.classes[self.about]}", box=None)
        for word in self._strongest():
            row = _printable(word.text), f"{100 * word.attention:.0f} %", f"{word.contributions[self.about]:+.2f}"
            table.add_row(*(Text(cell) for cell in row))
        shaded = shade(_printable(self.text), spans, self._shares)
        return Group(shaded, Text(f"→ {self._headline()}", style="bold"), table)

    def show(self) -> None:
        """Print it on the terminal."""
        from rich.console import Console

        Console(highlight=False).print(self)

    def _repr_html_(self) -> str:
        """For a notebook: the same, with a word's numbers when the mouse is over it."""
        numbers = [
            f"attention {100 * word.attention:.1f} %, contribution {word.contributions[self.about]:+.3f}" for word in self.words
        ]
        shaded = shade_html(self.text, [(word.start, word.end) for word in self.words], self._shares, numbers)
        return f'<div style="white-space:pre-wrap">{shaded}</div><div><b>→ {_html(self._headline())}</b></div>'


def _plain(value: Any) -> Any:
    """A label as a JSON type."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _printable(text: str) -> str:
    """As many characters as the text, none of which a terminal would obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _html(text: str) -> str:
    return escape(text.encode("utf-8", "replace").decode())
