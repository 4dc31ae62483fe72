"""Theorem 1 in numbers: how much attention and accuracy change when words are replaced by equally frequent ones.

    python benchmarks/invariance.py [--data demo] [--epochs 10] [--episodes 100]

For each estimator of P(y | x), a generator is trained for a few epochs, then tested on tasks as they are and on tasks with
other words: see `handful.analysis.robustness`. The script prints the mean total variation distance between the attention on a
text and on its perturbed copy (0: the same, 1: disjoint), the mean relative change of t, and the accuracy before and after.
"""

from __future__ import annotations

import argparse

from handful.analysis.robustness import estimator_changes
from handful.data.episodes import EpisodeSpec
from handful.meta.inputs import load_experiment_data
from handful.meta.settings import RunSettings


def main() -> None:
    """Print one line per estimator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="demo")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=100)
    arguments = parser.parse_args()
    settings = RunSettings(arguments.data, episode=EpisodeSpec(5, 1, 15))
    print("| P(y \\| x) | attention moved | t changed | accuracy before | after |\n|---|---|---|---|---|")
    for row in estimator_changes(load_experiment_data(settings), settings, 0, arguments.epochs, arguments.episodes):
        accuracies = f"{100 * row['before']:.1f} | {100 * row['after']:.1f}"
        print(f"| {row['estimator']} | {row['attention']:.3f} | {100 * row['t']:.0f} % | {accuracies} |")


if __name__ == "__main__":
    main()
