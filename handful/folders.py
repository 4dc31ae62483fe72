"""Where files of the user's own lie: made vectors, downloads, data sets."""

from __future__ import annotations

import os
from pathlib import Path

DATA_VARIABLE = "HANDFUL_DATA"


def cache_folder() -> Path:
    """Where made and downloaded files are kept: HANDFUL_CACHE, or the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HANDFUL_CACHE") or Path(base) / "handful")


def data_folder() -> Path:
    """Where data sets lie: HANDFUL_DATA, or `data` in the cache folder."""
    return Path(os.environ.get(DATA_VARIABLE) or cache_folder() / "data")
