"""A command group that imports a command's module only when that command runs.

``cuarl --help`` and completion of command names thus need none of the heavy libraries.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from cuarl import garbage


class Entry(NamedTuple):
    """Where a command lives, and the line that the root help has for it."""

    module: str
    """Module with a Typer application called ``app``."""
    help: str


class LazyGroup(TyperGroup):
    """Lists ``entries`` in their order; the command itself is loaded when it is resolved."""

    entries: ClassVar[dict[str, Entry]] = {}

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        for name, entry in self.entries.items():
            self.add_command(TyperCommand(name, help=entry.help, rich_markup_mode=self.rich_markup_mode))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve as usual, did-you-mean included, then swap the placeholder for the real command."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, self._load(name) if name in self.entries else command, rest

    def _load(self, name: str) -> Any:
        with garbage.loading():
            return _command_of(name, import_module(self.entries[name].module).app, self.rich_markup_mode)


@cache
def _command_of(name: str, app: typer.Typer, markup: Any) -> Any:
    """What an application is run by. Its options, some hundred, are read off signatures once in a process."""
    app.rich_markup_mode = markup
    command = typer.main.get_command(app)
    command.name = name
    # completion is installed for the whole of cuarl, not for one command
    command.params = [p for p in command.params if p.name not in ("install_completion", "show_completion")]
    return command
