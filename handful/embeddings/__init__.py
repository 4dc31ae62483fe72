"""Vectors of words: packaged tables, files, several tables side by side, and contextual encoders."""

from __future__ import annotations

from .tables import SideBySide, WordVectors, load_vectors

__all__ = ["SideBySide", "WordVectors", "load_vectors"]
