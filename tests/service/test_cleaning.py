"""Probable mistakes, and agreement of people."""

from __future__ import annotations

import pytest

from handful.service.learning.agreement import cohen_kappa, krippendorff_alpha

from .studio import TEXTS, Studio


def items(studio: Studio, path: str, kind: str) -> list[list[int]]:
    return [one["texts"] for one in studio.get(f"{path}/cleaning/{kind}", params={"wait": True})["items"]]


def test_contradictions_and_duplicates_are_found_corrected_and_dismissed(studio: Studio) -> None:
    path = studio.labelled()
    studio.add(path, "The SOUP was tasty!", "they lost my luggage again today", "something else entirely")
    studio.label(path, 12, 2)
    assert items(studio, path, "contradictions") == [[0, 12]]
    found = studio.get(f"{path}/cleaning/contradictions")
    assert found["items"][0]["classes"] == [1, 2]
    assert found["texts"]["12"]["text"] == "The SOUP was tasty!"
    assert [0, 12] in items(studio, path, "duplicates")
    studio.label(path, 12, 1)
    assert items(studio, path, "contradictions") == []
    dismissal = {"kind": "duplicates", "item": "0:12"}
    for _ in range(2):
        studio.post(f"{path}/dismissals", dismissal, 204)
    assert [0, 12] not in items(studio, path, "duplicates")
    studio.ask("DELETE", f"{path}/dismissals", 204, params=dismissal)
    assert [0, 12] in items(studio, path, "duplicates")


def test_a_wrong_label_is_a_likely_mistake(studio: Studio) -> None:
    path = studio.labelled()
    rows = [{"text": f"the train and the bus came late on day {i}", "label": "travel"} for i in range(6)]
    rows.append({"text": "the train and the bus came late again", "label": "food"})
    studio.post(f"{path}/texts", {"texts": rows}, 201)
    assert items(studio, path, "mistakes")[0] == [18]
    found = studio.get(f"{path}/cleaning/mistakes", params={"wait": True})["items"][0]
    assert (found["class"], found["predicted"]) == (1, 2)
    assert found["probability"] > 0.5 > found["probability_of_label"]


def test_agreement_of_people(studio: Studio) -> None:
    path = studio.project(["a", "b"])
    studio.add(path, *TEXTS["food"])
    for name, labels in (("anna", [1, 1, 2, 2]), ("bob", [1, 2, 2, 2])):
        for text, number in enumerate(labels):
            studio.label(path, text, number, name=name)
    found = studio.get(f"{path}/agreement")
    [pair] = found["pairs"]
    assert (pair["annotators"], pair["texts"], pair["same"], pair["cohen_kappa"]) == (["anna", "bob"], 4, 3, 0.5)
    assert found["krippendorff_alpha"] == pytest.approx(1 - 2 / (8**2 - 3**2 - 5**2) * 7)
    assert found["texts_labelled_twice"] == 4


def test_krippendorffs_own_example() -> None:
    """Krippendorff (2011), nominal data, two observers."""
    meg = "aabbdcccedda"
    owen = "babbbccceddd"
    people = [dict(enumerate(values)) for values in (meg, owen)]
    assert krippendorff_alpha(people) == pytest.approx(0.692, abs=5e-4)


def test_the_example_of_four_observers_with_gaps() -> None:
    """Krippendorff (2011), nominal data, any number of observers, missing data."""
    observers = [
        {1: 1, 2: 2, 3: 3, 4: 3, 5: 2, 6: 1, 7: 4, 8: 1, 9: 2},
        {1: 1, 2: 2, 3: 3, 4: 3, 5: 2, 6: 2, 7: 4, 8: 1, 9: 2, 10: 5, 12: 3},
        {2: 3, 3: 3, 4: 3, 5: 2, 6: 3, 7: 4, 8: 2, 9: 2, 10: 5, 11: 1},
        {1: 1, 2: 2, 3: 3, 4: 3, 5: 2, 6: 4, 7: 4, 8: 1, 9: 2, 10: 5, 11: 1},
    ]
    assert krippendorff_alpha(observers) == pytest.approx(0.743, abs=5e-4)


def test_agreement_without_common_texts_or_differences() -> None:
    assert cohen_kappa({1: "a"}, {2: "a"}) is None
    assert cohen_kappa({1: "a"}, {1: "a"}) == 1.0
    assert krippendorff_alpha([{1: "a"}, {2: "a"}]) is None
    assert krippendorff_alpha([{1: "a"}, {1: "a"}]) == 1.0
