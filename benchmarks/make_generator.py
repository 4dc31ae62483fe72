"""Recreate the packaged generator from the benchmark files in the folder HANDFUL_DATA.

HANDFUL_DATA=/path/to/data python benchmarks/make_generator.py --out handful/resources/generator    (extra train; minutes)
"""

from __future__ import annotations

import argparse
from pathlib import Path

from handful.making.generator import make_generator


def main() -> None:
    """Meta-train the generator into a folder; an interrupted run is resumed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make_generator(arguments.out, seed=arguments.seed)


if __name__ == "__main__":
    main()
