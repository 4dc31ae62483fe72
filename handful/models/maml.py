"""MAML: meta-learn parameters from which a few gradient steps on a support set give a good classifier for its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import MissingExtraError
from ..utils.functional import Array, cross_entropy
from .attention import Parameters
from .heads import initial_layers, last_layer, part_of, perceptron
from .representations import Batch, Noise, Represents
from .settings import ModelSettings


@dataclass(frozen=True)
class Maml:
    """MAML: a network with one hidden layer of 300 ReLU units, adapted by ten gradient steps of 0.1 (Finn et al., 2017).

    The steps also adapt the parameters of the representation, if it has any. Meta-training differentiates through the steps
    (second order), or uses the gradient at the adapted parameters instead (`first_order`). Every class starts from the same
    output weights, so any way works and the order of the labels does not matter (Ye and Chao, 2022).
    """

    first_order: bool = False
    steps: int = 10
    rate: float = 0.1
    hidden: int = 300  # 0: only a softmax layer
    dropout: float = 0.1

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Maml:
        own = settings.maml
        return cls(own.first_order, own.inner_steps, own.inner_rate, own.hidden)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return initial_layers(rng, (width, self.hidden, 1) if self.hidden else (width, 1))

    def adapt(
        self, representation: Represents, parameters: Parameters, support: Batch, targets: Array, noise: Noise = None
    ) -> Callable[[Batch], Array]:
        """Adapt to several tasks at once: each has its own copy of every parameter, along a first axis.

        `support` holds documents ordered by task, and `targets` is (tasks, examples, classes). The returned function turns
        queries, also ordered by task, into logits (tasks, queries, classes).
        """
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("MAML", "train") from error
        tasks, adapted = len(targets), for_each_task(parameters, targets)
        training = any(value.requires_grad for value in parameters.values())
        with torch.enable_grad():
            if not training:
                adapted = {name: value.detach().clone().requires_grad_() for name, value in adapted.items()}
            for _ in range(self.steps):
                losses = (
                    cross_entropy(task_logits(representation, adapted, support, tasks, self.dropout, noise), targets) * tasks
                )
                slopes = torch.autograd.grad(losses, list(adapted.values()), create_graph=training and not self.first_order)
                adapted = {
                    name: value - self.rate * slope for (name, value), slope in zip(adapted.items(), slopes, strict=True)
                }
        if not training:
            adapted = {name: value.detach() for name, value in adapted.items()}
        return lambda queries: task_logits(representation, adapted, queries, tasks, self.dropout, noise)


def for_each_task(parameters: Parameters, targets: Array) -> dict[str, Array]:
    """Every parameter repeated along a first axis of tasks, and the network's single output along the classes of `targets`."""
    last = last_layer(part_of(parameters, "head"))
    outputs = (f"head.weight{last}", f"head.bias{last}")
    return {
        name: value.expand(len(targets), *value.shape[:-1], targets.shape[-1] if name in outputs else value.shape[-1])
        for name, value in parameters.items()
        if not name.startswith("vectors.")  # those are shared by all tasks
    }


def task_logits(
    representation: Represents, parameters: Mapping[str, Array], batch: Batch, tasks: int, dropout: float, noise: Noise
) -> Array:
    """Logits of a network whose parameters all have a first axis of tasks: (tasks, documents per task, classes)."""
    head = part_of(parameters, "head")
    biases = {name: value[:, None] for name, value in head.items() if name.startswith("bias")}  # for every document
    vectors = representation(part_of(parameters, "representation"), batch, noise)
    return perceptron({**head, **biases}, vectors.reshape(tasks, -1, vectors.shape[-1]), dropout, noise)
