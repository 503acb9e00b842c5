"""Wrong usage, told as every other error is: what, where, how to fix it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import typer

from cuarl.errors import ConfigError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises for words that it can't take; the library that it comes from is no part of Typer's interface."""


def is_help(error: Exception) -> bool:
    """Whether it is no error but the help of a group that was named without a command."""
    return type(error).__name__ == "NoArgsIsHelpError"


def as_config_error(error: Any, args: Sequence[str]) -> ConfigError:
    """The same in our words, with the value that was given, of which Typer says the option alone."""
    text = error.format_message().strip().removesuffix(".").replace("Value error, ", "")
    where, context = _given(error, args), getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context is not None else "cuarl --help"
    return ConfigError(text[:1].lower() + text[1:], where=where, hint=hint)


def _given(error: Any, args: Sequence[str]) -> str | None:
    """The option with its value, as they were typed."""
    flags = getattr(getattr(error, "param", None), "opts", ())
    for place, word in enumerate(args):
        name, equals, _ = word.partition("=")
        if name in flags:
            return word if equals else " ".join(args[place : place + 2])
    return None


def finite(value: float | None) -> float | None:
    """A number of the command line: what bounds compare is false for ``nan``, so that it passes them all."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value
