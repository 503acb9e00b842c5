"""What can be chosen about environments of Gymnasium (``--env gymnasium``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from cuarl.config.fields import EnvOptions, Table, Words


class Options(EnvOptions):
    """The options of ``env: gymnasium``."""

    judges = True
    capacity = frozenset({"processes"})

    type: Literal["gymnasium"] = "gymnasium"
    id: str | None = None
    """Gymnasium environment to train in, such as CartPole-v1, or MODULE:ID to import a module first; unset: tasks name
    theirs."""
    kwargs: Words = ()
    """Arguments of its making, as NAME=VALUE."""
    goal: str | None = None
    """What its agent is told to do."""
    goal_from: str | None = None
    """Where it words the goal itself, such as observation.mission or info.goal."""
    success: Words = ()
    """When an episode is a success, as 'PATH OPERATOR VALUE' over return, reward, steps, terminated, truncated and
    info.KEY."""
    actions: Table = "auto"
    """What actions are sent as: auto, buttons (with LABELS), grid ROWSxCOLUMNS, point, or a table; see
    docs/guides/gymnasium.md."""
    picture: str = "auto"
    """What is shown: auto, render, observation, or observation.KEY."""
    scale: Annotated[int, Field(ge=1, le=32)] = 1
    """Pixels shown for each pixel of its picture."""
    repeat: PositiveInt = 1
    """Steps of the environment for each action."""
    device: Literal["phone", "desktop"] = "desktop"
    """What a policy is offered: mouse and keyboard, or a phone's touches."""
    processes: PositiveInt = 4
    """Most Gymnasium environments at the same time, each in a process, within max_concurrent_rollouts."""
