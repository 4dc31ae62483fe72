"""The packaged attention generator: meta-trained once on public corpora, and used unchanged on any texts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..utils.paths import resource
from ..utils.settings import settings_from_dict
from .few_shot import FewShotModel
from .settings import AttentionSettings, ModelSettings
from .signatures import PORTABLE_SIGNALS
from .storage import load_model, read_config

DEFAULT_VECTORS = "blend"
HEADS_IN_USE = ("refined-ridge", "unit-ridge")  # the first, the default, is too slow for meta-training
SHIPPED_GENERATOR = resource("generator")


@cache
def load_generator(folder: Path = SHIPPED_GENERATOR) -> FewShotModel:
    """Load the packaged generator, or one that `make_generator` wrote to a folder: attention with a unit ridge head."""
    settings = settings_from_dict(ModelSettings, read_config(folder).get("model"), "model.")
    if not is_portable(settings):
        raise ModelError(f"{folder} does not contain a generator for any texts: give one made by benchmarks/make_generator.py.")
    return load_model(folder, settings, 0)


def is_portable(settings: ModelSettings) -> bool:
    """Whether a model with these settings can be used on any texts, with any word vectors."""
    attention = settings.attention
    fits = settings.representation == "attention" and settings.head in HEADS_IN_USE and not settings.positions
    return fits and set(attention.signals) <= set(PORTABLE_SIGNALS) and not attention.embeddings


def generator_facts(settings: ModelSettings) -> dict[str, Any]:
    """The facts about its generator that a saved classifier stores, as JSON types."""
    attention = settings.attention
    return {
        "signals": list(attention.signals),
        "network": attention.network,
        "rarity": attention.rarity,
        "head": settings.head,
    }


def generator_settings(facts: Mapping[str, Any]) -> ModelSettings:
    """The settings described by `generator_facts`."""
    attention = AttentionSettings((*facts["signals"],), "background", facts["network"], rarity=facts["rarity"])
    settings = ModelSettings(head=facts["head"], attention=attention)
    if not is_portable(settings):
        raise ValueError("it names unsupported signals or an unsupported head")
    return settings
