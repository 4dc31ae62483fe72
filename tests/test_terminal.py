"""What comes from data is shown as it is written: neither Rich's markup nor a terminal's commands are obeyed."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from handful import FewShotClassifier
from handful.cli import main
from handful.cli.common import print_table
from handful.utils.progress import progress_bar
from handful.utils.shading import shade

COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = ["\x1b]0;red", "c1 \x9b31m", "over\u202eride", "iso\u2066late", "line\nbreak", "bell\x07", "half \ud800"]
MARKUP = ["[red]food", "[/]", "[bold]", "a [link=x] b", "\\[x]"]
TEXTS = [
    "the soup was tasty",
    "my train came late",
    "the screen is broken",
    "wrong invoice",
    "no parking",
    "cold office",
    "new job",
]


def handful(*arguments: object, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


def good(*arguments: object, stdin: str | bytes | None = None) -> Result:
    result = handful(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def harmless(result: Result) -> Result:
    """Neither stream has anything that a terminal obeys."""
    for printed in (result.stdout, result.stderr):
        assert not COMMANDS.search(printed), printed
    return result


def labelled(path: Path, labels: list[str]) -> Path:
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "m"
    FewShotClassifier().fit([*TEXTS, *(f"again, {text}" for text in TEXTS)], HOSTILE * 2).save(folder, keep_examples=True)
    return folder


@pytest.fixture(scope="module")
def marked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("marked") / "m"
    FewShotClassifier().fit(TEXTS[:5], MARKUP).save(folder, keep_examples=True)
    return folder


# Markup


@pytest.mark.parametrize("number", range(len(MARKUP)))
def test_explain_shows_class_names_as_they_are(marked: Path, number: int) -> None:
    printed = good("explain", marked, TEXTS[number]).stdout
    assert f"→ {MARKUP[number]} " in printed
    assert f"for {MARKUP[number]}" in printed


def test_tables_show_class_names_as_they_are(marked: Path, tmp_path: Path) -> None:
    path = labelled(tmp_path / "a.jsonl", MARKUP)
    for printed in (good("inspect", marked).stdout, good("score", marked, path).stdout):
        assert all(name in printed for name in MARKUP)


@pytest.mark.parametrize("name", ["[red]x.csv", "[/]", "\x1b[31mred"])
def test_a_progress_bar_shows_its_description_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar(f"Reading {name}", 10) as bar:
        bar.update(5)
        bar.update(10, f"Read {name}")
    shown = name.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert f"Read {shown}" in stream.getvalue()


def test_the_demo_shows_class_names_as_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from handful.meta import demo
    from handful.meta.training import TrainingSettings

    quick = TrainingSettings(episodes=2, validation_episodes=2, epochs=1)
    monkeypatch.setattr(demo.run_demo, "__defaults__", (1000, 0, quick, False))
    monkeypatch.setattr(demo, "shaded_queries", lambda _: [("[red]a\x1b[0m", "[/]", shade("x", [], np.empty(0)))])
    demo.print_demo(4, quiet=True)
    assert "→ [/] (wrong, it is [red]a\N{REPLACEMENT CHARACTER}[0m)" in capsys.readouterr().out


# Commands to a terminal


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_explain_obeys_no_class_name(hostile: Path, number: int) -> None:
    harmless(good("explain", hostile, TEXTS[number]))
    text = FewShotClassifier.load(hostile).explain(TEXTS[number])
    assert not COMMANDS.search(str(text))
    assert str(text).count("\n") == 1


def test_inspect_and_score_obey_no_class_name(hostile: Path, tmp_path: Path) -> None:
    assert "\N{REPLACEMENT CHARACTER}]0;red" in harmless(good("inspect", hostile)).stdout
    printed = harmless(good("score", hostile, labelled(tmp_path / "a.jsonl", HOSTILE))).stdout
    assert len(printed.splitlines()) == 2 + len(HOSTILE)  # a line break in a name breaks no row
    many = [f"{name} {i}" for i in range(6) for name in HOSTILE]
    texts = [f"{word}{i} thing" for i, word in enumerate(TEXTS * 6)]
    FewShotClassifier().fit(texts, many).save(tmp_path / "many")
    harmless(good("score", tmp_path / "many", labelled(tmp_path / "b.jsonl", HOSTILE)))


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\ud800" not in name])
def test_errors_and_warnings_and_messages_are_harmless(hostile: Path, tmp_path: Path, name: str) -> None:
    inbox = tmp_path / f"{name}.csv"
    inbox.write_text(f'"{name}",b,c\nx,y,z\n')
    for arguments in (
        ("predict", hostile, inbox),
        ("predict", hostile, inbox, "--text", "none"),
        ("predict", hostile, tmp_path / f"{name}.none"),
        ("predict", tmp_path / name, inbox),
        ("predict", hostile, inbox, "--text", "b", "--out", tmp_path / f"{name}.xml"),
        ("predict", hostile, inbox, f"--{name}"),
        ("predict", hostile, inbox, name),
        (name,),
    ):
        result = harmless(handful(*arguments))
        assert result.exit_code == 2
        assert name not in result.stderr
    first = inbox.with_name(f"{name}.jsonl")
    first.write_text(json.dumps({"text": "a", "label": name}) + "\n" + json.dumps({"text": "a", "label": "b"}) + "\n")
    assert "Warning: " in harmless(good("fit", first, "--out", tmp_path / f"{name} m")).stderr
    out = tmp_path / f"{name} out.csv"
    harmless(good("predict", hostile, inbox, "--text", "b", "--out", out))
    assert out.exists()
    inbox.write_text(f'"{name}"\n"x\n')
    skipped = harmless(good("predict", hostile, inbox, "--on-error", "skip", "--out", out))
    assert "1 row that cannot be read was skipped" in skipped.stderr
    harmless(good("explain", hostile, "x", "--html", tmp_path / f"{name}.html"))


def test_a_file_whose_name_is_not_utf8(hostile: Path, tmp_path: Path) -> None:
    inbox = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    with open(inbox, "w") as stream:
        stream.write("text\nsoup\n")
    out = tmp_path / os.fsdecode(b"\xff.csv")
    harmless(good("predict", hostile, os.fsdecode(inbox), "--out", out))
    harmless(handful("predict", hostile, os.fsdecode(inbox), "--text", "none"))


def test_shaded_texts_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    from handful.analysis.shaded_texts import Shaded, ShadedTable

    table = ShadedTable("class\x1b[1m", ("s\x9b",), [("\u202ename", [Shaded(["a\x1b[31m", "b"], np.array([1.0, 0.5]))])])
    Console(highlight=False).print(table.terminal())
    Console(highlight=False).print(shade("bell\x07 word", [(6, 10)], np.array([1.0])))
    print_table(("head\x1b[1m", "n"), [("cell\u2066", 1)])
    printed = capsys.readouterr().out
    assert not COMMANDS.search(printed)
    assert "bell\N{REPLACEMENT CHARACTER} word" in printed


@pytest.mark.parametrize("command", ["predict", "suggest"])
def test_data_on_a_terminal_is_harmless_and_elsewhere_unchanged(hostile: Path, tmp_path: Path, command: str) -> None:
    inbox, text = tmp_path / "in.csv", "red \x1b[31m \u202e \x9b soup"
    inbox.write_text(f"text\n{text}\n")
    arguments = [sys.executable, "-m", "handful", command, str(hostile), str(inbox), *(["--keep"] * (command == "predict"))]
    piped = subprocess.run(arguments, capture_output=True, check=True).stdout.decode()
    [row] = csv.DictReader(io.StringIO(piped))
    assert row["text"] == text
    shown = on_a_terminal(arguments)
    assert "soup" in shown
    assert not COMMANDS.search(shown.replace("\r\n", "\n"))


def on_a_terminal(arguments: list[str]) -> str:
    """What a command prints where standard output is a terminal."""
    reader, writer = pty.openpty()
    with subprocess.Popen(arguments, stdout=writer, stderr=subprocess.DEVNULL) as process:
        os.close(writer)
        shown = b""
        try:
            while part := os.read(reader, 1 << 16):
                shown += part
        except OSError:  # the other side has closed it
            pass
        assert process.wait(120) == 0
    os.close(reader)
    return shown.decode()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_files_keep_the_data_unchanged(hostile: Path, tmp_path: Path, ending: str) -> None:
    texts = [text for text, name in zip(TEXTS, HOSTILE, strict=True) if "\ud800" not in name]
    (tmp_path / "in.txt").write_text("\n".join(texts))
    out = tmp_path / f"out.{ending}"
    if ending == "parquet":
        folder = tmp_path / "m"
        FewShotClassifier().fit(texts, HOSTILE[:-1]).save(folder)
        good("predict", folder, tmp_path / "in.txt", "--out", out)
        found = pytest.importorskip("pyarrow.parquet").read_table(out)["label"].to_pylist()
    else:
        good("predict", hostile, tmp_path / "in.txt", "--out", out)
        content = out.read_text("utf-8") if ending == "jsonl" else out.read_bytes().decode()
        rows = csv.DictReader(io.StringIO(content, newline="")) if ending == "csv" else map(json.loads, content.splitlines())
        found = [row["label"] for row in rows]
    assert found == HOSTILE[:-1]
