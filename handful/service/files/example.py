"""The example project, from the messages of the demonstration."""

from __future__ import annotations

import json

from ...utils.paths import resource
from .uploads import UploadedRow

EXAMPLE_NAME = "Example: messages to a town"
CLASSES, LABELLED = 8, 1  # classes of the demonstration, and labelled messages of each


def _messages() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in resource("demo.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["label"], []).append(row["text"])
    return dict(list(found.items())[:CLASSES])


def example_classes() -> dict[str, str]:
    """The names of the classes, with the words that describe them."""
    return {name.replace("_", " "): name.replace("_", " ") for name in _messages()}


def example_rows() -> list[UploadedRow]:
    """The messages, mixed, one of each class with its label."""
    messages = _messages()
    mixed = zip(*messages.values(), strict=False)
    return [
        UploadedRow(text, name.replace("_", " ") if number < LABELLED else None, {})
        for number, row in enumerate(mixed)
        for name, text in zip(messages, row, strict=True)
    ]
