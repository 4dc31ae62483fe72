"""Texts that have several labels: answers that are not empty, probabilities that can be believed, a threshold to choose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import needs_real_data
from several_labels import make_task, micro_f1, one_vs_rest, ours, texts_by_class

from handful import FewShotClassifier
from handful.classifier.calibration import best_threshold
from handful.errors import SettingError

pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")  # texts are drawn more than once


@pytest.mark.parametrize(("ways", "shots"), [(10, 5), (20, 10)])
def test_as_good_as_one_against_the_rest_on_requests(ways: int, shots: int) -> None:
    task = make_task(texts_by_class("requests"), ways, shots, 0)
    answers = ours(task)
    assert micro_f1(task.truth, answers) >= micro_f1(task.truth, one_vs_rest(task))
    assert np.mean([not own for own in answers]) < 0.5


@needs_real_data
def test_better_than_one_against_the_rest_on_clinc150() -> None:
    task = make_task(texts_by_class("clinc150"), 20, 10, 0)
    answers = ours(task)
    assert micro_f1(task.truth, answers) > max(0.8, micro_f1(task.truth, one_vs_rest(task)))
    assert np.mean([not own for own in answers]) < 0.1


@pytest.fixture(scope="module")
def fitted() -> tuple[FewShotClassifier, list[str]]:
    task = make_task(texts_by_class("requests"), 10, 5, 1)
    return FewShotClassifier().fit(task.texts, task.known), task.queries


def test_a_threshold_of_ones_own(fitted: tuple[FewShotClassifier, list[str]]) -> None:
    clf, queries = fitted
    probabilities = clf.predict_proba(queries)
    for threshold in (0.0, 0.2, 0.9):
        chosen = [clf.classes_[row > threshold].tolist() for row in probabilities]
        assert clf.predict(queries, threshold=threshold) == chosen
    usual = clf.fitted_.calibration.threshold
    assert clf.predict(queries) == clf.predict(queries, threshold=usual)
    assert 0 < usual < 1


def test_thresholds_that_cannot_be(fitted: tuple[FewShotClassifier, list[str]]) -> None:
    clf, queries = fitted
    with pytest.raises(SettingError, match="from 0 to 1"):
        clf.predict(queries, threshold=1.5)
    single = FewShotClassifier().fit(["a b", "c d"], [0, 1])
    with pytest.raises(SettingError, match="several labels"):
        single.predict(["a"], threshold=0.5)


def test_the_threshold_and_all_else_is_saved(fitted: tuple[FewShotClassifier, list[str]], tmp_path: Path) -> None:
    clf, queries = fitted
    clf.save(tmp_path / "m")
    loaded = FewShotClassifier.load(tmp_path / "m")
    assert loaded.predict(queries) == clf.predict(queries)
    assert loaded.fitted_.calibration.threshold == clf.fitted_.calibration.threshold


def test_one_example_of_each_label_is_enough() -> None:
    clf = FewShotClassifier().fit(["lost card", "refund please", "book a flight"], [["card"], ["money"], ["travel"]])
    assert clf.predict(["my card is lost"]) == [["card"]]


def test_the_threshold_of_the_best_expected_f1() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.beta(0.3, 2, 5000)
    truth = rng.random(5000) < probabilities
    chosen = best_threshold(probabilities, np.ones(5000))

    def f1(threshold: float) -> float:
        answered = probabilities > threshold
        return 2 * (truth & answered).sum() / (answered.sum() + truth.sum())

    assert f1(chosen) > max(f1(threshold) for threshold in np.linspace(0.02, 0.9, 89)) - 0.02
