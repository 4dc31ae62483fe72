"""The summaries on the pages are those of the results files."""

from __future__ import annotations

import pytest
import summary


@pytest.mark.parametrize("page", summary.PAGES, ids=lambda page: page.name)
def test_no_number_is_copied_by_hand(page) -> None:
    text = page.read_text("utf-8")
    assert summary.replaced(text) == text, "run python benchmarks/summary.py --write"
    assert text.count("<!-- begin ") == text.count("<!-- end ") > 0


def test_the_best_of_a_column_is_bold() -> None:
    lines = summary.classifier_table("banking77")
    best = max(float(line.split("|")[3].strip(" *").split()[0]) for line in lines[2:] if line.split("|")[3].strip())
    assert f"**{best}" in "".join(lines)
