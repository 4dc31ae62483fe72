"""The README: its pictures and commands are those of the code."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from handful.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def _without_spaces(lines: list[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]


def _picture_lines(svg: str) -> list[str]:
    """The lines of a terminal in a picture, from the text that is placed on each."""
    lines: dict[int, str] = {}
    for number, text in re.findall(r'<text[^>]*line-(\d+)\)"[^>]*>(.*?)</text>', svg, re.DOTALL):
        lines[int(number)] = lines.get(int(number), "") + html.unescape(text)
    return [lines[number] for number in sorted(lines)]


def test_the_picture_is_what_the_first_example_prints() -> None:
    """Every character of every line. If it fails: python benchmarks/pictures.py --out docs/images --only explain."""
    example, after = README.split("```python\n")[1].split("```", 1)
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"}
    command = [sys.executable, "-c", example]
    printed = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True, env=environment).stdout
    picture = re.search(r"!\[.*?\]\((.*?)\)", after).group(1)  # the first one below the code
    shown = _picture_lines((ROOT / picture).read_text("utf-8"))
    assert len(shown) > 5
    assert _without_spaces(shown) == _without_spaces(printed.splitlines())


def test_the_first_commands_run(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples.csv").write_text("text,label\nI was charged twice.,billing\nThe parcel has not arrived.,delivery\n", "utf-8")
    Path("inbox.csv").write_text("text\nWhere is my package?\nThere is a second charge on my card.\n", "utf-8")
    block = next(block for block in README.split("```")[1::2] if block.lstrip().startswith("handful fit"))
    commands = [re.findall(r'"[^"]*"|\S+', line.split("  #")[0]) for line in block.strip().splitlines()]
    for program, *arguments in commands:
        assert program == "handful"
        result = CliRunner().invoke(main, [argument.strip('"') for argument in arguments])
        assert result.exit_code == 0, result.output
    assert Path("answers.csv").read_text("utf-8").splitlines()[1].startswith("delivery,")


# docs/design.md

DESIGN = (ROOT / "docs" / "design.md").read_text("utf-8")
MODULES = {path.relative_to(ROOT / "handful").as_posix() for path in (ROOT / "handful").rglob("[a-z]*.py")}


def _sections(title: str) -> dict[str, str]:
    """The parts of a section of the design page, by their headings."""
    own = DESIGN.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return {part.split("\n")[0]: part for part in own.split("\n### ")[1:]}


def test_the_design_page_lists_every_module_once() -> None:
    listed = [f"{package}/{name}" for package, part in _sections("Packages").items() for name in _listed_modules(part)]
    assert sorted(["errors.py", *listed]) == sorted(MODULES)


def _listed_modules(part: str) -> list[str]:
    items = re.findall(r"^- ((?:`\w+\.py`,?\s+)*`\w+\.py`):", part, re.MULTILINE)
    return [name for item in items for name in re.findall(r"\w+\.py", item)]


def test_no_walk_passes_a_module_twice() -> None:
    for walk in _sections("Data flow").values():
        steps = re.findall(r"^\d+\. `(\w+/\w+\.py)`", walk, re.MULTILINE)
        assert len(steps) > 10
        assert len(set(steps)) == len(steps)
        assert set(steps) <= MODULES


def test_the_formulas_stand_where_the_design_page_says() -> None:
    table = DESIGN.split("\n## Where to find the paper's formulas\n")[1].split("\n## ")[0]
    for path, names in re.findall(r"`(\w+/\w+\.py)`: ((?:`\w+`(?:, )?)+)", table):
        source = (ROOT / "handful" / path).read_text("utf-8")
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^(?:def|class) {name}\b", source, re.MULTILINE), f"{path} has no {name}"
