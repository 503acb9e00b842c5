"""Group-relative advantages: how much better an attempt was than its siblings. Pure Python, no tensors.

For the rewards ``r_1 … r_G`` of one group (GRPO, arXiv:2402.03300, section 4.1.2)::

    A_i = (r_i − mean(r)) / (std(r) + eps)      normalise = "std"
    A_i =  r_i − mean(r)                        normalise = "none"  (Dr. GRPO, arXiv:2503.20783)
    A_i =  r_i − mean of the other rewards      leave_one_out       (RLOO, arXiv:2402.14740)

``std`` is the deviation of the group itself (divided by G, as the paper's formula reads; some libraries divide by G −
1). Attempts without a reward (a lost device, a crashed verifier) take no part in mean and deviation and get no
advantage. A group whose rewards are equal has advantage exactly 0, rather than rounding dust blown up by a tiny
deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Normalise = Literal["std", "none"]

_EQUAL = 1e-9
"""Rewards closer than this, relative to their size, are the same reward."""


@dataclass(frozen=True, slots=True)
class GroupAdvantages:
    """Advantages of one group with the statistics that they come from."""

    advantages: tuple[float | None, ...]
    """One for each attempt, in order; None exactly where the reward is missing."""
    scored: int
    """Attempts that have a reward."""
    mean: float | None
    """Mean reward of the scored attempts; None if there are none."""
    std: float | None
    """Their standard deviation (divided by their number); None if there are none."""
    mixed: bool
    """Whether the scored rewards differ, that is, whether the group teaches anything."""


def group_advantages(
    rewards: Sequence[float | None], *, normalise: Normalise = "std", eps: float = 1e-4, leave_one_out: bool = False
) -> GroupAdvantages:
    """Compute the advantages of one group; ``rewards[i]`` is None where there is no verdict on attempt i.

    ``leave_one_out`` compares each reward with the mean of the others alone, and is not normalised. Raises ValueError
    for a reward that is not finite.
    """
    scored = [r for r in rewards if r is not None]
    if not all(math.isfinite(r) for r in scored):
        raise ValueError(f"rewards must be finite, got {list(rewards)}")
    # counted as 0, a lost device would lower the mean and praise the siblings for nothing
    if not scored:
        return GroupAdvantages((None,) * len(rewards), 0, None, None, mixed=False)
    low, high = min(scored), max(scored)
    # sums of equal rewards differ in the last bit, and a deviation as small would make advantages of 1 of it
    if high - low <= _EQUAL * max(1.0, abs(low), abs(high)):
        flat = tuple(None if r is None else 0.0 for r in rewards)
        return GroupAdvantages(flat, len(scored), low, 0.0, mixed=False)
    # exact sums, so that the order of the attempts changes nothing
    mean = math.fsum(scored) / len(scored)
    std = math.sqrt(math.fsum((r - mean) ** 2 for r in scored) / len(scored))
    scale = 1.0 / (std + eps) if normalise == "std" else 1.0
    if leave_one_out:
        # r_i − (n mean − r_i) / (n − 1)
        scale = len(scored) / (len(scored) - 1)
    return GroupAdvantages(
        tuple(None if r is None else (r - mean) * scale for r in rewards), len(scored), mean, std, mixed=True
    )


def batch_advantages(
    values: Sequence[Sequence[float]], *, normalise: Normalise = "std", eps: float = 1e-4
) -> list[list[float]]:
    """Centre values by token over the whole batch, and divide by their deviation (REINFORCE++, arXiv:2501.03262).

    ``values[i]`` are those of the tokens of row i. Equal values give exact zeros.
    """
    flat = [v for row in values for v in row]
    if not flat:
        return [list(row) for row in values]
    low, high = min(flat), max(flat)
    if high - low <= _EQUAL * max(1.0, abs(low), abs(high)):
        return [[0.0] * len(row) for row in values]
    mean = math.fsum(flat) / len(flat)
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in flat) / len(flat))
    scale = 1.0 / (std + eps) if normalise == "std" else 1.0
    return [[(v - mean) * scale for v in row] for row in values]
