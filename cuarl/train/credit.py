"""Which turn of an episode deserves the reward: advantages by turn, from the screens that a group's attempts share.

All attempts of a group start on the same device, so they keep meeting on the same screens. The mean return of the
attempts that came by a screen is an estimate of its value that costs nothing: no critic, no further rollouts. With it,
a right first step in an attempt that failed later is no longer punished for the failure (grouping by shared states:
GiGPO, arXiv:2505.10978; Monte Carlo values in place of a critic: VinePPO, arXiv:2410.01679).

For attempt i with reward r_i and screens s_i0 … s_in (n + 1 turns), return-to-go G_it = discount^(n − t) r_i and::

    V(s)   = mean over the attempts that saw s of G at their first visit
    δ_it   = discount V(s_i,t+1) − V(s_it),   V after the last turn = r_i
    A_it   = sum over k of (discount λ)^k δ_i,t+k              (GAE, arXiv:1506.02438, eq. 16)

λ = 1 gives G_it − V(s_it): the whole rest of the attempt against what others made of this screen. λ = 0 looks one
screen ahead. A screen that only one attempt saw has that attempt's own return as value, so the turns behind it get no
credit: where no screens repeat (live pages), use the episode's advantage instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from cuarl.train.advantage import Normalise, group_advantages
from cuarl.trajectory import Group, Trajectory
from cuarl.types import Record


class ScreenCredit(Record):
    """How far credit looks ahead."""

    trace_lambda: float = Field(default=0.5, ge=0, le=1)
    """λ of the formula above."""
    discount: float = Field(default=1.0, gt=0, le=1)
    """Below 1, a success that comes later is worth less."""


def episode_credit(group: Group, normalise: Normalise) -> list[list[float] | None]:
    """GRPO's advantages: every turn of an attempt carries the attempt's own. None where there is no reward."""
    advantages = group_advantages(group.rewards, normalise=normalise).advantages
    return [None if a is None else [a] * len(t.turns) for a, t in zip(advantages, group.trajectories, strict=True)]


def screen_credit(group: Group, config: ScreenCredit, normalise: Normalise) -> list[list[float] | None]:
    """Advantages by attempt and turn; None where there is no reward, zeros where all rewards are equal.

    ``normalise`` divides by the deviation of the group's rewards, as GRPO does.
    """
    whole = group_advantages(group.rewards, normalise=normalise)
    if not whole.mixed:  # returns still differ by the discount, but that is no reward to learn from
        return episode_credit(group, normalise)
    scale = 1.0 / (whole.std + 1e-4) if normalise == "std" and whole.std is not None else 1.0
    values = _values(group.trajectories, config.discount)
    return [
        None if t.reward is None else [scale * a for a in _traces(t, t.reward, values, config)]
        for t in group.trajectories
    ]


def _values(trajectories: Sequence[Trajectory], discount: float) -> dict[str, float]:
    """Value of each screen, by digest: mean return of the attempts that saw it, from their first visit on."""
    returns: dict[str, list[float]] = {}
    for t in trajectories:
        if t.reward is None:  # an attempt that was lost says nothing of the screens it saw
            continue
        last = len(t.turns) - 1
        # the first visit alone: an attempt that goes in circles would outvote the others
        first: dict[str, float] = {}
        for i, turn in enumerate(t.turns):
            first.setdefault(turn.screenshot.digest, discount ** (last - i) * t.reward)
        for digest, value in first.items():
            returns.setdefault(digest, []).append(value)
    return {digest: math.fsum(seen) / len(seen) for digest, seen in returns.items()}


def _traces(t: Trajectory, reward: float, values: dict[str, float], config: ScreenCredit) -> list[float]:
    """Sums of the discounted differences, from the last turn backwards."""
    here = [values[turn.screenshot.digest] for turn in t.turns]
    # the reward falls due at the end of the last turn, so it is not discounted there
    ahead = [config.discount * v for v in here[1:]] + [reward]
    trace, out = 0.0, []
    for v, following in zip(reversed(here), reversed(ahead), strict=True):
        trace = following - v + config.discount * config.trace_lambda * trace
        out.append(trace)
    return out[::-1]
