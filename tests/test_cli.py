from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from conftest import needs_real_data
from onnx_files import write_encoder

from handful.cli import main
from handful.data.datasets import find_data

QUICK = ["--way", "3", "--queries", "3", "--episodes", "3", "--validation-episodes", "2", "--epochs", "2", "--quiet"]

SIGNALS = "s, t, t-count, t-softmax, t-ridge, frequency, unevenness and reach"


def handful(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("attention", "idf"):
        result = handful("train", "--out", folder / name, "--representation", name, *QUICK, "--json")
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert report["epochs"] == 2
    return folder


def test_train_says_what_it_did(tmp_path: Path) -> None:
    result = handful("train", "--out", tmp_path / "run", "--representation", "mean", *QUICK)
    assert result.exit_code == 0
    assert "run: 2 epochs, " in result.stdout
    result = handful("train", "--out", tmp_path / "one", "--representation", "mean", *QUICK, "--epochs", 1)
    assert "one: 1 epoch, " in result.stdout


def test_training_tells_of_each_epoch_in_a_line_where_there_is_no_terminal(tmp_path: Path) -> None:
    loud = [option for option in QUICK if option != "--quiet"]
    result = handful("train", "--out", tmp_path / "loud", *loud)
    assert [line.split(" · ")[0] for line in result.stderr.splitlines()] == ["Epoch 1", "Epoch 2"]
    assert handful("train", "--out", tmp_path / "quiet", *QUICK).stderr == ""


def test_a_method_without_parameters_trains_and_tests_too(tmp_path: Path) -> None:
    result = handful("train", "--out", tmp_path / "nn", "--representation", "mean", "--head", "nearest", *QUICK)
    assert "this method needs no training" in result.stdout
    assert json.loads(handful("evaluate", tmp_path / "nn", "--episodes", 20, "--quiet", "--json").stdout)["accuracy"] > 0.34


def test_presets_are_listed_and_every_one_trains(tmp_path: Path, tiny_encoder: str, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # small problems: threads cost more than they give
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    names = [line.split()[0] for line in handful("train", "--list-presets").stdout.splitlines()]
    assert {"our", "cnn-proto", "avg-nn", "idf-rr", "our-without-bilstm"} <= set(names)
    for name in names:
        small = ("--vectors", f"contextual:{tiny_encoder}", "--pretraining-epochs", 1) if name == "p-maml" else ()
        if name.startswith("sentence-") or name == "our-sentence":
            words = "blend+" if name == "our-sentence" else ""
            small = ("--vectors", f"{words}sentence:{write_encoder(tmp_path / 'encoder')}")
        result = handful("train", "--preset", name, "--out", tmp_path / name, *QUICK, "--epochs", 1, *small)
        assert result.exit_code == 0, f"{name}: {result.output}"
    result = handful("train", "--preset", "no-such", "--out", tmp_path / "x")
    assert (result.exit_code, "--list-presets" in result.stderr) == (2, True)


def test_an_option_given_wins_over_the_preset(tmp_path: Path) -> None:
    handful("train", "--preset", "our-without-s", "--signals", "s", "--out", tmp_path / "run", *QUICK)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model"]["attention"]["signals"] == ["s"]


def test_evaluate_as_json(runs: Path) -> None:
    result = handful("evaluate", runs / "attention", "--against", runs / "idf", "--episodes", 10, "--quiet", "--json")
    report = json.loads(result.stdout)
    assert {"accuracy", "ci95", "episodes", "seconds", "queries", "difference", "difference_ci95"} <= set(report)
    assert report["episodes"] == 10
    assert 0 <= report["accuracy"] <= 1
    assert (report["way"], report["shot"], report["queries"]) == (3, 1, 3)


def test_evaluate_reads_each_run_once(runs: Path, monkeypatch) -> None:
    from handful.meta import experiment

    read: list[str] = []

    def load_model(folder: Path, *more):
        read.append(folder.name)
        return real(folder, *more)

    real = experiment.load_model
    monkeypatch.setattr(experiment, "load_model", load_model)
    several = (runs / "attention", runs / "attention", "--against", runs / "idf")
    assert handful("evaluate", *several, "--episodes", 4, "--quiet").exit_code == 0
    assert read == ["idf", "attention", "attention"]


def test_evaluate_as_a_sentence_with_another_shape(runs: Path) -> None:
    result = handful("evaluate", runs / "attention", "--against", runs / "idf", "--episodes", 6, "--shot", 5, "--quiet")
    assert "over 6 episodes, 3-way 5-shot, 3 queries per class" in result.stdout
    assert "± " in result.stdout
    assert "on the same episodes" in result.stdout


def test_evaluate_several_runs_gives_the_deviation(runs: Path) -> None:
    result = handful("evaluate", runs / "attention", runs / "idf", "--episodes", 6, "--quiet", "--json")
    first, second, summary = (json.loads(line) for line in result.stdout.splitlines())
    assert summary["accuracy"] == pytest.approx((first["accuracy"] + second["accuracy"]) / 2)
    assert summary["deviation"] == pytest.approx(abs(first["accuracy"] - second["accuracy"]) / 2**0.5)
    spoken = handful("evaluate", runs / "attention", runs / "idf", "--episodes", 6, "--quiet").stdout
    assert "deviation" in spoken.splitlines()[-1]


def test_evaluate_on_training_classes_leaves_the_episodes_classes_out_of_the_pool(runs: Path) -> None:
    report = json.loads(handful("evaluate", runs / "attention", "--part", "train", "--episodes", 4, "--quiet", "--json").stdout)
    assert report["part"] == "train"


def test_evaluate_on_other_data(runs: Path, lines, tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"text {i} of {label}", "label": label}) for label in "abcd" for i in range(4)]
    lines(*rows, name="other.jsonl")
    lines('{"train": ["a"], "val": [], "test": ["b", "c", "d"]}', name="other.split.json")
    result = handful("evaluate", runs / "attention", "--data", tmp_path / "other.jsonl", "--episodes", 4, "--quiet", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["episodes"] == 4


def test_demo_shows_accuracy_and_shaded_texts(monkeypatch) -> None:
    from handful.meta import demo
    from handful.meta.training import TrainingSettings

    quick = TrainingSettings(episodes=2, validation_episodes=2, epochs=1)
    monkeypatch.setattr(demo.run_demo, "__defaults__", (1000, 0, quick, False))
    result = handful("demo", "--episodes", 20, "--quiet")
    assert result.exit_code == 0, result.output
    for expected in ("mean + ridge", "idf + ridge", "signatures + ridge", "→", "95 %"):
        assert expected in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("train", "--data", "nowhere"), "There is no data set 'nowhere'"),
        (("train", "--way", "16"), "15 classes are too few for 16-way"),
        (("train", "--shot", "20"), "fewer than the 21"),
        (("train", "--vectors", "nowhere"), "There are no vectors 'nowhere'"),
        (
            ("train", "--signals", "q"),
            f"--signals must be some of {SIGNALS}, not q.",
        ),
        (("train", "--estimator", "x"), "--estimator must be softmax, ridge or count, not 'x'."),
        (("train", "--split", "nowhere.json"), "There is no file nowhere.json"),
        (("train", "--patience", "0"), "--patience must be at least 1, not 0."),
    ],
)
def test_errors_are_one_sentence_with_exit_code_2_and_nothing_half_written(tmp_path: Path, arguments, sentence: str) -> None:
    result = handful(*arguments, "--out", tmp_path / "run", "--quiet")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_evaluate_what_is_no_run(tmp_path: Path) -> None:
    result = handful("evaluate", tmp_path)
    assert result.exit_code == 2
    assert "is not a saved model" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        "",
        "train",
        "evaluate",
        "demo",
        "datasets list",
        "datasets get",
        "datasets check",
        "split",
        "vectors get",
        "encoders list",
        "encoders get",
        "benchmark",
        "table",
    ],
)
def test_help_has_an_example(command: str) -> None:
    result = handful(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"handful {command or 'demo'}" in result.stdout


def test_a_light_import() -> None:
    """`import handful` brings in neither torch nor scikit-learn, and the help needs neither."""
    code = "import sys, handful, handful.cli; print([m for m in ('torch', 'sklearn', 'numba', 'joblib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_using_a_model_needs_no_torch(runs: Path) -> None:
    """With torch and numba out of reach, a saved model still scores."""
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numba"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import numpy as np
from pathlib import Path
from handful import EpisodeSpec, load_run
run = load_run(Path({str(runs / "attention")!r}))
model, inputs = run.model, run.load_data()
episode = inputs.sampler("test", EpisodeSpec(), 0)[0]
task = model.fit(inputs.texts.select(episode.support), episode.support_labels, episode.pool)
print(task.score(inputs.texts.select(episode.query)).shape)
try:
    model.to_torch()
except ImportError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "(95, 5)\nTraining needs an optional dependency: install it with pip install 'handful[train]'.\n"


@needs_real_data
def test_real_reuters_end_to_end(tmp_path: Path) -> None:
    quick = ["--episodes", "5", "--validation-episodes", "4", "--epochs", "1", "--quiet"]
    assert handful("train", "--data", "reuters", "--out", tmp_path / "run", *quick).exit_code == 0
    report = json.loads(handful("evaluate", tmp_path / "run", "--episodes", 40, "--quiet", "--json").stdout)
    assert report["queries"] == 19  # Reuters has 20 documents a class
    assert report["accuracy"] > 0.5  # chance is 0.2


@pytest.mark.parametrize(
    "script", sorted((Path(__file__).parent.parent / "benchmarks").glob("[a-z]*.py")), ids=lambda path: path.stem
)
def test_every_benchmark_starts_and_has_help(script: Path) -> None:
    result = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=True)
    assert "usage:" in result.stdout


def test_the_readme_examples_run(tmp_path: Path) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    classifier, meta = (block.split("```")[0] for block in readme.split("```python\n")[1:])

    def output(code: str) -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert "→ billing" in output(classifier)
    interval, accuracy = output(meta.replace("epochs=10", "epochs=1, episodes=5")).splitlines()
    assert "±" in interval
    assert 0 <= float(accuracy) <= 1


def test_vectors_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.txt").write_text("the 1 nan\nbook 1 2\n")
    result = handful("train", "--vectors", tmp_path / "broken.txt", "--out", tmp_path / "run", "--quiet")
    assert result.exit_code == 2
    assert "has a vector for 'the' that is not finite" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_learns_from_any_file_that_fit_reads(tmp_path: Path) -> None:
    """Semicolons, another encoding and columns by name: the settings are kept with the run."""
    rows = [json.loads(line) for line in find_data("demo")[0].read_text("utf-8").splitlines()]
    path = tmp_path / "tickets.csv"
    with path.open("w", encoding="cp1252", errors="replace", newline="") as stream:
        writer = csv.writer(stream, delimiter=";")
        writer.writerow(["id", "message", "queue"])
        writer.writerows([i, row["text"], row["label"]] for i, row in enumerate(rows))
    (tmp_path / "tickets.split.json").write_bytes(find_data("demo")[1].read_bytes())
    reading = ("--text", "message", "--label", "queue", "--encoding", "windows-1252")
    short = ("--epochs", "1", "--episodes", "2", "--validation-episodes", "2", "--quiet")
    assert handful("train", "--data", path, *reading, "--out", tmp_path / "run", *short).exit_code == 0
    report = json.loads(handful("evaluate", tmp_path / "run", "--episodes", 5, "--json", "--quiet").stdout)
    assert report["accuracy"] > 0.2
