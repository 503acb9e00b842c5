"""Hints: a group that fails whole is collected again in the same step, led by the first turns of an oracle's way.

A group of failures teaches nothing, and a task that is never solved has no others. Led to a place from where it
succeeds now and then, the policy learns the end of the way first, and the lead gets shorter (a hint only where all
attempts fail: GUI-SAGE, BREAD, arXiv:2506.17211; its length by recent rewards: AdaBack; curricula from the goal
backwards: arXiv:1707.05300). All attempts of a led group are led equally far, so that they can be compared.

The oracle's turns were not sampled from the policy: they are in the prompts that follow, and in no loss. A led group
takes the place of the failures in what is learnt from, and enters no curriculum, replay or metric of success but its
own.

Each task has a length of its own: the configured one at first; doubled when a led group fails whole, too, but no longer
than the oracle's way was found to be; one turn less when ``_ENOUGH`` of a led group succeeds. All of it is part of a
checkpoint, and depends only on the batches that were trained on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cuarl.train.advantage import group_advantages
from cuarl.trajectory import Group, Trajectory

_ENOUGH = 0.5
"""Share of a led group's attempts that succeed from which on the lead gets shorter."""


class Hints:
    """How far an oracle leads in each task."""

    def __init__(self, turns: int) -> None:
        """``turns``: how far at first, at least 1."""
        self._first = turns
        self._lengths: dict[str, int] = {}

    def length(self, task_id: str) -> int:
        """Turns that the oracle has in the next led group of a task."""
        return self._lengths.get(task_id, self._first)

    def observe(self, led: Sequence[Group]) -> dict[str, float]:
        """Learn how led groups went; metrics of them. Attempts without a reward say nothing."""
        outcomes: list[float] = []
        turns: list[int] = []
        for group in led:
            found = [float(_earned(t)) for t in group.trajectories if t.scored]
            outcomes += found
            turns += [t.led for t in group.trajectories]
            if found:
                self._lengths[group.task_id] = self._next(group, math.fsum(found) / len(found))
        metrics = {"hints/groups": float(len(led))}
        if outcomes:
            metrics["hints/success_rate"] = math.fsum(outcomes) / len(outcomes)
        return metrics | ({"hints/turns_mean": sum(turns) / len(turns)} if turns else {})

    def _next(self, group: Group, rate: float) -> int:
        # where the oracle came to the end of its way, a longer lead would be the same
        asked = self.length(group.task_id)
        walked = min(asked, max(1, *(t.led for t in group.trajectories)))
        if rate == 0:
            return 2 * asked if walked == asked else walked
        return max(1, walked - 1) if rate >= _ENOUGH else walked

    def state(self) -> dict[str, int]:
        """All of it, of types that a checkpoint may hold."""
        return dict(self._lengths)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take ``state()`` back."""
        self._lengths = dict(state)


def failed_whole(group: Group) -> bool:
    """Whether there are rewards, none of them for a success, and nothing to be learnt from how they differ."""
    compared = group_advantages(group.rewards)
    return compared.scored > 0 and not compared.mixed and not any(map(_earned, group.trajectories))


def _earned(t: Trajectory) -> bool:
    """Whether an attempt has a reward for its success: where claiming it is a part of that, only if it was claimed."""
    return bool(t.success) and t.reward is not None and t.reward > 0
