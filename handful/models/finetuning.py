"""Fine-tuning: pre-train a representation on all training classes, then train it further on each support set."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import MissingExtraError
from ..utils.functional import Array, Floats, Ints, array_namespace, cross_entropy, distances, one_hot
from .attention import Parameters
from .heads import initial_layers, part_of
from .maml import for_each_task, task_logits
from .representations import Batch, Noise, Represents
from .settings import ModelSettings


class NotConvergedWarning(UserWarning):
    """Fine-tuning reached its last step before the gradient was small."""


@dataclass(frozen=True)
class Finetune:
    """FT: pre-train on all training classes, fine-tune on the support set (Chen et al., 2019).

    Pre-training classifies by the cosine to a learned direction per class, which keeps the vectors of a class together; with
    `layered`, the cosine is taken after a layer of 300 ReLU units. On a support set, a new network of 300 ReLU units is trained
    together with the representation until the gradient is small.
    """

    classes: int  # of the corpus
    outputs: tuple[int, ...] = ()  # the classes that pre-training predicts; none: all
    layered: bool = False
    hidden: int = 300
    tolerance: float = 1e-3
    rate: float = 0.01
    most_steps: int = 500
    scale: float = 10.0  # initial scale of the cosines

    @classmethod
    def from_settings(cls, settings: ModelSettings) -> Finetune:
        own = settings.finetune
        layered = own.pretraining_head == "perceptron"
        return cls(own.classes, own.outputs, layered, rate=own.rate, most_steps=own.steps)

    def initial(self, rng: np.random.Generator, width: int) -> dict[str, np.ndarray[Any, Any]]:
        shape = len(self.outputs) or self.classes, self.hidden if self.layered else width
        directions = rng.normal(size=shape).astype(np.float32)
        layer = initial_layers(rng, (width, self.hidden)) if self.layered else {}
        return {"directions": directions, "log_scale": np.array(np.log(self.scale), np.float32), **layer}

    def class_logits(self, parameters: Parameters, vectors: Array) -> Array:
        """Logits over the classes that pre-training predicts: (documents, outputs)."""
        xp = array_namespace(vectors)
        if self.layered:
            vectors = xp.clip(vectors @ parameters["weight0"] + parameters["bias0"], 0, None)  # (documents, hidden)
        return xp.exp(parameters["log_scale"]) * (1 - distances(vectors, parameters["directions"], "cosine"))

    def class_targets(self, classes: Ints) -> Floats:
        """One-hot targets of documents, given by their classes in the corpus: (documents, outputs)."""
        targets = one_hot(classes, self.classes)
        return targets[:, list(self.outputs)] if self.outputs else targets

    def adapt(
        self, representation: Represents, parameters: Parameters, support: Batch, targets: Array, noise: Noise = None
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

    def _start(self, representation: Represents, parameters: Parameters, support: Batch, targets: Array) -> dict[str, Array]:
        """A copy of the pre-trained representation and a new network for each task."""
        inner = part_of(parameters, "representation")
        width = representation(inner, support).shape[-1]
        fresh = initial_layers(
            np.random.default_rng(0), (width, self.hidden, 1)
        )  # all classes start with the same weights, so their order does not matter
        start = {f"representation.{name}": value.detach() for name, value in inner.items()}
        start |= {f"head.{name}": targets.new_tensor(value) for name, value in fresh.items()}
        return {name: value.clone().requires_grad_() for name, value in for_each_task(start, targets).items()}
