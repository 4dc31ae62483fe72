"""A sentence encoder of our own: a small student that learns to give texts the vectors of a larger teacher.

Hinton, Vinyals & Dean 2015, "Distilling the Knowledge in a Neural Network"; Reimers & Gurevych 2020, "Making Monolingual
Sentence Embeddings Multilingual using Knowledge Distillation". The student has the layers of MiniLM and one linear map. It is
trained on unlabelled texts: each vector, and the similarities of the texts in a batch, should be those of the teacher and of
MiniLM side by side. Trained towards the teacher alone, a student forgets what MiniLM knows about requests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch.nn import functional

from ..embeddings.contextual import Encoder as Reader
from ..embeddings.vector_cache import Encoder
from ..errors import DataError
from ..utils.files import atomic_writer, write_atomic
from ..utils.functional import Floats, Ints, unit_length

BLOCK = 8192  # texts whose teacher vectors are saved together
LONGEST = 96  # pieces of a text, including special ones
PIECES = 6144  # of a batch at most, including padding
SHARPNESS = 10.0  # of the similarities inside a batch
SIMILARITIES = 0.5  # weight of their loss
TEACHER_SHARE = 0.7  # of the squared length of targets; the rest is that of the encoder whose layers the student has
MAP_PENALTY = 1e-3  # of the least-squares map, times the mean squared length
WEIGHT_STEPS, INPUT_STEPS = 63, 255  # of rounded numbers: seven bits with a sign, and eight without
MAPPED = 12_000  # texts that it is fitted to
CHECKPOINT, CURVE = "checkpoint.safetensors", "curve.jsonl"
LAYERS = "transformer."  # begins the names of a student's layers
OPTIMIZER = "optimizer."  # begins the names of its moments
Encode = Callable[[Sequence[str]], Floats]
Evaluate = Callable[[Encode], Mapping[str, Any]]


@dataclass(frozen=True)
class StudentTraining:
    """The settings of a training run; the rates fall linearly to zero in the last part of the steps."""

    layers: int = 6
    steps: int = 4000
    batch: int = 256  # texts
    rate: float = 2e-4
    map_rate: float = 6e-4
    warm_up: int = 200  # steps
    falling: float = 0.6  # share of the steps
    rounded: float = 0.2  # share of the steps, at the end, with numbers rounded as in the exported file
    half: bool = False  # compute in bfloat16, which is faster on some processors
    seed: int = 0

    def factor(self, step: int) -> float:
        """The share of the full rates at a step."""
        return min(1.0, (step + 1) / self.warm_up, (self.steps - step) / max(1.0, self.falling * self.steps))


# The teacher


def teacher_vectors(teacher: Encoder, texts: Sequence[str], folder: Path) -> Floats:
    """The teacher's vector of each text in half precision, (texts, dim); saved block by block, so that a run can be resumed."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for first in range(0, len(texts), BLOCK):
        path = folder / f"{first:07d}.npy"
        wanted = texts[first : first + BLOCK]
        if not path.exists() or len(np.load(path, mmap_mode="r")) < len(wanted):
            with atomic_writer(path) as stream:
                np.save(stream, teacher.encode(wanted).astype(np.float16), allow_pickle=False)
        parts.append(np.load(path)[: len(wanted)])
    return np.concatenate(parts)


def centred(vectors: Floats) -> Floats:
    """Unit vectors without the mean of all: (texts, dim)."""
    exact = vectors.astype(np.float32)
    return unit_length(exact - exact.mean(axis=0))  # type: ignore[no-any-return]


def joint_targets(teacher: Floats, own: Floats, dim: int) -> tuple[Floats, Floats]:
    """The targets of a student for texts, (texts, dim), and the directions that make them, (dim of both, dim).

    These are the principal directions of the teacher's vectors next to those of the encoder whose layers the student has.
    """
    both = side_by_side(teacher, own)
    _, directions = np.linalg.eigh(both.T @ both)  # ascending
    return unit_length(both @ directions[:, -dim:]), directions[:, -dim:]


def side_by_side(teacher: Floats, own: Floats) -> Floats:
    """Both vectors of each text without the means, each scaled to its share: (texts, dim of both)."""
    return np.concatenate([TEACHER_SHARE**0.5 * centred(teacher), (1 - TEACHER_SHARE) ** 0.5 * centred(own)], axis=1)


# The student


class Student(torch.nn.Module):
    """The first layers of an encoder, the mean of the pieces, and a linear map: a unit vector for each text."""

    def __init__(self, transformer: Any, dim: int) -> None:
        super().__init__()
        self.transformer = transformer
        self.map = torch.nn.Linear(transformer.config.hidden_size, dim)

    def round_numbers(self, rounded: bool) -> None:
        """Compute with numbers rounded as in the exported file, so that training makes up for it, or with exact ones."""
        for module in [*self.transformer.encoder.modules(), self.map]:
            if isinstance(module, torch.nn.Linear):
                vars(module).pop("forward", None)
                if rounded:
                    module.forward = partial(rounded_linear, module)  # type: ignore[method-assign]

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The vectors of texts: (texts, dim)."""
        return functional.normalize(self.map(self.means(input_ids, attention_mask)), dim=-1)

    def means(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The mean of each text's pieces in the last layer: (texts, hidden)."""
        states = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        shares = attention_mask[:, :, None].to(states.dtype)
        return (states * shares).sum(dim=1) / shares.sum(dim=1)  # type: ignore[no-any-return]


def rounded_linear(module: torch.nn.Linear, inputs: torch.Tensor) -> torch.Tensor:
    """A linear layer with weights and inputs rounded as in the exported file; gradients ignore the rounding."""
    steps = module.weight.abs().amax(dim=1, keepdim=True) / WEIGHT_STEPS  # (out, 1)
    weights = module.weight + (torch.round(module.weight / steps) * steps - module.weight).detach()
    given = inputs.float()
    low, high = given.amin().clamp(max=0), given.amax().clamp(min=0)
    step = (high - low).clamp(min=1e-12) / INPUT_STEPS
    given = given + (torch.round(given / step) * step - given).detach()
    return functional.linear(given, weights, module.bias)


def new_student(source: str, dim: int, layers: int) -> Student:
    """A student with some of the source's layers, spread evenly; its map is not yet fitted."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformer = AutoModel.from_pretrained(Reader(source).folder, attn_implementation="eager")  # others have slow gradients
    transformer.pooler = None
    every = transformer.encoder.layer
    if not 1 <= layers <= len(every):
        raise DataError(f"A student of {layers} layers cannot be made from {len(every)}: give at most {len(every)}.")
    kept = np.linspace(0, len(every) - 1, layers).round().astype(int)
    transformer.encoder.layer = torch.nn.ModuleList([every[i] for i in kept])
    transformer.config.num_hidden_layers = layers
    for module in transformer.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # targets are exact: there is nothing to guard against
    return Student(transformer, dim)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Texts as pieces, including special ones; long texts are cut."""

    rows: list[Ints]

    @property
    def lengths(self) -> Ints:
        """The number of pieces of each text."""
        return np.array([len(row) for row in self.rows], np.int64)

    def padded(self, chosen: Sequence[int] | Ints) -> tuple[torch.Tensor, torch.Tensor]:
        """The pieces of some texts, and which of them are not padding: (texts, longest) each."""
        rows = [self.rows[i] for i in chosen]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


def to_pieces(source: str, texts: Sequence[str]) -> Pieces:
    """Texts as the source's tokenizer reads them."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{Reader(source).folder}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    return Pieces([np.array(found.ids, np.int64) for found in tokenizer.encode_batch_fast(list(texts))])


def encode(student: Student, source: str, texts: Sequence[str]) -> Floats:
    """The student's vectors of texts: (texts, dim)."""
    pieces = to_pieces(source, texts)
    found = np.zeros((len(texts), student.map.out_features), np.float32)
    with torch.inference_mode():
        for chosen in batches(pieces.lengths, 64):
            found[chosen] = student(*pieces.padded(chosen)).numpy()
    return found


def batches(lengths: Ints, most: int, rng: np.random.Generator | None = None) -> list[Ints]:
    """Positions in batches of similar length; with a generator, the batches and what is in them are drawn."""
    noise = rng.random(len(lengths)) if rng else np.zeros(len(lengths))
    order = np.lexsort((noise, lengths))
    found: list[Ints] = []
    first = 0
    for last in range(1, len(order) + 1):
        full = last - first == most or (last < len(order) and (last - first + 1) * lengths[order[last]] > PIECES)
        if full or last == len(order):
            found.append(order[first:last])
            first = last
    return [found[i] for i in rng.permutation(len(found))] if rng else found


def fit_map(student: Student, pieces: Pieces, targets: Floats) -> None:
    """Set the map to the least-squares map from the untrained student's means to the targets."""
    means = np.zeros((len(targets), student.map.in_features), np.float64)
    with torch.inference_mode():
        for chosen in batches(pieces.lengths, 64):
            means[chosen] = student.means(*pieces.padded(chosen)).numpy()
    centre = means.mean(axis=0)
    inside = means - centre
    gram = inside.T @ inside
    gram += MAP_PENALTY * np.trace(gram) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram, inside.T @ (targets - targets.mean(axis=0)))
    offset = targets.mean(axis=0) - centre @ weights
    with torch.no_grad():
        student.map.weight.copy_(torch.from_numpy(weights.T))
        student.map.bias.copy_(torch.from_numpy(offset))


# Training


def distillation_loss(vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """1 − cosine, plus how far the similarities inside the batch are from the teacher's."""
    distance = (1 - (vectors * targets).sum(dim=1)).mean()
    own = torch.eye(len(vectors), dtype=torch.bool)
    mine, theirs = ((SHARPNESS * one @ one.T).masked_fill(own, -1e4) for one in (vectors, targets))
    divergence = functional.kl_div(mine.log_softmax(dim=1), theirs.log_softmax(dim=1), reduction="batchmean", log_target=True)
    return distance + SIMILARITIES * divergence


def train(
    student: Student,
    source: str,
    texts: Sequence[str],
    targets: Floats,
    training: StudentTraining,
    folder: Path,
    evaluate: Evaluate | None = None,
    every: float = 600.0,
) -> Student:
    """Train a student, with a checkpoint and a line of the learning curve in `folder` at intervals of `every` seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = to_pieces(source, texts)
    mapped = {id(parameter) for parameter in student.map.parameters()}
    groups = [
        {"params": [p for p in student.parameters() if id(p) not in mapped], "full": training.rate},
        {"params": list(student.map.parameters()), "full": training.map_rate},
    ]
    optimizer = torch.optim.AdamW(groups, lr=training.rate, fused=True)
    step, seen, seconds = _resume(folder / CHECKPOINT, student, optimizer)
    if step == 0 and not (folder / CHECKPOINT).exists():
        some = slice(0, MAPPED)
        fit_map(student, Pieces(pieces.rows[some]), targets[some])
    meter = _Meter(folder, student, optimizer, source, evaluate, training, seconds)
    if step == 0:
        meter.write(0, 0, None)
    losses: list[float] = []
    exact = round((1 - training.rounded) * training.steps)  # steps without rounding
    student.round_numbers(step >= exact)
    for chosen in _from(step, pieces.lengths, training):
        if step == exact:
            student.round_numbers(True)
        for group in optimizer.param_groups:
            group["lr"] = group["full"] * training.factor(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=training.half):
            vectors = student(*pieces.padded(chosen))
        loss = distillation_loss(vectors.float(), torch.from_numpy(targets[chosen]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        step, seen = step + 1, seen + len(chosen)
        if meter.due(every) or step == training.steps:
            meter.write(step, seen, float(np.mean(losses)))
            losses = []
    student.round_numbers(False)
    return student


def _from(step: int, lengths: Ints, training: StudentTraining) -> Iterator[Ints]:
    """The batches of the remaining steps; each epoch draws its own from the seed and its number."""
    done = epoch = 0
    while done < training.steps:
        drawn = batches(lengths, training.batch, np.random.default_rng([training.seed, epoch]))
        yield from drawn[max(0, step - done) : training.steps - done]
        done, epoch = done + len(drawn), epoch + 1


def _resume(path: Path, student: Student, optimizer: torch.optim.Optimizer) -> tuple[int, int, float]:
    """The step, the number of texts seen and the seconds so far of the last checkpoint, if there is one."""
    if not path.exists():
        return 0, 0, 0.0
    load_student(path, student)
    with safe_open(path, "pt") as saved:
        about = saved.metadata()
        for name in saved.keys():  # noqa: SIM118 - not a mapping
            if name.startswith(OPTIMIZER):
                _, moment, parameter = name.split(".", 2)
                optimizer.state[student.get_parameter(parameter)][moment] = saved.get_tensor(name)
    return int(about["step"]), int(about["seen"]), float(about["seconds"])


def load_student(path: Path, student: Student) -> None:
    """Give a student the parameters of a checkpoint."""
    with safe_open(path, "pt") as saved:
        names = [name for name in saved.keys() if not name.startswith(OPTIMIZER)]  # noqa: SIM118
        student.load_state_dict({name: saved.get_tensor(name) for name in names})


def layers_of(path: Path) -> dict[str, torch.Tensor]:
    """The layers of a checkpoint of another run, but not its map, which is fitted to the targets."""
    with safe_open(path, "pt") as saved:
        names = [name for name in saved.keys() if name.startswith(LAYERS)]  # noqa: SIM118
        return {name: saved.get_tensor(name) for name in names}


def start_with(layers: Mapping[str, torch.Tensor], student: Student) -> None:
    """Give a student all of its layers, of another run or of an exported student."""
    missing = [name for name in student.state_dict() if name.startswith(LAYERS) and name not in layers]
    if missing:
        raise DataError(f"The student to start with has no {missing[0]}: give one with as many layers.")
    student.load_state_dict(dict(layers), strict=False)


class _Meter:
    """Writes checkpoints and the learning curve."""

    def __init__(
        self,
        folder: Path,
        student: Student,
        optimizer: torch.optim.Optimizer,
        source: str,
        evaluate: Evaluate | None,
        training: StudentTraining,
        seconds: float,
    ) -> None:
        self.folder, self.student, self.optimizer = folder, student, optimizer
        self.source, self.evaluate, self.training = source, evaluate, training
        self.begun = time.monotonic() - seconds
        self.last = time.monotonic()

    def due(self, every: float) -> bool:
        return time.monotonic() - self.last >= every

    def write(self, step: int, seen: int, loss: float | None) -> None:
        seconds = time.monotonic() - self.begun
        moments = {
            f"{OPTIMIZER}{moment}.{name}": value
            for name, parameter in self.student.named_parameters()
            for moment, value in self.optimizer.state[parameter].items()
        }
        about = {"step": str(step), "seen": str(seen), "seconds": str(seconds), "training": json.dumps(asdict(self.training))}
        write_atomic(self.folder / CHECKPOINT, save(self.student.state_dict() | moments, about))
        found = self.evaluate(lambda texts: encode(self.student, self.source, texts)) if self.evaluate else {}
        line = {"step": step, "texts": seen, "seconds": round(seconds), "loss": loss and round(loss, 4), **found}
        with (self.folder / CURVE).open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        self.last = time.monotonic()
