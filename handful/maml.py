"""MAML: parameters from which a few steps of gradient descent on a support set give a good classifier for its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .attention import Parameters
from .errors import MissingExtraError
from .functional import Array, cross_entropy
from .heads import initial_layers, perceptron
from .representations import Batch, Noise, Representation


@dataclass(frozen=True)
class Maml:
    """MAML: a network of one hidden layer of 300 ReLU units, adapted by ten gradient steps of 0.1 (Finn et al., 2017).

    The steps adapt the parameters of the representation too, where it has any. Meta-training differentiates through them
    (second order), or takes the adapted gradient for the meta-gradient (`first_order`). Every class starts from the same output
    weights, so that any way will do and the order of the labels does not matter (Ye and Chao, 2022).
    """

    first_order: bool = False
    steps: int = 10
    rate: float = 0.1
    hidden: int = 300
    dropout: float = 0.1

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        return initial_layers(rng, (width, self.hidden, 1))

    def adapt(
        self, representation: Representation, parameters: Parameters, support: Batch, targets: Array, noise: Noise = None
    ) -> Callable[[Batch], Array]:
        """Adapt to several tasks at once: each has its own copy of every parameter, along a first axis.

        `support` holds the documents of one task after the other, `targets` is (tasks, examples, classes). What comes back
        turns queries, of one task after the other, into logits (tasks, queries, classes).
        """
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("MAML", "train") from error
        tasks, classes = targets.shape[0], targets.shape[-1]
        shapes = {"head.weight1": (self.hidden, classes), "head.bias1": (classes,)}
        adapted = {name: value.expand(tasks, *shapes.get(name, value.shape)) for name, value in parameters.items()}
        training = any(value.requires_grad for value in parameters.values())
        with torch.enable_grad():
            if not training:
                adapted = {name: value.detach().clone().requires_grad_() for name, value in adapted.items()}
            for _ in range(self.steps):
                losses = cross_entropy(self._logits(representation, adapted, support, tasks, noise), targets) * tasks
                slopes = torch.autograd.grad(losses, list(adapted.values()), create_graph=training and not self.first_order)
                adapted = {
                    name: value - self.rate * slope for (name, value), slope in zip(adapted.items(), slopes, strict=True)
                }
        if not training:
            adapted = {name: value.detach() for name, value in adapted.items()}
        return lambda queries: self._logits(representation, adapted, queries, tasks, noise)

    def _logits(
        self, representation: Representation, parameters: Mapping[str, Array], batch: Batch, tasks: int, noise: Noise
    ) -> Array:
        """(tasks, documents a task, classes)."""
        inner = {
            name.removeprefix("representation."): v for name, v in parameters.items() if name.startswith("representation.")
        }
        head = {name.removeprefix("head."): v for name, v in parameters.items() if name.startswith("head.")}
        biases = {name: value[:, None] for name, value in head.items() if name.startswith("bias")}  # for every document
        vectors = representation(inner, batch, noise)
        return perceptron({**head, **biases}, vectors.reshape(tasks, -1, vectors.shape[-1]), self.dropout, noise)
