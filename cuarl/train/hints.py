"""Hints: a group that fails whole is collected again in the same step, led by the first turns of an oracle's way.

A group of failures teaches nothing, and a task that is never solved has no others. Led to a place from where it
succeeds now and then, the policy learns the end of the way first, and the lead gets shorter (a hint only where all
attempts fail: GUI-SAGE, BREAD, arXiv:2506.17211; its length by recent rewards: AdaBack; curricula from the goal
backwards: arXiv:1707.05300). All attempts of a led group are led equally far, so that they can be compared.

The oracle's turns were not sampled from the policy: they are in the prompts that follow, and in no loss. A led group
takes the place of the failures in what is learnt from, and enters no curriculum, replay or metric of success but its
own.

Each task has a length of its own: doubled when a led group fails whole, too, but no longer than the oracle's way was
found to be; one turn less when ``_ENOUGH`` of a led group succeeds. Tasks that have not been led yet begin with a
common length, the configured one at first, which what is led for the first time in a step changes by the same rule,
once: where there are more tasks than steps, no task would ever get a length that fits. All of it is part of a
checkpoint, and depends only on the batches that were trained on.
"""

from __future__ import annotations

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
        """Of tasks that have none of their own yet."""
        self._lengths: dict[str, int] = {}

    def length(self, task_id: str) -> int:
        """Turns that the oracle has in the next led group of a task."""
        return self._lengths.get(task_id, self._first)

    def observe(self, led: Sequence[Group]) -> dict[str, float]:
        """Learn how led groups went; metrics of them. Attempts without a reward say nothing."""
        known = [(group, rate) for group in led if (rate := _rate([group])) is not None]
        new = [group for group, _ in known if group.task_id not in self._lengths]
        changed = {group.task_id: _next(self.length(group.task_id), [group], rate) for group, rate in known}
        if (rate := _rate(new)) is not None:
            self._first = _next(self._first, new, rate)
        self._lengths |= changed
        metrics = {"hints/groups": float(len(led))}
        if (rate := _rate(led)) is not None:
            metrics["hints/success_rate"] = rate
        turns = [t.led for group in led for t in group.trajectories]
        return metrics | ({"hints/turns_mean": sum(turns) / len(turns)} if turns else {})

    def state(self) -> dict[str, Any]:
        """All of it, of types that a checkpoint may hold."""
        return {"first": self._first, "lengths": dict(self._lengths)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take ``state()`` back."""
        self._first, self._lengths = state["first"], dict(state["lengths"])


def _next(asked: int, led: Sequence[Group], rate: float) -> int:
    """The length that follows on ``asked``, with which a ``rate`` of what was led succeeded."""
    # where the oracle came to the end of its way, a longer lead would be the same
    walked = min(asked, max(1, *(t.led for group in led for t in group.trajectories)))
    if rate == 0:
        return 2 * asked if walked == asked else walked
    return max(1, walked - 1) if rate >= _ENOUGH else walked


def _rate(groups: Sequence[Group]) -> float | None:
    """Share of the attempts with a reward that have it for their success; None where there are none."""
    outcomes = [_earned(t) for group in groups for t in group.trajectories if t.scored]
    return sum(outcomes) / len(outcomes) if outcomes else None


def failed_whole(group: Group) -> bool:
    """Whether there are rewards, none of them for a success, and nothing to be learnt from how they differ."""
    compared = group_advantages(group.rewards)
    return compared.scored > 0 and not compared.mixed and not any(map(_earned, group.trajectories))


def _earned(t: Trajectory) -> bool:
    """Whether an attempt has a reward for its success: where claiming it is a part of that, only if it was claimed."""
    return bool(t.success) and t.reward is not None and t.reward > 0
