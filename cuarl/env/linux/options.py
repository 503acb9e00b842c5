"""What can be chosen about a real Linux desktop on a display of its own (``--env linux``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from cuarl.config.fields import EnvOptions


class Options(EnvOptions):
    """The options of ``env: linux``."""

    capacity = frozenset({"displays"})

    type: Literal["linux"] = "linux"
    screen: Annotated[str, Field(pattern=r"^[1-9]\d{2,3}x[1-9]\d{2,3}$")] = "640x480"
    """Size of a Linux desktop in pixels, as WIDTHxHEIGHT."""
    settle_ms: PositiveFloat = 60.0
    """How long a Linux desktop must be still after an action; twice as long is waited for a first change."""
    displays: PositiveInt = 8
    """Most Linux desktops at the same time on this machine, within max_concurrent_rollouts."""
