"""Seeds by a stable digest of what an episode is, so that any machine and any process can run it again.

All attempts of a group share the environment's seed, hence the task instance and the device's appearance; their
sampling seeds differ. Evaluation draws from a range of its own, so that no evaluated instance was ever trained on.
"""

from __future__ import annotations

import hashlib
import json
from typing import Literal

Purpose = Literal["train", "eval", "rollout"]

TRAIN_SEEDS = range(2**31)
"""Environment seeds of training and of plain rollouts."""
EVAL_SEEDS = range(2**31, 2**32)
"""Environment seeds of evaluations."""


def digest(*parts: str | int) -> int:
    """63 bits of the SHA-256 of ``parts`` (Python's own ``hash`` of text is salted per process)."""
    data = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(data[:8], "big") >> 1


def environment_seed(run_seed: int, task_id: str, group: int, purpose: Purpose = "train") -> int:
    """Seed of one group's environment instance, in the range of its purpose.

    Of ``group``, training passes the number of the group in the run; an evaluation passes the number of the seed, so
    that two evaluations with the same run seed see the same instances and can be compared pair by pair.
    """
    seeds = EVAL_SEEDS if purpose == "eval" else TRAIN_SEEDS
    return seeds[digest("environment", run_seed, task_id, group) % len(seeds)]


def sampling_seed(run_seed: int, task_id: str, group: int, attempt: int) -> int:
    """Seed of all chance in one attempt's agent."""
    return digest("sampling", run_seed, task_id, group, attempt)


def turn_seed(seed: int, turn: int) -> int:
    """Seed of one turn of the attempt with sampling seed ``seed``."""
    return digest("turn", seed, turn)
