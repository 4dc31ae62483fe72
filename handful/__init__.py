"""Text classification from a handful of examples.

Distributional signatures (Bao et al., ICLR 2020): attention over words, generated from how rare a word is in general and how
unevenly it falls over the classes of the few labelled examples, then a ridge regressor in closed form.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Corpus": "corpus",
    "ClassSplit": "corpus",
    "load_dataset": "corpus",
    "make_corpus": "corpus",
    "read_corpus": "corpus",
    "EpisodeSampler": "episodes",
    "EpisodeSpec": "episodes",
    "load_vectors": "embeddings",
    "FewShotClassifier": "estimator",
    "FewShotModel": "model",
    "ModelSettings": "model",
    "SignatureSettings": "signatures",
    "TrainingSettings": "training",
    "Score": "evaluation",
    "evaluate": "evaluation",
    "paired_difference": "evaluation",
    "HandfulError": "errors",
    "RunSettings": "runs",
    "evaluate_run": "runs",
    "load_material": "runs",
    "load_run": "runs",
    "train_run": "runs",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a name from its room when it is first asked for: `import handful` itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'handful' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
