"""Masked language modelling: pre-train an encoder on unlabelled texts before meta-training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.corpus import Texts, ragged_positions
from ..embeddings.contextual import Encoder, batches_by_size
from ..utils.functional import Ints
from ..utils.parallel import available_threads, torch_threads
from ..utils.progress import progress_bar
from .training import Arrays, TrainingSettings, TrainingState, adam_moments, restore_adam

RATE, BATCH, PATIENCE = 5e-5, 32, 2
MASKED, REPLACED, KEPT = 0.15, 0.1, 0.1  # shares: of all pieces; of these, replaced and kept (Devlin et al., 2019)
MEASURED = 1000  # windows per part on which perplexity is measured


class MaskedLanguageModel:
    """An encoder that learns to predict masked pieces of texts (Devlin et al., 2019), the first half of P-MAML.

    Perplexity is measured after every epoch, always with the same masks: on texts of the training classes (seen), of the
    validation classes, which decide when to stop, and of the test classes (unseen), which influence nothing.
    """

    def __init__(self, encoder: Encoder, seed: int = 0) -> None:
        self.encoder, self.seed = encoder, seed
        self._module = encoder.masked_language_model(seed)
        self._asked: tuple[Ints, Ints] = (np.empty(0, int), np.empty(0, int))  # rows and columns of the pieces to predict
        head = next(part for name, part in self._module.named_children() if name != self._module.base_model_prefix)
        head.register_forward_pre_hook(lambda _, inputs: inputs[0][self._asked])  # all pieces would cost as much as encoding
        self.parameters: Arrays = {name: value.detach().numpy() for name, value in self._module.named_parameters()}

    def train(
        self,
        parts: Mapping[str, Texts],  # train, val and test
        epochs: int,
        state: TrainingState | None = None,
        save: Callable[[TrainingState], None] = lambda state: None,
        quiet: bool = False,
    ) -> Arrays:
        """Train, and return the encoder's parameters of the best epoch."""
        rows = {part: [row for row in self.encoder.windows(texts)[1] if len(row)] for part, texts in parts.items()}
        state = state or TrainingState(self.parameters, self.parameters)
        settings = TrainingSettings(epochs=epochs, patience=PATIENCE)
        with torch_threads(available_threads()), progress_bar("Pre-training", epochs, quiet, lines=True) as bar:
            while not state.finished(settings):
                state = self._epoch(rows, state)
                save(state)
                perplexity = state.history[-1]["val_perplexity"]
                bar.update(state.epoch, f"Pre-training epoch {state.epoch} · validation perplexity {perplexity:.1f}")
        return {name: state.best[f"{self._module.base_model_prefix}.{name}"] for name in self.encoder.initial()}

    def _epoch(self, rows: Mapping[str, Sequence[Ints]], state: TrainingState) -> TrainingState:
        import torch

        batches = batches_by_size(rows["train"], BATCH)
        tensors = {name: torch.tensor(value) for name, value in state.parameters.items()}
        optimizer = restore_adam(tensors, RATE, state.moments, state.epoch * len(batches))
        losses = []
        for number in np.random.default_rng([self.seed, state.epoch]).permutation(len(batches)):
            noise = np.random.default_rng([self.seed, state.epoch, int(number)])
            loss, pieces = self._loss(tensors, [rows["train"][i] for i in batches[number]], noise)
            optimizer.zero_grad()
            (loss / pieces).backward()
            optimizer.step()
            losses.append(float(loss.detach()) / pieces)
        with torch.no_grad():
            names = {"train": "seen_perplexity", "val": "val_perplexity", "test": "unseen_perplexity"}
            measured = {names[part]: self._perplexity(tensors, part_rows) for part, part_rows in rows.items()}
        line = {"epoch": state.epoch + 1, "train_loss": float(np.mean(losses)), **measured}
        parameters = {name: value.detach().numpy() for name, value in tensors.items()}
        better = not state.history or line["val_perplexity"] < state.history[state.best_epoch - 1]["val_perplexity"]
        return TrainingState(
            parameters,
            parameters if better else state.best,
            adam_moments(tensors, optimizer),
            state.epoch + 1 if better else state.best_epoch,
            [*state.history, line],
        )

    def _perplexity(self, tensors: Mapping[str, Any], rows: Sequence[Ints]) -> float:
        """exp of the mean loss over masked pieces, with the same texts and masks each time."""
        chosen = np.random.default_rng([self.seed, 1]).permutation(len(rows))[:MEASURED]
        total = 0.0
        pieces = 0
        for number, batch in enumerate(batches_by_size([rows[i] for i in chosen], BATCH)):
            noise = np.random.default_rng([self.seed, 2, number])
            loss, count = self._loss(tensors, [rows[chosen[i]] for i in batch], noise)
            total += float(loss)
            pieces += count
        return float(np.exp(total / pieces))

    def _loss(self, tensors: Mapping[str, Any], rows: Sequence[Ints], noise: np.random.Generator) -> tuple[Any, int]:
        """Summed cross-entropy of the masked pieces, and their number."""
        import torch

        truth = np.concatenate(rows)
        chosen, shown = self._mask(truth, noise)
        lengths = np.array([len(row) for row in rows])
        inputs = self.encoder.inputs(np.split(shown, np.cumsum(lengths)[:-1]))
        row = np.repeat(np.arange(len(rows)), lengths)
        column = ragged_positions(np.zeros_like(lengths), lengths)
        self._asked = row[chosen], column[chosen] + self.encoder.special_before
        logits = torch.func.functional_call(self._module, dict(tensors), args=(), kwargs=inputs).logits  # (masked, pieces)
        wanted = torch.from_numpy(truth[chosen])
        return torch.nn.functional.cross_entropy(logits, wanted, reduction="sum"), len(chosen)

    def _mask(self, truth: Ints, noise: np.random.Generator) -> tuple[Ints, Ints]:
        """The pieces to predict, and the pieces as the encoder sees them."""
        chosen = noise.permutation(len(truth))[: max(1, round(MASKED * len(truth)))]
        shown = truth.copy()
        fate = noise.random(len(chosen))
        replaced = chosen[(fate >= KEPT) & (fate < KEPT + REPLACED)]
        shown[chosen[fate >= KEPT + REPLACED]] = self.encoder.mask
        shown[replaced] = noise.integers(self._module.config.vocab_size, size=len(replaced))
        return chosen, shown
