"""A backend whose environments are made by workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuarl.env.backend import Backend
from cuarl.rollout.setup import MakeAgent, Play


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Backend):
    """As the backend that it stands for, but episodes are run by ``play``."""

    play: Callable[[MakeAgent, str | None], Play]
    """Of who acts, and the folder of screenshots, if they are recorded in one."""
