"""Names that the store writes: roles, states and marks."""

from __future__ import annotations

from typing import Literal

Role = Literal["read", "label", "admin"]
Mark = Literal["class", "skip", "unsure", "none"]
TextState = Literal["open", "labelled", "skipped", "unsure", "none", "disputed"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
ROLES: tuple[Role, ...] = ("read", "label", "admin")  # each may do what those before it may
MARKS: tuple[Mark, ...] = ("class", "skip", "unsure", "none")
STATES: tuple[TextState, ...] = ("open", "labelled", "skipped", "unsure", "none", "disputed")
LOCAL = "local"  # the account of the person who started the server
