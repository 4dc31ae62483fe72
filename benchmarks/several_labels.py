"""Several labels per text: FewShotClassifier compared with one-vs-rest and with TF-IDF + balanced logistic regression.

HANDFUL_DATA=/path/to/data python benchmarks/several_labels.py --data requests,clinc150 --draws 5

A task has some labels and a number of examples of each. Half of its texts are joined from texts of two classes, and have both
labels. Test texts share no source text with the examples. The script prints micro-F1 with its 95 % interval over draws, the
share of texts that get no label, and the seconds to fit and predict.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from handful import FewShotClassifier, Score
from handful.data.datasets import load_corpus

SHAPES = ((10, 5), (20, 10), (50, 10))  # labels, examples of each
TEST_EXAMPLES = 8  # of each label
MOST_TEXTS = 40  # per class, for examples and for tests each
FEWEST_TEXTS = 8


@dataclass(frozen=True)
class SeveralLabelTask:
    """Texts with lists of labels."""

    labels: list[str]
    texts: list[str]
    known: list[list[str]]
    queries: list[str]
    truth: list[list[str]]


def texts_by_class(data: str) -> dict[str, list[str]]:
    """The texts of each class that has enough."""
    corpus = load_corpus(data)
    found: dict[str, list[str]] = {name: [] for name in corpus.classes}
    for document, label in enumerate(corpus.labels):
        found[corpus.classes[label]].append(" ".join(corpus.words(document)))
    return {name: texts for name, texts in found.items() if len(texts) >= FEWEST_TEXTS}


def make_task(texts: dict[str, list[str]], ways: int, shots: int, seed: int) -> SeveralLabelTask:
    """The task with this seed."""
    rng = np.random.default_rng([seed, ways, shots])
    labels = [str(label) for label in rng.choice(sorted(texts), ways, replace=False)]
    shuffled = {label: [texts[label][i] for i in rng.permutation(len(texts[label]))] for label in labels}
    cuts = {label: min(max(5, len(shuffled[label]) // 2), MOST_TEXTS) for label in labels}
    known = joined({label: shuffled[label][: cuts[label]] for label in labels}, shots, rng)
    asked = joined({label: shuffled[label][cuts[label] :][:MOST_TEXTS] for label in labels}, TEST_EXAMPLES, rng)
    return SeveralLabelTask(labels, *known, *asked)


def joined(texts: dict[str, list[str]], each: int, rng: np.random.Generator) -> tuple[list[str], list[list[str]]]:
    """Texts with `each` examples per label, half of them joined from two classes."""
    waiting = [str(label) for label in rng.permutation([label for label in texts for _ in range(each)])]
    made: list[str] = []
    labels: list[list[str]] = []
    while waiting:
        own = [waiting.pop()]
        if waiting and waiting[-1] != own[0] and rng.random() < 0.5:
            own.append(waiting.pop())
        made.append(" ".join(str(rng.choice(texts[label])) for label in own))
        labels.append(own)
    return made, labels


def ours(task: SeveralLabelTask) -> list[list[str]]:
    """FewShotClassifier on lists of labels."""
    return FewShotClassifier().fit(task.texts, task.known).predict(task.queries)  # type: ignore[no-any-return]


def one_vs_rest(task: SeveralLabelTask) -> list[list[str]]:
    """One FewShotClassifier per label, against the rest."""
    columns = [
        FewShotClassifier().fit(task.texts, [label in own for own in task.known]).predict(task.queries) for label in task.labels
    ]
    return [[task.labels[i] for i in np.flatnonzero(row)] for row in np.array(columns).T]


def tf_idf(task: SeveralLabelTask) -> list[list[str]]:
    """TF-IDF and balanced logistic regression, each label against the rest."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    vectorizer = TfidfVectorizer(sublinear_tf=True)
    targets = np.array([[label in own for label in task.labels] for own in task.known]).astype(int)
    regression = OneVsRestClassifier(LogisticRegression(C=10, class_weight="balanced", max_iter=1000))
    fitted = regression.fit(vectorizer.fit_transform(task.texts), targets)
    return [[task.labels[i] for i in np.flatnonzero(row)] for row in fitted.predict(vectorizer.transform(task.queries))]


METHODS: dict[str, Callable[[SeveralLabelTask], list[list[str]]]] = {
    "FewShotClassifier": ours,
    "one-vs-rest": one_vs_rest,
    "TF-IDF + LR": tf_idf,
}


def micro_f1(truth: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> float:
    """2 · correct / (true labels + predicted labels)."""
    right = sum(len({*true} & {*answer}) for true, answer in zip(truth, answers, strict=True))
    return 2 * right / (sum(map(len, truth)) + sum(map(len, answers)))


def main() -> None:
    """Print one line per data set, shape and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="requests,clinc150")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    for data in options.data.split(","):
        texts = texts_by_class(data)
        for ways, shots in SHAPES:
            tasks = [make_task(texts, ways, shots, seed) for seed in range(options.draws)]
            for name, method in METHODS.items():
                start = time.perf_counter()
                answers = [method(task) for task in tasks]
                seconds = (time.perf_counter() - start) / len(tasks)
                score = Score.of(np.array([micro_f1(t.truth, a) for t, a in zip(tasks, answers, strict=True)]))
                empty = np.mean([not own for answer in answers for own in answer])
                print(f"{data} {ways} × {shots}  {name:18} {score}  {empty:.0%} without a label  {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
