"""Tests on the benchmark files, where there are some. It is no conftest, since folders below have their own."""

from __future__ import annotations

import os

import pytest

REAL_DATA = os.environ.get("HANDFUL_DATA", "")
needs_real_data = pytest.mark.skipif(not REAL_DATA, reason="HANDFUL_DATA names no folder with the benchmark files")
