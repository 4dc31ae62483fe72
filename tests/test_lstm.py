from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from handful.models import lstm_torch
from handful.models.lstm import Vectors, bilstm, initial_bilstm
from handful.utils.functional import Offsets

LENGTHS = [4, 0, 1, 9, 3]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
MANY = np.concatenate([[0], np.cumsum(np.random.default_rng(0).integers(0, 20, 150))])  # more than one group per thread


def reference(parameters: dict[str, torch.Tensor], hidden: int) -> torch.nn.LSTM:
    """torch's own LSTM with our parameters (its gates stand in another order)."""
    network = torch.nn.LSTM(parameters["input"].shape[1], hidden, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for direction, ending in enumerate(("", "_reverse")):
            for name, values in (("weight_ih", "input"), ("weight_hh", "recurrent"), ("bias_ih", "bias")):
                write, forget, show, candidate = parameters[values][direction].split(hidden, dim=-1)
                arranged = torch.cat([write, forget, candidate, show], dim=-1)
                getattr(network, f"{name}_l0{ending}").copy_(arranged.T if arranged.dim() == 2 else arranged)
            getattr(network, f"bias_hh_l0{ending}").zero_()
    return network


@pytest.mark.parametrize("hidden", [25, 3, 7])
@pytest.mark.parametrize("offsets", [OFFSETS, MANY], ids=["five", "many"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", [4, 12])
def test_three_lstms_agree(hidden: int, offsets: Offsets, threads: int, width: int, monkeypatch) -> None:
    """The NumPy pass, the compiled pass and torch's own: states and every gradient."""
    monkeypatch.setattr(lstm_torch, "SMALL", 0)
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    rng = np.random.default_rng(0)
    arrays = initial_bilstm(rng, width, hidden)
    inputs = rng.normal(size=(offsets[-1], width)).astype(np.float32)
    ours = {name: torch.tensor(value, requires_grad=True) for name, value in arrays.items()}
    x = torch.tensor(inputs, requires_grad=True)
    states = bilstm(ours, x, offsets)

    network, y = reference({k: v.detach() for k, v in ours.items()}, hidden), torch.tensor(inputs, requires_grad=True)
    theirs = torch.cat([network(y[None, a:b])[0][0] for a, b in itertools.pairwise(offsets) if b > a])
    torch.testing.assert_close(states, theirs, atol=1e-6, rtol=1e-5)
    np.testing.assert_allclose(bilstm(arrays, inputs, offsets), theirs.detach(), atol=1e-6)

    weights = torch.from_numpy(rng.normal(size=tuple(states.shape)).astype(np.float32))
    (states * weights).sum().backward()
    (theirs * weights).sum().backward()
    torch.testing.assert_close(x.grad, y.grad, atol=1e-5, rtol=1e-4)
    recurrent = ours["recurrent"].grad[1].T
    write, forget, show, candidate = recurrent.split(hidden)
    torch.testing.assert_close(
        torch.cat([write, forget, candidate, show]), network.weight_hh_l0_reverse.grad, atol=1e-5, rtol=1e-4
    )
    write, forget, show, candidate = ours["bias"].grad[0].split(hidden)
    torch.testing.assert_close(torch.cat([write, forget, candidate, show]), network.bias_ih_l0.grad, atol=1e-5, rtol=1e-4)
    write, forget, show, candidate = ours["input"].grad[0].T.split(hidden)
    torch.testing.assert_close(torch.cat([write, forget, candidate, show]), network.weight_ih_l0.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_shared_vectors_are_inputs_like_any_other(kind) -> None:
    rng = np.random.default_rng(0)
    parameters = {name: kind(value) for name, value in initial_bilstm(rng, 7, 5).items()}
    inputs, distinct = (rng.normal(size=size).astype(np.float32) for size in ((OFFSETS[-1], 3), (6, 4)))
    rows = rng.integers(0, 6, OFFSETS[-1])
    apart = bilstm(parameters, kind(inputs), OFFSETS, Vectors(kind(distinct), rows))
    together = bilstm(parameters, kind(np.concatenate([inputs, distinct[rows]], axis=1)), OFFSETS)
    np.testing.assert_allclose(np.asarray(apart), np.asarray(together), atol=1e-5)


def test_a_document_does_not_depend_on_its_neighbours() -> None:
    rng = np.random.default_rng(1)
    parameters = {name: torch.from_numpy(value) for name, value in initial_bilstm(rng, 2, 25).items()}
    inputs = torch.from_numpy(rng.normal(size=(OFFSETS[-1], 2)).astype(np.float32))
    together = bilstm(parameters, inputs, OFFSETS)
    for begin, end in itertools.pairwise(OFFSETS):
        if end > begin:
            assert torch.equal(bilstm(parameters, inputs[begin:end], np.array([0, end - begin])), together[begin:end])


def test_extreme_inputs_stay_finite() -> None:
    arrays = initial_bilstm(np.random.default_rng(0), 2, 25)
    inputs, offsets = np.array([[1e6, -1e6], [-1e30, 1e30]], np.float32), np.array([0, 2])
    states = bilstm({name: torch.from_numpy(value) for name, value in arrays.items()}, torch.from_numpy(inputs), offsets)
    assert torch.isfinite(states).all()
    assert states.abs().max() <= 1
    np.testing.assert_allclose(bilstm(arrays, inputs, offsets), states, atol=1e-6)


def test_documents_without_words() -> None:
    parameters = {name: torch.from_numpy(value) for name, value in initial_bilstm(np.random.default_rng(0), 2, 25).items()}
    assert bilstm(parameters, torch.empty(0, 2), np.array([0, 0, 0])).shape == (0, 50)


def test_a_second_backward_pass_is_refused_not_wrong() -> None:
    arrays = initial_bilstm(np.random.default_rng(0), 2, 25)
    parameters = {name: torch.tensor(value, requires_grad=True) for name, value in arrays.items()}
    total = bilstm(parameters, torch.ones(3, 2), np.array([0, 3])).sum()
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="supports one backward pass"):
        total.backward()


def plain_attention(parameters, inputs, offsets, vectors=None, kept=None, scale=1.0) -> torch.Tensor:
    """Attention from a loop over words in torch, which differentiates it by itself."""
    hidden = parameters["recurrent"].shape[1]
    documents = []
    for begin, end in itertools.pairwise(offsets):
        directions = []
        for direction in (0, 1):
            weight, recurrent, bias = (parameters[name][direction] for name in ("input", "recurrent", "bias"))
            state, cell, states = torch.zeros(hidden), torch.zeros(hidden), []
            for x in inputs[begin:end].flip(0) if direction else inputs[begin:end]:
                write, keep, show, candidate = (x @ weight + state @ recurrent + bias).split(hidden)
                cell = keep.sigmoid() * cell + write.sigmoid() * candidate.tanh()
                state = show.sigmoid() * cell.tanh()
                states.append(state)
            directions.append(torch.stack(states[::-1] if direction else states) if states else torch.empty(0, hidden))
        states = torch.cat(directions, dim=1)  # (words, 2 hidden)
        if kept is not None:
            states = states * torch.from_numpy(kept[begin:end])
        documents.append(torch.softmax(scale * (states @ parameters["query"]), 0))
    return torch.cat(documents)


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("offsets", [OFFSETS, MANY], ids=["five", "many"])
def test_attention_and_its_gradient_are_those_of_plain_torch(offsets: Offsets, dropout: bool) -> None:
    rng = np.random.default_rng(2)
    arrays = {**initial_bilstm(rng, 3, 25), "query": rng.normal(size=50).astype(np.float32)}
    inputs, slopes = (rng.normal(size=size).astype(np.float32) for size in ((offsets[-1], 3), offsets[-1]))
    kept = rng.random((offsets[-1], 50)) > 0.3 if dropout else None
    results = []
    for function in (plain_attention, lstm_torch.attention_torch):
        parameters = {name: torch.tensor(value, requires_grad=True) for name, value in arrays.items()}
        x = torch.tensor(inputs, requires_grad=True)
        attention = function(parameters, x, offsets, None, kept, 1.3)
        (attention * torch.from_numpy(slopes)).sum().backward()
        results.append({"attention": attention.detach(), "x": x.grad, **{name: p.grad for name, p in parameters.items()}})
    for name, expected in results[0].items():
        torch.testing.assert_close(results[1][name], expected, atol=1e-5, rtol=1e-4, msg=name)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch) -> None:
    monkeypatch.setattr(lstm_torch, "SMALL", 0)
    arrays = {**initial_bilstm(np.random.default_rng(0), 2, 25), "query": np.ones(50, np.float32)}
    gradients = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        parameters = {name: torch.tensor(value, requires_grad=True) for name, value in arrays.items()}
        attention = lstm_torch.attention_torch(
            parameters, torch.linspace(-1, 1, 2 * MANY[-1]).reshape(-1, 2), MANY, None, None, 1
        )
        (attention**2).sum().backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in parameters.values()]))
    assert torch.equal(*gradients)


def test_processors_with_shorter_registers_get_the_same_states(tmp_path: Path) -> None:
    """In a process of its own, because the number of lanes is compiled in."""
    rng = np.random.default_rng(0)
    arrays, inputs = initial_bilstm(rng, 2, 25), rng.normal(size=(MANY[-1], 2)).astype(np.float32)
    np.savez(tmp_path / "given.npz", inputs=inputs, offsets=MANY, **arrays)
    code = """
import sys, numpy as np, torch, llvmlite.binding
features = llvmlite.binding.get_host_cpu_features()
features.update({name: False for name in features if name.startswith("avx512")})
llvmlite.binding.get_host_cpu_features = lambda: features
from handful.models.lstm import bilstm
from handful.models.lstm_kernel import LANES
assert LANES == 16
given = dict(np.load(sys.argv[1] + "/given.npz"))
inputs, offsets = torch.tensor(given.pop("inputs")), given.pop("offsets")
states = bilstm({name: torch.tensor(value) for name, value in given.items()}, inputs, offsets)
np.save(sys.argv[1] + "/states.npy", states.numpy())
"""
    command, environment = [sys.executable, "-c", code, str(tmp_path)], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run(command, env=environment, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "states.npy"), bilstm(arrays, inputs, MANY), atol=1e-6)
