"""Theorem 1 in numbers: how much attention and accuracy change when words are replaced by others as frequent.

    python benchmarks/invariance.py [--data demo] [--epochs 10] [--episodes 100]

A bijection of the vocabulary maps each word to another with the same count in the source pool. With P(y | x) from counts the
attention cannot change; with a classifier on word vectors it does, because the new words have other vectors. Printed: the mean
total variation distance between the attention on a text and on its perturbed copy (0: the same, 1: disjoint), the mean relative
change of t, and the accuracy before and after.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np

from handful.corpus import Texts
from handful.episodes import EpisodeSpec
from handful.functional import Floats, Ints
from handful.model import FewShotModel, ModelSettings
from handful.runs import Material, RunSettings, load_material
from handful.signatures import SignatureSettings
from handful.training import TrainingSettings, meta_train

ESTIMATORS = {
    "count": SignatureSettings(estimator="count", measure="entropy"),
    "softmax": SignatureSettings(estimator="softmax", measure="entropy", penalty=0.001),
    "ridge, entropy": SignatureSettings(estimator="ridge", measure="entropy", penalty=0.001),
    "ridge, max": SignatureSettings(estimator="ridge", measure="max", penalty=0.01),
}


def bijection(counts: Ints, rng: np.random.Generator) -> Ints:
    """A random permutation of the words within each group of equal counts."""
    image = np.arange(len(counts))
    for count in np.unique(counts):
        group = np.flatnonzero(counts == count)
        image[group] = rng.permutation(group)
    return image


def perturb(texts: Texts, image: Ints) -> Texts:
    """Every word replaced by its image."""
    return replace(texts, ids=image[texts.ids], rows=image[texts.rows])


@dataclass(frozen=True)
class Change:
    """What the perturbation did, on average over episodes."""

    attention: float
    t: float
    before: float
    after: float


def compare(model: FewShotModel, material: Material, spec: EpisodeSpec, episodes: int) -> Change:
    """The episodes of the test classes, as they are and perturbed."""
    sampler, rows = material.sampler("test", spec, 0), []
    image = bijection(sampler.training_pool.counts, np.random.default_rng(0))
    for index in range(episodes):
        episode = sampler[index]
        support, queries = material.texts.select(episode.support), material.texts.select(episode.query)
        pairs = (support, queries), (perturb(support, image), perturb(queries, image))
        tasks = [(model.fit(labelled, episode.support_labels, episode.pool), texts) for labelled, texts in pairs]
        first, second = (task.weights(texts) for task, texts in tasks)
        t = [task.batch(texts).signals[:, 1] for task, texts in tasks]
        right = [float(np.mean(task.score(texts).argmax(-1) == episode.query_labels)) for task, texts in tasks]
        rows.append((_variation(first, second, queries), float(np.mean(np.abs(t[0] - t[1]) / t[0])), *right))
    return Change(*np.mean(rows, axis=0))


def _variation(first: Floats, second: Floats, texts: Texts) -> float:
    return float(np.mean(np.add.reduceat(np.abs(first - second), texts.offsets[:-1]) / 2))


def main() -> None:
    """Train each estimator's generator briefly, then print its line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="demo")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=100)
    arguments = parser.parse_args()
    spec = EpisodeSpec(5, 1, 15)
    print("| P(y \\| x) | attention moved | t changed | accuracy before | after |\n|---|---|---|---|---|")
    for name, signature in ESTIMATORS.items():
        settings = RunSettings(arguments.data, model=ModelSettings(signature=signature))
        material = load_material(settings)
        samplers = (material.sampler(part, spec, 0) for part in ("train", "val"))
        model = FewShotModel.initial(settings.model, material.texts.table.shape[1])
        trained, _ = meta_train(model, material.texts, *samplers, TrainingSettings(epochs=arguments.epochs))
        found = compare(trained, material, spec, arguments.episodes)
        print(
            f"| {name} | {found.attention:.3f} | {100 * found.t:.0f} % | {100 * found.before:.1f} | {100 * found.after:.1f} |"
        )


if __name__ == "__main__":
    main()
