"""Text classification from a handful of examples.

Implements distributional signatures (Bao et al., ICLR 2020). Each word gets an attention weight, computed from how rare it is
in general and how unevenly it is spread over the classes of the labelled examples; a ridge regressor, solved in closed form,
then classifies the weighted texts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers; at run time a name is imported on first use
    from .classifier.estimator import FewShotClassifier as FewShotClassifier
    from .classifier.explanation import Explanation as Explanation
    from .data.corpus import Corpus as Corpus
    from .data.corpus import make_corpus as make_corpus
    from .data.datasets import load_dataset as load_dataset
    from .data.datasets import read_corpus as read_corpus
    from .data.episodes import EpisodeSampler as EpisodeSampler
    from .data.episodes import EpisodeSpec as EpisodeSpec
    from .data.splits import ClassSplit as ClassSplit
    from .embeddings.tables import load_vectors as load_vectors
    from .errors import HandfulError as HandfulError
    from .meta.evaluation import Score as Score
    from .meta.evaluation import evaluate as evaluate
    from .meta.evaluation import paired_difference as paired_difference
    from .meta.experiment import evaluate_run as evaluate_run
    from .meta.experiment import load_run as load_run
    from .meta.experiment import train_run as train_run
    from .meta.inputs import load_experiment_data as load_experiment_data
    from .meta.settings import RunSettings as RunSettings
    from .meta.training import TrainingSettings as TrainingSettings
    from .models.few_shot import FewShotModel as FewShotModel
    from .models.settings import AttentionSettings as AttentionSettings
    from .models.settings import FinetuneSettings as FinetuneSettings
    from .models.settings import MamlSettings as MamlSettings
    from .models.settings import ModelSettings as ModelSettings
    from .models.settings import SignatureSettings as SignatureSettings
    from .models.settings import VectorSettings as VectorSettings

__version__ = "0.1.0"

_HOMES = {
    "ClassSplit": "data.splits",
    "Corpus": "data.corpus",
    "EpisodeSampler": "data.episodes",
    "EpisodeSpec": "data.episodes",
    "Explanation": "classifier.explanation",
    "FewShotClassifier": "classifier.estimator",
    "FewShotModel": "models.few_shot",
    "HandfulError": "errors",
    "AttentionSettings": "models.settings",
    "FinetuneSettings": "models.settings",
    "MamlSettings": "models.settings",
    "ModelSettings": "models.settings",
    "RunSettings": "meta.settings",
    "Score": "meta.evaluation",
    "SignatureSettings": "models.settings",
    "VectorSettings": "models.settings",
    "TrainingSettings": "meta.training",
    "evaluate": "meta.evaluation",
    "evaluate_run": "meta.experiment",
    "load_dataset": "data.datasets",
    "load_experiment_data": "meta.inputs",
    "load_run": "meta.experiment",
    "load_vectors": "embeddings.tables",
    "make_corpus": "data.corpus",
    "paired_difference": "meta.evaluation",
    "read_corpus": "data.datasets",
    "train_run": "meta.experiment",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a name from its module on first use, so that `import handful` itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'handful' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
