"""Meta-training: a loop over episodes with early stopping on validation classes, a history, and a checkpoint per epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..data.corpus import Texts
from ..data.episodes import Sampler
from ..errors import TrainingError
from ..models.few_shot import EpisodeBatch, FewShotModel
from ..utils.parallel import compute_ahead, torch_threads
from ..utils.progress import progress_bar
from ..utils.settings import check_settings, option
from .evaluation import prepare_batches, score_batch

Arrays = dict[str, np.ndarray[Any, Any]]
MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's moments, by torch's names


@dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast to train; the defaults are those of the paper."""

    learning_rate: float = option(1e-3, "Learning rate for Adam.", above=0)
    episodes: int = option(100, "Training episodes per epoch.", at_least=1)
    tasks: int = option(1, "Episodes per update, over which the gradient is averaged.", at_least=1)
    validation_episodes: int = option(100, "Validation episodes after each epoch.", at_least=1)
    patience: int = option(20, "Epochs without improvement before stopping.", at_least=1)
    epochs: int = option(1000, "Maximum number of epochs; 0 keeps the initial parameters.", at_least=0)
    pretraining_epochs: int = option(
        0,
        "Maximum epochs of masked language modelling on the texts of the training classes, if an encoder is trained.",
        at_least=0,
    )
    monitor: Literal["loss", "accuracy"] = option("loss", "Measure that must improve on the validation classes: {choices}.")
    curve_episodes: int = option(
        0,
        "Record the accuracy on this many episodes of training and of test classes after each epoch; only for curves.",
        at_least=0,
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass
class TrainingState:
    """All that the next epoch depends on, as plain arrays and numbers, so that a resumed run gives the same result."""

    parameters: Arrays
    best: Arrays
    moments: Arrays = field(default_factory=dict)  # "exp_avg.NAME", "exp_avg_sq.NAME"
    best_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """Number of epochs done."""
        return len(self.history)

    def finished(self, settings: TrainingSettings) -> bool:
        """Whether the patience or the epochs are exhausted."""
        return self.epoch >= settings.epochs or self.epoch - self.best_epoch >= settings.patience


def initial_state(model: FewShotModel) -> TrainingState:
    """The state before the first epoch."""
    arrays = model.to_numpy().parameters
    return TrainingState(arrays, arrays)


def meta_train(
    model: FewShotModel,
    texts: Texts,
    train: Sampler,
    validation: Sampler,
    settings: TrainingSettings,
    state: TrainingState | None = None,
    save: Callable[[TrainingState], None] = lambda state: None,
    quiet: bool = False,
    watched: Mapping[str, Sampler] = MappingProxyType({}),
) -> tuple[FewShotModel, list[dict[str, float]]]:
    """Meta-train; return the model of the best epoch, and a history with one line per epoch. `save` is called after each epoch.

    The accuracy on the curve episodes of each sampler in `watched` is recorded as `NAME_accuracy`, and not used otherwise.
    """
    if not model.trainable:  # the nearest-neighbour head has nothing to learn
        return model, []
    state = state or initial_state(model)
    checks = list(prepare_batches(model, texts, validation, range(settings.validation_episodes)))
    curves = {name: list(prepare_batches(model, texts, s, range(settings.curve_episodes))) for name, s in watched.items()}
    with torch_threads(model.threads), progress_bar("Training", settings.epochs, quiet, lines=True) as bar:
        while not state.finished(settings):
            state = _epoch(model, texts, train, checks, curves, settings, state)
            save(state)
            bar.update(state.epoch, _describe(state))
    return model.to_numpy().with_parameters(state.best), state.history


def _describe(state: TrainingState) -> str:
    last = state.history[-1]
    return f"Epoch {state.epoch} · validation {100 * last['val_accuracy']:.1f} % · best at {state.best_epoch}"


def _epoch(
    model: FewShotModel,
    texts: Texts,
    train: Sampler,
    checks: list[EpisodeBatch],
    curves: Mapping[str, list[EpisodeBatch]],
    settings: TrainingSettings,
    state: TrainingState,
) -> TrainingState:
    """Run one epoch: the training episodes, then the validation episodes and those of the curves."""
    learner = model.with_parameters(state.parameters).to_torch()
    steps = state.epoch * -(-settings.episodes // settings.tasks)
    optimizer = restore_adam(learner.trainable, settings.learning_rate, state.moments, steps)
    start = state.epoch * settings.episodes
    updates = [
        range(i, min(i + settings.tasks, start + settings.episodes))
        for i in range(start, start + settings.episodes, settings.tasks)
    ]
    seen = list(take_steps(learner, optimizer, texts, train, updates))
    trained = learner.with_parameters({name: value.detach() for name, value in learner.parameters.items()})
    scored = [score_batch(trained, prepared) for prepared in checks]
    line = {
        "epoch": state.epoch + 1,
        "train_loss": float(np.mean([loss for loss, _ in seen])),
        "train_accuracy": float(np.mean([accuracy for _, accuracy in seen])),
        "val_loss": float(np.mean(np.concatenate([losses for _, losses in scored]))),
        "val_accuracy": float(np.mean(np.concatenate([accuracies for accuracies, _ in scored]))),
    }
    for name, batches in curves.items():
        line[f"{name}_accuracy"] = float(np.mean(np.concatenate([score_batch(trained, batch)[0] for batch in batches])))
    parameters = trained.to_numpy().parameters
    better = not state.history or validation_objective(line, settings) < validation_objective(
        state.history[state.best_epoch - 1], settings
    )
    return TrainingState(
        parameters,
        parameters if better else state.best,
        adam_moments(learner.trainable, optimizer),
        state.epoch + 1 if better else state.best_epoch,
        [*state.history, line],
    )


def validation_objective(line: dict[str, float], settings: TrainingSettings) -> float:
    """The value that early stopping minimises, from a line of history."""
    return line["val_loss"] if settings.monitor == "loss" else -line["val_accuracy"]


def take_steps(
    learner: FewShotModel, optimizer: Any, texts: Texts, train: Sampler, updates: Sequence[Sequence[int]]
) -> Iterator[tuple[float, float]]:
    """Update from one or more episodes at a time; yield their mean loss and accuracy before each update.

    The statistics of the next episodes are computed meanwhile.
    """
    most = learner.at_once
    divided = [[indices[i : i + most] for i in range(0, len(indices), most)] for indices in updates]
    prepared = compute_ahead(
        lambda part: learner.prepare(texts, [train[i] for i in part]), ((part,) for parts in divided for part in parts)
    )
    for parts in divided:
        sizes = [len(part) for part in parts]
        optimizer.zero_grad()
        results = [_add_gradient(learner, next(prepared), train.seed, part[0], len(part) / sum(sizes)) for part in parts]
        optimizer.step()
        loss, accuracy = np.average(np.array(results), axis=0, weights=sizes)
        yield float(loss), float(accuracy)


def _add_gradient(learner: FewShotModel, prepared: EpisodeBatch, seed: int, index: int, share: float) -> tuple[float, float]:
    """Add a share of the gradient of the mean loss of episodes `index`, ...; return that loss and the accuracy."""
    loss, accuracy = learner.loss(prepared, np.random.default_rng([seed, index, 1]))
    value = float(loss.detach())
    if not math.isfinite(value):
        raise TrainingError(
            f"The loss of training episode {index} (seed {seed}) is {value}: check its texts and vectors, "
            "or lower the learning rate."
        )
    (share * loss).backward()
    return value, accuracy


def restore_adam(parameters: Mapping[str, Any], learning_rate: float, moments: Arrays, steps: int) -> Any:
    """An Adam optimizer with the moments it had after `steps` steps."""
    import torch

    optimizer = torch.optim.Adam([value.requires_grad_() for value in parameters.values()], learning_rate, fused=True)
    for name, value in parameters.items():
        if moments:
            memory = {moment: torch.tensor(moments[f"{moment}.{name}"]) for moment in MOMENTS}
            optimizer.state[value] = {"step": torch.tensor(float(steps)), **memory}
    return optimizer


def adam_moments(parameters: Mapping[str, Any], optimizer: Any) -> Arrays:
    """Adam's moments, for a checkpoint."""
    return {
        f"{moment}.{name}": optimizer.state[value][moment].numpy().copy()
        for name, value in parameters.items()
        for moment in MOMENTS
    }
