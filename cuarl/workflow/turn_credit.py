"""What the turns of stored episodes were credited with, as far as their group and the run's configuration tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuarl.train.advantage import Normalise, group_advantages
from cuarl.train.credit import ScreenCredit, screen_credit
from cuarl.trajectory import Group

_ELSEWHERE = ("rloo", "reinforce++", "ppo", "gigpo")
"""Algorithms that compare with more than the group's mean."""


def credit_of(
    config: Mapping[str, Any], rewards: Sequence[float | None], load: Callable[[], Group]
) -> list[Sequence[float] | float | None]:
    """By attempt: an advantage for all turns, or one a turn; None where it can't be told.

    From ``rewards`` as they are recorded; what algorithms take off for detours and long answers is left out. ``load``
    is asked for the group only where credit goes by screens.
    """
    found = config.get("algorithm")
    options: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    if not options or options.get("type") in _ELSEWHERE:
        return [None] * len(rewards)
    normalise: Normalise = "none" if options.get("advantage_normalization") == "none" else "std"
    if options.get("credit") != "screen":
        return list(group_advantages(rewards, normalise=normalise).advantages)
    screen = ScreenCredit(trace_lambda=options["credit_lambda"], discount=options["discount"])
    return list(screen_credit(load(), screen, normalise))
