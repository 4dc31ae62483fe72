"""Heads, representations, encoders and data sets of other packages: the template of docs/plugins.md, and what can go wrong."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from plugin_package import template_files, write_installed

from handful import FewShotClassifier
from handful.bench.grid import load_cells
from handful.cli import main
from handful.data.datasets import load_dataset
from handful.data.frequencies import SourcePool
from handful.embeddings.encoders import find_encoder, list_encoders
from handful.errors import ModelError, SettingError
from handful.meta.experiment import evaluate_run, load_run, train_run
from handful.meta.presets import load_preset
from handful.meta.settings import settings_from_options
from handful.models.components import HEADS, REPRESENTATIONS
from handful.models.few_shot import FewShotModel
from handful.models.settings import ModelSettings, VectorSettings
from handful.models.signatures import general_importance
from handful.utils.paths import resource
from handful.utils.plugins import Components, installed_plugins

SHORT = ["--epochs", "1", "--episodes", "2", "--validation-episodes", "2", "--way", "2", "--quiet"]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch) -> Path:
    """The folder of the installed template."""
    folder = tmp_path / "installed"
    folder.mkdir()
    write_installed(folder)
    monkeypatch.syspath_prepend(folder)
    installed_plugins.cache_clear()
    yield folder
    sys.modules.pop("handful_mine", None)
    installed_plugins.cache_clear()


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_template_has_thirty_lines() -> None:
    lines = [line for blocks in template_files().values() for line in blocks[0].splitlines() if line.strip()]
    assert len(lines) <= 30


def test_a_head_is_trained_evaluated_and_missed(plugin: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    trained = run("train", "--head", "mine", "--representation", "idf", "--head-options", "scale=2", *SHORT, "--out", folder)
    assert trained.exit_code == 0, trained.output
    assert json.loads((folder / "config.json").read_text())["plugins"] == {"head": "handful-mine"}
    evaluated = run("evaluate", folder, "--episodes", "20", "--quiet", "--json")
    assert json.loads(evaluated.stdout)["accuracy"] > 0.6  # of two classes
    assert load_run(folder).model.head.scale == 2
    shutil.rmtree(plugin / "handful_mine-1.0.dist-info")
    installed_plugins.cache_clear()
    missed = run("evaluate", folder)
    assert missed.exit_code == 2
    sentence = f"{folder} uses the head 'mine' of the package handful-mine, which is not installed: install that package."
    assert sentence in " ".join(missed.stderr.split())


def test_help_and_lists_show_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    assert " or mine." not in " ".join(run("train", "--help").stdout.split())  # asked before, so that nothing may be remembered
    request.getfixturevalue("plugin")
    shown = " ".join(run("train", "--help").stdout.split())
    assert " or mine." in shown
    lines = run("train", "--list-methods").stdout.splitlines()
    start = lines.index("head mine: The class whose examples are the most similar to a text, on average. [handful-mine]")
    assert lines[start + 1].strip() == "scale=10.0: Initial scale of the similarities."


def test_options_of_its_own_are_checked(plugin: Path) -> None:
    for options, sentence in {
        "scale=0": "--head-options: scale must be above 0, not 0.0.",
        "scale=x": "--head-options: scale must be a number, not 'x'.",
        "size=1": "--head-options: mine has no option 'size': choose scale.",
    }.items():
        with pytest.raises(SettingError) as error:
            FewShotModel(ModelSettings("mean", "mine", head_options=(options,)), {})
        assert str(error.value) == sentence
    with pytest.raises(SettingError, match="ridge has no option 'x': it has none"):
        FewShotModel(ModelSettings("mean", head_options=("x=1",)), {})


def test_a_grid_names_it_by_representation_and_head(plugin: Path, tmp_path: Path) -> None:
    grid = tmp_path / "grid.json"
    grid.write_text(json.dumps({"about": "mine", "blocks": [{"data": ["demo"], "presets": ["idf+mine"], "shots": [1]}]}))
    cells = load_cells(str(grid))
    assert {(cell.settings.model.representation, cell.settings.model.head) for cell in cells} == {("idf", "mine")}
    assert "demo-1shot-wordllama-idf+mine-seed0" in {cell.title for cell in cells}
    with pytest.raises(SettingError, match=r"--head must be ridge, .*, not 'yours'"):
        settings_from_options({name: value for name, value in load_preset("idf+yours").items() if name != "about"})


def test_an_encoder_fits_a_classifier_that_is_saved_by_its_name(plugin: Path, tmp_path: Path) -> None:
    texts, labels = ["aaaa", "aab", "zzzz", "zzy"], ["first", "first", "last", "last"]
    classifier = FewShotClassifier(encoder="letters").fit(texts, labels)
    classifier.save(tmp_path / "model")
    assert FewShotClassifier.load(tmp_path / "model").predict(["abba", "zyz"]).tolist() == ["first", "last"]
    assert [(one["name"], one["path"]) for one in list_encoders()][-1] == ("letters", "handful-mine")
    assert "letters" in run("encoders", "list").stdout
    assert (find_encoder("letters").dim, find_encoder("letters").identity) == (26, "letters of handful-mine 1.0")
    shutil.rmtree(plugin / "handful_mine-1.0.dist-info")
    installed_plugins.cache_clear()
    with pytest.raises(ModelError, match="with the encoder 'letters', but there is no encoder of this name: install"):
        FewShotClassifier.load(tmp_path / "model")


def test_a_data_set_is_a_path(plugin: Path) -> None:
    rows = [json.loads(line) for line in resource("demo.jsonl").read_text("utf-8").splitlines()]
    cells = "".join(f'"{row["text"].replace(chr(34), "")}",{row["label"]}\n' for row in rows)
    (plugin / "weather.csv").write_text("text,label\n" + cells, "utf-8")
    shutil.copy(resource("demo.split.json"), plugin / "weather.split.json")
    mine, demo = load_dataset("weather"), load_dataset("demo")
    assert (mine.name, len(mine.corpus), mine.corpus.classes) == ("weather", len(demo.corpus), demo.corpus.classes)
    assert mine.split == demo.split


def test_a_plugin_that_cannot_be_imported_is_named(plugin: Path) -> None:
    (plugin / "handful_mine.py").write_text("import nothing_of_this_name")
    with pytest.raises(SettingError, match=r"The head 'mine' of the package handful-mine cannot be loaded \(ModuleNotFound"):
        HEADS.load("mine")
    assert HEADS.load("ridge").__name__ == "Ridge"


def test_own_names_cannot_be_replaced(plugin: Path) -> None:
    about = plugin / "handful_mine-1.0.dist-info" / "entry_points.txt"
    about.write_text("[handful.heads]\nridge = handful_mine:Mine\n")
    assert HEADS.load("ridge").__name__ == "Ridge"
    assert HEADS.package("ridge") == ""


def test_every_own_component_can_be_loaded() -> None:
    for components in (HEADS, REPRESENTATIONS):
        assert all(components.load(name).__doc__ for name in components.own)
    with pytest.raises(SettingError, match="There is no thing 'x': check the name, or install the package that provides it"):
        Components("thing", "handful.things").load("x")


# A representation that learns from the training texts


def test_sif_removes_what_the_training_texts_have_in_common(random_corpus, random_table, sampler) -> None:
    model = FewShotModel.initial(ModelSettings("sif"), 16)
    texts, pool = random_corpus.texts(random_table + 0.5), sampler.training_pool
    learned = model.learn_from_texts(texts, random_corpus.labels, pool)
    by_hand = []
    for document in range(len(texts)):
        ids = texts.ids[texts.offsets[document] : texts.offsets[document + 1]]
        by_hand.append(np.average(texts.table[ids], axis=0, weights=general_importance(pool, ids, 1e-3)))
    _, _, directions = np.linalg.svd(np.array(by_hand), full_matrices=False)
    common = learned.parameters["representation.common"]
    assert abs(common[0] @ directions[0]) == pytest.approx(1, abs=1e-4)
    batch = learned.fit(texts, random_corpus.labels, pool).batch(texts)
    np.testing.assert_allclose(learned.represent(batch) @ common[0], 0, atol=1e-4)
    assert np.abs(model.represent(batch) @ common[0]).min() > 0.1


def test_what_was_learned_from_texts_is_kept_in_training_and_saved(tmp_path: Path) -> None:
    short = {"epochs": 2, "episodes": 3, "validation_episodes": 2, "way": 2}
    settings = settings_from_options({"representation": "sif", "representation_options": "removed=2", **short})
    train_run(settings, tmp_path / "run", quiet=True)
    run = load_run(tmp_path / "run")
    common, inputs = run.model.parameters["representation.common"], run.load_data()
    np.testing.assert_allclose(common @ common.T, np.eye(2), atol=1e-5)
    train = np.flatnonzero(np.isin(inputs.corpus.labels, inputs.dataset.split.train))
    fresh = FewShotModel.initial(settings.model, common.shape[1]).learn_from_texts(
        inputs.texts.select(train), inputs.corpus.labels[train], run.pool(inputs)
    )
    np.testing.assert_array_equal(fresh.parameters["representation.common"], common)
    assert run.model.parameters["head.log_scale"] != fresh.parameters["head.log_scale"]
    assert evaluate_run(run, episodes=20, inputs=inputs, quiet=True).score.mean > 0.6


def test_trained_vectors_and_texts_learned_from_exclude_each_other(random_corpus, random_table) -> None:
    settings = replace(ModelSettings("sif"), vectors=VectorSettings(trained=True))
    pool = SourcePool(np.ones(1), np.ones(1), 1, 1.0)
    with pytest.raises(SettingError, match="must not change afterwards: remove --train-vectors"):
        FewShotModel.initial(settings, 16).learn_from_texts(random_corpus.texts(random_table), random_corpus.labels, pool)
