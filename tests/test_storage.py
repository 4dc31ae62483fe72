from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from handful.data.episodes import EpisodeSpec
from handful.errors import HandfulError, ModelError, SettingError
from handful.meta.checkpoints import load_checkpoint, load_history, load_pool
from handful.meta.experiment import evaluate_run, load_run, train_run
from handful.meta.settings import RunSettings
from handful.meta.training import TrainingSettings
from handful.models.few_shot import FewShotModel
from handful.models.settings import AttentionSettings, ModelSettings, SignatureSettings
from handful.utils.files import write_atomic
from handful.utils.settings import settings_from_dict, settings_to_dict

QUICK = TrainingSettings(episodes=3, validation_episodes=2, epochs=2)
SETTINGS = RunSettings(episode=EpisodeSpec(3, 1, 3), training=QUICK, seed=5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, demo) -> Path:
    folder = tmp_path_factory.mktemp("run") / "finished"
    train_run(SETTINGS, folder, demo, quiet=True)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    folder = tmp_path / "run"
    folder.mkdir()
    for path in finished.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_saved_model_is_a_few_plain_files(finished: Path) -> None:
    assert sorted(path.name for path in finished.iterdir()) == [
        "config.json",
        "history.jsonl",
        "model.safetensors",
        "vocabulary.json",
    ]
    lines = [json.loads(line) for line in (finished / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert set(lines[0]) == {"epoch", "train_loss", "train_accuracy", "val_loss", "val_accuracy"}


def test_load_gives_back_every_bit(finished: Path, demo) -> None:
    loaded = load_run(finished)
    suited = replace(SETTINGS, model=replace(SETTINGS.model, positions=False))  # the texts have neither head nor tail
    assert (loaded.folder, loaded.settings) == (finished, suited)
    saved = load_file(finished / "model.safetensors")
    assert all(np.array_equal(saved[name], value) for name, value in loaded.model.parameters.items())
    first, second = (evaluate_run(finished, episodes=8, inputs=demo, quiet=True).accuracies for _ in range(2))
    assert np.array_equal(first, second)


def test_the_saved_pool_is_the_training_classes(finished: Path, demo) -> None:
    pool = load_pool(finished, demo.corpus.vocabulary)
    expected = demo.sampler("test", EpisodeSpec(), 0).training_pool
    assert np.array_equal(pool.counts, expected.counts)
    assert np.array_equal(pool.documents, expected.documents)
    assert (pool.size, pool.total) == (expected.size, expected.total)


def test_settings_survive_the_file() -> None:
    model = ModelSettings(attention=AttentionSettings(("s",)), signature=SignatureSettings(penalty=3))
    settings = RunSettings(data="x", split="y", skip_empty=True, model=model)
    assert settings_from_dict(RunSettings, json.loads(json.dumps(settings_to_dict(settings)))) == settings


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"modle": 1}, "There is no setting modle"),
        ({"seed": "one"}, "The setting seed is 'one'"),
        ({"seed": True}, "The setting seed is True"),
        ({"model": {"signature": {"epsilon": "x"}}}, "model.signature.epsilon"),
        ({"model": 3}, "model. must be an object"),
        ({"model": {"attention": {"network": "x"}}}, "--network must be bilstm, mlp or pooled, not 'x'"),
    ],
)
def test_wrong_settings_name_their_place(change: dict, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        settings_from_dict(RunSettings, change)


def damage_missing(run: Path) -> None:
    (run / "model.safetensors").unlink()


def damage_truncated(run: Path) -> None:
    (run / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes()[:-10])


def damage_garbage(run: Path) -> None:
    (run / "model.safetensors").write_bytes(b"\xff" * 100)


def damage_nan(run: Path) -> None:
    arrays = load_file(run / "model.safetensors")
    arrays["representation.query"][3] = np.nan
    save_file(arrays, run / "model.safetensors")


def damage_shape(run: Path) -> None:
    arrays = load_file(run / "model.safetensors")
    arrays["representation.query"] = arrays["representation.query"][:-1]
    save_file(arrays, run / "model.safetensors")


def damage_type(run: Path) -> None:
    arrays = load_file(run / "model.safetensors")
    arrays["representation.query"] = arrays["representation.query"].astype(np.float64)
    save_file(arrays, run / "model.safetensors")


def damage_extra(run: Path) -> None:
    arrays = load_file(run / "model.safetensors")
    save_file({**arrays, "more": np.zeros(1)}, run / "model.safetensors")


def damage_version(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "format": 99}))


def damage_old(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "format": 1}))


def damage_identity(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "word_vectors": {"dim": 256}}))


def damage_config(run: Path) -> None:
    (run / "config.json").write_text("{")


def damage_setting(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "unheard_of": 1}))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (damage_missing, "is missing"),
        (damage_truncated, "is damaged"),
        (damage_garbage, "is damaged"),
        (damage_nan, "not finite"),
        (damage_shape, "not float32"),
        (damage_type, "as float64"),
        (damage_extra, "see more"),
        (damage_version, "has format 99"),
        (damage_old, "has format 1, .* reads format 2: train or fit it again, or use the version that wrote it"),
        (damage_identity, r"config\.json is damaged"),
        (damage_config, "is damaged"),
        (damage_setting, "no setting unheard_of"),
    ],
)
def test_a_damaged_model_is_refused_with_a_sentence(run: Path, damage, sentence: str) -> None:
    damage(run)
    with pytest.raises(HandfulError, match=sentence):
        load_run(run)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"words": ["a"], "counts": [1, 2], "documents": [1], "size": 1}',
        f'{{"words": ["a"], "counts": [{10**30}], "documents": [1], "size": 1}}',
        '{"words": 3}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_vocabulary_is_refused(run: Path, content: str, demo) -> None:
    (run / "vocabulary.json").write_text(content)
    with pytest.raises(ModelError, match="missing or damaged"):
        load_pool(run, demo.corpus.vocabulary)


def test_a_fifo_in_a_run_is_refused_not_waited_for(run: Path, demo) -> None:
    (run / "vocabulary.json").unlink()
    os.mkfifo(run / "vocabulary.json")
    with pytest.raises(ModelError, match="missing or damaged"):
        load_pool(run, demo.corpus.vocabulary)


@pytest.mark.parametrize("line", ["{", '{"val_loss": "a"}', "3", pytest.param("[" * 100_000, id="deep")])
def test_a_damaged_history_is_refused(run: Path, line: str) -> None:
    (run / "history.jsonl").write_text(line + "\n")
    with pytest.raises(ModelError, match="is damaged"):
        load_history(run)


@pytest.mark.parametrize("notes", [{}, {"best_epoch": "one", "history": "[]"}, {"best_epoch": "1", "history": "{"}])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, notes: dict[str, str]) -> None:
    save_file({"parameters/a": np.zeros(1)}, tmp_path / "checkpoint.safetensors", notes)
    with pytest.raises(ModelError, match=r"checkpoint\.safetensors is damaged"):
        load_checkpoint(tmp_path, {"a": np.zeros(1)})


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json"):
        load_run(tmp_path)


def test_a_finished_run_is_not_overwritten_and_a_folder_belongs_to_one_run(run: Path, demo) -> None:
    with pytest.raises(ModelError, match="finished run"):
        train_run(SETTINGS, run, demo, quiet=True)
    (run / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="other settings"):
        train_run(replace(SETTINGS, seed=6), run, demo, quiet=True)


def test_nothing_is_half_written(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_loading_runs_no_code_from_the_folder() -> None:
    """No pickle anywhere: the word does not even occur in the package but to forbid it."""
    package = Path(__file__).parent.parent / "handful"
    for path in package.rglob("*.py"):
        source = path.read_text()
        assert "import pickle" not in source
        assert "torch.load" not in source
        assert "allow_pickle=True" not in source


def test_other_ways_than_in_training(finished: Path, demo) -> None:
    result = evaluate_run(finished, spec=EpisodeSpec(10, 5, 25), episodes=4, inputs=demo, quiet=True)
    assert result.queries == 15
    assert isinstance(FewShotModel.initial(SETTINGS.model, 256), FewShotModel)
