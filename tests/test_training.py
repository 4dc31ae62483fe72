from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from test_lstm import plain_attention

from handful.data.episodes import EpisodeSampler, EpisodeSpec
from handful.errors import HandfulWarning, SettingError, TrainingError
from handful.meta.checkpoints import save_checkpoint
from handful.meta.demo import TRAINING, run_demo, shaded_queries
from handful.meta.evaluation import Score, paired_difference
from handful.meta.experiment import load_run, recorded_variation, train_run
from handful.meta.inputs import load_experiment_data
from handful.meta.settings import RunSettings
from handful.meta.training import TrainingSettings, initial_state, meta_train
from handful.models import lstm_torch
from handful.models.few_shot import FewShotModel
from handful.models.settings import ModelSettings, SignatureSettings, VectorSettings

QUICK = TrainingSettings(episodes=4, validation_episodes=3, epochs=4)
SETTINGS = RunSettings(episode=EpisodeSpec(3, 1, 3), training=QUICK)


def trained_config(folder: Path, model: ModelSettings, data: str = "demo") -> dict[str, Any]:
    train_run(replace(SETTINGS, data=data, model=model, training=replace(QUICK, epochs=1)), folder, quiet=True)
    return json.loads((folder / "config.json").read_text())


def test_a_constant_t_is_reported_and_recorded(tmp_path: Path) -> None:
    """With vectors of length 1, the paper's rule stops before the first step."""
    letter = ModelSettings(signature=SignatureSettings(estimator="softmax", stop="absolute"))
    with pytest.warns(HandfulWarning, match="The signal t is nearly constant .* 0.00% of its mean"):
        config = trained_config(tmp_path / "constant", letter)
    assert config["signal_variation"] == {"t": pytest.approx(0, abs=1e-6)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", HandfulWarning)
        own_lengths = replace(letter, vectors=VectorSettings("wordllama:raw", length=0.0))
        assert trained_config(tmp_path / "own", own_lengths)["signal_variation"]["t"] > 0.05
        assert trained_config(tmp_path / "counts", ModelSettings())["signal_variation"]["t"] > 0.05
    assert recorded_variation(tmp_path / "counts")["t"] > 0.05
    assert load_run(tmp_path / "own").settings.model == replace(own_lengths, positions=False)
    assert trained_config(tmp_path / "mean", ModelSettings("mean"))["signal_variation"] == {}


def test_positions_are_used_if_the_data_has_them(tmp_path: Path) -> None:
    row = '{"text": ["%s", "plays", "for", "team", "%d"], "label": "%s", "head": [0, 0], "tail": [3, 4]}'
    labels = "abcdefghi"
    (tmp_path / "r.jsonl").write_text("\n".join(row % (label, i, label) for label in labels for i in range(4)))
    split = {"train": labels[:3], "val": labels[3:6], "test": labels[6:]}
    (tmp_path / "r.split.json").write_text(json.dumps({part: list(names) for part, names in split.items()}))
    data = str(tmp_path / "r.jsonl")
    used = {
        name: trained_config(tmp_path / name, model, data)["model"]["positions"]
        for name, model in {
            "attention": ModelSettings(),
            "cnn": ModelSettings("cnn"),
            "mean": ModelSettings("mean"),
            "refused": ModelSettings(positions=False),
        }.items()
    }
    assert used == {"attention": True, "cnn": True, "mean": False, "refused": False}


def test_rare_words_are_dropped_and_counted_over_all_classes() -> None:
    few = load_experiment_data(RunSettings(model=ModelSettings(min_count=5)))
    whole = load_experiment_data(RunSettings())
    counts = np.bincount(whole.corpus.ids, minlength=len(whole.corpus.vocabulary))
    assert len(few.corpus.ids) == counts[counts >= 5].sum() < counts.sum()
    assert np.bincount(few.corpus.ids).max() == counts.max()


def test_training_ends_with_the_parameters_of_plain_torch(demo, monkeypatch) -> None:
    train, validation = (demo.sampler(part, EpisodeSpec(5, 1, 5), 0) for part in ("train", "val"))
    settings = replace(QUICK, episodes=6, epochs=2)
    start = FewShotModel.initial(ModelSettings(), demo.texts.table.shape[1])
    fast, fast_history = meta_train(start, demo.texts, train, validation, settings, quiet=True)
    monkeypatch.setattr(lstm_torch, "attention_torch", plain_attention)
    plain, plain_history = meta_train(start, demo.texts, train, validation, settings, quiet=True)
    for name, expected in plain.parameters.items():
        np.testing.assert_allclose(fast.parameters[name], expected, atol=1e-5, err_msg=name)
    for line, expected_line in zip(fast_history, plain_history, strict=True):
        assert line == pytest.approx(expected_line, abs=1e-5)


def train_quickly(texts, sampler, settings=QUICK, **options):
    model = FewShotModel.initial(ModelSettings(), 16)
    return meta_train(model, texts, sampler, sampler, settings, quiet=True, **options)


def test_a_resumed_run_ends_at_the_same_numbers(random_corpus, random_table, sampler) -> None:
    texts, states = random_corpus.texts(random_table), []
    whole, history = train_quickly(texts, sampler, save=states.append)
    resumed, again = train_quickly(texts, sampler, state=states[1])
    assert history == again
    assert all(np.array_equal(whole.parameters[name], resumed.parameters[name]) for name in whole.parameters)


def test_the_best_epoch_is_restored(random_corpus, random_table, sampler) -> None:
    states: list = []
    fast = replace(QUICK, learning_rate=0.5, epochs=6)  # so fast that it gets worse
    best, history = train_quickly(random_corpus.texts(random_table), sampler, fast, save=states.append)
    winner = min(history, key=lambda line: line["val_loss"])["epoch"]
    assert states[-1].best_epoch == winner
    for name, value in best.parameters.items():
        assert np.array_equal(value, states[int(winner) - 1].parameters[name])


def test_patience_and_the_monitored_number(random_corpus, random_table, sampler) -> None:
    texts = random_corpus.texts(random_table)
    slow = replace(QUICK, learning_rate=1e-12, patience=2, epochs=50)
    _, history = train_quickly(texts, sampler, replace(slow, monitor="accuracy"))
    assert len(history) == 3  # the first epoch is the best, two more without improvement
    with pytest.raises(SettingError, match="monitor"):
        replace(QUICK, monitor="luck")


def test_a_nan_stops_with_the_episode_and_the_seed(random_corpus, random_table, sampler) -> None:
    broken = random_table.copy()
    broken[random_corpus.ids[:30]] = np.nan
    with pytest.raises(TrainingError, match=r"episode \d+ \(seed 3\)"):
        train_quickly(random_corpus.texts(broken), sampler)


def test_a_killed_run_goes_on_to_the_same_model(tmp_path: Path, demo) -> None:
    """A real process, killed without warning in the middle, then started again."""
    command = [sys.executable, "-m", "handful", "train", "--way", "3", "--queries", "3", "--episodes", "20", "--epochs", "8"]
    command += ["--validation-episodes", "3", "--quiet", "--out", str(tmp_path / "killed")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 90
    while not (tmp_path / "killed" / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    settings = RunSettings(
        episode=EpisodeSpec(3, 1, 3), training=TrainingSettings(episodes=20, epochs=8, validation_episodes=3)
    )
    train_run(settings, tmp_path / "killed", demo, quiet=True)
    train_run(settings, tmp_path / "whole", demo, quiet=True)
    killed, whole = (load_file(tmp_path / name / "model.safetensors") for name in ("killed", "whole"))
    assert all(np.array_equal(killed[name], whole[name]) for name in whole)
    assert (tmp_path / "killed" / "history.jsonl").read_text() == (tmp_path / "whole" / "history.jsonl").read_text()


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path, demo) -> None:
    from handful.errors import ModelError

    save_checkpoint(tmp_path, initial_state(FewShotModel.initial(ModelSettings(representation="mean"), 256)))
    with pytest.raises(ModelError, match="does not fit"):
        train_run(SETTINGS, tmp_path, demo, quiet=True)


def test_score_and_paired_difference_by_hand() -> None:
    score = Score.of(np.array([0.5, 0.7, 0.9]))
    assert (score.mean, score.episodes) == (pytest.approx(0.7), 3)
    assert score.ci95 == pytest.approx(1.959964 * 0.2 / 3**0.5)
    assert str(score) == "70.0 ± 22.6"
    difference = paired_difference(np.array([0.5, 0.7]), np.array([0.4, 0.6]))
    assert (difference.mean, difference.ci95) == (pytest.approx(0.1), pytest.approx(0, abs=1e-9))
    with pytest.raises(SettingError, match="same episodes"):
        paired_difference(np.zeros(2), np.zeros(3))


def test_meta_training_beats_idf_on_unseen_classes() -> None:
    """The learning test: attention learned on some classes helps on others, beyond the interval of the paired difference."""
    shorter = replace(TRAINING, validation_episodes=40, patience=6)  # than the demonstration
    result = run_demo(episodes=400, training=shorter, quiet=True)
    for rival in ("idf", "mean"):
        gain = result.gain(rival)
        assert gain.mean - gain.ci95 > 0, f"{rival}: {gain}"
    assert result.evaluations["idf"].score.mean < 0.8, "the demo corpus is too easy to show anything"
    rows = shaded_queries(result)
    assert len(rows) == 4
    assert all(shaded.plain and shaded.spans for _, _, shaded in rows)


def test_episodes_of_seen_and_validation_classes_are_disjoint(demo) -> None:
    train, val = (demo.sampler(part, EpisodeSpec(), 0) for part in ("train", "val"))
    assert isinstance(train, EpisodeSampler)
    assert not set(train.classes) & set(val.classes)
