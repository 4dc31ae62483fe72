"""Command-line options generated from settings, which define their defaults and help texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..utils.settings import Setting, flat_settings
from .common import Command


class SettingsCommand(Command):
    """A command with an option for each setting of a class, which is imported when the options are first asked for."""

    def __init__(self, *arguments: Any, settings: Callable[[], type[Any]], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._settings = settings

    def _options(self) -> list[click.Option]:
        named = flat_settings(self._settings()).items()
        return [setting_option(name, setting) for name, setting in named if setting.help]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, shown_last = super().get_params(ctx)  # the last is --help
        if __name__ not in ctx.meta:  # click compares parameters by identity; the next call may find other plugins
            ctx.meta[__name__] = self._options()
        return [*own, *ctx.meta[__name__], shown_last]


def setting_option(name: str, setting: Setting) -> click.Option:
    """A setting as an option; its choices are checked with the settings, so that the error is one sentence like all others."""
    title = "--" + name.replace("_", "-")
    help_text = setting.help
    if setting.hint == bool | None:
        return click.Option([f"{title}/--no-{title[2:]}"], default=None, help=help_text)
    if setting.hint is bool:
        return click.Option([title], is_flag=True, default=setting.default, help=help_text)
    default = ",".join(setting.default) if setting.several else setting.default
    kind = setting.hint if setting.hint in (int, float) else str
    return click.Option([title], type=kind, default=default, help=help_text)
