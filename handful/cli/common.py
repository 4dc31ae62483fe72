"""What the commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..errors import HandfulError


class Group(click.Group):
    """Turns Handful's errors into one line and exit code 2."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except HandfulError as error:
            click.echo(f"Error: {error}", err=True)
            context.exit(2)


def options_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Several options as one decorator, in the order they are written."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
