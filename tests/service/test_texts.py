"""The table of texts: search, filters, order and pages."""

from __future__ import annotations

from typing import Any

import pytest

from handful.service.settings import Limits
from handful.service.store.texts import words_digest

from .studio import TEXTS, MakeStudio, Studio


def found(studio: Studio, path: str, **query: Any) -> list[int]:
    return [one["id"] for one in studio.get(f"{path}/texts", params=query)["texts"]]


@pytest.fixture(scope="module")
def path(studio: Studio) -> str:
    path = studio.labelled()
    studio.add(path, "Ein Stück GRÜNE Seife", "50% off_now", "ｗｉｄｅ letters", "a\nbreak  and   spaces")
    return path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("grüne", [12]),
        ("50%", [13]),
        ("off_", [13]),
        ("WIDE", [14]),
        ("break and spaces", [15]),
        ("'; drop table", []),
        ("\\", []),
    ],
)
def test_search_is_by_letters_not_by_case_and_knows_no_patterns(studio: Studio, path: str, words: str, expected: list) -> None:
    assert found(studio, path, search=words) == expected


def test_filters_and_pages(studio: Studio, path: str) -> None:
    assert found(studio, path, state="labelled", **{"class": 2}) == [4, 5, 6, 7]
    assert found(studio, path, state=["open", "none"]) == [12, 13, 14, 15]
    assert found(studio, path, annotator="import", search="was") == [0, 7, 9]
    assert found(studio, path, sort="-id", limit=2, offset=1) == [14, 13]
    page = studio.get(f"{path}/texts", params={"search": "send me", "limit": 1})
    assert (page["total"], len(page["texts"])) == (1, 1)
    assert found(studio, path, offset=1000) == []


def test_predictions_filter_and_sort(studio: Studio, path: str) -> None:
    page = studio.get(f"{path}/texts", params={"sort": "-confidence", "wait": True, "limit": 100})
    shares = [one["prediction"]["probability"] for one in page["texts"]]
    assert shares == sorted(shares, reverse=True)
    assert page["prediction_version"] == studio.get(path)["version"]
    travel = studio.get(f"{path}/texts", params={"predicted": 2, "min_confidence": 0.5, "wait": True})["texts"]
    assert {4, 5, 6, 7} <= {one["id"] for one in travel}
    assert all(one["prediction"]["class"] == 2 and one["prediction"]["probability"] >= 0.5 for one in travel)
    assert found(studio, path, predicted=2, search="luggage", wait=True) == [6]
    assert found(studio, path, max_confidence=0.0, wait=True) == []


def test_without_classes_there_are_no_predictions(studio: Studio) -> None:
    path = studio.project()
    studio.add(path, "hello")
    assert studio.get(f"{path}/texts", params={"wait": True})["texts"][0]["prediction"] is None
    assert "two classes" in studio.error("GET", f"{path}/texts", 409, params={"sort": "confidence"})


def test_the_last_labelled_come_first(studio: Studio) -> None:
    path = studio.project(["a", "b"])
    studio.add(path, *TEXTS["food"])
    for number in (2, 0, 3):
        studio.label(path, number, 1)
    assert found(studio, path, sort="recent") == [3, 0, 2]


def test_texts_are_added_with_labels_and_other_columns_and_removed(studio: Studio) -> None:
    path = studio.project()
    rows = [{"text": "hello", "label": "greeting", "extra": {"ticket": 7}}, {"text": "bye"}]
    assert studio.post(f"{path}/texts", {"texts": rows}, 201)["first"] == 0
    facts = studio.text(path, 0)
    assert (facts["extra"], facts["class"], facts["labels"][0]["annotator"]) == ({"ticket": 7}, 1, "import")
    assert studio.request("DELETE", f"{path}/texts/0").status_code == 204
    assert "no text 0" in studio.error("GET", f"{path}/texts/0", 404)
    studio.error("DELETE", f"{path}/texts/0", 404)
    studio.add(path, "more")
    assert found(studio, path) == [1, 2]


@pytest.mark.parametrize(
    ("texts", "status", "words"),
    [
        ([], 422, "at least 1"),
        ([{"text": " "}], 422, "empty"),
        ([{"text": "a\0b"}], 422, "zero bytes"),
        ([{"text": "x" * 101}], 422, "101 characters"),
        ([{"text": "x"}] * 6, 413, "6 texts"),
        ([{"text": "x", "label": ""}], 422, "label"),
        ([{"txt": "x"}], 422, "txt"),
    ],
)
def test_texts_beyond_the_limits_are_refused(make_studio: MakeStudio, texts: list, status: int, words: str) -> None:
    studio = make_studio(Limits(texts_per_request=5, characters_per_text=100))
    path = studio.project()
    answer = studio.request("POST", f"{path}/texts", json={"texts": texts})
    assert answer.status_code == status
    assert words in answer.text
    assert studio.get(path)["texts"] == 0


def test_a_project_does_not_grow_beyond_its_limit(make_studio: MakeStudio) -> None:
    studio = make_studio(Limits(texts_per_project=3))
    path = studio.project()
    studio.add(path, "one", "two")
    assert "more than 3 texts" in studio.error("POST", f"{path}/texts", 413, json={"texts": [{"text": "x"}, {"text": "y"}]})
    assert (studio.get(path)["texts"], studio.get(path)["importing"]) == (2, False)
    studio.add(path, "three")


def test_texts_without_words_have_digests_of_their_own() -> None:
    assert words_digest("!!!") != words_digest("???")
    assert words_digest("Grüße, Welt") == words_digest("grüße welt!")


def test_some_texts_are_read_by_their_numbers(studio: Studio) -> None:
    path = studio.labelled(2)
    found = studio.get(f"{path}/texts", params={"id": [3, 1, 10_000]})
    assert [one["id"] for one in found["texts"]] == [3, 1]
    assert found["total"] == 2
