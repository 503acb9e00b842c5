"""What can be chosen about an OpenEnv server (``--env openenv``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from cuarl.config.fields import EnvOptions, Table, Words


class Options(EnvOptions):
    """The options of ``env: openenv``."""

    judges = True
    capacity = frozenset({"url", "sessions"})

    type: Literal["openenv"] = "openenv"
    url: str | None = None
    """OpenEnv server to train on, such as http://localhost:8000."""
    goal: str | None = None
    """What the agent is told to do, where the server has no list of tasks."""
    goal_from: str | None = None
    """Where the server words the goal, such as observation.goal."""
    success: Words = ()
    """When an episode is a success, as with gymnasium_success; unset means 'return ge 1', and cuarl's servers judge
    themselves."""
    reset: Words = ()
    """Further arguments of a reset, as NAME=VALUE."""
    actions: Table = "auto"
    """What actions are sent as: auto, by the server's schema, or a table; see docs/guides/openenv.md."""
    picture: str = "auto"
    """Where the picture is in an observation, such as screenshot; auto looks for it."""
    device: Literal["phone", "desktop"] = "desktop"
    """What a policy is offered, where the server does not tell: mouse and keyboard, or a phone's touches."""
    sessions: PositiveInt = 1
    """Most sessions at the same time; many servers allow one."""
