"""Predictions, explanations, what comes next, and how good the model is."""

from __future__ import annotations

import numpy as np
import pytest

from handful import FewShotClassifier
from handful.service.learning.models import even_by_class
from handful.service.learning.queue import Leases
from handful.service.learning.snapshot import near_duplicates, principal_map
from handful.service.learning.validation import spread, wilson
from handful.service.store.texts import LabelledText

from .studio import TEXTS, Studio


def test_names_alone_predict_and_labels_teach(studio: Studio) -> None:
    path = studio.project(["weather", "football"])
    ask = {"texts": ["it will rain tomorrow"]}
    assert studio.post(f"{path}/predict", ask)["answers"][0]["label"] == "weather"
    studio.add(path, "it will rain on the pitch")
    studio.label(path, 0, 2)
    studio.ask("PATCH", path, json={"use_class_names": False})
    assert "two classes" in studio.error("POST", f"{path}/predict", 409, json=ask)
    studio.add(path, "sun and wind")
    studio.label(path, 1, 1)
    assert studio.post(f"{path}/predict", ask)["answers"][0]["label"] == "football"


def test_predictions_are_those_of_the_library(studio: Studio) -> None:
    path = studio.labelled()
    studio.ask("PATCH", path, json={"use_class_names": False})
    texts = [text for label in TEXTS for text in TEXTS[label]]
    clf = FewShotClassifier().fit(texts, [label for label in TEXTS for _ in TEXTS[label]])
    asked = ["where is my train", "a slice of cake"]
    answers = studio.post(f"{path}/predict", {"texts": asked, "top_k": 2})["answers"]
    for answer, row in zip(answers, clf.predict_proba(asked), strict=True):
        assert [one["label"] for one in answer["classes"]] == clf.classes_[np.argsort(-row)[:2]].tolist()
        assert answer["classes"][0]["probability"] == pytest.approx(row.max())
    rejected = studio.post(f"{path}/predict", {"texts": asked, "reject_below": 1.0})["answers"]
    assert [one["label"] for one in rejected] == [None, None]


def test_explanations_name_words_and_classes(studio: Studio) -> None:
    path = studio.labelled()
    facts = studio.post(f"{path}/explain", {"text": "a lovely train"})
    assert [one["label"] for one in facts["classes"]] == ["food", "money", "travel"]
    assert [one["class"] for one in facts["classes"]] == [1, 3, 2]
    assert [one["word"] for one in facts["words"]] == ["a", "lovely", "train"]
    assert studio.post(f"{path}/explain", {"id": 0})["text"] == TEXTS["food"][0]
    for body in ({}, {"id": 0, "text": "x"}):
        assert "either" in studio.error("POST", f"{path}/explain", 422, json=body)
    studio.error("POST", f"{path}/explain", 404, json={"id": 999})


@pytest.mark.parametrize("strategy", ["suggest", "uncertain", "random", "order"])
def test_next_gives_what_is_open_and_never_what_one_has(studio: Studio, strategy: str) -> None:
    path = studio.labelled(2, unlabelled=6)
    query = {"strategy": strategy, "count": 4}
    first = studio.get(f"{path}/next", params=query)["texts"]
    assert len({one["id"] for one in first}) == 4
    assert all(one["state"] == "open" and one["classes"][0]["label"] for one in first)
    studio.post(f"{path}/labels", {"texts": [first[0]["id"]], "mark": "skip"})
    rest = studio.get(f"{path}/next", params=query | {"exclude": [first[1]["id"]]})["texts"]
    assert not {first[0]["id"], first[1]["id"]} & {one["id"] for one in rest}
    assert len(rest) == 4


def test_next_by_search_in_order_of_the_test_set_and_for_a_second_person(studio: Studio) -> None:
    path = studio.labelled(2, unlabelled=4)
    ask = {"count": 10}

    def ids(strategy: str, name: str | None = None, **query: str) -> list[int]:
        found = studio.get(f"{path}/next", params=ask | {"strategy": strategy, **query}, name=name)["texts"]
        return [one["id"] for one in found]

    assert ids("order") == [6, 7, 8, 9]
    assert ids("search", search="cake") == [9]
    assert ids("second", "bob") == [0, 1, 2, 3, 4, 5]
    studio.label(path, 0, 2, name="bob")
    assert ids("second", "bob") == [1, 2, 3, 4, 5]
    assert ids("disputed") == [0]
    assert studio.post(f"{path}/test-set", {"size": 2}, 201)["drawn"] == 2
    drawn = ids("test")
    assert len(drawn) == 2
    assert not set(drawn) & set(ids("order"))
    explained = studio.get(f"{path}/next", params={"strategy": "order", "explain": True})["texts"][0]["explanation"]
    assert len(explained["words"][0]["contributions"]) == 3


def test_two_people_do_not_get_the_same_suggestions(studio: Studio) -> None:
    path = studio.labelled(2, unlabelled=12)
    one, other = (
        {text["id"] for text in studio.get(f"{path}/next", params={"count": 4}, name=name)["texts"]} for name in ("anna", "bob")
    )
    assert not one & other


def test_leases_end(monkeypatch: pytest.MonkeyPatch) -> None:
    leases, now = Leases(), [0.0]
    monkeypatch.setattr("handful.service.learning.queue.time.monotonic", lambda: now[0])
    leases.take("p", "anna", [1, 2])
    assert leases.free("p", "bob", [1, 2, 3]) == [3]
    assert leases.free("p", "anna", [1, 2, 3]) == [1, 2, 3]
    now[0] = 121
    assert leases.free("p", "bob", [1, 2, 3]) == [1, 2, 3]


def test_accuracy_is_left_out_then_of_the_test_set(studio: Studio) -> None:
    path = studio.labelled(4, unlabelled=12)
    found = studio.get(f"{path}/accuracy", params={"wait": True})
    estimate = found["estimate"]
    assert (estimate["method"], estimate["texts"], found["current"]) == ("leave-one-out", 12, True)
    assert estimate["accuracy"]["low"] < estimate["accuracy"]["value"] <= estimate["accuracy"]["high"]
    wrong = sum(one["count"] for one in estimate["confusion"])
    assert estimate["accuracy"]["value"] == pytest.approx(1 - wrong / 12)
    assert [one["texts"] for one in estimate["classes"]] == [4, 4, 4]
    studio.post(f"{path}/test-set", {"size": 10}, 201)
    tests = [one["id"] for one in studio.get(f"{path}/texts", params={"test": True})["texts"]]
    studio.post(f"{path}/labels", {"texts": tests, "class": 1})
    estimate = studio.get(f"{path}/accuracy", params={"wait": True})["estimate"]
    assert (estimate["method"], estimate["texts"]) == ("test set", 10)
    assert estimate["accuracy"]["value"] > 0.8
    assert studio.get(path)["test_set"] == {"texts": 10, "labelled": 10}
    assert studio.request("DELETE", f"{path}/test-set").status_code == 204
    assert studio.get(f"{path}/accuracy", params={"wait": True})["estimate"]["texts"] == 22


def test_the_learning_curve_grows_with_the_labels(studio: Studio) -> None:
    path = studio.labelled()
    points = studio.get(f"{path}/curve", params={"wait": True})["points"]
    assert [one["labels"] for one in points] == sorted({one["labels"] for one in points})
    assert points[-1]["labels"] == 12
    assert all(one["low"] <= one["value"] <= one["high"] for one in points)


def test_an_empty_project_has_no_estimate_and_no_curve(studio: Studio) -> None:
    path = studio.project()
    assert studio.get(f"{path}/accuracy", params={"wait": True})["estimate"] is None
    assert studio.get(f"{path}/curve", params={"wait": True})["points"] == []
    assert studio.get(f"{path}/next")["texts"] == []
    studio.error("GET", f"{path}/map", 409)
    assert "import more" in studio.error("POST", f"{path}/test-set", 409, json={"size": 5})


def test_the_map_has_a_point_for_each_text(studio: Studio) -> None:
    path = studio.labelled(4, unlabelled=4)
    found = studio.get(f"{path}/map", params={"wait": True})
    assert found["id"] == list(range(16))
    assert found["class"][:4] == [1] * 4
    assert found["class"][12:] == [-1] * 4
    assert max(map(abs, [*found["x"], *found["y"]])) == 1.0
    assert len(studio.get(f"{path}/map", params={"wait": True, "limit": 5})["id"]) == 5


def test_the_axes_of_a_map_are_the_principal_ones() -> None:
    rng = np.random.default_rng(3)
    points = rng.normal(size=(300, 2)) * [10, 3]
    vectors = (points @ np.linalg.qr(rng.normal(size=(20, 2)))[0].T + 5).astype(np.float32)
    found = principal_map(vectors)
    assert abs(np.corrcoef(found[:, 0], points[:, 0])[0, 1]) > 0.999
    assert abs(np.corrcoef(found[:, 1], points[:, 1])[0, 1]) > 0.999
    assert principal_map(vectors[:2]).tolist() == [[0, 0], [0, 0]]


def test_near_duplicates_are_found_among_many() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5000, 128)).astype(np.float32)
    vectors[4000:4100] = vectors[:100] + 0.1 * rng.normal(size=(100, 128))
    vectors[7] = 0
    found = near_duplicates(vectors.astype(np.float16))
    expected = {(i, 4000 + i) for i in range(100) if i != 7}
    assert len(expected & {(a, b) for a, b, _ in found}) >= 95
    assert all((a, b) in expected for a, b, _ in found)


def test_an_even_sample_keeps_small_classes_whole() -> None:
    labelled = [LabelledText(i, "", 1 if i < 90 else 2 if i < 97 else 3, False) for i in range(100)]
    kept = even_by_class(labelled, 30)
    assert [sum(one.label == label for one in kept) for label in (1, 2, 3)] == [20, 7, 3]
    assert even_by_class(labelled, 100) == labelled


def test_folds_spread_the_examples_of_a_class() -> None:
    parts = spread(["a"] * 10 + ["b"] * 10, 5)
    assert sorted(parts[:10]) == sorted([0, 1, 2, 3, 4] * 2)
    assert np.bincount(spread(["a", "b", "c"] * 20, 20)).tolist() == [3] * 20


def test_intervals_stay_between_0_and_1() -> None:
    for right, total in ((0, 1), (1, 1), (0, 50), (50, 50)):
        interval = wilson(right, total)
        assert 0 <= interval.low <= interval.value <= interval.high <= 1
