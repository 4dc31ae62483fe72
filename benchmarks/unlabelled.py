"""Measure how unlabelled texts change accuracy, including pools that are unlike the texts to classify.

python benchmarks/unlabelled.py --encoder words --out pools.jsonl
python benchmarks/unlabelled.py --encoder bge-small --data banking77 --pool 5000 --foreign huffpost:val --out pools.jsonl

as it comes      texts of the classes, neither queries nor examples
power law        the same, but the classes are as frequent as 1, 1/2, 1/3, …
30 %, 60 %       this share is texts of none of the classes: from another corpus, or from other classes of the data set
half absent      only texts of half of the classes
100 texts        the first 100
another corpus   no text of the classes

A task is DATA, or DATA@WAYS for some of its classes; a data set is named as in benchmarks/classifier.py. The classifier uses
label words unless --without-names is given. The table shows accuracy without the pool, and the paired difference with each
pool, in percent with 95 % intervals over the draws. Results are appended to the file, and an interrupted run is resumed.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from _encoders import few_shot_classifier
from _peers import ENCODERS, EXAMPLES, NAMES, OURS, POOL, Material, Task, draw_classes, fit_in_setting, load_texts, make_task
from _tables import interval, lines_of, whole_lines

from handful import FewShotClassifier
from handful.errors import HandfulWarning

TASKS = "huffpost:train+val,huffpost:train+val@5,fewrel:train+val@20,fewrel:train+val@5"
SHARES = (0.3, 0.6)
FEW = 100
SOURCES = OTHER, REST = ("another corpus", "other classes")  # of texts of none of the classes
MIXED = tuple(f"{share:.0%} {source}".replace("%", " %") for source in SOURCES for share in SHARES)
POOLS = ("as it comes", "power law", *MIXED, "half absent", f"{FEW} texts", OTHER)


@dataclass(frozen=True)
class Line:
    """The accuracy of one draw with one pool; the pool `none` has no texts."""

    encoder: str
    task: str
    foreign: str
    size: int  # texts in a pool
    queries: int
    names: bool
    seed: int
    shots: int
    draw: int
    pool: str = ""
    texts: int = 0
    accuracy: float = 0.0

    @property
    def key(self) -> tuple[Any, ...]:
        """The values that identify it, whatever the pool."""
        return tuple(asdict(self).values())[:9]


# Pools


def pools(
    task: Task, truth: Sequence[str], others: Sequence[str], foreign: Sequence[str], seed: Sequence[int]
) -> dict[str, Any]:
    """Texts of each pool by its name; `truth` are the classes of the task's unlabelled texts."""
    rng = np.random.default_rng(seed)
    texts = task.unlabelled
    ranks = dict(zip(task.classes, 1 + rng.permutation(len(task.classes)), strict=True))
    here = set(rng.permutation(task.classes)[: (len(task.classes) + 1) // 2].tolist())
    kept = {
        "power law": [rng.random() * ranks[label] < 1 for label in truth],
        "half absent": [label in here for label in truth],
    }
    found = {name: [text for text, one in zip(texts, keep, strict=True) if one] for name, keep in kept.items()}
    shares = [(source, share) for source in (foreign, others) for share in SHARES]
    found |= {name: mixed(texts, *pair) for name, pair in zip(MIXED, shares, strict=True) if pair[0]}
    return found | {"none": [], "as it comes": texts, f"{FEW} texts": texts[:FEW], OTHER: list(foreign[: len(texts)])}


def mixed(texts: Sequence[str], source: Sequence[str], share: float) -> list[str]:
    """As many texts as given, or fewer, of which this share comes from the source.

    >>> mixed(["a", "b", "c", "d"], ["x", "y"], 0.5), mixed(["a", "b", "c", "d"], ["x"], 0.5)
    (['a', 'b', 'x', 'y'], ['a', 'x'])
    """
    size = min(len(texts), int(len(source) / share))
    strange = round(share * size)
    return [*texts[: size - strange], *source[:strange]]


# One draw


@lru_cache(maxsize=4)
def texts_of(data: str) -> Material:
    """The texts of a data set, read once."""
    return load_texts(data)


def measure(classifier: FewShotClassifier, cell: Line) -> Iterator[Line]:
    """The accuracy of one draw with each pool."""
    data, _, ways = cell.task.partition("@")
    inputs, rng = texts_of(data), np.random.default_rng([cell.seed, cell.draw])
    chosen, rest = draw_classes(inputs, int(ways or 0), rng)
    task = make_task(chosen, cell.shots, cell.queries, cell.seed, cell.draw, unlabelled=cell.size)
    labels = dict(zip(chosen.texts, np.array(chosen.classes)[chosen.labels].tolist(), strict=True))
    truth = [labels[text] for text in task.unlabelled]
    others, foreign = (rng.permutation(np.array(part, object)).tolist() for part in (rest.texts, texts_of(cell.foreign).texts))
    base = NAMES if cell.names else EXAMPLES
    for name, pool in pools(task, truth, others, foreign, (cell.seed, cell.draw, 1)).items():
        given = Task(task.texts, task.labels, task.queries, task.truth, task.classes, pool)
        fit_in_setting(classifier, given, POOL if pool else base, names=cell.names)
        right = float(np.mean(classifier.predict(task.queries) == task.truth))
        yield Line(*cell.key, name, len(pool), right)


def cells_of(arguments: argparse.Namespace) -> Iterator[Line]:
    """All draws."""
    names = not arguments.without_names
    for task in arguments.data:
        about = (arguments.encoder, task, arguments.foreign, arguments.pool, arguments.queries, names, arguments.seed)
        for shots in (number for number in arguments.shots if number or names):
            yield from (Line(*about, shots, number) for number in range(arguments.draws))


# The file and the table


def table(lines: Sequence[Line]) -> list[str]:
    """A row for each task and number of shots."""
    by_row: dict[tuple[str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        by_row[line.task, line.shots][line.pool][line.draw] = line.accuracy
    measured = {line.pool for line in lines}
    heads = [name for name in POOLS if name in measured]
    rows = []
    for (task, shots), found in by_row.items():
        none = found["none"]
        gains = [[right - none[number] for number, right in found[name].items()] for name in heads]
        differences = [interval(gain, sign="+") if gain else "–" for gain in gains]
        rows.append([task, str(shots), str(len(none)), interval(list(none.values())), *differences])
    return lines_of(["task", "shots", "draws", "without", *heads], rows)


def parse() -> argparse.Namespace:
    """Parse the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=TASKS, help="Tasks, separated by commas. Default: validation classes.")
    parser.add_argument("--encoder", default=OURS[0], choices=ENCODERS)
    parser.add_argument("--shots", default="0,1,5", help="Numbers of examples per class, separated by commas.")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--queries", type=int, default=500, help="Maximum number of queries per draw.")
    parser.add_argument("--pool", type=int, default=1500, help="Maximum number of texts in a pool.")
    parser.add_argument("--foreign", default="requests", help="Data set that serves as the other corpus.")
    parser.add_argument(
        "--without-names", action="store_true", help="Ignore label words; there are no results without examples."
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vector-cache", type=Path, help="SQLite file that keeps vectors of the encoder.")
    parser.add_argument("--out", type=Path, default=Path("pools.jsonl"), help="Results file.")
    arguments = parser.parse_args()
    arguments.data = arguments.data.split(",")
    arguments.shots = [int(number) for number in arguments.shots.split(",")]
    return arguments


def main() -> None:
    """Measure what is missing, then print the table."""
    arguments = parse()
    warnings.simplefilter("ignore", HandfulWarning)  # texts that occur twice in the data
    wanted = list(cells_of(arguments))
    done = {line.key for line in read(arguments.out)}
    classifier = few_shot_classifier(arguments.encoder, arguments.vector_cache)
    for cell in (cell for cell in wanted if cell.key not in done):
        found = [json.dumps(asdict(line)) + "\n" for line in measure(classifier, cell)]
        with arguments.out.open("a") as stream:
            stream.write("".join(found))
        print(f"{cell.encoder} on {cell.task}, {cell.shots}-shot, draw {cell.draw}: done", file=sys.stderr)
    keys = {cell.key for cell in wanted}
    print("\n".join(table([line for line in read(arguments.out) if line.key in keys])))


def read(path: Path) -> list[Line]:
    """The lines of a file."""
    return [Line(**json.loads(line)) for line in whole_lines(path)]


if __name__ == "__main__":
    main()
