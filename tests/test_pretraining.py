"""Masked language modelling, and an encoder that is trained, on real small encoders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.data.corpus import Texts
from handful.data.episodes import EpisodeSpec
from handful.embeddings.contextual import Encoder
from handful.errors import SettingError
from handful.meta import experiment as runs
from handful.meta.experiment import evaluate_run, train_run
from handful.meta.inputs import load_experiment_data
from handful.meta.pretraining import KEPT, MASKED, REPLACED, MaskedLanguageModel
from handful.meta.settings import RunSettings, settings_from_options
from handful.meta.training import TrainingSettings, TrainingState
from handful.models.few_shot import FewShotModel
from handful.models.settings import MamlSettings, ModelSettings, VectorSettings
from handful.utils.functional import cross_entropy


@pytest.fixture(autouse=True)
def _one_core(monkeypatch) -> None:
    """Threads cost more than they give to an encoder this small."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def encoder(tiny_encoder: str) -> Encoder:
    return Encoder(tiny_encoder)


@pytest.fixture
def parts(random_corpus, encoder: Encoder) -> dict[str, Texts]:
    texts = replace(random_corpus.texts(np.zeros((60, 0))), pieces=encoder.pieces(random_corpus.vocabulary.words))
    return {
        "train": texts.select(np.arange(48)),
        "val": texts.select(np.arange(48, 72)),
        "test": texts.select(np.arange(72, 96)),
    }


def test_pieces_are_masked_as_in_the_paper_of_bert(encoder: Encoder) -> None:
    truth = np.full(20_000, 6)
    chosen, shown = MaskedLanguageModel(encoder)._mask(truth, np.random.default_rng(0))
    assert len(chosen) == len(set(chosen)) == round(MASKED * 20_000)
    masked = (shown == encoder.mask).mean() / MASKED
    assert abs(masked - (1 - KEPT - REPLACED) - REPLACED / 26) < 0.03
    assert (np.delete(shown, chosen) == 6).all()


def test_only_the_masked_pieces_are_named_and_the_loss_is_that_of_the_whole_model(encoder: Encoder, parts) -> None:
    import torch
    from transformers import BertForMaskedLM

    learner = MaskedLanguageModel(encoder)
    rows = encoder.windows(parts["train"])[1][:5]
    tensors = {name: torch.from_numpy(value) for name, value in learner.parameters.items()}
    loss, count = learner._loss(tensors, rows, np.random.default_rng(0))
    chosen, shown = learner._mask(np.concatenate(rows), np.random.default_rng(0))
    inputs = encoder.inputs(np.split(shown, np.cumsum([len(row) for row in rows])[:-1]))
    truth = encoder.inputs(rows)["input_ids"]
    labels = torch.full_like(truth, -100)
    inside = [(row, column + 1) for row in range(5) for column in range(len(rows[row]))]
    for number in chosen:
        labels[inside[number]] = truth[inside[number]]
    whole = BertForMaskedLM.from_pretrained(encoder.folder)(**inputs, labels=labels).loss.detach()
    assert count == len(chosen)
    assert float(loss) / count == pytest.approx(float(whole), abs=1e-4)


def test_perplexity_falls_on_texts_it_reads_and_a_killed_run_goes_on(encoder: Encoder, parts, monkeypatch) -> None:
    monkeypatch.setattr("handful.meta.pretraining.RATE", 0.01)
    states: list[TrainingState] = []
    whole = MaskedLanguageModel(encoder).train(parts, 6, save=states.append, quiet=True)
    first, last = states[0].history[0], states[-1].history[-1]
    assert set(last) == {"epoch", "train_loss", "seen_perplexity", "val_perplexity", "unseen_perplexity"}
    assert last["seen_perplexity"] < first["seen_perplexity"] < 27
    assert set(whole) == set(encoder.initial())
    resumed = MaskedLanguageModel(encoder).train(parts, 6, states[1], quiet=True)
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)


def test_it_stops_two_epochs_after_the_best_and_gives_that_one(encoder: Encoder, parts, monkeypatch) -> None:
    learner, perplexities = MaskedLanguageModel(encoder), iter([9.0, 5.0, 6.0, 5.5, 1.0])
    current: list[float] = []

    def perplexity(tensors, rows) -> float:
        if len(current) % 3 == 0:
            current.append(next(perplexities))
        else:
            current.append(current[-1])
        return current[-1]

    monkeypatch.setattr(learner, "_perplexity", perplexity)
    states: list[TrainingState] = []
    best = learner.train(parts, 50, save=states.append, quiet=True)
    assert [line["val_perplexity"] for line in states[-1].history] == [9.0, 5.0, 6.0, 5.5]
    name = "embeddings.word_embeddings.weight"
    assert np.array_equal(best[name], states[1].parameters[f"bert.{name}"])
    assert not np.array_equal(best[name], states[-1].parameters[f"bert.{name}"])


def small_run(tiny_encoder: str, data: Path, **options) -> RunSettings:
    sizes = {"way": 2, "shot": 1, "queries": 2, "epochs": 2, "episodes": 2, "tasks": 2, "validation_episodes": 2}
    return settings_from_options({"data": str(data), "vectors": f"contextual:{tiny_encoder}", **sizes, **options})


@pytest.fixture
def data(lines, random_corpus) -> Path:
    rows = [
        json.dumps({"text": random_corpus.words(i), "label": random_corpus.classes[random_corpus.labels[i]]})
        for i in range(len(random_corpus))
    ]
    names = random_corpus.classes
    lines(json.dumps({"train": names[:4], "val": names[4:6], "test": names[6:]}), name="data.split.json")
    return lines(*rows)


def test_p_maml_from_data_to_score(tiny_encoder: str, data: Path, tmp_path: Path, monkeypatch) -> None:
    options = {"representation": "cls", "head": "maml", "first_order": True, "hidden": 0, "inner_rate": 0.001}
    settings = small_run(tiny_encoder, data, **options, learning_rate=1e-3, pretraining_epochs=2)
    killed = []

    def kill(folder: Path, state: TrainingState) -> None:
        real(folder, state)
        if folder.name == "pretraining" and not killed:
            killed.append(True)
            raise KeyboardInterrupt

    real = runs.save_checkpoint
    monkeypatch.setattr(runs, "save_checkpoint", kill)
    with pytest.raises(KeyboardInterrupt):
        train_run(settings, tmp_path / "run", quiet=True)
    train_run(settings, tmp_path / "run", quiet=True)
    train_run(settings, tmp_path / "again", quiet=True)
    assert (tmp_path / "run/model.safetensors").read_bytes() == (tmp_path / "again/model.safetensors").read_bytes()
    history = [json.loads(line) for line in (tmp_path / "run/pretraining/history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in history] == [1, 2]
    assert not list((tmp_path / "run").rglob("checkpoint*"))
    score = evaluate_run(tmp_path / "run", episodes=4, quiet=True).score
    assert 0 <= score.mean <= 1
    again = evaluate_run(tmp_path / "again", episodes=4, quiet=True)
    assert again.score == score


def test_an_encoder_is_fine_tuned_under_the_attention(tiny_encoder: str, data: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    settings = small_run(tiny_encoder, data, train_vectors=True)
    train_run(settings, tmp_path / "run", quiet=True)
    trained = runs.load_run(tmp_path / "run").model
    before = Encoder(tiny_encoder).initial()
    moved = [name for name, value in before.items() if not np.array_equal(trained.parameters[f"vectors.{name}"], value)]
    assert len(moved) > len(before) / 2
    assert len(evaluate_run(tmp_path / "run", episodes=4, quiet=True).accuracies) == 4


def test_untrained_it_gives_the_frozen_vectors(tiny_encoder: str, data: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    settings = small_run(tiny_encoder, data, train_vectors=True)
    inputs = load_experiment_data(settings)
    episode = inputs.sampler("test", EpisodeSpec(2, 1, 2), 0)[0]
    trained = FewShotModel.initial(settings.model, 16)
    frozen = FewShotModel.initial(replace(settings.model, vectors=replace(settings.model.vectors, trained=False)), 16)
    logits = [model.logits(model.prepare(inputs.texts, [episode])) for model in (trained, frozen)]
    np.testing.assert_allclose(*logits, atol=0.05)  # the frozen ones are kept in half precision


def test_the_gradient_of_several_tasks_is_the_mean_of_theirs(tiny_encoder: str, parts, sampler) -> None:
    """Ten tasks of one update are taken one by one, for memory."""
    settings = ModelSettings(
        representation="cls",
        head="maml",
        vectors=VectorSettings(f"contextual:{tiny_encoder}"),
        maml=MamlSettings(first_order=True, hidden=0),
    )
    texts = replace(parts["train"], table=np.zeros((60, 16), np.float32))
    model = FewShotModel.initial(settings, 16).to_torch()
    for value in model.parameters.values():
        value.requires_grad_()

    def gradient(indices: list[int]) -> np.ndarray:
        prepared = model.prepare(texts, [sampler[i] for i in indices])
        for value in model.parameters.values():
            value.grad = None
        cross_entropy(model.logits(prepared), model._array(prepared.query_targets)).backward()
        return model.parameters["head.weight0"].grad.numpy().copy()

    np.testing.assert_allclose(gradient([0, 1]), (gradient([0]) + gradient([1])) / 2, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"representation": "cls", "vectors": "wordllama"}, "name it with --vectors contextual"),
        ({"inner_rate": 0}, "--inner-rate must be above 0, not 0"),
        ({"inner_steps": 0}, "--inner-steps must be at least 1, not 0"),
        ({"hidden": -1}, "--hidden must be at least 0, not -1"),
    ],
)
def test_settings_that_make_no_sense(options: dict, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        settings_from_options(options)


def test_pre_training_needs_an_encoder_that_is_trained(tmp_path: Path) -> None:
    settings = RunSettings(training=TrainingSettings(pretraining_epochs=1))
    with pytest.raises(SettingError, match="Pre-training works only if an encoder is trained"):
        train_run(settings, tmp_path / "run", quiet=True)
