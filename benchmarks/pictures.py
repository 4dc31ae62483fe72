"""The pictures of the README, made anew: minutes, because a model is trained on the demo corpus.

python benchmarks/pictures.py --out docs/images
"""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from handful import EpisodeSpec, FewShotClassifier, RunSettings, TrainingSettings, train_run
from handful.bench.analyses import Subject, overview

EXAMPLES = {
    "billing": ["I was charged twice this month.", "Please send the invoice to our new address."],
    "delivery": ["The parcel still has not arrived.", "Can I change the day of the delivery?"],
    "defect": ["The screen flickers and then goes dark.", "It stopped working after a week."],
}
QUESTION = "Why is there a second charge on my card for the same order?"
CLASSES, QUERY = ("prescription_refill", "test_results", "clinic_bill"), 460  # of the demo corpus


def explanation_picture() -> str:
    """The terminal's view of an explanation, as SVG without fonts from elsewhere."""
    texts, labels = zip(*((text, label) for label, several in EXAMPLES.items() for text in several), strict=True)
    explanation = FewShotClassifier().fit(list(texts), list(labels)).explain(QUESTION)
    console = Console(record=True, width=72, file=io.StringIO(), highlight=False)
    console.print(explanation)
    return re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="handful explain"), flags=re.DOTALL)


def overview_picture() -> str:
    """How the method works, drawn from an episode of the demo corpus."""
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train_run(RunSettings(data="demo", episode=EpisodeSpec(shot=5), training=TrainingSettings(epochs=15)), run)
        (figure,) = overview.figures(Subject(run, classes=CLASSES, document=QUERY))
        return figure.svg


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    folder = parser.parse_args().out
    (folder / "explain.svg").write_text(explanation_picture(), "utf-8")
    (folder / "overview.svg").write_text(overview_picture(), "utf-8")


if __name__ == "__main__":
    main()
