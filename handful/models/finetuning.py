"""Fine-tuning: pre-train a representation on all training classes, then train it further on each support set."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import MissingExtraError
from ..utils.functional import Array, array_namespace, cross_entropy, distances
from .attention import Parameters
from .heads import initial_layers, part_of
from .maml import for_each_task, task_logits
from .representations import Batch, Noise, Representation


class NotConvergedWarning(UserWarning):
    """Fine-tuning reached its last step before the gradient was small."""


@dataclass(frozen=True)
class Finetune:
    """FT: pre-train on all training classes, fine-tune on the support set (Chen et al., 2019).

    Pre-training classifies by the cosine to a learned direction per class, which keeps the vectors of a class together. On a
    support set, a new network of 300 ReLU units is trained together with the representation until the gradient is small.
    """

    classes: int  # of the training corpus
    hidden: int = 300
    tolerance: float = 1e-3
    rate: float = 0.01
    most_steps: int = 500
    scale: float = 10.0  # initial scale of the cosines

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        directions = rng.normal(size=(self.classes, width)).astype(np.float32)
        return {"directions": directions, "log_scale": np.array(np.log(self.scale), np.float32)}

    def class_logits(self, parameters: Parameters, vectors: Array) -> Array:
        """Logits over all classes of the corpus, for pre-training: (documents, classes)."""
        scale = array_namespace(vectors).exp(parameters["log_scale"])
        return scale * (1 - distances(vectors, parameters["directions"], "cosine"))

    def adapt(
        self, representation: Representation, parameters: Parameters, support: Batch, targets: Array, noise: Noise = None
    ) -> Callable[[Batch], Array]:
        """Fine-tune on several tasks at once, each with its own copy of every parameter: see `Maml.adapt`."""
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("Fine-tuning", "train") from error
        tasks = len(targets)
        tuned = self._start(representation, parameters, support, targets)
        # Adam's usual eps would amplify rounding errors in tiny gradients to whole steps
        optimizer = torch.optim.Adam(tuned.values(), self.rate, eps=1e-3, fused=True)
        going = torch.ones(tasks, dtype=torch.bool)
        with torch.enable_grad():
            for _ in range(self.most_steps):
                optimizer.zero_grad()
                (cross_entropy(task_logits(representation, tuned, support, tasks, 0, None), targets) * tasks).backward()
                squares = [value.grad.flatten(1).square().sum(1) for value in tuned.values()]  # (tasks,) each
                going &= torch.stack(squares).sum(0).sqrt() >= self.tolerance
                if not going.any():
                    break
                before = [value.detach().clone() for value in tuned.values()]
                optimizer.step()
                for value, old in zip(tuned.values(), before, strict=True):
                    value.data[~going] = old[~going]  # a finished task does not change, whatever the other tasks do
        remaining = int(going.sum())
        if remaining:
            sentence = f"{remaining} of {tasks} tasks did not converge in {self.most_steps} steps of fine-tuning."
            warnings.warn(sentence, NotConvergedWarning, stacklevel=2)
        final = {name: value.detach() for name, value in tuned.items()}
        return lambda queries: task_logits(representation, final, queries, tasks, 0, None)

    def _start(
        self, representation: Representation, parameters: Parameters, support: Batch, targets: Array
    ) -> dict[str, Array]:
        """A copy of the pre-trained representation and a new network for each task."""
        inner = part_of(parameters, "representation")
        width = representation(inner, support).shape[-1]
        fresh = initial_layers(
            np.random.default_rng(0), (width, self.hidden, 1)
        )  # all classes start with the same weights, so their order does not matter
        start = {f"representation.{name}": value.detach() for name, value in inner.items()}
        start |= {f"head.{name}": targets.new_tensor(value) for name, value in fresh.items()}
        return {name: value.clone().requires_grad_() for name, value in for_each_task(start, targets).items()}
