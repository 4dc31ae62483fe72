"""The demonstration: train on everyday messages of some classes, test on unseen classes, and show the attention."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..data.datasets import find_data
from ..data.text import tokenize
from ..models.few_shot import FewShotModel
from ..models.settings import ModelSettings
from ..utils.files import read_objects
from ..utils.shading import shade
from ..utils.terminal import console, one_line
from .evaluation import Score, paired_difference
from .experiment import Evaluation, evaluate_run, load_run, train_run
from .inputs import ExperimentData, load_experiment_data
from .settings import RunSettings
from .training import TrainingSettings

METHODS = {"mean": "mean + ridge", "idf": "idf + ridge", "attention": "signatures + ridge"}
TRAINING = TrainingSettings(patience=10, epochs=40)
SHOWN = 4  # query texts


@dataclass(frozen=True, eq=False)
class DemoResult:
    """The results of the demonstration, by method, over the same episodes."""

    evaluations: dict[str, Evaluation]
    model: FewShotModel
    inputs: ExperimentData
    settings: RunSettings

    def gain(self, over: str) -> Score:
        """The method's paired gain in accuracy over another one."""
        return paired_difference(self.evaluations["attention"].accuracies, self.evaluations[over].accuracies)


def run_demo(episodes: int = 1000, seed: int = 0, training: TrainingSettings = TRAINING, quiet: bool = False) -> DemoResult:
    """Meta-train mean, idf and attention, each with a ridge head, and test them on the same episodes of unseen classes."""
    settings = RunSettings(seed=seed, training=training)
    inputs = load_experiment_data(settings)
    evaluations = {}
    with TemporaryDirectory() as scratch:
        for name in METHODS:
            run = replace(settings, model=ModelSettings(representation=name))
            folder = Path(scratch) / name
            train_run(run, folder, inputs, quiet)
            evaluations[name] = evaluate_run(folder, episodes=episodes, inputs=inputs, quiet=quiet)
        model = load_run(folder).model
    return DemoResult(evaluations, model, inputs, settings)


def shaded_queries(result: DemoResult, index: int = 0) -> list[tuple[str, str, Any]]:
    """A few queries of one episode: the true class, the predicted class, and the text shaded by attention."""
    episode = result.inputs.sampler("test", result.settings.episode, result.settings.seed)[index]
    texts = result.inputs.texts
    names = result.inputs.corpus.classes
    task = result.model.fit(texts.select(episode.support), episode.support_labels, episode.pool)
    raw = [row["text"] for _, row in read_objects(find_data("demo")[0], "install Handful again")]
    rows = []
    for position in np.linspace(0, len(episode.query) - 1, SHOWN).astype(int):
        document = episode.query[[position]]
        text = raw[document[0]]
        queries = texts.select(document)
        guess = int(task.score(queries)[0].argmax())
        truth = episode.query_labels[position]
        spans = [(word.start, word.end) for word in tokenize(text)]
        rows.append((names[episode.classes[truth]], names[episode.classes[guess]], shade(text, spans, task.weights(queries))))
    return rows


def print_demo(episodes: int = 1000, seed: int = 0, quiet: bool = False) -> None:
    """The demonstration on the terminal."""
    from rich.table import Table
    from rich.text import Text

    terminal = console()
    start = time.perf_counter()
    split = load_experiment_data(RunSettings()).dataset.split
    terminal.print(
        f"Messages to service desks, {len(split.train)} classes to learn from, {len(split.test)} others to test on: "
        "five of them at a time, with one example each.\n"
    )
    result = run_demo(episodes, seed, quiet=quiet)
    table = Table("method", "accuracy %", "gain of signatures + ridge")
    for name, label in METHODS.items():
        table.add_row(label, str(result.evaluations[name].score), "" if name == "attention" else str(result.gain(name)))
    terminal.print(table)
    terminal.print(f"Mean of {episodes} episodes with its 95 % interval; chance is 20 %.\n")
    terminal.print("Words of four unseen texts, shaded by the attention they get (white: none, orange: most):\n")
    for truth, guess, shaded in shaded_queries(result):
        verdict = "right" if truth == guess else f"wrong, it is {truth}"
        terminal.print(shaded)
        terminal.print(Text(one_line(f"  → {guess} ({verdict})"), style="bold"), "", sep="\n")
    terminal.print(f"{time.perf_counter() - start:.0f} seconds.")
