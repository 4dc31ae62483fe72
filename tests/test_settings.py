"""Settings: flat options and nested settings, the options of the command line, and results written under earlier names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from handful.bench.grid import load_cells
from handful.bench.old_names import first_form, upgrade_result
from handful.bench.results import parse_result, read_results, result_line
from handful.bench.running import plan_grid
from handful.cli import main
from handful.cli.meta import train
from handful.errors import SettingError
from handful.meta.presets import load_preset, preset_names
from handful.meta.settings import RunSettings, settings_from_options
from handful.models.settings import AttentionSettings, MamlSettings, VectorSettings
from handful.utils.settings import flat_settings, settings_from_dict, settings_from_flat, settings_to_dict, settings_to_flat

RESULTS = Path(__file__).parent.parent / "results"
NOT_OPTIONS = {"rarity", "classes", "outputs", "sentence_dim"}  # settings for Python alone


# Flat and nested


def test_every_setting_has_one_flat_name() -> None:
    paths = [setting.path for setting in flat_settings(RunSettings).values()]

    def leaves(values: dict, path: tuple[str, ...] = ()):
        for name, value in values.items():
            yield from leaves(value, (*path, name)) if isinstance(value, dict) else [(*path, name)]

    assert sorted(paths) == sorted(leaves(settings_to_dict(RunSettings())))


def test_flat_options_find_their_places() -> None:
    options = {"vectors": "minilm", "length": 10.0, "signals": "t", "word_frequencies": "background", "inner_steps": 3}
    settings = settings_from_options({**options, "way": 7, "epochs": 2, "data": "x", "estimator": "ridge"})
    assert settings.model.vectors == VectorSettings("minilm", 10.0)
    assert settings.model.attention == AttentionSettings(("t",), "background")
    assert settings.model.maml == MamlSettings(inner_steps=3)
    assert (settings.episode.way, settings.training.epochs, settings.data) == (7, 2, "x")
    assert settings.model.signature.estimator == "ridge"


def test_flat_options_and_back() -> None:
    settings = settings_from_options(
        {"train_vectors": True, "signals": "frequency,unevenness", "rarity": 0.5, "split": "s.json", "hidden": 0}
    )
    flat = settings_to_flat(settings)
    assert (flat["train_vectors"], flat["signals"], flat["split"]) == (True, ["frequency", "unevenness"], "s.json")
    assert settings_from_flat(RunSettings, flat) == settings
    assert settings_from_dict(RunSettings, json.loads(json.dumps(settings_to_dict(settings)))) == settings


def test_an_unknown_or_wrong_option_is_refused() -> None:
    with pytest.raises(SettingError, match="There is no option epoch, poll: see handful train --help"):
        settings_from_options({"poll": 1, "epoch": 3})
    with pytest.raises(SettingError, match=r"model\.maml\.hidden is 'x': it must be int"):
        settings_from_options({"hidden": "x"})


@pytest.mark.parametrize("name", preset_names())
def test_presets_name_settings_that_there_are(name: str) -> None:
    options = load_preset(name)
    assert options.pop("about")
    settings = settings_to_flat(settings_from_options(options))
    assert {option: value for option, value in settings.items() if option in options and option != "signals"} == {
        option: value for option, value in options.items() if option != "signals"
    }


# The command line


def test_options_of_train_are_the_settings_with_their_defaults() -> None:
    context = click.Context(train)
    options = {option.name: option for option in train.get_params(context)}
    assert set(flat_settings(RunSettings)) - set(options) == NOT_OPTIONS
    given = {name: option.get_default(context) for name, option in options.items() if name in flat_settings(RunSettings)}
    assert settings_from_options(given) == RunSettings()
    for name, setting in flat_settings(RunSettings).items():
        if name not in NOT_OPTIONS:
            assert options[name].help.endswith(".")
            assert all(choice in options[name].help for choice in setting.choices)


def test_help_shows_choices_and_defaults() -> None:
    shown = " ".join(CliRunner().invoke(main, ["train", "--help"]).stdout.split())
    for words in (
        "--word-frequencies TEXT",
        "source or background",
        "some of s, t, t-count, t-softmax, t-ridge, frequency, unevenness and reach",
        "[default: s,t]",
        "mean, idf, sif, cnn, lstm, cls, attention, sentence or attention-sentence. [default: attention]",
        "--max-words INTEGER Number of words to keep of each text. [default: 500]",
        "--train-vectors Fine-tune",
    ):
        assert words in shown
    assert "--pool" not in shown


def test_the_command_line_starts_without_the_settings() -> None:
    code = "import sys, handful.cli; print([m for m in ('numpy', 'handful.meta.experiment') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# Results written under earlier names


@pytest.fixture(scope="module")
def all_lines() -> list[dict]:
    """Every line of results that there is, written over many versions."""
    return [json.loads(line) for line in (RESULTS / "benchmark.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def old_lines(all_lines: list[dict]) -> list[dict]:
    """The lines in the first form, where the settings of a model are flat."""
    found = [line for line in all_lines if isinstance(line["settings"]["model"]["vectors"], str)]
    assert len(found) >= 367
    return found


def test_an_old_line_is_read_under_the_present_names(old_lines: list[dict]) -> None:
    [old, *_] = [line for line in old_lines if line["preset"] == "p-maml"]
    assert {"longest", "pool", "first_order"} <= set(old["settings"]["model"])
    new = upgrade_result(old)
    assert new["options"] == {**{k: v for k, v in old["options"].items() if k != "longest"}, "max_words": 48}
    assert new["settings"]["model"]["max_words"] == 48
    assert new["settings"]["model"]["maml"] == {"first_order": True, "inner_steps": 10, "inner_rate": 0.001, "hidden": 0}
    vectors = {"names": "contextual:minilm", "length": 1.0, "trained": False, "sentence_dim": 0}
    assert new["settings"]["model"]["vectors"] == vectors
    assert new["settings"]["model"]["attention"]["word_frequencies"] == "source"
    assert new["accuracy"] == old["accuracy"]
    assert upgrade_result(new) == new


def test_no_setting_of_an_old_line_is_lost(old_lines: list[dict]) -> None:
    """Written back in the first form, every line has the settings it was written with, and else defaults."""
    default = first_form(RunSettings())
    for line in old_lines:
        again = first_form(settings_from_dict(RunSettings, upgrade_result(line)["settings"]))
        for section in ("episode", "training", "model"):
            written = {name: value for name, value in line["settings"][section].items() if value or name in again[section]}
            assert again[section] == {**default[section], **written}


def test_an_upgraded_line_can_be_written_and_read_again(old_lines: list[dict]) -> None:
    result = parse_result(json.dumps(old_lines[-1]), "line")
    again = parse_result(result_line(result), "line")
    assert (again, again.key) == (result, result.key)


def test_cells_measured_under_earlier_names_are_done(all_lines: list[dict]) -> None:
    results = read_results(RESULTS / "benchmark.jsonl")
    assert len(results) == len(all_lines)
    cells = load_cells(str(RESULTS / "rivals.json"))
    plan, refused = plan_grid(cells, RESULTS / "benchmark.jsonl")
    assert not refused
    missing = {cell.title for cell in plan.cells}
    assert missing == {
        "fewrel-partial-1shot-contextual:minilm-cnn-proto-seed0",
        "fewrel-partial-1shot-contextual:minilm-cnn-ft-seed0",
        "fewrel-partial-5shot-contextual:minilm-cnn-rr-seed0",
        "fewrel-partial-5shot-contextual:minilm-cnn-proto-seed0",
        "fewrel-partial-5shot-contextual:minilm-cnn-ft-seed0",
        "20newsgroups-5shot-wordllama-cnn-maml-seed0",
    }
    done = [cell for cell in cells if cell.preset == "p-maml"]
    assert {dict(cell.options)["max_words"] for cell in done} == {48}  # written there as `longest`
