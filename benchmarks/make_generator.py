"""Make the generator that ships with the package again, from the benchmark files in the folder that HANDFUL_DATA names.

HANDFUL_DATA=/path/to/data python benchmarks/make_generator.py --out handful/generator      (needs the extra train; minutes)
"""

from __future__ import annotations

import argparse
from pathlib import Path

from handful.universal import make_generator


def main() -> None:
    """Meta-train it into a folder; a run that was killed goes on where it stood."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make_generator(arguments.out, seed=arguments.seed)


if __name__ == "__main__":
    main()
