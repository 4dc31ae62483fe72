"""Make the pictures of the README. This takes minutes, because a model is trained on the demo corpus.

python benchmarks/pictures.py --out docs/images
python benchmarks/pictures.py --out docs/images --only explain      # the output of the README's first example: seconds
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from _speed_picture import speed_picture
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from handful import EpisodeSpec, RunSettings, TrainingSettings, train_run
from handful.analysis import InspectedRun, overview

ROOT = Path(__file__).parent.parent
WIDTH = 70  # columns of the terminal in the picture
CLASSES = ("prescription_refill", "test_results", "clinic_bill")
QUERY = 460  # position in the demo corpus


def first_example() -> str:
    """The first Python example of the README."""
    return (ROOT / "README.md").read_text("utf-8").split("```python\n")[1].split("```")[0]


def printed_by(code: str) -> str:
    """The output of code on a terminal with colours, including escape sequences."""
    terminal = {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "NO_COLOR": "", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
    environment = {**os.environ, **terminal, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


def explanation_picture() -> str:
    """The terminal after the README's first example, as SVG that loads no fonts."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print(Text.from_ansi(printed_by(first_example()).rstrip("\n")))
    picture = console.export_svg(title="Output", theme=DEFAULT_TERMINAL_THEME)
    framed = picture.replace("rgba(255,255,255,0.35)", "gray")  # the frame, which would be white on white
    return re.sub(r"@font-face \{.*?\}", "", framed, flags=re.DOTALL)


def overview_picture() -> str:
    """A drawing of how the method works, on an episode of the demo corpus."""
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train_run(RunSettings(data="demo", episode=EpisodeSpec(shot=5), training=TrainingSettings(epochs=15)), run)
        (figure,) = overview.figures(InspectedRun(run, classes=CLASSES, document=QUERY))
        return figure.svg


PICTURES = {
    "explain": explanation_picture,
    "overview": overview_picture,
    "speed": lambda: speed_picture(ROOT / "results" / "settings.jsonl"),
}


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=PICTURES, help="Make only this picture.")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in [arguments.only] if arguments.only else PICTURES:
        (arguments.out / f"{name}.svg").write_text(PICTURES[name](), "utf-8")


if __name__ == "__main__":
    main()
