"""Measure FewShotClassifier beyond accuracy: its probabilities, rejection of unknown texts, and choice of texts to label.

python benchmarks/abilities.py --data huffpost:val
python benchmarks/abilities.py --data clinc150 --measure scope,episodes --repeats 50

episodes     5 classes and all, or --ways, 1 and 5 shots: accuracy, and its paired difference from frequency weights + ridge
calibration  expected calibration error of predict_proba in ten bins, over all classes
scope        half of the classes are unknown: how well the largest probability separates texts of known and unknown classes
             (area under the ROC curve), and the effect of reject_below on both
suggest      one example per class, then as many more per round, chosen by suggest or at random: accuracy, paired difference

Data sets are named as in benchmarks/classifier.py. Intervals are 95 % over the repeats, each with its own examples and texts.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from _peers import FrequencyRidge, Material, draw, load_texts
from classifier import cells, interval

from handful import FewShotClassifier
from handful.errors import HandfulWarning
from handful.utils.progress import track

BINS = 10
REJECT_BELOW = (0.3, 0.5, 0.7, 0.9)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Examples and queries, each with its label."""

    texts: list[str]
    labels: Array
    queries: list[str]
    truth: Array


@dataclass(frozen=True)
class Bench:
    """A data set, the number of repeats, and the number of queries per repeat."""

    inputs: Material
    repeats: int
    queries: int
    seed: int

    def tasks(self, shots: int, ways: int = 0) -> Iterator[Task]:
        """One task per repeat, with `ways` classes, or all."""
        for number in track(range(self.repeats), f"{shots}-shot", self.repeats):
            rng = np.random.default_rng([self.seed, number])
            among = rng.permutation(len(self.inputs.classes))[: ways or None]
            yield self.task(among, shots, number)

    def task(self, classes: Array, shots: int, number: int) -> Task:
        """The task with this number, from these classes."""
        members = np.flatnonzero(np.isin(self.inputs.labels, classes))
        labels = self.inputs.labels[members]
        chosen = draw(labels, shots, self.queries, self.seed, number)
        texts = [self.inputs.texts[i] for i in members]
        support, query = ([texts[i] for i in part] for part in (chosen.support, chosen.query))
        return Task(support, labels[chosen.support], query, labels[chosen.query])


def episodes(bench: Bench, sizes: list[int]) -> Iterator[list[str]]:
    """Compare with frequency weights and ridge on the same vectors, and with the classifier's own head on them."""
    yield ["classes", "shots", "FewShotClassifier", "frequency weights + ridge", "difference", "with its head", "difference"]
    every = len(bench.inputs.classes)
    for ways in sorted({min(size, every) or every for size in sizes}):
        for shots in (1, 5):
            found = []
            for task in bench.tasks(shots, ways):
                rivals = (FewShotClassifier(), FrequencyRidge(), FrequencyRidge(same=True))
                found.append([np.mean(one.fit(task.texts, task.labels).predict(task.queries) == task.truth) for one in rivals])
            mine, plain, same = np.array(found).T
            others = [interval(part) for other in (plain, same) for part in (other, mine - other)]
            yield [str(ways), str(shots), interval(mine), *others]


def calibration(bench: Bench) -> Iterator[list[str]]:
    """Compare the largest probability with the share of correct answers, over the texts of all tasks."""
    yield ["shots", "accuracy", "mean probability", "calibration error"]
    for shots in (1, 2, 5, 10):
        sure, right, accuracies = [], [], []
        for task in bench.tasks(shots):
            clf = FewShotClassifier().fit(task.texts, task.labels)
            found = clf.predict_proba(task.queries)
            sure.append(found.max(axis=1))
            right.append(clf.classes_[found.argmax(axis=1)] == task.truth)
            accuracies.append(right[-1].mean())
        error = calibration_error(np.concatenate(sure), np.concatenate(right))
        yield [str(shots), interval(accuracies), f"{100 * np.mean(np.concatenate(sure)):.1f}", f"{100 * error:.1f}"]


def calibration_error(sure: Array, right: Array) -> float:
    """The mean gap between probability and share of correct answers over bins of equal width, weighted by their texts.

    >>> round(calibration_error(np.array([0.65, 0.65]), np.array([True, False])), 2)
    0.15
    """
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, sure - right, BINS)
    return float(np.abs(gaps).sum() / len(sure))


def scope(bench: Bench) -> Iterator[list[str]]:
    """Measure the rejection of texts from unknown classes."""
    from sklearn.metrics import roc_auc_score

    limits = [f"below {limit}: answered / of these correct / others rejected" for limit in REJECT_BELOW]
    yield ["shots", "area under the ROC curve", *limits]
    every = len(bench.inputs.classes)
    for shots in (1, 5):
        areas, rates = [], []
        for number in track(range(bench.repeats), f"{shots}-shot", bench.repeats):
            classes = np.random.default_rng([bench.seed, number]).permutation(every)
            task, others = (bench.task(part, shots, number) for part in (classes[: every // 2], classes[every // 2 :]))
            clf = FewShotClassifier().fit(task.texts, task.labels)
            sure = [clf.predict_proba(texts).max(axis=1) for texts in (task.queries, others.queries)]
            known = np.repeat([1, 0], [len(part) for part in sure])
            areas.append(roc_auc_score(known, np.concatenate(sure)))
            rates.append([rejection(clf, task, others.queries, limit) for limit in REJECT_BELOW])
        means = 100 * np.nanmean(rates, axis=0)  # (limits, 3)
        yield [str(shots), interval(areas), *(" / ".join(f"{value:.0f}" for value in row) for row in means)]


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


def main() -> None:
    """Print one table per measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="huffpost:val")
    parser.add_argument("--measure", default="episodes,calibration,scope,suggest", help="Measures, separated by commas.")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--queries", type=int, default=500, help="Maximum number of queries per repeat.")
    parser.add_argument("--ways", default="5,0", help="Classes per episode, 0 for all; several separated by commas.")
    parser.add_argument("--pool", type=int, default=600, help="Unlabelled texts for suggest.")
    parser.add_argument("--rounds", type=int, default=4, help="Rounds of labelling.")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", HandfulWarning)  # texts that occur twice in the data
    bench = Bench(load_texts(arguments.data), arguments.repeats, arguments.queries, arguments.seed)
    measures = {
        "episodes": lambda bench: episodes(bench, [int(size) for size in arguments.ways.split(",")]),
        "calibration": calibration,
        "scope": scope,
        "suggest": lambda bench: suggest(bench, arguments.pool, arguments.rounds),
    }
    for name in arguments.measure.split(","):
        print(f"\n{name}: {arguments.data}, {arguments.repeats} repeats, in percent\n")
        for number, row in enumerate(measures[name](bench)):
            print(cells(row), flush=True)
            if not number:
                print(cells(["---"] * len(row)))


if __name__ == "__main__":
    main()
