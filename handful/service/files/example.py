"""The example project, from the messages of the demonstration."""

from __future__ import annotations

import json

from ...utils.paths import resource
from .uploads import UploadedRow

EXAMPLE_NAME = "Example: messages to a town"
LABELLED = 1  # messages of each class that come with their label
NOTES = {  # the classes of the example, in the order of the demonstration, with what belongs to each
    "loan_renewal": "Wants to keep something borrowed for longer.",
    "hold_request": "Wants something that is lent out, or to be next in line.",
    "overdue_fine": "About a fine: why, how much, how to pay it.",
    "lost_or_damaged_item": "Lost or damaged something borrowed, and asks what now.",
    "study_room_booking": "Wants to book, change or find a room.",
    "repair_quote": "Asks what a repair would cost, before it is ordered.",
    "repair_status": "Asks how far a repair is. A repair that failed is not here.",
    "warranty_claim": "Wants a repair or a new one for free, under warranty.",
}


def _messages() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in resource("demo.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["label"], []).append(row["text"])
    return {name: found[name] for name in NOTES}


def example_notes() -> dict[str, str]:
    """The names of the classes, with a note on each."""
    return {name.replace("_", " "): note for name, note in NOTES.items()}


def example_rows() -> list[UploadedRow]:
    """The messages, mixed, one of each class with its label."""
    messages = _messages()
    mixed = zip(*messages.values(), strict=False)
    return [
        UploadedRow(text, name.replace("_", " ") if number < LABELLED else None, {})
        for number, row in enumerate(mixed)
        for name, text in zip(messages, row, strict=True)
    ]
