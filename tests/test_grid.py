from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from handful.bench.costs import budget_check, estimate_cells, makespan, parse_duration, read_costs
from handful.bench.grid import PAPER_DATA, Cell, Selection, grid_names, load_cells, read_grid
from handful.bench.results import append_result, locked, read_results, result_line
from handful.bench.running import ACCURACIES, LOCK, RESULT, run_cell, run_grid, shared_data
from handful.bench.tables import paper_figures
from handful.cli import main
from handful.errors import DataError, SettingError
from handful.meta.evaluation import paired_difference
from handful.meta.inputs import load_experiment_data
from handful.utils.parallel import Failure, Workers, dependable_map

TINY = {"way": 3, "queries": 3, "episodes": 3, "validation_episodes": 2, "epochs": 2, "test_episodes": 6}
TIMES = ("seconds", "peak_memory_mb", "resumed_from_epoch")


def tiny_cell(preset: str = "our", **options: object) -> Cell:
    return Cell("demo", 1, "wordllama", preset, 0, tuple(sorted({**TINY, **options}.items())), "idf-rr")


@pytest.mark.parametrize(
    "options",
    [
        {"length": 10.0},
        {"length": 0.0},
        {"word_frequencies": "background"},
        {"max_words": 3},
        {"min_count": 5},
        {"vectors": "minilm"},
    ],
    ids=str,
)
def test_cells_share_data_only_if_it_is_the_same(options: dict[str, object]) -> None:
    """What a cell gets from the cache is what it would have loaded."""
    settings = tiny_cell("avg-rr", **options).settings
    shared, loaded = shared_data(settings), load_experiment_data(settings)
    np.testing.assert_array_equal(shared.texts.table, loaded.texts.table)
    np.testing.assert_array_equal(shared.texts.rows, loaded.texts.rows)
    assert (shared.background is None) == (loaded.background is None)
    assert shared_data(tiny_cell("idf-rr", **options).settings) is shared


def write_grid(folder: Path, presets: list[str], seeds: list[int], name: str = "tiny.json", **options: object) -> Path:
    block = {"data": ["demo"], "presets": presets, "shots": [1], "options": {**TINY, **options}}
    path = folder / name
    path.write_text(json.dumps({"about": "for a test", "seeds": seeds, "blocks": [block]}))
    return path


def handful(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def comparable(path: Path) -> list[dict]:
    """Lines without times and memory, in a fixed order."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [{name: value for name, value in row.items() if name not in TIMES} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))


# Grids


def test_every_figure_of_the_paper_has_a_cell_in_the_full_grid() -> None:
    cells = {
        (
            cell.preset,
            cell.data,
            cell.shot,
            bool(dict(cell.options).get("train_vectors")),
            cell.vectors.startswith("contextual"),
        )
        for cell in load_cells("full")
    }
    for embedding in ("fasttext", "bert"):
        for preset, data, shot, trained in paper_figures(embedding):
            contextual = embedding == "bert" and preset != "p-maml"  # which brings its own encoder
            assert (preset, data, shot, trained, contextual) in cells


@pytest.mark.parametrize("name", grid_names())
def test_shipped_grids_are_sound(name: str) -> None:
    cells = load_cells(name)
    assert read_grid(name).about.endswith((".", "?"))
    assert len({cell.folder for cell in cells if cell.preset != "p-maml"}) == len([c for c in cells if c.preset != "p-maml"])
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)  # the first seed of everything first


def test_a_method_as_in_the_paper_is_compared_with_a_reference_as_in_the_paper() -> None:
    cells = {preset: Cell("reuters", 1, "wordllama", preset, reference="idf-rr") for preset in ("our", "our-paper")}
    assert cells["our"].rival.preset == "idf-rr"
    assert cells["our-paper"].rival.preset == "idf-rr-paper"
    assert cells["our-paper"].rival.rival is None
    assert Cell("reuters", 1, "wordllama", "idf-rr-paper", reference="idf-rr").rival is None


def test_the_method_and_the_simple_rivals_come_first() -> None:
    heads = [cell.preset.split("-")[-1] for cell in load_cells("main", Selection(seeds=(0,)))]
    assert max(heads.index(head) for head in ("our", "rr", "proto", "nn")) < min(heads.index(head) for head in ("maml", "ft"))


def test_a_part_stands_in_for_its_data_set_and_own_data_is_welcome() -> None:
    cells = load_cells("finetuned", Selection(data=("amazon-17", "huffpost", "mine.jsonl")))
    assert {cell.data for cell in cells} == {"amazon-17", "mine.jsonl"}  # the paper has no HuffPost there
    assert {cell.data for cell in load_cells("main")} == set(PAPER_DATA)


def test_a_grid_that_lists_a_part_can_be_asked_for_it(tmp_path: Path) -> None:
    grid = tmp_path / "grid.json"
    grid.write_text('{"about": "", "blocks": [{"data": ["fewrel-partial", "reuters"], "presets": ["our"]}]}')
    assert {cell.data for cell in load_cells(str(grid), Selection(data=("fewrel-partial",)))} == {"fewrel-partial"}


def test_vectors_replace_vectors_of_their_kind() -> None:
    cells = load_cells("full", Selection(vectors=("wordllama+/somewhere/glove.npz",), seeds=(0,)))
    assert {cell.vectors for cell in cells} == {"wordllama+/somewhere/glove.npz", "contextual:minilm"}
    assert "/somewhere" not in cells[0].folder + cells[0].key


def test_positions_are_for_relations_and_for_what_sees_them() -> None:
    seen = {
        (data, p): Cell(data, 1, "wordllama", p).settings.model.positions
        for data in ("fewrel", "reuters")
        for p in ("our", "idf-rr")
    }
    assert [place for place, positions in seen.items() if positions] == [("fewrel", "our")]


def test_a_preset_that_names_vectors_keeps_them(monkeypatch) -> None:
    from handful.bench import grid

    monkeypatch.setattr(grid, "load_preset", lambda name: {"representation": "mean", "head": "ridge", "vectors": "minilm"})
    assert Cell("demo", 1, "wordllama", "any").settings.model.vectors.names == "minilm"


def test_an_encoder_of_the_grid_replaces_that_of_a_preset() -> None:
    cells = load_cells("after_2020", Selection(vectors=("sentence:multilingual",), seeds=(0,)))
    names = {cell.settings.model.vectors.names for cell in cells if cell.preset.startswith("sentence")}
    assert names == {"sentence:multilingual"}


def test_vectors_of_words_and_texts_replace_only_their_like() -> None:
    for given, expected in (("sentence:x", "blend+sentence:bge-small"), ("minilm+sentence:x", "minilm+sentence:x")):
        cells = load_cells("after_2020", Selection(vectors=(given,), seeds=(0,), only="our-sentence"))
        assert {cell.settings.model.vectors.names for cell in cells} == {expected}
        assert {(cell.data, cell.shot, cell.settings.episode.class_names) for cell in cells} == {
            (data, shot, names) for data in ("reuters", "huffpost") for shot in (1, 5) for names in (False, True)
        }


def test_options_of_episodes_are_part_of_a_cell_only_if_set() -> None:
    plain = Cell("demo", 1, "wordllama", "our")
    named = replace(plain, options=(("class_names", True),), reference="idf-rr")
    assert "class_names" not in plain.key
    assert named.key != plain.key
    assert named.rival.options == ()  # not every method can use names


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"about": "x", "blocks": [{"data": ["demo"], "presets": ["our"], "options": {"epoch": 1}}]}, "no option epoch"),
        ({"about": "x", "blocks": [{"data": ["demo"], "preset": ["our"]}]}, "no setting .*block 1: preset"),
        ({"about": "x", "blocks": [{"data": "demo", "presets": ["our"]}]}, "data is 'demo'"),
        ({"about": 1}, "about is 1"),
    ],
)
def test_wrong_grid_files_are_refused(tmp_path: Path, content: dict, sentence: str) -> None:
    (tmp_path / "grid.json").write_text(json.dumps(content))
    with pytest.raises(SettingError, match=sentence):
        read_grid(str(tmp_path / "grid.json"))
    with pytest.raises(SettingError, match="There is no grid 'nowhere'"):
        read_grid("nowhere")


# Running


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """A folder with a finished tiny grid: grid, results, runs."""
    folder = tmp_path_factory.mktemp("grid")
    grid = write_grid(folder, ["idf-rr", "our", "avg-nn"], [0, 1])
    result = handful("benchmark", grid, "--out", folder / "r.jsonl", "--runs", folder / "runs", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("demo-1shot-wordllama-our-seed") == 2
    return folder


def test_a_line_says_everything(done: Path) -> None:
    results = {(result.preset, result.seed): result for result in read_results(done / "r.jsonl")}
    assert len(results) == 6
    ours, rival = results["our", 1], results["idf-rr", 1]
    assert (ours.episodes, ours.queries, ours.epochs, ours.resumed_from_epoch) == (6, 3, 2, 0)
    assert (ours.settings["episode"]["way"], ours.settings["training"]["epochs"]) == (3, 2)
    assert results["avg-nn", 0].epochs == 0
    assert {"handful", "numpy", "torch"} <= set(ours.versions)
    assert ours.seconds > 0
    folders = {result.preset: next((done / "runs").glob(f"*-{result.preset}-seed1-*")) for result in (ours, rival)}
    first, second = (np.load(folders[preset] / ACCURACIES) for preset in ("our", "idf-rr"))
    gain = paired_difference(first, second)
    assert (ours.reference, ours.over_reference, ours.over_reference_ci95) == ("idf-rr", gain.mean, gain.ci95)
    assert rival.reference is None


def test_the_cell_to_pair_with_has_no_encoder_to_pretrain() -> None:
    options = (("pretraining_epochs", 3), ("queries", 5))
    rival = Cell("reuters", 1, "wordllama", "p-maml", options=options, reference="idf-rr").rival
    assert rival is not None
    assert rival.options == (("queries", 5),)  # the same episodes
    assert not rival.settings.training.pretraining_epochs


def test_a_rerun_does_nothing_and_a_lost_line_is_read_from_its_folder(done: Path, tmp_path: Path) -> None:
    options = ("--runs", done / "runs", "--quiet")
    before = (done / "r.jsonl").read_text()
    assert handful("benchmark", done / "tiny.json", "--out", done / "r.jsonl", *options).stdout == ""
    assert (done / "r.jsonl").read_text() == before
    copy = tmp_path / "r.jsonl"
    copy.write_text("".join(before.splitlines(keepends=True)[:-1]) + '{"data": "cut o')
    assert handful("benchmark", done / "tiny.json", "--out", copy, *options).exit_code == 0
    assert comparable(copy) == comparable(done / "r.jsonl")


def test_several_workers_give_the_same_lines(done: Path, tmp_path: Path) -> None:
    result = handful(
        "benchmark", done / "tiny.json", "--out", tmp_path / "r", "--runs", tmp_path / "runs", "--workers", 2, "--quiet"
    )
    assert result.exit_code == 0, result.output
    assert comparable(tmp_path / "r") == comparable(done / "r.jsonl")


def test_only_and_seeds_choose_cells(done: Path, tmp_path: Path) -> None:
    chosen = ("--only", "avg", "--seeds", "0,7")
    result = handful("benchmark", done / "tiny.json", "--out", tmp_path / "r", *chosen, "--dry-run", "--json")
    assert [json.loads(line)["cell"] for line in result.stdout.splitlines()] == [
        "demo-1shot-wordllama-avg-nn-seed0",
        "demo-1shot-wordllama-avg-nn-seed7",
    ]


def test_a_failing_cell_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    blocks = [
        {"data": ["demo"], "presets": ["avg-nn"], "shots": [1], "options": {**TINY, "way": 16}},
        {"data": ["nowhere"], "presets": ["avg-nn", "our"], "shots": [1], "options": TINY},
        {"data": ["demo"], "presets": ["no-such", "avg-nn"], "shots": [1], "options": TINY},
    ]
    (tmp_path / "g.json").write_text(json.dumps({"about": "x", "seeds": [0], "reference": None, "blocks": blocks}))
    result = handful("benchmark", tmp_path / "g.json", "--out", tmp_path / "r", "--runs", tmp_path / "runs", "--quiet")
    assert result.exit_code == 1
    for sentence in (
        "15 classes are too few for 16-way",
        "avg-nn-seed0 and 1 more: There is no data set 'nowhere'",
        "no preset 'no-such'",
    ):
        assert sentence in result.stderr
    assert result.stderr.count("\n") == 3
    assert [line.preset for line in read_results(tmp_path / "r")] == ["avg-nn"]


def test_a_killed_benchmark_goes_on_to_the_same_line(tmp_path: Path) -> None:
    """A real process, killed without warning in the middle of a cell, then started again."""
    grid = write_grid(tmp_path, ["our"], [0], epochs=6, episodes=20)
    command = [sys.executable, "-m", "handful", "benchmark", str(grid), "--quiet", "--out", str(tmp_path / "killed")]
    command += ["--runs", str(tmp_path / "runs")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 90
    while not list((tmp_path / "runs").glob("*/history.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed").read_text()
    for name, runs in (("killed", "runs"), ("whole", "other")):
        assert handful("benchmark", grid, "--quiet", "--out", tmp_path / name, "--runs", tmp_path / runs).exit_code == 0
    assert comparable(tmp_path / "killed") == comparable(tmp_path / "whole")
    assert read_results(tmp_path / "killed")[0].resumed_from_epoch > 0


def test_two_processes_share_a_file_and_a_folder(done: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "handful", "benchmark", str(done / "tiny.json"), "--quiet", "--out", str(tmp_path / "r")]
    command += ["--runs", str(tmp_path / "runs")]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert comparable(tmp_path / "r") == comparable(done / "r.jsonl")


def test_a_cell_that_another_process_runs_is_left_to_it(tmp_path: Path) -> None:
    cell = tiny_cell("avg-nn")
    (tmp_path / cell.folder).mkdir()
    with locked(tmp_path / cell.folder / LOCK):
        assert run_cell(cell, tmp_path) is None
        reports = list(run_grid([cell], tmp_path / "r", tmp_path, quiet=True))
    assert [str(report) for report in reports] == ["demo-1shot-wordllama-avg-nn-seed0: another process is running it."]
    assert not (tmp_path / cell.folder / RESULT).exists()


def test_a_file_that_holds_no_results_is_refused(lines) -> None:
    with pytest.raises(DataError, match=r"line 1 is not a line of results"):
        read_results(lines('{"accuracy": 1}', name="r.jsonl"))


# Time


def test_estimates_come_from_the_past_then_from_the_table(done: Path) -> None:
    [result, *_] = [result for result in read_results(done / "r.jsonl") if result.preset == "our"]
    past = [
        replace(result, seconds=30.0),
        replace(result, seed=5, seconds=50.0),
        replace(result, seed=6, seconds=1.0, resumed_from_epoch=3),
    ]
    cells = [tiny_cell("our"), replace(tiny_cell("our"), shot=5), replace(tiny_cell("our"), vectors="minilm")]
    assert [(known.seconds, known.basis) for known in estimate_cells(cells, past)] == [
        (40, "measured"),
        (40, "measured at another shot"),
        (40, "measured with other vectors"),
    ]


def test_estimates_from_the_table_follow_the_length_of_texts_and_the_options() -> None:
    cells = [Cell(data, 1, "wordllama", "our") for data in ("huffpost", "reuters", "20newsgroups", "mine.jsonl")]
    short, middle, long, unknown = (known.seconds for known in estimate_cells(cells, []))
    assert 0 < short < middle == unknown < long
    bases = [known.basis for known in estimate_cells(cells, [])]
    assert bases == [*["from the cost table"] * 3, "from the cost table, for long texts"]
    quick, simple = estimate_cells([tiny_cell("our"), Cell("reuters", 1, "wordllama", "avg-nn")], [])
    assert max(quick.seconds, simple.seconds) < short


def test_a_method_without_any_cost_is_guessed_from_the_others(monkeypatch) -> None:
    monkeypatch.setitem(read_costs()["presets"], "our", None)
    others = [Cell("reuters", 1, "wordllama", preset) for preset in ("avg-rr", "idf-rr", "cnn-rr")]
    *known, guessed = estimate_cells([*others, Cell("reuters", 1, "wordllama", "our")], [])
    assert (guessed.basis, guessed.seconds) == ("guessed from the other cells", sorted(e.seconds for e in known)[1])


def test_nothing_is_begun_that_does_not_fit_the_budget(tmp_path: Path) -> None:
    cells = [Cell("reuters", 1, "wordllama", "our"), tiny_cell("avg-nn")]
    fits = budget_check(cells, [], estimate_cells(cells, [])[1].seconds + 1)
    assert [fits(cell) for cell in cells] == [False, True]
    result = handful("benchmark", "main", "--out", tmp_path / "r", "--only", "demo", "--data", "demo", "--time-budget", "1s")
    assert (result.exit_code, result.stdout[:16]) == (0, "Remaining: 130 c")
    assert parse_duration("1.5h") == 5400
    for wrong in ("90", "m", "-3s"):
        with pytest.raises(SettingError, match="90m"):
            parse_duration(wrong)


def test_many_machines_take_as_long_as_the_longest_cell_at_least() -> None:
    seconds = [5.0, 4, 3, 2, 1]
    assert [makespan(seconds, machines) for machines in (1, 2, 100)] == [15, 8, 5]
    plan = handful("benchmark", "full", "--out", "nowhere.jsonl", "--dry-run", "--machines", 100).stdout.splitlines()
    assert "100 in parallel" in plan[-1]
    assert len(plan) > 1500


# Workers that die


def test_a_dead_worker_ends_neither_the_others_nor_their_jobs(tmp_path: Path) -> None:
    def job(number: int, folder: Path) -> int:
        import os
        import time

        time.sleep(0.1)
        once = folder / str(number)
        if number == 5 or (number == 1 and not once.exists()):  # 5 kills its worker each time, 1 the first time
            once.touch()
            os.kill(os.getpid(), 9)
        if number == 3:
            raise DataError("Three is wrong: take another.")
        return number * number

    outcomes = {number: result for (number, _), result in dependable_map(job, [(i, tmp_path) for i in range(7)], Workers(2))}
    assert {number: result for number, result in outcomes.items() if number not in (3, 5)} == {0: 0, 1: 1, 2: 4, 4: 16, 6: 36}
    assert outcomes[3] == Failure("Three is wrong: take another.")
    assert "died 3 times" in outcomes[5].reason


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"backend": "threads"}, "no backend 'threads'"),
        ({"processes": 0}, "`processes` is 0: it must be at least 1"),
        ({"backend": "dask"}, "`address`"),
        ({"address": "tcp://127.0.0.1:1"}, "`address`"),
    ],
)
def test_pools_that_cannot_be(options: dict, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        Workers(**options)


def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    result = handful("benchmark", "smoke", "--out", tmp_path, "--runs", tmp_path / "runs")
    assert (result.exit_code, result.stderr.count("\n"), "--out" in result.stderr) == (2, 1, True)
    assert not (tmp_path / "runs").exists()


def test_results_are_whole_lines_and_stand_once(done: Path, tmp_path: Path) -> None:
    [result, *_] = read_results(done / "r.jsonl")
    for _ in range(2):
        append_result(tmp_path / "sub" / "r.jsonl", result)
    assert (tmp_path / "sub" / "r.jsonl").read_text() == result_line(result)
