"""Make a sentence encoder of our own: texts, the teacher's vectors of them, a student, and its 8-bit ONNX file.

python benchmarks/make_encoder.py texts train export compare --work FOLDER    (extras make-encoder and peers; hours)

texts    collect unlabelled texts: training classes of the corpora in HANDFUL_DATA, and WordNet (Debian's wordnet-base)
train    encode them with bge-small and with MiniLM, then train the student; an interrupted run is resumed, also with other
         --steps
export   write model.onnx and tokenizer.json
compare  measure the exported student, MiniLM and bge-small: accuracy on validation tasks, and speed

The learning curve on validation tasks is in FOLDER/LAYERS/curve.jsonl: accuracy in percent with logistic regression on classes
of which the student has seen no text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _encoders import MiniLM, bge_small, unit_vectors
from _peers import Logistic, Material, load_texts, make_task
from _tables import lines_of
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from handful.embeddings.encoders import BGE_SMALL
from handful.embeddings.onnx_encoder import OnnxEncoder
from handful.embeddings.vector_cache import Encoder
from handful.making.student import (
    CHECKPOINT,
    StudentTraining,
    encode,
    joint_targets,
    layers_of,
    load_student,
    new_student,
    side_by_side,
    start_with,
    teacher_vectors,
    train,
)
from handful.making.student_export import export, exported_layers, own_part
from handful.making.student_texts import (
    distinct,
    fragments,
    glosses,
    made_up_requests,
    passages,
    phrases,
    sensible_requests,
    sentences,
    some,
    usages,
)
from handful.utils.files import atomic_writer, write_json
from handful.utils.functional import Floats, unit_length

SOURCE = "minilm"  # whose layers the student starts with
TEXTS = "texts.json"
CORPORA = ("huffpost", "amazon", "20newsgroups", "fewrel", "reuters", "requests", "demo")
VALIDATION = ("huffpost:val", "fewrel:val", "requests:val")
PER_CLASS = 40  # texts of a validation class
SHOTS = (1, 5, 10)
DRAWS = 10
COMPARED_DRAWS = {1: 40, 5: 15, 10: 10}  # by shots
COMPARED_QUERIES = 20  # of each class


# Texts


def student_texts(seed: int = 0) -> dict[str, list[str]]:
    """Distinct texts by where they come from: no class is used that some task is validated or tested on."""
    rng = np.random.default_rng(seed)
    raw = {name: load_texts(f"{name}:train").texts for name in CORPORA}
    split = {name: [sentence for text in texts for sentence in sentences(text)] for name, texts in raw.items()}
    requests = distinct([*raw["requests"], *raw["demo"]])
    long = [passage for name in ("amazon", "20newsgroups", "reuters") for text in raw[name] for passage in passages(text, rng)]
    return {
        "huffpost": some(raw["huffpost"], 15_000, rng),
        "amazon": some(split["amazon"], 45_000, rng),
        "20newsgroups": some(split["20newsgroups"], 45_000, rng),
        "fewrel": some(split["fewrel"], 20_000, rng),
        "reuters": some(split["reuters"], 3_000, rng),
        "requests": requests,
        "fragments of requests": some(fragments(requests, 10_000, rng), 10_000, rng),
        "made-up requests": some(made_up_requests(25_000, rng), 25_000, rng),
        "glosses": some(glosses(), 60_000, rng),
        "usages": some(usages(), 40_000, rng),
        "phrases": some(phrases(), 25_000, rng),
        "passages": some(long, 8_000, rng),
        "sensible requests": some(sensible_requests(180_000, rng), 150_000, rng),  # some are drawn twice
    }


def write_texts(work: Path) -> None:
    """Write all texts in random order, so that the first ones are a fair sample."""
    parts = student_texts()
    texts = [text for part in parts.values() for text in part]
    order = np.random.default_rng(1).permutation(len(texts))
    work.mkdir(parents=True, exist_ok=True)
    (work / TEXTS).write_text(json.dumps([texts[i] for i in order]))
    write_json(work / "counts.json", {name: len(part) for name, part in parts.items()})


# Validation


@cache
def validation_material(data: str) -> Material:
    """Some texts of each validation class."""
    whole = load_texts(data)
    rng = np.random.default_rng(0)
    kept = np.concatenate(
        [rng.permutation(np.flatnonzero(whole.labels == label))[:PER_CLASS] for label in range(len(whole.classes))]
    )
    return Material([whole.texts[i] for i in kept], whole.labels[kept], whole.classes)


def validate(vectors: Callable[[Sequence[str]], Floats]) -> dict[str, Any]:
    """Accuracy in percent with logistic regression on each validation task at each number of shots."""
    found: dict[str, Any] = {}
    for data in VALIDATION:
        material = validation_material(data)
        known = dict(zip(material.texts, vectors(material.texts), strict=True))
        classifier = Logistic(lambda texts, known=known: np.stack([known[text] for text in texts]))
        for shots in SHOTS:
            found[f"{data} {shots}"] = round(
                100 * float(np.mean([_accuracy(classifier, material, shots, d) for d in range(DRAWS)])), 1
            )
    means = {f"mean {shots}": round(float(np.mean([found[f"{data} {shots}"] for data in VALIDATION])), 1) for shots in SHOTS}
    return found | means


def _accuracy(classifier: Logistic, material: Material, shots: int, draw: int) -> float:
    task = make_task(material, shots, 1000, 0, draw)
    with threadpool_limits(1):
        answers = classifier.fit(task.texts, task.labels).predict(task.queries)
    return float(np.mean(answers == task.truth))


# Comparison


def compare(folder: Path) -> list[str]:
    """Accuracy with logistic regression, its paired difference from MiniLM, and texts per second of processor time."""
    torch.set_num_threads(1)
    teacher = replace(bge_small(), threads=1)
    encoders: dict[str, Encoder] = {"minilm": MiniLM(), "bge-small": teacher, "student": OnnxEncoder(folder, "", threads=1)}
    right: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for data in VALIDATION:
        material = validation_material(data)
        known = {name: unit_vectors(encoder)(material.texts) for name, encoder in encoders.items()}
        for shots, draws in COMPARED_DRAWS.items():
            more = 3 if data == "requests:val" and shots == max(SHOTS) else 1  # few queries are left there
            for draw in range(draws * more):
                support, query = _examples_and_queries(material.labels, shots, draw)
                for name, vectors in known.items():
                    head = LogisticRegression(C=10, max_iter=200).fit(vectors[support], material.labels[support])
                    right[data, shots, name].append(float(np.mean(head.predict(vectors[query]) == material.labels[query])))
    rates = _rates(encoders)
    rows = [[name, f"{rates[name]:.0f}", *(_with_difference(right, name, shots) for shots in SHOTS)] for name in encoders]
    return lines_of(["encoder", "texts/s", *(f"{shots}-shot" for shots in SHOTS)], rows)


def _examples_and_queries(labels: Any, shots: int, draw: int) -> tuple[list[int], list[int]]:
    rng = np.random.default_rng([draw, 7])
    members = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    parts = (slice(0, shots), slice(shots, shots + COMPARED_QUERIES))
    return tuple([int(i) for positions in members for i in positions[part]] for part in parts)  # type: ignore[return-value]


def _with_difference(right: Mapping[tuple[str, int, str], list[float]], name: str, shots: int) -> str:
    """The mean over the tasks, and its difference from MiniLM with a 95 % interval over the draws, in percent."""
    mean = 100 * np.mean([np.mean(right[data, shots, name]) for data in VALIDATION])
    gains = [100 * (np.array(right[data, shots, name]) - right[data, shots, "minilm"]) for data in VALIDATION]
    width = 1.96 * sum(gain.var(ddof=1) / len(gain) for gain in gains) ** 0.5 / len(gains)
    return f"{mean:.1f} ({np.mean([gain.mean() for gain in gains]):+.1f} ± {width:.1f})"


def _rates(encoders: Mapping[str, Encoder], rounds: int = 4) -> dict[str, float]:
    """Short texts per second of processor time, the median of rounds in which each encoder has its turn."""
    texts = [text for data in ("requests:val", "huffpost:val") for text in validation_material(data).texts][:384]
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, encoder in encoders.items():
            begun = time.process_time()
            encoder.encode(texts)
            found[name].append(len(texts) / (time.process_time() - begun))
    return {name: float(np.median(values)) for name, values in found.items()}


# Steps


def train_student(work: Path, arguments: argparse.Namespace) -> None:
    """Train, or go on training."""
    texts = json.loads((work / TEXTS).read_text())[: arguments.texts]
    peers: dict[str, Encoder] = {"teacher": bge_small(), "minilm": MiniLM()}
    theirs, own = (teacher_vectors(peer, texts, work / name) for name, peer in peers.items())
    targets = _targets(theirs, own, work / "directions.npy")
    training = StudentTraining(arguments.layers, arguments.steps, half=arguments.half)
    folder = work / str(arguments.layers)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "peers.json").exists():
        write_json(folder / "peers.json", {name: validate(unit_vectors(peer)) for name, peer in peers.items()})
    student = new_student(SOURCE, targets.shape[1], training.layers)
    if arguments.start:
        layers = exported_layers if arguments.start.suffix == ".onnx" else layers_of
        start_with(layers(arguments.start), student)
    train(student, SOURCE, texts, targets, training, folder, validate, arguments.every)


def _targets(theirs: Floats, own: Floats, path: Path) -> Floats:
    """The targets, with the same directions each time a run is resumed."""
    if path.exists():
        return unit_length(side_by_side(theirs, own) @ np.load(path))
    targets, directions = joint_targets(theirs, own, BGE_SMALL.dim)
    with atomic_writer(path) as stream:
        np.save(stream, directions, allow_pickle=False)
    return targets


def export_student(work: Path, layers: int, out: Path) -> None:
    """Write the files of the trained student, and the cosine of its vectors before and after."""
    student = new_student(SOURCE, BGE_SMALL.dim, layers)
    load_student(work / str(layers) / CHECKPOINT, student)
    export(student, SOURCE, out)
    texts = [text for data in VALIDATION for text in validation_material(data).texts[:200]]
    exact, small = encode(student, SOURCE, texts), OnnxEncoder(out, "").encode(texts)
    alike = (own_part(exact) * own_part(small)).sum(axis=1)
    for path in sorted(out.iterdir()):
        print(f"{path.name}: {path.stat().st_size:,} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    print(f"cosine of 8 bits and single precision: mean {alike.mean():.4f}, least {alike.min():.4f}")


def main() -> None:
    """Run the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=("texts", "train", "export", "compare"))
    parser.add_argument("--work", type=Path, required=True, help="Folder of texts, vectors and checkpoints.")
    parser.add_argument("--out", type=Path, help="Folder of the exported files. Default: FOLDER/encoder.")
    parser.add_argument("--texts", type=int, default=None, help="Use only the first texts.")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--steps", type=int, default=StudentTraining.steps)
    parser.add_argument(
        "--start",
        type=Path,
        help="Checkpoint or exported model.onnx of another run, whose layers to start with instead of MiniLM's.",
    )
    parser.add_argument("--half", action="store_true", help="Train in bfloat16.")
    parser.add_argument("--every", type=float, default=600.0, help="Seconds between checkpoints.")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "The number of unique classes")  # with one example per class
    if "texts" in arguments.what:
        write_texts(arguments.work)
    if "train" in arguments.what:
        train_student(arguments.work, arguments)
    out = arguments.out or arguments.work / "encoder"
    if "export" in arguments.what:
        export_student(arguments.work, arguments.layers, out)
    if "compare" in arguments.what:
        with threadpool_limits(1):
            print("\n".join(compare(out)))


if __name__ == "__main__":
    main()
