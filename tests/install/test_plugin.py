"""The template of docs/plugins.md, installed by pip in a fresh environment: trained, tested, loaded, and missed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest
from plugin_package import write_package

pytestmark = pytest.mark.install

ROOT = Path(__file__).parent.parent.parent
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")
BUILDS = int(version("setuptools").split(".")[0]) >= 71  # older ones need the package wheel, which pip then downloads
OFFLINE = ("--no-deps", *(("--no-index", "--no-build-isolation") if BUILDS else ()))
SHORT = ("--epochs", "2", "--episodes", "10", "--validation-episodes", "10", "--quiet")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment, with this project and its dependencies, but none of their copies."""
    folder = tmp_path_factory.mktemp("plugin") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)  # this environment has pip
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n", "utf-8")
    return folder / "bin" / "python"


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """What a command prints, away from this project's settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HANDFUL"))}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, env=clean)
    assert done.returncode == code, done.stderr
    return " ".join((done.stdout if code == 0 else done.stderr).split())


def test_the_template_is_installed_trained_evaluated_and_uninstalled(python: Path, tmp_path: Path) -> None:
    source = tmp_path / "handful-mine"
    source.mkdir()
    run(python, *PIP, "install", *OFFLINE, write_package(source), cwd=tmp_path)
    handful = (python, "-m", "handful")
    assert "head mine: The class whose examples" in run(*handful, "train", "--list-methods", cwd=tmp_path)
    trained = run(*handful, "train", "--head", "mine", *SHORT, "--out", "runs/mine", "--json", cwd=tmp_path)
    assert json.loads(trained)["epochs"] == 2
    report = run(*handful, "evaluate", "runs/mine", "--episodes", "50", "--quiet", "--json", cwd=tmp_path)
    assert json.loads(report)["accuracy"] > 0.5  # of five classes
    load = (
        "from pathlib import Path; from handful.meta.experiment import load_run; print(load_run(Path('runs/mine')).model.head)"
    )
    assert run(python, "-c", load, cwd=tmp_path) == "Mine(scale=10.0)"
    run(python, *PIP, "uninstall", "--yes", "handful-mine", cwd=tmp_path)
    refused = run(*handful, "evaluate", "runs/mine", cwd=tmp_path, code=2)
    assert (
        "runs/mine uses the head 'mine' of the package handful-mine, which is not installed: install that package." in refused
    )
