"""Make the word table that ships with the package again: distil it from the packaged encoder, and pack it.

python benchmarks/make_vectors.py --out handful/data/minilm      (needs the extra contextual; about two minutes)
"""

from __future__ import annotations

import argparse
from pathlib import Path

from handful.embeddings.contextual import distilled_file
from handful.embeddings.files import FileTable
from handful.embeddings.packed import pack_table
from handful.storage import write_atomic


def main() -> None:
    """Write the files of the packed table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    words, vectors = FileTable(distilled_file("minilm")).arrays
    for name, content in pack_table(words, vectors.astype("float32")).items():
        write_atomic(out / name, content)
        print(f"{out / name}: {len(content) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
