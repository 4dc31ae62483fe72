"""Measure FewShotClassifier beyond accuracy: its probabilities, rejection of unknown texts, and choice of texts to label.

python benchmarks/abilities.py --data huffpost:val
python benchmarks/abilities.py --data clinc150 --measure scope,episodes --repeats 50
python benchmarks/abilities.py --data clinc150 --measure calibration --encoder bge-small --setting unlabelled --ways 5,0

episodes     5 classes and all, or --ways, 1 and 5 shots: accuracy, and its paired difference from frequency weights + ridge
calibration  expected calibration error of predict_proba in ten bins, pooled over the repeats, with 5 classes and all, or --ways
scope        half of the classes are unknown: how well the largest probability, and the sum of the exponentials of
             decision_function, separate texts of known and unknown classes (area under the ROC curve), and the effect of
             reject_below on both
suggest      one example per class, then as many more per round, chosen by suggest or at random: accuracy, paired difference

Data sets and settings are named as in benchmarks/classifier.py; --encoder and --setting are for calibration and scope. In the
setting unlabelled, scope has unlabelled texts of known and of unknown classes. Intervals are 95 % over the repeats, each with
its own examples and texts.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _encoders import few_shot_classifier
from _peers import (
    ENCODERS,
    EXAMPLES,
    MOST_SHOTS,
    OURS,
    POOL,
    SETTINGS,
    UNLABELLED,
    FrequencyRidge,
    Material,
    Task,
    draw,
    fit_in_setting,
    load_texts,
    make_task,
)
from _tables import cells, interval

from handful import FewShotClassifier
from handful.errors import HandfulWarning
from handful.utils.progress import track

BINS = 10
REJECT_BELOW = (0.3, 0.5, 0.7, 0.9)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Bench:
    """A data set, the number of repeats, the number of queries per repeat, and the classifier with its setting."""

    inputs: Material
    repeats: int
    queries: int
    seed: int
    encoder: str = OURS[0]
    setting: str = EXAMPLES
    cache: Path | None = None

    def tasks(self, shots: int, ways: int = 0) -> Iterator[Task]:
        """One task per repeat, with `ways` classes, or all."""
        for number in track(range(self.repeats), f"{shots}-shot", self.repeats):
            rng = np.random.default_rng([self.seed, number])
            among = rng.permutation(len(self.inputs.classes))[: ways or None]
            yield self.task(among, shots, number)

    def task(self, classes: Array, shots: int, number: int) -> Task:
        """The task with this number, from these classes."""
        members = np.flatnonzero(np.isin(self.inputs.labels, classes))
        part = Material([self.inputs.texts[i] for i in members], self.inputs.labels[members], self.inputs.classes)
        return make_task(part, shots, self.queries, self.seed, number)

    def classifier(self) -> FewShotClassifier:
        """A classifier that is to be fitted."""
        return few_shot_classifier(self.encoder, self.cache)

    def ways(self, sizes: list[int]) -> list[int]:
        """These numbers of classes, as far as there are so many; 0 stands for all."""
        every = len(self.inputs.classes)
        return sorted({min(size, every) or every for size in sizes})


def episodes(bench: Bench, sizes: list[int]) -> Iterator[list[str]]:
    """Compare with frequency weights and ridge on the same vectors, and with the classifier's own head on them."""
    yield ["classes", "shots", "FewShotClassifier", "frequency weights + ridge", "difference", "with its head", "difference"]
    for ways in bench.ways(sizes):
        for shots in (1, 5):
            found = []
            for task in bench.tasks(shots, ways):
                rivals = (FewShotClassifier(), FrequencyRidge(), FrequencyRidge(same=True))
                fitted = [fit_in_setting(one, task, EXAMPLES) for one in rivals]
                found.append([np.mean(one.predict(task.queries) == task.truth) for one in fitted])
            mine, plain, same = np.array(found).T
            others = [interval(part) for other in (plain, same) for part in (other, mine - other)]
            yield [str(ways), str(shots), interval(mine), *others]


def calibration(bench: Bench, sizes: list[int], shots: list[int]) -> Iterator[list[str]]:
    """Compare the largest probability with the share of correct answers, over the texts of all tasks."""
    yield ["classes", "shots", "accuracy", "mean probability", "calibration error"]
    clf = bench.classifier()
    for ways in bench.ways(sizes):
        for number in shots:
            sure, right = [], []
            for task in bench.tasks(number, ways):
                found = fit_in_setting(clf, task, bench.setting).predict_proba(task.queries)
                sure.append(found.max(axis=1))
                right.append(clf.classes_[found.argmax(axis=1)] == task.truth)
            together = np.concatenate(sure)
            error = calibration_error(together, np.concatenate(right))
            accuracy = interval([one.mean() for one in right])
            yield [str(ways), str(number), accuracy, f"{100 * together.mean():.1f}", f"{100 * error:.1f}"]


def calibration_error(sure: Array, right: Array) -> float:
    """The mean gap between probability and share of correct answers over bins of equal width, weighted by their texts.

    >>> round(calibration_error(np.array([0.65, 0.65]), np.array([True, False])), 2)
    0.15
    """
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, sure - right, BINS)
    return float(np.abs(gaps).sum() / len(sure))


def scope(bench: Bench, sizes: list[int]) -> Iterator[list[str]]:
    """Measure the rejection of texts from unknown classes."""
    from sklearn.metrics import roc_auc_score

    limits = [f"below {limit}: answered / of these correct / others rejected" for limit in REJECT_BELOW]
    yield ["shots", "area, largest probability", "area, sum of exponentials", "difference", *limits]
    every = len(bench.inputs.classes)
    clf = bench.classifier()
    for shots in sizes:
        areas, rates = [], []  # of each repeat: (2,) and (limits, 3)
        for number in track(range(bench.repeats), f"{shots}-shot", bench.repeats):
            classes = np.random.default_rng([bench.seed, number]).permutation(every)
            task, others = (bench.task(part, shots, number) for part in (classes[: every // 2], classes[every // 2 :]))
            fit_in_setting(clf, replace(task, unlabelled=half_of_each(task, others)), bench.setting)
            logits = clf.fitted_.scores([*task.queries, *others.queries])  # (texts, classes), also if there are two
            together = np.logaddexp.reduce(logits, axis=1)
            known = np.repeat([1, 0], [len(task.queries), len(others.queries)])
            areas.append([roc_auc_score(known, sure) for sure in (logits.max(axis=1) - together, together)])
            rates.append([rejection(clf, task, others.queries, limit) for limit in REJECT_BELOW])
        means = 100 * np.nanmean(rates, axis=0)  # (limits, 3)
        single, total = np.array(areas).T
        compared = [interval(single), interval(total), interval(total - single, sign="+")]
        yield [str(shots), *compared, *(" / ".join(f"{value:.0f}" for value in row) for row in means)]


def half_of_each(task: Task, others: Task) -> list[str]:
    """Unlabelled texts of known and of unknown classes, without the queries of either."""
    both = [text for one in (task, others) for text in one.unlabelled[: UNLABELLED // 2]]
    queries = {*task.queries, *others.queries}
    return [text for text in both if text not in queries]


def rejection(clf: FewShotClassifier, task: Task, others: list[str], limit: float) -> tuple[float, float, float]:
    """The shares of known texts that are answered, of these that are correct, and of other texts that are rejected."""
    found, elsewhere = (clf.predict(texts, reject_below=limit) for texts in (task.queries, others))
    answered = np.array([answer is not None for answer in found])
    right = np.mean(found[answered] == task.truth[answered]) if answered.any() else np.nan
    return float(answered.mean()), float(right), float(np.mean([answer is None for answer in elsewhere]))


def suggest(bench: Bench, pool: int, rounds: int) -> Iterator[list[str]]:
    """Compare labelling texts chosen by suggest with labelling random ones."""
    every = len(bench.inputs.classes)
    curves = np.array([label_curves(bench, number, pool, rounds) for number in track(range(bench.repeats), "", bench.repeats)])
    yield ["labels", "suggest", "random", "difference"]
    for step in range(rounds + 1):
        mine, other = curves[:, :, step].T
        yield [str(every * (step + 1)), interval(mine), interval(other), interval(mine - other)]
    mine, other = curves[:, :, 1:].mean(axis=2).T
    yield [f"mean of the {rounds} rounds", interval(mine), interval(other), interval(mine - other)]


def label_curves(bench: Bench, number: int, pool: int, rounds: int) -> list[list[float]]:
    """Accuracy after each round, with suggest and at random, from the same start and the same pool."""
    every = len(bench.inputs.classes)
    start = draw(bench.inputs.labels, 1, bench.queries + pool, bench.seed, number)
    query, reserve = start.query[: bench.queries], start.query[bench.queries :]
    texts = np.array(bench.inputs.texts, object)
    labels = bench.inputs.labels
    curves = []
    for choose in ("suggest", "random"):
        rng = np.random.default_rng([bench.seed, number, 1])
        left = reserve
        curve = []
        clf = FewShotClassifier().fit(texts[start.support], labels[start.support])
        for step in range(rounds + 1):
            curve.append(float(np.mean(clf.predict(texts[query]) == labels[query])))
            if step < rounds:
                wanted = clf.suggest(texts[left], every) if choose == "suggest" else rng.permutation(len(left))[:every]
                clf.partial_fit(texts[left[wanted]], labels[left[wanted]])
                left = np.delete(left, wanted)
        curves.append(curve)
    return curves


def numbers(listed: str) -> list[int]:
    """Whole numbers that are separated by commas."""
    return [int(number) for number in listed.split(",")]


def main() -> None:
    """Print one table per measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="huffpost:val")
    parser.add_argument("--measure", default="episodes,calibration,scope,suggest", help="Measures, separated by commas.")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--queries", type=int, default=500, help="Maximum number of queries per repeat.")
    parser.add_argument("--ways", default="5,0", help="Classes per episode, 0 for all; several separated by commas.")
    parser.add_argument("--shots", help="Examples per class for calibration (default: 1,2,5,10) and scope (default: 1,5).")
    parser.add_argument("--encoder", default=OURS[0], choices=ENCODERS)
    parser.add_argument("--setting", default=EXAMPLES, choices=SETTINGS)
    parser.add_argument("--vector-cache", type=Path, help="SQLite file that keeps vectors of the encoder.")
    parser.add_argument("--pool", type=int, default=600, help="Unlabelled texts for suggest.")
    parser.add_argument("--rounds", type=int, default=4, help="Rounds of labelling.")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ways, shots = numbers(arguments.ways), numbers(arguments.shots or "1,2,5,10")
    if max(shots) > MOST_SHOTS or (arguments.setting == EXAMPLES and min(shots) < 1):
        parser.error(f"--shots must be from 1 to {MOST_SHOTS}; 0 needs --setting names or {POOL}.")
    warnings.simplefilter("ignore", HandfulWarning)  # texts that occur twice in the data
    how = (arguments.repeats, arguments.queries, arguments.seed, arguments.encoder, arguments.setting, arguments.vector_cache)
    bench = Bench(load_texts(arguments.data), *how)
    measures = {
        "episodes": lambda: episodes(bench, ways),
        "calibration": lambda: calibration(bench, ways, shots),
        "scope": lambda: scope(bench, numbers(arguments.shots or "1,5")),
        "suggest": lambda: suggest(bench, arguments.pool, arguments.rounds),
    }
    for name in arguments.measure.split(","):
        about = f", {arguments.encoder}, {arguments.setting}" if name in ("calibration", "scope") else ""
        print(f"\n{name}: {arguments.data}{about}, {arguments.repeats} repeats, in percent\n")
        for number, row in enumerate(measures[name]()):
            print(cells(row), flush=True)
            if not number:
                print(cells(["---"] * len(row)))


if __name__ == "__main__":
    main()
