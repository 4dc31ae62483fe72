"""Settings as dataclasses, each with its default, limits and help in one place; converted to JSON or flat options and back.

A settings class may contain others. Where people name settings (the command line, presets, grids), each has one flat name.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, Literal, TypeVar

from ..errors import SettingError
from .plugins import Components
from .wording import listed

Settings = TypeVar("Settings")


# Defining settings


@dataclasses.dataclass(frozen=True)
class Option:
    """How a setting appears on the command line, and the range of its numbers."""

    about: str  # {choices} in it is replaced by the names that the setting accepts
    name: str = ""  # on the command line, if it differs from the field's name
    at_least: float | None = None
    above: float | None = None
    components: Components | None = None  # whose names it accepts


def option(default: Any, about: str, **more: Any) -> Any:
    """A field that is also a command-line option; a field without it can be set only in Python and in files.

    If a class has no help texts, the field that contains it may supply them: `metadata={"about": {"way": "Classes ..."}}`.
    """
    return dataclasses.field(default=default, metadata={"option": Option(about, **more)})


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting of a settings class, or of a class that it contains."""

    path: tuple[str, ...]  # the fields that lead to it
    hint: Any
    default: Any
    option: Option  # with an empty `about`, it is not a command-line option

    @cached_property
    def several(self) -> bool:
        """Whether it accepts several values, separated by commas in a string."""
        return typing.get_origin(self.hint) is tuple

    @property
    def choices(self) -> tuple[str, ...]:
        """The names that it accepts, or of which it accepts several; empty if it accepts any value."""
        return self.option.components.names() if self.option.components else self._literals

    @cached_property
    def _literals(self) -> tuple[str, ...]:
        hint = typing.get_args(self.hint)[0] if self.several else self.hint
        return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()

    @property
    def help(self) -> str:
        """Help for the command line, with the accepted names; empty if it is not an option."""
        return self.option.about.format(choices=listed(self.choices, "and" if self.several else "or"))

    def problem(self, value: Any) -> str | None:
        """The requirement that a value violates, as the end of a sentence; None if the value is valid."""
        least, above = self.option.at_least, self.option.above
        if self.option.components and value in self.option.components:
            return None  # found without looking through all installed packages
        if self.choices and self.several and not (value and all(name in self.choices for name in value)):
            return f"some of {listed(self.choices)}, not {', '.join(map(str, value)) or 'none'}"
        if self.choices and not self.several and value not in self.choices:
            return f"{listed(self.choices, 'or')}, not {value!r}"
        if least is not None and not least <= value < float("inf"):
            return f"at least {least}, not {value}"
        if above is not None and not above < value < float("inf"):
            return f"above {above}, not {value}"
        return None


def flat_settings(kind: Any) -> Mapping[str, Setting]:
    """Every setting of a class and of the classes it contains, by flat name."""
    return _flat_settings(kind)


@cache
def _flat_settings(kind: Any) -> Mapping[str, Setting]:
    return dict(_walk(kind, (), {}))


def _walk(kind: Any, path: tuple[str, ...], about: Mapping[str, str]) -> Iterator[tuple[str, Setting]]:
    for field in dataclasses.fields(kind):
        hint = _type_hints(kind)[field.name]
        place = (*path, field.name)
        if dataclasses.is_dataclass(hint):
            yield from _walk(hint, place, field.metadata.get("about", {}))
        else:
            own: Option = field.metadata.get("option", Option(about.get(field.name, "")))
            yield own.name or field.name, Setting(place, hint, field.default, own)


def _type_hints(kind: Any) -> dict[str, Any]:
    return _resolved_hints(kind)


@cache  # resolving is slow, and needed for every line of a results file
def _resolved_hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def check_settings(settings: Any) -> None:
    """Raise a SettingError unless the fields allow every name and number; to be called in `__post_init__`."""
    for name, setting in flat_settings(type(settings)).items():
        if len(setting.path) == 1 and (problem := setting.problem(getattr(settings, setting.path[0]))):
            title = "--" + name.replace("_", "-") if setting.option.about else name
            raise SettingError(f"{title} must be {problem}.")


# Flat options


def settings_from_flat(kind: type[Settings], options: Mapping[str, Any]) -> Settings:
    """Settings from flat options, as the command line or JSON gives them; the others keep their defaults."""
    known = flat_settings(kind)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise SettingError(f"There is no option {', '.join(unknown)}: see handful train --help.")
    nested: dict[str, Any] = {}
    for name, value in options.items():
        *groups, last = known[name].path
        place = nested
        for part in groups:
            place = place.setdefault(part, {})
        commas = known[name].several and isinstance(value, str)
        place[last] = [part for part in value.split(",") if part] if commas else value
    return settings_from_dict(kind, nested)


def settings_to_flat(settings: Any) -> dict[str, Any]:
    """Every setting by flat name, as JSON types."""
    return {
        name: _to_json(attrgetter(".".join(setting.path))(settings)) for name, setting in flat_settings(type(settings)).items()
    }


# JSON types


def settings_to_dict(settings: Any) -> dict[str, Any]:
    """A dataclass of settings as JSON types."""
    return {field.name: _to_json(getattr(settings, field.name)) for field in dataclasses.fields(settings)}


def _to_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return settings_to_dict(value)
    return list(value) if isinstance(value, tuple) else value


def settings_from_dict(kind: type[Settings], values: Any, place: str = "") -> Settings:
    """A dataclass of settings from JSON types; errors about unknown names and wrong types give their place."""
    if not isinstance(values, Mapping):
        raise SettingError(f"{place or 'The settings'} must be an object, not {values!r}.")
    hints = _type_hints(kind)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise SettingError(f"There is no setting {', '.join(place + name for name in unknown)}: remove it.")
    return kind(**{name: _setting(hints[name], value, place + name) for name, value in values.items()})


def _setting(hint: Any, value: Any, place: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return settings_from_dict(typing.cast("type[Any]", hint), value, place + ".")
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise SettingError(f"The setting {place} is {value!r}: it must be a list.")
        return tuple(value)
    if origin is Literal:
        return value  # the class itself checks the value
    allowed = tuple(a for a in arguments if isinstance(a, type)) if origin in (typing.Union, types.UnionType) else (hint,)
    if float in allowed:
        allowed = (*allowed, int)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise SettingError(f"The setting {place} is {value!r}: it must be {' or '.join(a.__name__ for a in allowed)}.")
    return value
