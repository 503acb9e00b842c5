"""Other settings than those of a fresh device."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any


def shuffled(rng: random.Random, node: Any) -> Any:
    """A copy of a state in which every second switch is thrown anew, at any depth; lists stay."""
    changes: dict[str, Any] = {}
    for f in fields(node):
        value = getattr(node, f.name)
        if isinstance(value, bool):
            changes[f.name] = rng.random() < 0.5 if rng.random() < 0.5 else value
        elif is_dataclass(value):
            changes[f.name] = shuffled(rng, value)
    return replace(node, **changes) if changes else node
