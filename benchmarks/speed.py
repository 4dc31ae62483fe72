"""Measure FewShotClassifier alone: seconds to fit, predicted texts per second, memory, and time to a cold first answer.

python benchmarks/speed.py                          (uses the packaged demo corpus; run it on an idle machine)
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handful import FewShotClassifier
from handful.data.datasets import find_data
from handful.errors import HandfulWarning

SHORT = 12  # words
SHAPES = ((5, 1), (5, 5), (77, 5))
FIRST_ANSWER = "from handful import FewShotClassifier; print(FewShotClassifier.load({folder!r}).{ask}({text}))"


def short_texts() -> list[str]:
    """The demo corpus in pieces of a few words."""
    texts = [json.loads(line)["text"].split() for line in find_data("demo")[0].read_text("utf-8").splitlines()]
    return [" ".join(words[i : i + SHORT]) for words in texts for i in range(0, len(words) - SHORT // 2, SHORT)]


def processor_seconds() -> float:
    """Processor seconds of this process and of finished child processes."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(action: Callable[[], Any], times: int) -> dict[str, float]:
    """The best wall-clock and processor seconds of several runs."""
    runs = []
    for _ in range(times):
        wall, processor = time.perf_counter(), processor_seconds()
        action()
        runs.append((time.perf_counter() - wall, processor_seconds() - processor))
    return {"seconds": min(run[0] for run in runs), "cpu_seconds": min(run[1] for run in runs)}


def measure(times: int) -> dict[str, Any]:
    """All measurements, as plain values."""
    texts = short_texts()
    report = {}
    for ways, shots in SHAPES:
        X = texts[: ways * shots]  # noqa: N806
        y = [f"class {i // shots}" for i in range(ways * shots)]
        clf = FewShotClassifier().fit(X, y)
        report[f"fit {ways} x {shots}"] = timed(lambda X=X, y=y, clf=clf: clf.fit(X, y), times)  # noqa: N803
    many = (texts * (20_000 // len(texts) + 1))[:20_000]
    seconds = timed(lambda: clf.predict(many), times)
    report["predict, 77 classes"] = {**seconds, "texts_per_second": len(many) / seconds["seconds"]}
    with TemporaryDirectory() as scratch:
        clf.save(Path(scratch) / "model")
        for ask, text in (("predict", "['where is my parcel']"), ("explain", "'where is my parcel'")):
            code = FIRST_ANSWER.format(folder=str(Path(scratch) / "model"), ask=ask, text=text)
            command = [sys.executable, "-c", code]
            report[f"cold {ask}"] = timed(
                lambda command=command: subprocess.run(command, check=True, capture_output=True), times
            )
    report["memory"] = {"peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    return report


def main() -> None:
    """Print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5, help="Runs per measurement; the best one counts.")
    warnings.simplefilter("ignore", HandfulWarning)
    print(json.dumps(measure(parser.parse_args().times), indent=1))


if __name__ == "__main__":
    main()
