"""The demonstration: train on everyday messages of some classes, test on classes never seen, and show what was attended to."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .corpus import find_data
from .evaluation import Score, paired_difference
from .explanation import shade
from .model import FewShotModel, ModelSettings
from .runs import Evaluation, Material, RunSettings, evaluate_run, load_material, load_run, train_run
from .streams import read_lines
from .text import tokenize
from .training import TrainingSettings

METHODS = {"mean": "mean + ridge", "idf": "idf + ridge", "attention": "signatures + ridge"}
TRAINING = TrainingSettings(patience=10, epochs=40)
SHOWN = 4  # query texts


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demonstration measured, by method, over the same episodes."""

    evaluations: dict[str, Evaluation]
    model: FewShotModel
    material: Material
    settings: RunSettings

    def gain(self, over: str) -> Score:
        """How much better the method is than another, episode by episode."""
        return paired_difference(self.evaluations["attention"].accuracies, self.evaluations[over].accuracies)


def run_demo(episodes: int = 1000, seed: int = 0, training: TrainingSettings = TRAINING, quiet: bool = False) -> DemoResult:
    """Meta-train mean, idf and attention, each with a ridge head, and test them on the same episodes of unseen classes."""
    settings = RunSettings(seed=seed, training=training)
    material = load_material(settings)
    evaluations = {}
    with TemporaryDirectory() as scratch:
        for name in METHODS:
            run = replace(settings, model=ModelSettings(representation=name))  # type: ignore[arg-type]
            folder = Path(scratch) / name
            train_run(run, folder, material, quiet)
            evaluations[name] = evaluate_run(folder, episodes=episodes, material=material, quiet=quiet)
        _, model = load_run(folder)
    return DemoResult(evaluations, model, material, settings)


def shaded_queries(result: DemoResult, index: int = 0) -> list[tuple[str, str, Any]]:
    """A few queries of one episode: the true class, the predicted one, and the text shaded by attention."""
    episode = result.material.sampler("test", result.settings.episode, result.settings.seed)[index]
    texts, names = result.material.texts, result.material.corpus.classes
    task = result.model.fit(texts.select(episode.support), episode.support_labels, episode.pool)
    raw = [json.loads(line)["text"] for _, line in read_lines(find_data("demo")[0])]
    rows = []
    for position in np.linspace(0, len(episode.query) - 1, SHOWN).astype(int):
        document = episode.query[[position]]
        text, queries = raw[document[0]], texts.select(document)
        guess, truth = int(task.score(queries)[0].argmax()), episode.query_labels[position]
        spans = [(word.start, word.end) for word in tokenize(text)]
        rows.append((names[episode.classes[truth]], names[episode.classes[guess]], shade(text, spans, task.weights(queries))))
    return rows


def print_demo(episodes: int = 1000, seed: int = 0, quiet: bool = False) -> None:
    """The demonstration on the terminal."""
    from rich.console import Console
    from rich.table import Table

    console, start = Console(highlight=False), time.perf_counter()
    split = load_material(RunSettings()).dataset.split
    console.print(
        f"Messages to service desks, {len(split.train)} classes to learn from, {len(split.test)} others to be tested on: "
        "five of them at a time, one example each.\n"
    )
    result = run_demo(episodes, seed, quiet=quiet)
    table = Table("method", "accuracy %", "signatures + ridge is better by")
    for name, label in METHODS.items():
        table.add_row(label, str(result.evaluations[name].score), "" if name == "attention" else str(result.gain(name)))
    console.print(table)
    console.print(f"Mean of {episodes} episodes with its 95 % interval; chance is 20 %.\n")
    console.print("Words of four unseen texts, shaded by the attention they get (white: none, orange: most):\n")
    for truth, guess, shaded in shaded_queries(result):
        verdict = "right" if truth == guess else f"wrong, it is {truth}"
        console.print(shaded)
        console.print(f"  → {guess} ({verdict})\n", style="bold")
    console.print(f"{time.perf_counter() - start:.0f} seconds.")
