"""Few-shot compared with supervised learning: how many labelled texts an ordinary classifier needs to be as good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..bench.grid import whole_of
from ..bench.tables import OUR, paper_figures
from ..data.corpus import Texts
from ..meta.evaluation import Score, evaluate
from ..models.representations import ENTITIES, POSITION_NUMBERS, Cnn
from ..utils.functional import Ints
from ..utils.progress import progress_bar
from ..utils.wording import counted
from .figures import COLOURS, DASHES, Figure, panels
from .fitting import Network, Schedule, fit_network, predict
from .inspected_run import InspectedRun, NotApplicableError
from .weighting import WAY, check_attention, data_title, smallest_class

SIZES = (1, 5, 10, 20, 50, 100, 200, 500)  # labelled texts per class
TESTED = 200  # maximum number of test texts per class
REPETITIONS, QUICK_REPETITIONS, QUICK_SIZE = 5, 2, 20
EPISODES, QUICK_EPISODES = 500, 100
SHOTS = (1, 5)
SCHEDULE = Schedule(updates=500, patience=5)


def network_for(texts: Texts) -> Network:
    """A convolutional network (Kim, 2014) with a softmax layer; for relations, it also uses positions of words."""
    positions = ENTITIES * POSITION_NUMBERS if texts.positions.shape[1] == ENTITIES else 0
    return Network(Cnn(positions=positions))


def draw_task(members: Sequence[Ints], most: int, rng: np.random.Generator) -> tuple[list[Ints], list[Ints]]:
    """The training texts of each class, in the order in which they are added, and the test texts.

    At most half of the smallest class is used for testing, and every class contributes equally many.
    """
    smallest = min(len(part) for part in members)
    tested = min(TESTED, smallest // 2)
    mixed = [rng.permutation(part) for part in members]
    return [part[tested:][:most] for part in mixed], [part[:tested] for part in mixed]


def supervised_accuracy(texts: Texts, learned: Sequence[Ints], tested: Sequence[Ints], seed: int = 0) -> float:
    """Accuracy of a network trained on the `learned` texts of each class only, until it fits them."""
    train, test = np.concatenate(learned), np.concatenate(tested)
    labels, truth = (np.repeat(np.arange(len(parts)), [len(part) for part in parts]) for parts in (learned, tested))
    network = network_for(texts)
    parameters = fit_network(network, texts.select(train), labels, np.arange(len(train)), seed, SCHEDULE)
    return float(np.mean(predict(network, parameters, texts.select(test)).argmax(1) == truth))


def supervised_curve(inspected: InspectedRun, repetitions: int, most: int) -> list[dict[str, Any]]:
    """Mean accuracy and its standard deviation over tasks of test classes, for each number of labelled texts per class.

    Within a task, each training set extends the previous one, and the test texts stay the same, so its numbers are comparable.
    """
    test = inspected.inputs.dataset.split.test
    way = min(WAY, len(test))
    sizes = [size for size in SIZES if size <= most]
    found: dict[int, list[float]] = {}
    with progress_bar("Supervised networks", repetitions * sum(sizes), inspected.quiet) as bar:
        for number in range(repetitions):
            rng = np.random.default_rng([inspected.seed, number])
            members = [np.flatnonzero(inspected.corpus.labels == label) for label in rng.choice(test, way, replace=False)]
            learned, tested = draw_task(members, most, rng)
            for size in sizes:
                if len(tested[0]) and size <= min(len(part) for part in learned):
                    first = [part[:size] for part in learned]
                    found.setdefault(size, []).append(supervised_accuracy(inspected.texts, first, tested, number))
                bar.update(number * sum(sizes) + sum(s for s in sizes if s <= size))
    return [
        {
            "method": "supervised CNN",
            "examples_a_class": size,
            "examples": size * way,
            "accuracy": float(np.mean(values)),
            "deviation": float(np.std(values)),
            "repetitions": len(values),
        }
        for size, values in found.items()
    ]


def few_shot_lines(inspected: InspectedRun, episodes: int) -> list[dict[str, Any]]:
    """Accuracy of the method with 1 and 5 shots: that of the run trained with that shot if there is one, else of this run."""
    runs = [inspected, *(run for run in inspected.against if _comparable(inspected, run))]
    shots = [shot for shot in SHOTS if shot < smallest_class(inspected)]
    return [_few_shot_line(_trained_at(runs, shot), shot, episodes) for shot in shots]


def _comparable(inspected: InspectedRun, other: InspectedRun) -> bool:
    first, second = inspected.settings, other.settings
    return first.data == second.data and first.model.representation == second.model.representation


def _trained_at(runs: Sequence[InspectedRun], shot: int) -> InspectedRun:
    return next((run for run in runs if run.settings.episode.shot == shot), runs[0])


def _few_shot_line(run: InspectedRun, shot: int, episodes: int) -> dict[str, Any]:
    spec = replace(run.settings.episode, way=min(WAY, len(run.inputs.dataset.split.test)), shot=shot)
    score = Score.of(evaluate(run.model.to_torch(), run.texts, run.sampler("test", spec), episodes, quiet=run.quiet))
    paper = paper_figures("fasttext").get((OUR, whole_of(run.inputs.dataset.name), shot, False))
    return {
        "method": f"ours, {shot} shot",
        "examples_a_class": shot,
        "examples": shot * spec.way,
        "accuracy": score.mean,
        "ci95": score.ci95,
        "episodes": score.episodes,
        "run": run.name,
        "trained_at_shot": run.settings.episode.shot,
        "paper": paper.accuracy / 100 if paper else None,
    }


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure of the supervised network's curve, with the method as lines."""
    check_attention(inspected)
    repetitions = QUICK_REPETITIONS if inspected.quick else REPETITIONS
    curve = supervised_curve(inspected, repetitions, QUICK_SIZE if inspected.quick else max(SIZES))
    if not curve:
        raise NotApplicableError(f"Test classes of {data_title(inspected)} have a single text: give data with more per class.")
    lines = few_shot_lines(inspected, QUICK_EPISODES if inspected.quick else EPISODES)
    caption = " ".join(_sentences(inspected, curve, lines))
    values = ", ".join(f"{row['accuracy']:.1%} with {row['examples_a_class']}" for row in curve)
    ours = " and ".join(f"{line['accuracy']:.1%} with {line['examples_a_class']}" for line in lines)
    alt = f"Line chart of accuracy by labelled texts per class. Supervised network: {values}. Ours: {ours}."
    title = f"A few labelled texts compared with many ({data_title(inspected)})"
    return [Figure("few-shot-against-supervised", title, caption, alt, [*curve, *lines], lambda: draw(curve, lines))]


def _sentences(
    inspected: InspectedRun, curve: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    way = curve[0]["examples"] // curve[0]["examples_a_class"]
    last = curve[-1]
    yield (
        f"Accuracy on {way} classes of {data_title(inspected)} that the few-shot model was not trained on. The curve is an "
        "ordinary convolutional network on word vectors, trained from scratch on the given number of labelled texts per class: "
        f"the mean over {counted(curve[0]['repetitions'], 'task')}, with the standard deviation shaded, tested on up to "
        f"{TESTED} other texts per class. The lines are the few-shot model, which was trained on other classes and sees 1 or "
        f"5 labelled texts of each of these: the mean over {lines[0]['episodes']} tasks."
    )
    for line in lines:
        better = next((row["examples_a_class"] for row in curve if row["accuracy"] >= line["accuracy"]), None)
        needed = f"needs at most {better}" if better else f"is not as good even with {last['examples_a_class']}"
        shots = counted(line["examples_a_class"], "labelled text")
        yield f"With {shots} per class, the model reaches {line['accuracy']:.1%}; the network {needed}."
        if line["trained_at_shot"] != line["examples_a_class"]:
            yield f"However, it was trained on tasks with {counted(line['trained_at_shot'], 'labelled text')} per class."
    paper = [f"{100 * line['paper']:.1f} % with {line['examples_a_class']}" for line in lines if line["paper"]]
    if paper:
        yield f"The paper's model: {', '.join(paper)}."
    if last["examples_a_class"] < max(SIZES):
        why = "This is a quick look" if inspected.quick else "The classes have no more texts"
        yield f"{why}: the curve ends at {last['examples_a_class']} texts per class."
    yield f"Word vectors: {inspected.vectors} (the paper: fastText)."


def draw(curve: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]) -> Any:
    """Draw the curve with its band, and a line for each shot."""
    drawing, axis = panels(7.2, 4.2)
    sizes = [row["examples_a_class"] for row in curve]
    mean, deviation = (np.array([100 * row[name] for row in curve]) for name in ("accuracy", "deviation"))
    axis.fill_between(sizes, mean - deviation, mean + deviation, color=COLOURS[0], alpha=0.2, linewidth=0)
    axis.plot(sizes, mean, color=COLOURS[0], marker="o", label="supervised network")
    for number, line in reversed(list(enumerate(lines))):
        value = 100 * line["accuracy"]
        look = {"color": COLOURS[3], "linestyle": DASHES[1 - number]}
        axis.axhline(value, label=f"ours, {counted(line['examples_a_class'], 'text')} per class: {value:.1f} %", **look)
    axis.set_xscale("log")
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.minorticks_off()
    axis.set_xlabel("labelled texts per class")
    axis.set_ylabel("accuracy, %")
    axis.legend(loc="lower right")
    return drawing
