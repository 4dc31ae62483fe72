"""Learning curves, perplexity and robustness: what training noted, and what substituted words change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.analysis import curves, perplexity, robustness
from handful.analysis.inspected_run import InspectedRun, NotApplicableError
from handful.bench.grid import Cell, cell_key
from handful.errors import ModelError, SettingError
from handful.meta.checkpoints import PRETRAINING, load_history, save_checkpoint
from handful.meta.experiment import CURVE_SEED, evaluate_run, run_settings, train_run
from handful.meta.settings import RunSettings
from handful.meta.training import TrainingSettings, TrainingState
from handful.models.few_shot import FewShotModel
from handful.models.settings import ModelSettings
from handful.models.storage import CONFIG
from handful.utils.settings import settings_to_dict


def test_the_curve_is_what_evaluation_measures_and_changes_nothing(curve_run: Path, curve_settings, demo, tmp_path) -> None:
    history = load_history(curve_run)
    kept = min(history, key=lambda line: line["val_loss"])
    for part, name in {"train": "seen_accuracy", "test": "unseen_accuracy"}.items():
        measured = evaluate_run(curve_run, part, curve_settings.training.curve_episodes, CURVE_SEED, inputs=demo, quiet=True)
        assert kept[name] == pytest.approx(measured.score.mean, abs=1e-6)
    plain = replace(curve_settings, training=replace(curve_settings.training, curve_episodes=0))
    without = train_run(plain, tmp_path / "plain", demo, quiet=True)
    for mine, line in zip(without, history, strict=True):
        same = {name: line[name] for name in line if "seen_" not in name}
        assert mine == pytest.approx(same, rel=1e-5)  # the last bit of a sum depends on where its numbers lie in memory
    assert without[0]["train_loss"] == history[0]["train_loss"]


def test_runs_and_cells_from_before_the_curves_stay_what_they_are(curve_run: Path) -> None:
    config = json.loads((curve_run / CONFIG).read_text("utf-8"))
    del config["training"]["curve_episodes"]
    assert run_settings(config).training.curve_episodes == 0
    settings = settings_to_dict(RunSettings())
    old = {**settings, "training": {k: v for k, v in settings["training"].items() if k != "curve_episodes"}}
    assert cell_key("our", 10, old) == cell_key("our", 10, settings)
    assert "curve_episodes" not in cell_key("our", 10, settings)
    watched = Cell("demo", 1, "wordllama", "our", options=(("curve_episodes", 50),))
    assert watched.folder != Cell("demo", 1, "wordllama", "our").folder == "demo-1shot-wordllama-our-seed0-029cc832"
    with pytest.raises(SettingError, match="--curve-episodes must be at least 0, not -1"):
        TrainingSettings(curve_episodes=-1)


def test_curves_of_several_runs_side_by_side(curve_run: Path, mean_run: Path) -> None:
    [figure] = curves.figures(InspectedRun(curve_run, against=(InspectedRun(mean_run),), quiet=True))
    history = load_history(curve_run)
    own = [row for row in figure.rows if row["run"] == curve_run.name]
    assert [row["seen_accuracy"] for row in own] == [line["seen_accuracy"] for line in history]
    assert sum(row["kept"] for row in own) == 1
    other = [row for row in figure.rows if row["run"] == mean_run.name]
    assert [row["unseen_accuracy"] for row in other] == [line["val_accuracy"] for line in load_history(mean_run)]
    assert "Training and validation: on the training tasks" in figure.caption
    assert f"{mean_run.name}: mean + ridge" in figure.caption
    assert "training minus validation at that epoch" in figure.caption
    assert figure.svg.startswith("<svg")


def test_every_kind_of_line_is_told_apart_without_colour(curve_run: Path, mean_run: Path) -> None:
    both = [curves.learning_curve(InspectedRun(run)) for run in (curve_run, mean_run)]
    drawing = curves.draw([curve for curve in both if curve])
    lines = [line for axis in drawing.axes for line in axis.get_lines() if not line.get_label().startswith("_")]
    assert [line.get_label() for line in lines] == [*curves.LINES[True], *curves.LINES[False]]
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == 4
    assert [text.get_text() for text in drawing.legends[0].get_texts()] == [*curves.LINES[True], *curves.LINES[False]]


def test_a_method_that_learns_nothing_has_no_curve(nearest_run: Path) -> None:
    with pytest.raises(NotApplicableError, match="its method needs no training"):
        curves.figures(InspectedRun(nearest_run))


def test_a_damaged_history_is_told(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('{"epoch": 1}\n{"epoch": ')
    with pytest.raises(ModelError, match="is damaged"):
        load_history(tmp_path)


def test_perplexity_is_read_from_the_pretraining(curve_run: Path, tmp_path: Path) -> None:
    with pytest.raises(NotApplicableError, match="did not pre-train"):
        perplexity.figures(InspectedRun(curve_run))
    folder = tmp_path / "pretrained"
    folder.mkdir()
    for path in curve_run.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    names = "seen_perplexity", "val_perplexity", "unseen_perplexity"
    lines = [
        {"epoch": n, "train_loss": 1.0, **dict(zip(names, numbers, strict=True))}
        for n, numbers in enumerate([(30.0, 40.0, 41.5), (20.0, 39.0, 40.5)], 1)
    ]
    save_checkpoint(folder / PRETRAINING, TrainingState({}, {}, best_epoch=2, history=lines))
    [figure] = perplexity.figures(InspectedRun(folder, against=(InspectedRun(curve_run),)))
    assert [[row[name] for name in names] for row in figure.rows] == [[30, 40, 41.5], [20, 39, 40.5]]
    assert "training classes (seen) 30.0 to 20.0" in figure.caption
    assert figure.svg.startswith("<svg")


def test_words_change_places_within_their_count(demo) -> None:
    counts, present = demo.sampler("test", RunSettings().episode, 0).training_pool.counts, np.unique(demo.texts.ids)
    image = robustness.substitution(counts, present, np.random.default_rng(0))
    assert np.array_equal(np.sort(image), np.arange(len(counts)))
    assert np.array_equal(counts[image], counts)
    assert np.isin(image[present], present).all()
    assert np.mean(image[present] != present) > 0.9


@pytest.mark.parametrize("name", robustness.COMPARED_ESTIMATORS)
def test_attention_stays_to_the_last_bit_with_counts_alone(name: str, demo, curve_settings) -> None:
    settings = ModelSettings(signature=robustness.COMPARED_ESTIMATORS[name])
    model = FewShotModel.initial(settings, demo.texts.table.shape[1])
    change = robustness.measure_change(model, demo.texts, demo.sampler("test", curve_settings.episode, 0), 3)
    if name == "counts":
        assert (change.attention, change.t) == (0, 0)
    else:
        assert change.attention > 0
        assert change.t > 0


def test_every_estimator_and_the_run_itself_are_compared(curve_run: Path, monkeypatch) -> None:
    monkeypatch.setattr(robustness, "QUICK_EPISODES", 3)
    monkeypatch.setattr(robustness, "TRAINED", 3)
    [figure] = robustness.figures(InspectedRun(curve_run, quick=True, quiet=True))
    assert [row["model"] for row in figure.rows] == [curve_run.name, *["trained here"] * 4]
    assert [row["attention"] for row in figure.rows[:2]] == [0, 0]
    assert all(row["attention"] > 0 for row in figure.rows[2:])
    assert figure.svg.startswith("<svg")
