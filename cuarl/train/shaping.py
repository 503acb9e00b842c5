"""Changes to the rewards of a group before they are compared. Pure functions; what has no reward keeps none.

Shortest path (MobileRL, arXiv:2509.18119, section 3.2): of the successes of a group, the longer ones earn less, so that
a detour is not learnt as if it were a way::

    r_i ← r_i (1 − coef (T_i − T_min) / T_i)             for successes; T turns, T_min those of the shortest success

Overlong answers (DAPO, arXiv:2503.14476, eq. 13): the last ``buffer`` tokens before the limit cost up to ``penalty``::

    0                                                    L ≤ L_max − buffer
    −penalty (L − (L_max − buffer)) / buffer             beyond, L the tokens of the episode's longest answer
"""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from cuarl.trajectory import Group, Trajectory
from cuarl.types import Record


class Shaping(Record):
    """How rewards are changed; by default they are not."""

    shortest_path: float = Field(default=0.0, ge=0, le=1)
    overlong_buffer: NonNegativeInt = 0
    overlong_penalty: PositiveFloat = 1.0
    max_tokens: PositiveInt = 128
    """L_max: the most tokens of one answer."""


def shaped(group: Group, config: Shaping) -> Group:
    """The group with the rewards that are learnt from; the same object if nothing changes."""
    shortest = min((len(t.turns) for t in group.trajectories if t.success and t.turns), default=0)
    rewards = [_reward(t, shortest, config) for t in group.trajectories]
    if rewards == group.rewards:
        return group
    changed = (t.model_copy(update={"reward": r}) for t, r in zip(group.trajectories, rewards, strict=True))
    return group.model_copy(update={"trajectories": tuple(changed)})


def _reward(t: Trajectory, shortest: int, config: Shaping) -> float | None:
    if t.reward is None:
        return None
    reward = t.reward
    if t.success and t.turns and reward > 0:
        reward *= 1 - config.shortest_path * (len(t.turns) - shortest) / len(t.turns)
    return reward - overlong_cost(t, config)


def overlong_cost(trajectory: Trajectory, config: Shaping) -> float:
    """What the longest answer of an episode costs, from 0 to ``overlong_penalty``."""
    if not config.overlong_buffer:
        return 0.0
    longest = max((len(t.sampled.token_ids) for t in trajectory.turns if t.sampled), default=0)
    over = longest - (config.max_tokens - config.overlong_buffer)
    return config.overlong_penalty * min(1.0, max(0, over) / config.overlong_buffer)
