"""Words to vectors: packaged tables, files, and several of them side by side."""

from __future__ import annotations

from .tables import SideBySide, WordVectors, load_vectors

__all__ = ["SideBySide", "WordVectors", "load_vectors"]
