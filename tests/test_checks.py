from __future__ import annotations

import numpy as np
import pytest

from handful.data.checks import check_examples
from handful.errors import DataError


def test_sound_examples_give_no_warning() -> None:
    assert check_examples(["a", "b", "c"], ["Billing", "delivery", "Billing"]) == []
    assert check_examples(["a", "b"], [1, 11]) == []
    assert check_examples(["a", "b"], [["x", "y"], []]) == []


def test_labels_that_differ_by_spaces_or_case_are_named() -> None:
    labels = ["Billing", "billing", "late parcel", "late  parcel ", "LATE\u00a0PARCEL", "other", "Billing"]
    [warning] = check_examples(["text"] * len(labels), labels)
    assert warning == (
        "Some labels differ only in spaces or case but count as different classes "
        "('Billing' and 'billing', 'late parcel' and 'late  parcel ' and 'LATE\\xa0PARCEL'): spell them alike."
    )


def test_labels_in_lists_and_arrays_are_compared_too() -> None:
    assert "('x' and 'X ')" in check_examples(["a", "b"], [["x", "y"], ["X "]])[0]
    assert "('x' and 'X')" in check_examples(["a", "b"], np.array(["x", "X"]))[0]


def test_of_many_pairs_only_the_first_are_named() -> None:
    labels = [form for name in "abcde" for form in (name, name.upper())]
    [warning] = check_examples(["text"] * 10, labels)
    assert "('a' and 'A', 'b' and 'B', 'c' and 'C' and 2 more)" in warning


@pytest.mark.parametrize("labels", [["a", "b", ""], ["a", "b", " \t"], [["a"], ["b"], ["c", " "]]])
def test_a_blank_label_is_an_error_with_its_position(labels: list) -> None:
    with pytest.raises(DataError, match=r"^Label 2 is blank: give its text a label, or remove the text\.$"):
        check_examples(["x", "y", "z"], labels)


def test_empty_texts_are_counted_and_the_first_named() -> None:
    texts = ["a", "", "b", " \n", "\u3000", "c", "", ""]
    [warning] = check_examples(texts, list("xyxyxyxy"))
    assert warning == "5 of 8 texts are empty (examples 1, 3, 4 and 2 more): remove such texts, or fill them in."


def test_one_call_can_warn_of_several_things() -> None:
    assert len(check_examples(["a", ""], ["x", "X"])) == 2
