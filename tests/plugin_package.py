"""The package of docs/plugins.md, written to a folder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs" / "plugins.md"


def template_files() -> dict[str, list[str]]:
    """The blocks of each file in the docs: the template itself comes first."""
    files: dict[str, list[str]] = {}
    for name, block in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        files.setdefault(name, []).append(block)
    return files


def write_package(folder: Path) -> Path:
    """The source of the package, with everything that the docs put into it."""
    for name, blocks in template_files().items():
        (folder / name).write_text("\n\n".join(blocks), "utf-8")
    return folder


def write_installed(folder: Path) -> Path:
    """The package as pip installs it: the module, and the metadata that says what it provides."""
    write_package(folder)
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    about = folder / "handful_mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in groups]
    (about / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    return folder
