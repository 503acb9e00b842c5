"""Advantages by turn from groups within the group: turns that met the same state are compared with each other.

GiGPO (arXiv:2505.10978, section 4). For attempt i with reward r_i over turns 0 … n, and the return-to-go
``R_it = discount^(n − t) r_i``::

    A_it = A_i + weight · S_it
    A_i  = (r_i − mean(r)) / F(r)                              the episode against its siblings
    S_it = (R_it − mean(R)) / F(R)                             over all turns of the group in the same state

with F the standard deviation plus a small number, or 1. A state that was met only once has S = 0. Unlike the values of
``credit``, every visit of a state counts, and nothing looks ahead.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from pydantic import Field, NonNegativeFloat

from cuarl.errors import TrainError
from cuarl.train.advantage import Normalise, group_advantages
from cuarl.trajectory import Group, Trajectory, Turn
from cuarl.types import Record


class AnchorCredit(Record):
    """What counts as the same state, and for how much."""

    anchor: Literal["screen", "text"] = "screen"
    """Equal pixels of the screenshot, or equal text fields of the observation."""
    weight: NonNegativeFloat = 1.0
    discount: float = Field(default=0.95, gt=0, le=1)


def gigpo_credit(group: Group, config: AnchorCredit, normalise: Normalise) -> list[list[float] | None]:
    """Advantages by attempt and turn; None where there is no reward.

    Raises TrainError with ``anchor: text`` for a turn whose observation had no text.
    """
    whole = group_advantages(group.rewards, normalise=normalise).advantages
    returns: dict[str, list[float | None]] = defaultdict(list)
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for i, t in enumerate(group.trajectories):
        if t.reward is None:
            continue
        for turn in t.turns:
            key = _state(t, turn, config)
            returns[key].append(config.discount ** (len(t.turns) - 1 - turn.index) * t.reward)
            places[key].append((i, turn.index))
    out: list[list[float] | None] = [
        None if a is None else [a] * len(t.turns) for a, t in zip(whole, group.trajectories, strict=True)
    ]
    # a state met once is a group of one, whose advantage is 0
    for key, values in returns.items():
        for (i, index), a in zip(places[key], group_advantages(values, normalise=normalise).advantages, strict=True):
            row = out[i]
            assert row is not None and a is not None, "only scored attempts are compared"
            row[index] += config.weight * a
    return out


def _state(trajectory: Trajectory, turn: Turn, config: AnchorCredit) -> str:
    if config.anchor == "screen":
        return turn.screenshot.digest
    if not turn.text:
        raise TrainError(
            f"the observation of turn {turn.index} has no text to tell states apart by",
            where=f"episode {trajectory.episode_id}, environment {trajectory.env or 'unknown'}",
            hint="--gigpo-anchor screen",
        )
    return repr(sorted(turn.text.items()))
