"""What can be chosen about tasks of BrowserGym (``--env browsergym``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from cuarl.config.fields import EnvOptions, Words


class Options(EnvOptions):
    """The options of ``env: browsergym``."""

    judges = True
    capacity = frozenset({"processes"})

    type: Literal["browsergym"] = "browsergym"
    tasks: Words = ()
    """Tasks of BrowserGym to train on, such as miniwob.click-test; unset: tasks name theirs."""
    kwargs: Words = ()
    """Arguments of their environment, as NAME=VALUE; task.NAME=VALUE for those of the task."""
    success: Words = ()
    """When an episode of them is a success, as with gymnasium_success; unset means 'return ge 1'."""
    actions: Literal["desktop", "phone"] = "desktop"
    """What a policy is offered in BrowserGym: mouse and keyboard, or a phone's touches."""
    processes: PositiveInt = 4
    """Most environments of BrowserGym at the same time, each with browsers of its own, within
    max_concurrent_rollouts."""
