"""The scripts in benchmarks/, on the packaged demo texts, and on as few of them as possible."""

from __future__ import annotations

import itertools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import abilities
import classifier
import episodes
import numpy as np
import pytest
import unlabelled
from _peers import EXAMPLES, INDUCTIVE, NAMES, POOL, SETTINGS, TRANSDUCTIVE, Task, fit_in_setting, load_texts, make_task, spoken
from _tables import ACCURACY, TIMING, Result, difference_table, grid, read_results, section

from handful import FewShotClassifier

ROOT = Path(__file__).parent.parent


def run(script: object, monkeypatch: pytest.MonkeyPatch, *options: object) -> None:
    monkeypatch.setattr(sys, "argv", ["script", *map(str, options)])
    script.main()  # type: ignore[attr-defined]


def result(peer: str, setting: str, draw: int, accuracy: float, kind: str = ACCURACY) -> Result:
    return Result(peer, 2, "demo", 1, 10, 0, draw, 30, accuracy, setting=setting, kind=kind, macro_f1=accuracy / 2)


def test_unlabelled_texts_are_neither_queries_nor_examples() -> None:
    inputs = load_texts("demo")
    most = make_task(inputs, 10, 50, 0, 3)
    few = make_task(inputs, 1, 50, 0, 3, unlabelled=20)
    assert len(most.unlabelled) == len(inputs.texts) - 300 - 50
    assert not set(most.unlabelled) & {*most.queries, *most.texts}
    assert few.queries == most.queries
    assert few.unlabelled == most.unlabelled[:20]
    assert set(few.texts) <= set(most.texts)
    empty = make_task(inputs, 0, 50, 0, 3)
    assert (empty.texts, len(empty.labels), len(empty.classes)) == ([], 0, 30)


def test_the_same_number_of_queries_per_class() -> None:
    inputs = load_texts("demo")
    task = make_task(inputs, 8, 0, 0, 1, per_class=4)
    assert np.unique(task.truth, return_counts=True)[1].tolist() == [4] * 30
    assert np.unique(task.labels, return_counts=True)[1].tolist() == [8] * 30
    assert len(task.unlabelled) == len(inputs.texts) - 30 * (10 + 4)
    assert not set(task.queries) & {*task.texts, *task.unlabelled}


def test_queries_take_the_place_of_unlabelled_texts() -> None:
    task = make_task(load_texts("demo"), 1, 40, 0, 1)
    fitted = fit_in_setting(FewShotClassifier(), task, TRANSDUCTIVE)
    assert fitted.fitted_.sources.unlabeled == 40  # type: ignore[attr-defined]


def test_a_setting_gives_label_words_as_examples_to_other_classifiers() -> None:
    class Listener:
        def fit(self, texts: list[str], labels: list[str]) -> Listener:
            self.pairs = list(zip(texts, labels, strict=True))
            return self

    task = Task(["hello"], np.array(["small_talk"]), [], np.array([]), ["card_arrival", "small_talk"], ["a text"])
    words = [("card arrival", "card_arrival"), ("small talk", "small_talk")]
    assert fit_in_setting(Listener(), task, EXAMPLES).pairs == [("hello", "small_talk")]  # type: ignore[attr-defined]
    assert fit_in_setting(Listener(), task, NAMES).pairs == [("hello", "small_talk"), *words]  # type: ignore[attr-defined]
    assert spoken("acq_x7") == "acq x7"  # not known words


def test_lines_of_an_earlier_version_are_read() -> None:
    found = read_results(ROOT / "results" / "peers.jsonl")
    assert {one.setting for one in found if one.peer == "handful 0.1.0"} == {EXAMPLES}


def test_tables_pair_draws_and_show_peers_without_unlabelled_texts() -> None:
    mine = [result("words", POOL, draw, 0.8) for draw in range(3)]
    others = [result("tfidf", NAMES, draw, right) for draw, right in enumerate((0.5, 0.6))]
    clock = replace(result("words", POOL, 0, 0, TIMING), fit_seconds=1.5, texts_per_second=2000, peak_megabytes=99, macro_f1=0)
    results = [*mine, *others, clock]
    assert "+25.0 ± 63.5" in difference_table(grid(results, "demo", POOL, TIMING))[-1]
    text = section(results, "demo", POOL)
    assert "| TF-IDF + logistic regression (2 draws) | 55.0 ± 63.5 |" in text
    assert "| FewShotClassifier, `words` | 1.5 | 2,000 | 99 | – |" in text
    assert section(results, "demo", EXAMPLES) == ""


def test_peers_are_compared_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "peers.jsonl"
    size = ("--data", "demo", "--peers", "words,tfidf", "--shots", "0,1", "--queries", 30, "--out", out)
    run(classifier, monkeypatch, *size, "--draws", 1, "--no-timing")
    assert len(out.read_text().splitlines()) == 5 + 3  # examples with one shot, the other settings with both
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:-1]) + '{"peer": "tf')
    run(classifier, monkeypatch, *size, "--draws", 1, "--no-timing")
    found = read_results(out)
    assert len({one.key for one in found}) == len(found) == 8
    assert {one.setting for one in found if one.peer == "words"} == set(INDUCTIVE)
    assert all(one.accuracy > 0 and one.macro_f1 > 0 and one.fit_seconds == one.texts_per_second == 0 for one in found)
    capsys.readouterr()
    run(classifier, monkeypatch, "--markdown", "--queries", 30, "--out", out)
    assert capsys.readouterr().out.count("#### demo, ") == 3


def test_time_is_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "RATE_SECONDS", 0.01)
    monkeypatch.setattr(classifier, "AT_ONCE", 10)
    (found,) = classifier.work(classifier.Job("words", 2, ((POOL, 1, 0),), "demo", 30, kind=TIMING))
    assert min(found.fit_seconds, found.texts_per_second, found.peak_megabytes) > 0
    assert (found.kind, found.accuracy, found.macro_f1) == (TIMING, 0, 0)


def test_pools_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pools.jsonl"
    options = ("--data", "demo@5,demo", "--shots", "1", "--draws", 1, "--queries", 10, "--pool", 30, "--out", out)
    run(unlabelled, monkeypatch, *options)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["texts"] for line in lines if line["task"] == "demo@5" and line["pool"] in unlabelled.MIXED] == [30] * 4
    assert {line["pool"] for line in lines} == {"none", *unlabelled.POOLS}
    capsys.readouterr()
    run(unlabelled, monkeypatch, *options)
    assert len(out.read_text().splitlines()) == len(lines) == 10 + 8  # all classes: there are no others
    assert capsys.readouterr().out.count("| demo") == 2


@pytest.mark.parametrize("setting", SETTINGS)
def test_abilities_in_each_setting(setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    size = ("--data", "demo:val", "--repeats", 1, "--queries", 20, "--ways", "3,0")
    run(abilities, monkeypatch, *size, "--measure", "calibration,scope", "--shots", "1", "--setting", setting)
    printed = capsys.readouterr().out
    assert f"calibration: demo:val, words, {setting}, 1 repeats" in printed
    assert "\n| 3 | 1 |" in printed
    assert "\n| 5 | 1 |" in printed


def run_episodes(monkeypatch: pytest.MonkeyPatch, *options: object) -> None:
    monkeypatch.setattr(episodes, "SHAPES", {"Tiny": episodes.Shape(8, 0.4, 50, 5, 4)})
    monkeypatch.setattr(episodes, "ALGORITHMS", {"ridge": 1})
    monkeypatch.setattr(episodes, "TRAIN_EPISODES", 2)
    monkeypatch.setattr(episodes, "TEST_EPISODES", 2)
    run(episodes, monkeypatch, "--threads", 1, "--rounds", 2, *options)


def test_episodes_show_kernel_and_rest(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run_episodes(monkeypatch, "--busy-anyway")
    lines = capsys.readouterr().out.splitlines()
    number = r"\d+\.\d\d"
    for line, job in zip(lines, ("train", "test"), strict=False):
        assert re.search(rf"Tiny +{job} .* ratio {number} \({number} to {number}\) = kernel {number} \+ rest -?{number} ", line)


def test_a_busy_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 1000)
    monkeypatch.setattr(episodes, "busy_seconds", lambda: next(clock))
    with pytest.raises(
        SystemExit, match=r"Other processes used \d+\.\d cores, and 0.1 is the most: run this on an idle machine"
    ):
        run_episodes(monkeypatch)
    with pytest.raises(SystemExit, match=r"The yardstick took 10.0 to 20.0 ms"):
        episodes.check_spread([0.01, 0.02])
    episodes.check_spread([0.01, 0.014])


def test_the_processors_of_this_machine_have_been_busy() -> None:
    assert episodes.busy_seconds() > 0
