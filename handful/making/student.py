"""A sentence encoder of our own: a student with half of a teacher's weights that learns to give texts the teacher's vectors.

Hinton, Vinyals & Dean 2015, "Distilling the Knowledge in a Neural Network"; Reimers & Gurevych 2020, "Making Monolingual
Sentence Embeddings Multilingual using Knowledge Distillation". The student is trained on unlabelled texts: each vector, and the
similarities of the texts in a batch, should be those of the teacher.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch.nn import functional

from ..embeddings.onnx_encoder import TOKENIZER
from ..embeddings.vector_cache import Encoder
from ..errors import DataError
from ..utils.files import atomic_writer, write_atomic
from ..utils.functional import Floats, Ints, unit_length
from .teacher import read_teacher

BLOCK = 8192  # texts whose teacher vectors are saved together
LONGEST = 96  # pieces of a text, including special ones
PIECES = 2048  # of a batch at most, including padding
SHARPNESS = 10.0  # of the similarities inside a batch
SIMILARITIES = 0.5  # weight of their loss
UNITS_PENALTY = 1e-3  # of least squares over units, times their mean square
CHECKPOINT, CURVE = "checkpoint.safetensors", "curve.jsonl"
OPTIMIZER = "optimizer."  # begins the names of its moments
Encode = Callable[[Sequence[str]], Floats]
Evaluate = Callable[[Encode], Mapping[str, Any]]


@dataclass(frozen=True)
class StudentTraining:
    """The settings of a training run; the rate falls linearly to zero in the last part of the steps."""

    steps: int = 4000
    batch: int = 64  # texts
    rate: float = 1e-4
    warm_up: int = 200  # steps
    falling: float = 0.6  # share of the steps
    half: bool = False  # compute in bfloat16, which is faster on some processors
    seed: int = 0

    def factor(self, step: int) -> float:
        """The share of the full rate at a step."""
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


# The student


class Student(torch.nn.Module):
    """Some layers of the teacher, and its table of pieces; the vector of a text is that of its first piece."""

    def __init__(self, teacher: Path, layers: Sequence[int] | None = None) -> None:
        super().__init__()
        self.folder = teacher
        self.transformer = read_teacher(teacher)
        every = tuple(self.transformer.encoder.layer)
        if layers is not None and not (layers and set(layers) <= set(range(len(every)))):
            raise DataError(f"A student cannot have the layers {list(layers)}: give some of 0 to {len(every) - 1}.")
        self.keep([every[i] for i in layers] if layers is not None else every)
        self.transformer.embeddings.requires_grad_(False)  # words that no text has keep the place that the teacher gave them

    @property
    def layers(self) -> tuple[Any, ...]:
        """Its layers."""
        return tuple(self.transformer.encoder.layer)

    def keep(self, layers: Sequence[Any]) -> None:
        """Use only these layers."""
        self.transformer.encoder.layer = torch.nn.ModuleList(layers)
        self.transformer.config.num_hidden_layers = len(layers)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.transformer.config.hidden_size)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The unit vectors of texts: (texts, dim)."""
        states = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return functional.normalize(states[:, 0], dim=-1)


def best_layers(teacher: Path, texts: Sequence[str], targets: Floats, count: int) -> list[int]:
    """The layers to keep: again and again, leave out the one without which the vectors stay nearest to the targets."""
    student = Student(teacher)
    every = student.layers
    kept = list(range(len(every)))
    while len(kept) > count:
        found = []
        for left_out in kept:
            rest = [layer for layer in kept if layer != left_out]
            student.keep([every[i] for i in rest])
            found.append((float((centred(encode(student, texts)) * targets).sum(axis=1).mean()), rest))
        kept = max(found)[1]
    return kept


def widen(student: Student, widths: Sequence[int]) -> None:
    """Give the feed-forward part of each layer this many units, with weights still to be set."""
    for layer, width in zip(student.layers, widths, strict=True):
        layer.intermediate.dense = torch.nn.Linear(student.dim, width)
        layer.output.dense = torch.nn.Linear(width, student.dim)


def narrow(student: Student, widths: Sequence[int], texts: Sequence[str]) -> list[float]:
    """Keep only this many units in the feed-forward part of each layer, and return which share of its output is lost.

    The units whose output varies most are kept. Least squares over the pieces of the texts then make up for the others.
    """
    pieces, every, lost = to_pieces(student.folder, texts), student.layers, []
    for number, width in enumerate(widths):
        student.keep(every[: number + 1])
        lost.append(_narrow(every[number], width, _activations(student, pieces)))
    return lost


def _activations(student: Student, pieces: Pieces) -> torch.Tensor:
    """The units of the last layer for all pieces: (pieces, units)."""
    found: list[torch.Tensor] = []
    hook = student.layers[-1].intermediate.register_forward_hook(lambda *parts: found.append(parts[-1]))
    with torch.inference_mode():
        for chosen in batches(pieces.lengths, 64):
            ids, mask = pieces.padded(chosen)
            student(ids, mask)
            found[-1] = found[-1][mask.bool()]
    hook.remove()
    return torch.cat(found).double()


def _narrow(layer: Any, width: int, units: torch.Tensor) -> float:
    inner, outer = layer.intermediate.dense, layer.output.dense
    weights = outer.weight.detach().double().T  # (units, hidden)
    kept = (units.var(dim=0) * weights.square().sum(dim=1)).argsort(descending=True)[:width].sort().values
    given, wanted = torch.cat([units[:, kept], torch.ones_like(units[:, :1])], dim=1), units @ weights
    gram = given.T @ given
    gram += UNITS_PENALTY * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    fitted = torch.linalg.solve(gram, given.T @ wanted)  # (width + 1, hidden)
    with torch.no_grad():
        smaller, larger = torch.nn.Linear(inner.in_features, width), torch.nn.Linear(width, outer.out_features)
        smaller.weight.copy_(inner.weight[kept])
        smaller.bias.copy_(inner.bias[kept])
        larger.weight.copy_(fitted[:-1].T)
        larger.bias.copy_(outer.bias + fitted[-1])
    layer.intermediate.dense, layer.output.dense = smaller, larger
    return float((given @ fitted - wanted).square().sum() / (wanted - wanted.mean(dim=0)).square().sum())


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


def to_pieces(teacher: Path, texts: Sequence[str]) -> Pieces:
    """Texts as the teacher's tokenizer reads them."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(teacher / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    return Pieces([np.array(found.ids, np.int64) for found in tokenizer.encode_batch_fast(list(texts))])


def encode(student: Student, texts: Sequence[str]) -> Floats:
    """The student's vectors of texts: (texts, dim)."""
    pieces = to_pieces(student.folder, texts)
    found = np.zeros((len(texts), student.dim), np.float32)
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
    texts: Sequence[str],
    taught: Floats,
    training: StudentTraining,
    folder: Path,
    evaluate: Evaluate | None = None,
    every: float = 600.0,
) -> Student:
    """Train a student on the vectors that its teacher gives texts.

    A checkpoint and a line of the learning curve are written to `folder` at intervals of `every` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces, targets = to_pieces(student.folder, texts), centred(taught)
    mean = torch.from_numpy(taught.astype(np.float32).mean(axis=0))
    learned = [parameter for parameter in student.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=training.rate)
    step, seen, seconds = _resume(folder / CHECKPOINT, student, optimizer)
    meter = _Meter(folder, student, optimizer, evaluate, training, seconds)
    if step == 0:
        meter.write(0, 0, None)
    losses: list[float] = []
    for chosen in _from(step, pieces.lengths, training):
        optimizer.param_groups[0]["lr"] = training.rate * training.factor(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=training.half):
            vectors = student(*pieces.padded(chosen))
        loss = distillation_loss(functional.normalize(vectors.float() - mean, dim=-1), torch.from_numpy(targets[chosen]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        losses.append(loss.item())
        step, seen = step + 1, seen + len(chosen)
        if meter.due(every) or step == training.steps:
            meter.write(step, seen, float(np.mean(losses)))
            losses = []
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


class _Meter:
    """Writes checkpoints and the learning curve."""

    def __init__(
        self,
        folder: Path,
        student: Student,
        optimizer: torch.optim.Optimizer,
        evaluate: Evaluate | None,
        training: StudentTraining,
        seconds: float,
    ) -> None:
        self.folder, self.student, self.optimizer = folder, student, optimizer
        self.evaluate, self.training = evaluate, training
        self.begun = time.monotonic() - seconds
        self.last = time.monotonic()

    def due(self, every: float) -> bool:
        return time.monotonic() - self.last >= every

    def write(self, step: int, seen: int, loss: float | None) -> None:
        seconds = time.monotonic() - self.begun
        moments = {
            f"{OPTIMIZER}{moment}.{name}": value
            for name, parameter in self.student.named_parameters()
            for moment, value in self.optimizer.state.get(parameter, {}).items()
        }
        about = {"step": str(step), "seen": str(seen), "seconds": str(seconds), "training": json.dumps(asdict(self.training))}
        write_atomic(self.folder / CHECKPOINT, save(self.student.state_dict() | moments, about))
        found = self.evaluate(lambda texts: encode(self.student, texts)) if self.evaluate else {}
        line = {"step": step, "texts": seen, "seconds": round(seconds), "loss": loss and round(loss, 4), **found}
        with (self.folder / CURVE).open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        self.last = time.monotonic()
