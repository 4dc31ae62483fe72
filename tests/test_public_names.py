"""What users import: the same names at run time and for a type checker, and nothing heavier than it has to be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import handful

HEAVY = ("torch", "numba", "transformers", "sklearn", "scipy", "handful.meta", "handful.bench", "handful.analysis")


def test_the_names_for_type_checkers_are_those_at_run_time() -> None:
    tree = ast.parse(Path(handful.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == handful._HOMES
    assert all(getattr(handful, name).__name__ == name for name in handful.__all__)


def test_an_answer_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys; from handful import FewShotClassifier as F; f = F().fit(['a b', 'c d'], [0, 1]); f.predict(['a']); "
        "f.explain('a'); f.suggest(['a'], 1); print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(done.stdout)
    assert "handful.classifier.fitted" in loaded
    assert not [name for name in loaded if name in HEAVY or name.startswith(tuple(f"{heavy}." for heavy in HEAVY))]
