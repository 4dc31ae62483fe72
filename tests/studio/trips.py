"""Texts about three things, which tests label."""

from __future__ import annotations

SUBJECTS = {
    "food": (
        ["The soup", "My dinner", "The fresh bread", "That cake", "The breakfast", "A sandwich"],
        ["was tasty", "was cold"],
    ),
    "travel": (["The train", "My flight", "The night bus", "The ferry", "Our taxi", "A tram"], ["came late", "was cancelled"]),
    "money": (
        ["The bank fee", "My card payment", "The invoice", "A refund", "The tax", "My loan"],
        ["was wrong", "is missing"],
    ),
}
CLASSES = list(SUBJECTS)


def pairs() -> list[tuple[str, str]]:
    """All texts with their classes, mixed."""
    by_class = [
        [(f"{thing} {fate}.", name) for thing in things for fate in fates] for name, (things, fates) in SUBJECTS.items()
    ]
    return [pair for row in zip(*by_class, strict=True) for pair in row]


def texts() -> list[str]:
    return [text for text, _ in pairs()]


def truth(text: str) -> int:
    """The place of the class of a text."""
    return CLASSES.index(dict(pairs())[text])
