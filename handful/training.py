"""Meta-training: one loop over episodes, early stopping on validation classes, a history, a checkpoint after every epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from .corpus import Texts
from .episodes import Sampler
from .errors import SettingError, TrainingError
from .evaluation import prepare_batches, score_batch
from .model import EpisodeBatch, FewShotModel
from .parallel import torch_threads
from .progress import progress_bar

Arrays = dict[str, np.ndarray[Any, Any]]
MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's memory, by torch's names


@dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast to train; the defaults are the paper's."""

    learning_rate: float = 1e-3
    episodes: int = 100  # an epoch
    tasks: int = 1  # episodes of one update: its gradient is their mean
    validation_episodes: int = 100
    patience: int = 20  # epochs without improvement before stopping
    epochs: int = 1000  # at most
    pretraining_epochs: int = 0  # of an encoder that is trained, on the texts of the training classes, at most
    monitor: Literal["loss", "accuracy"] = "loss"
    curve_episodes: int = 0  # of seen and of unseen classes, scored after each epoch for a learning curve; they decide nothing

    def __post_init__(self) -> None:
        if self.monitor not in ("loss", "accuracy"):
            raise SettingError(f"There is no monitor {self.monitor!r}: choose loss or accuracy.")
        for name in ("learning_rate", "episodes", "tasks", "validation_episodes", "patience", "epochs"):
            if not getattr(self, name) > 0:
                raise SettingError(f"{name} is {getattr(self, name)}: it must be above 0.")
        if self.curve_episodes < 0:
            raise SettingError(f"curve_episodes is {self.curve_episodes}: it must be 0, for no curve, or above.")


@dataclass
class TrainingState:
    """All that the next epoch depends on, as plain arrays and numbers, so that a killed run goes on to the same result."""

    parameters: Arrays
    best: Arrays
    moments: Arrays = field(default_factory=dict)  # "exp_avg.NAME", "exp_avg_sq.NAME"
    best_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return len(self.history)

    def finished(self, settings: TrainingSettings) -> bool:
        """Whether patience, or the number of epochs, has run out."""
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
    """The model with the parameters of its best epoch, and a line of history an epoch. `save` is called after each.

    The accuracy on the curve episodes of each sampler in `watched` is noted as `NAME_accuracy`, and used for nothing.
    """
    if not model.parameters:  # a nearest neighbour has nothing to learn
        return model, []
    state = state or initial_state(model)
    checks = list(prepare_batches(model, texts, validation, range(settings.validation_episodes)))
    curves = {name: list(prepare_batches(model, texts, s, range(settings.curve_episodes))) for name, s in watched.items()}
    with torch_threads(model.threads), progress_bar("Training", settings.epochs, quiet) as bar:
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
    """One step an episode, then the validation episodes, and those of the curves."""
    learner = model.with_parameters(state.parameters).to_torch()
    steps = state.epoch * -(-settings.episodes // settings.tasks)
    optimizer = restore_adam(learner.parameters, settings.learning_rate, state.moments, steps)
    start = state.epoch * settings.episodes
    updates = [
        range(i, min(i + settings.tasks, start + settings.episodes))
        for i in range(start, start + settings.episodes, settings.tasks)
    ]
    seen = [_step(learner, optimizer, texts, train, indices) for indices in updates]
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
    better = not state.history or badness(line, settings) < badness(state.history[state.best_epoch - 1], settings)
    return TrainingState(
        parameters,
        parameters if better else state.best,
        adam_moments(learner.parameters, optimizer),
        state.epoch + 1 if better else state.best_epoch,
        [*state.history, line],
    )


def badness(line: dict[str, float], settings: TrainingSettings) -> float:
    """What early stopping wants to be small, of a line of history."""
    return line["val_loss"] if settings.monitor == "loss" else -line["val_accuracy"]


def _step(learner: FewShotModel, optimizer: Any, texts: Texts, train: Sampler, indices: Sequence[int]) -> tuple[float, float]:
    """One update from one episode or a few; their mean loss and accuracy before it."""
    parts = [indices[i : i + learner.at_once] for i in range(0, len(indices), learner.at_once)]
    optimizer.zero_grad()
    results = np.array([_add_gradient(learner, texts, train, part, len(part) / len(indices)) for part in parts])
    optimizer.step()
    loss, accuracy = np.average(results, axis=0, weights=[len(part) for part in parts])
    return float(loss), float(accuracy)


def _add_gradient(
    learner: FewShotModel, texts: Texts, train: Sampler, indices: Sequence[int], share: float
) -> tuple[float, float]:
    """Add a share of the gradient of the mean loss of some episodes; that loss, and their accuracy."""
    prepared = learner.prepare(texts, [train[index] for index in indices])
    loss, accuracy = learner.loss(prepared, np.random.default_rng([train.seed, indices[0], 1]))
    value = float(loss.detach())
    if not math.isfinite(value):
        raise TrainingError(
            f"The loss of training episode {indices[0]} (seed {train.seed}) is {value}: look at its texts and vectors, "
            "or lower the learning rate."
        )
    (share * loss).backward()
    return value, accuracy


def restore_adam(parameters: Mapping[str, Any], learning_rate: float, moments: Arrays, steps: int) -> Any:
    """Adam over tensors, with the memory it had after so many steps."""
    import torch

    optimizer = torch.optim.Adam([value.requires_grad_() for value in parameters.values()], learning_rate, fused=True)
    for name, value in parameters.items():
        if moments:
            memory = {moment: torch.tensor(moments[f"{moment}.{name}"]) for moment in MOMENTS}
            optimizer.state[value] = {"step": torch.tensor(float(steps)), **memory}
    return optimizer


def adam_moments(parameters: Mapping[str, Any], optimizer: Any) -> Arrays:
    """Adam's memory, to go on from."""
    return {
        f"{moment}.{name}": optimizer.state[value][moment].numpy().copy()
        for name, value in parameters.items()
        for moment in MOMENTS
    }
