"""Components by name: Handful's own, and those that other packages register as entry points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..errors import SettingError
from .wording import listed


@dataclass(frozen=True)
class Components:
    """All components of one kind, each written as an entry point, `module:object`; imported when it is loaded."""

    kind: str  # for messages
    group: str  # of the entry points of other packages
    own: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in installed_plugins(self.group)

    def names(self) -> tuple[str, ...]:
        """All names: Handful's own, and then those of other packages, in alphabetical order."""
        return tuple(dict.fromkeys([*self.own, *sorted(installed_plugins(self.group))]))

    def load(self, name: str) -> Any:
        """The object of this name; a plugin cannot replace one of Handful's own."""
        if name in self.own:
            return EntryPoint(name, self.own[name], self.group).load()
        if name not in self:
            choices = f"choose {listed(self.names(), 'or')}" if self.names() else "check the name"
            raise SettingError(f"There is no {self.kind} {name!r}: {choices}, or install the package that provides it.")
        try:
            return installed_plugins(self.group)[name].load()
        except Exception as error:  # whatever another package raises when it is imported
            raise SettingError(
                f"The {self.kind} {name!r} of the package {self.package(name)} cannot be loaded ({error!r}): "
                "update the package, or uninstall it."
            ) from error

    def package(self, name: str) -> str:
        """The package that provides a component; empty if it is Handful's own."""
        found = None if name in self.own else installed_plugins(self.group).get(name)
        return found.dist.name if found and found.dist else ""


@cache  # looking through all installed packages takes a while
def installed_plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group, by name."""
    return {point.name: point for point in entry_points(group=group)}
