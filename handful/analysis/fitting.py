"""An ordinary classifier trained on many labelled texts, for comparison in analyses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.corpus import Texts
from ..errors import TrainingError
from ..meta.training import Arrays, restore_adam
from ..models.attention import Parameters
from ..models.heads import initial_layers, part_of, perceptron
from ..models.representations import Batch, Noise, Representation
from ..utils.functional import Array, Floats, Ints, array_namespace, cross_entropy, one_hot
from ..utils.parallel import torch_threads

DOCUMENTS_AT_ONCE = 256  # texts per pass without gradients


@dataclass(frozen=True)
class Network:
    """A representation of texts, and a perceptron that classifies it; without hidden units, a softmax layer."""

    representation: Representation
    hidden: tuple[int, ...] = ()
    dropout: float = 0.0  # of the perceptron's hidden layers

    def initial(self, rng: np.random.Generator, dim: int, classes: int) -> Arrays:
        """Initial parameters for word vectors of length `dim`."""
        widths = (self.representation.width(dim), *self.hidden, classes)
        parts = {"representation": self.representation.initial(rng, dim), "head": initial_layers(rng, widths)}
        return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}

    def logits(self, parameters: Parameters, texts: Texts, noise: Noise = None) -> Array:
        """Logits of each text: (texts, classes)."""
        vectors = self.representation(part_of(parameters, "representation"), batch_like(texts, parameters), noise)
        return perceptron(part_of(parameters, "head"), vectors, self.dropout, noise)


def batch_like(texts: Texts, parameters: Parameters) -> Batch:
    """Texts without statistics, for NumPy or torch parameters."""
    some = next(iter(parameters.values()))
    return Batch(texts.gathered(), array_namespace(some).zeros((len(texts.ids), 0), dtype=some.dtype))


@dataclass(frozen=True)
class Schedule:
    """When to stop: when the loss on the watched texts is small enough, stops improving, or the updates are used up."""

    rate: float = 1e-3
    batch: int = 32  # texts per update
    updates: int = 2000  # at most
    patience: int = 3  # epochs
    enough: float = 0.01


def fit_network(
    network: Network,
    texts: Texts,
    labels: Ints,
    watched: Ints,
    seed: int = 0,
    schedule: Schedule | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Arrays:
    """Train, and return the parameters of the epoch with the lowest loss on the watched texts.

    The network learns from the other texts or, if all are watched, from all. `tell` is called with the share of updates done.
    """
    import torch

    schedule = schedule or Schedule()
    targets = one_hot(labels, int(labels.max()) + 1)
    others = np.setdiff1d(np.arange(len(texts)), watched)
    learned = others if len(others) else watched
    best = network.initial(np.random.default_rng([seed, 0]), texts.table.shape[1], targets.shape[1])
    parameters = {name: torch.tensor(value) for name, value in best.items()}
    optimizer = restore_adam(parameters, schedule.rate, {}, 0)
    lowest, waited, updates = math.inf, 0, 0
    with torch_threads():
        while updates < schedule.updates and waited < schedule.patience and lowest > schedule.enough:
            noise = np.random.default_rng([seed, 1, updates])
            for chosen in _batches(noise.permutation(learned), schedule.batch):
                _update(network, parameters, optimizer, texts.select(chosen), targets[chosen], noise)
                updates += 1
                tell(min(updates / schedule.updates, 1))
            now = {name: value.detach().numpy().copy() for name, value in parameters.items()}
            loss = float(cross_entropy(predict(network, now, texts.select(watched)), targets[watched]))
            if not math.isfinite(loss):
                raise TrainingError(f"The loss of a supervised classifier is {loss}: check its texts and vectors.")
            waited = 0 if loss < lowest else waited + 1
            lowest, best = (loss, now) if loss < lowest else (lowest, best)
    tell(1)
    return best


def _update(network: Network, parameters: Parameters, optimizer: Any, texts: Texts, targets: Floats, noise: Noise) -> None:
    import torch

    optimizer.zero_grad()
    cross_entropy(network.logits(parameters, texts, noise), torch.from_numpy(targets)).backward()
    optimizer.step()


def _batches(documents: Ints, size: int) -> Iterator[Ints]:
    return (documents[start : start + size] for start in range(0, len(documents), size))


def predict(network: Network, parameters: Arrays, texts: Texts) -> Floats:
    """Logits of each text, computed a few hundred at a time: (texts, classes)."""
    tensors = as_tensors(parameters)
    return in_parts(texts, lambda part: network.logits(tensors, part))


def as_tensors(parameters: Arrays) -> dict[str, Any]:
    """Parameters as torch tensors, for the compiled LSTM, which is faster than NumPy."""
    import torch

    return {name: torch.from_numpy(value) for name, value in parameters.items()}


def in_parts(texts: Texts, function: Callable[[Texts], Array]) -> Floats:
    """Apply a function to the texts a few hundred at a time, to bound its memory."""
    parts = _batches(np.arange(len(texts)), DOCUMENTS_AT_ONCE)
    return np.concatenate([np.asarray(function(texts.select(part))) for part in parts])
