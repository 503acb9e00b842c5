"""Orders that differ from device to device."""

from __future__ import annotations

import random
from functools import lru_cache


@lru_cache(maxsize=4096)
def permutation(seed: int, name: str, count: int) -> tuple[int, ...]:
    """A fixed random order of ``count`` things, by seed and name."""
    order = list(range(count))
    random.Random(f"order/{seed}/{name}").shuffle(order)
    return tuple(order)
