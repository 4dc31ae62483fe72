"""The representations and heads, by name: a new one is a class, and a line here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..errors import SettingError
from ..utils.plugins import Components
from ..utils.settings import Setting, flat_settings
from ..utils.wording import listed

REPRESENTATIONS = Components(
    "representation",
    "handful.representations",
    {
        "mean": "handful.models.representations:Mean",
        "idf": "handful.models.representations:Idf",
        "sif": "handful.models.representations:Sif",
        "cnn": "handful.models.representations:Cnn",
        "lstm": "handful.models.representations:SelfAttentive",
        "cls": "handful.models.representations:FirstToken",
        "attention": "handful.models.representations:Attention",
        "sentence": "handful.models.representations:Sentence",
        "attention-sentence": "handful.models.representations:AttentionSentence",
    },
)
HEADS = Components(
    "head",
    "handful.heads",
    {
        "ridge": "handful.models.heads:Ridge",
        "unit-ridge": "handful.models.heads:UnitRidge",
        "refined-ridge": "handful.models.heads:RefinedRidge",
        "logistic": "handful.models.heads:Logistic",
        "nearest": "handful.models.heads:Nearest",
        "centroid": "handful.models.heads:Centroid",
        "prototype": "handful.models.heads:Prototype",
        "routing": "handful.models.heads:Routing",
        "induction": "handful.models.heads:Induction",
        "maml": "handful.models.maml:Maml",
        "finetune": "handful.models.finetuning:Finetune",
        "matching": "handful.models.metric_heads:Matching",
        "relation": "handful.models.metric_heads:Relation",
        "discriminant": "handful.models.metric_heads:Discriminant",
        "soft-kmeans": "handful.models.metric_heads:SoftKMeans",
        "label-words": "handful.models.metric_heads:LabelWords",
    },
)
READERS: dict[Any, tuple[str, Callable[[str], Any]]] = {  # of options, by the type of their field
    int: ("whole number", int),
    float: ("number", float),
    bool: ("choice of true or false", {"true": True, "false": False}.__getitem__),
    str: ("text", str),
}


def make_component(components: Components, name: str, settings: Any, options: Sequence[str]) -> Any:
    """A component by name, built from the model's settings if its class has `from_settings`, with options of its own."""
    kind = components.load(name)
    made = kind.from_settings(settings) if hasattr(kind, "from_settings") else kind()
    return replace(made, **_own_options(components.kind, name, kind, options)) if options else made


def describe(components: Components) -> Iterator[str]:
    """Each component on a line: its name, the first sentence about it, its options, and its package if it is a plugin."""
    for name in components.names():
        kind, package = components.load(name), components.package(name)
        about = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
        yield f"{components.kind} {name}: {about}" + (f" [{package}]" if package else "")
        for title, setting in own_settings(kind).items():
            yield f"    {title}={setting.default}: {setting.help}"


def own_settings(kind: Any) -> dict[str, Setting]:
    """The fields of a component's class that are defined by `option()`, which `--head-options` and its like may set."""
    return {name: setting for name, setting in flat_settings(kind).items() if setting.help}


def _own_options(kind: str, title: str, component: Any, options: Sequence[str]) -> dict[str, Any]:
    """Values from `name=value`, checked against the fields of the component's class."""
    known, values = own_settings(component), {}
    for option in options:
        name, _, written = option.partition("=")
        if name not in known:
            remedy = f"choose {listed(list(known), 'or')}" if known else "it has none"
            raise SettingError(f"--{kind}-options: {title} has no option {name!r}: {remedy}.")
        accepted, read = READERS[known[name].hint]
        try:
            value = read(written)
            problem = known[name].problem(value)
        except (ValueError, KeyError):
            problem = f"a {accepted}, not {written!r}"
        if problem:
            raise SettingError(f"--{kind}-options: {name} must be {problem}.")
        values[known[name].path[0]] = value
    return values
