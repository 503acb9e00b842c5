"""A reward that differs within a group, whatever a random model does: there is something to learn from every step."""

from __future__ import annotations

import zlib

from cuarl.trajectory import Trajectory


def chance(trajectory: Trajectory) -> float:
    """0 or 1 by what the policy said."""
    said = "".join(turn.sampled.text for turn in trajectory.turns if turn.sampled)
    return float(zlib.crc32(said.encode()) % 2)
