"""Which of the policy's own episodes are worth imitating: rejection sampling.

``threshold``: every episode whose reward is greater than a bound (rejection-sampling fine-tuning, arXiv:2308.01825).
``best-of-group``: the best episode of each group alone, if it passes the bound (RAFT, arXiv:2304.06767); among equals
the one of fewest turns, then the first. What has no reward is never imitated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from cuarl.trajectory import Group
from cuarl.types import Record


class Rejection(Record):
    """What is kept."""

    rule: Literal["threshold", "best-of-group"] = "threshold"
    threshold: float = 0.0
    """Strict: a reward equal to it is rejected."""


def accepted(groups: Sequence[Group], config: Rejection) -> list[Group]:
    """The groups with only the attempts that are kept; groups of which nothing is kept have no attempts."""
    return [_kept(group, config) for group in groups]


def _kept(group: Group, config: Rejection) -> Group:
    rewards = [-math.inf if r is None else r for r in group.rewards]
    kept = [i for i, t in enumerate(group.trajectories) if rewards[i] > config.threshold and t.turns]
    if config.rule == "best-of-group" and kept:
        kept = [min(kept, key=lambda i: (-rewards[i], len(group.trajectories[i].turns), i))]
    return group.model_copy(update={"trajectories": tuple(group.trajectories[i] for i in kept)})
