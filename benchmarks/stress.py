"""Load a classifier while it is being saved: one process saves two classifiers in turn to a folder, and others load it.

python benchmarks/stress.py --loads 10000 --workers 2

Every load must give one of the two classifiers, whole. The script prints how many loads gave each of them, a mixture or an
error, and the loads per second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from multiprocessing import Event, Pool, Process
from multiprocessing.synchronize import Event as StopEvent
from pathlib import Path

from handful import FewShotClassifier, HandfulError

QUERIES = ["the card is lost", "give me my money back", "a flight to Rome"]
FIRST = (["lost card", "refund please"], ["card", "money"])
SECOND = (["lost card", "refund please", "book a flight"], ["money", "card", "travel"])


def answers(classifier: FewShotClassifier) -> bytes:
    """Values that distinguish the two classifiers from each other and from a mixture."""
    return repr(classifier.classes_.tolist()).encode() + classifier.predict_proba(QUERIES).tobytes()


def keep_saving(folder: Path, stop: StopEvent) -> None:
    """Save the two classifiers in turn, with and without examples, until told to stop."""
    classifiers = [FewShotClassifier().fit(*examples) for examples in (FIRST, SECOND)]
    keep = False
    while not stop.is_set():
        keep = not keep
        for classifier in classifiers:
            classifier.save(folder, keep_examples=keep)


def load_often(folder: Path, times: int) -> Counter[str]:
    """The outcomes of this many loads, counted."""
    known = {answers(FewShotClassifier().fit(*examples)): name for examples, name in ((FIRST, "first"), (SECOND, "second"))}
    found: Counter[str] = Counter()
    for _ in range(times):
        try:
            found[known.get(answers(FewShotClassifier.load(folder)), "mixed")] += 1
        except HandfulError as error:
            found[f"error: {error}"] += 1
    return found


def main() -> None:
    """Print the outcomes of the loads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        stop = Event()
        FewShotClassifier().fit(*FIRST).save(folder)
        saver = Process(target=keep_saving, args=(folder, stop))
        saver.start()
        start = time.perf_counter()
        with Pool(options.workers) as pool:
            share = -(-options.loads // options.workers)
            found = sum(pool.starmap(load_often, [(folder, share)] * options.workers), Counter[str]())
        seconds = time.perf_counter() - start
        stop.set()
        saver.join()
    print(f"{found.total()} loads, {found.total() / seconds:.0f} per second: {dict(found)}")
    if set(found) - {"first", "second"}:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
