"""Gymnasium's action spaces, told as plain data and filled from plain data. Runs in the worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces


def told(space: spaces.Space[Any]) -> dict[str, Any]:
    """What the owner needs to know of an action space, as JSON."""
    match space:
        case spaces.Discrete():
            return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete() if space.nvec.ndim == 1:
            return {"type": "MultiDiscrete", "nvec": space.nvec.tolist()}
        case spaces.Box() if space.shape == (2,) and space.is_bounded("both"):
            return {"type": "Box", "low": space.low.tolist(), "high": space.high.tolist()}
    return {"type": type(space).__name__}


def sample_of(value: Any, space: spaces.Space[Any]) -> Any:
    """A member of the space, made of JSON. Raises ValueError if there is none."""
    sample = _shaped(value, space)
    if not space.contains(sample):
        raise ValueError(f"{value!r} is no action of {space}")
    return sample


def _shaped(value: Any, space: spaces.Space[Any]) -> Any:
    match space:
        case spaces.Dict() if isinstance(value, Mapping):
            unknown = sorted(set(value) - set(space.spaces))
            if unknown:
                raise ValueError(f"the action has no {', '.join(unknown)}, only {', '.join(space.spaces)}")
            return {
                key: _shaped(value[key], one) if key in value else _nothing(one) for key, one in space.spaces.items()
            }
        case spaces.Tuple() if isinstance(value, list) and len(value) == len(space.spaces):
            return tuple(_shaped(part, one) for part, one in zip(value, space.spaces, strict=True))
        case spaces.Discrete() if isinstance(value, int | float) and value == int(value):
            return space.dtype.type(int(value))
        case spaces.Box() | spaces.MultiDiscrete() | spaces.MultiBinary():
            return _array(value, space)
    return value


def _array(value: Any, space: spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary) -> np.ndarray:
    given = np.asarray(value, dtype=np.float64)
    whole = np.issubdtype(space.dtype, np.integer)
    array: np.ndarray = (np.round(given) if whole else given).astype(space.dtype).reshape(space.shape)
    # a float64 bound may lie just beyond the space's own in float32
    return np.clip(array, space.low, space.high) if isinstance(space, spaces.Box) else array


def _nothing(space: spaces.Space[Any]) -> Any:
    """What stands for an entry that a table leaves out: the first, the middle, the empty one."""
    match space:
        case spaces.Dict():
            return {key: _nothing(one) for key, one in space.spaces.items()}
        case spaces.Tuple():
            return tuple(_nothing(one) for one in space.spaces)
        case spaces.Discrete():
            return space.start
        case spaces.Box():
            return np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
        case spaces.MultiDiscrete():
            return np.asarray(space.start, space.dtype)
        case spaces.MultiBinary():
            return np.zeros(space.shape, space.dtype)
        case spaces.Text() if space.min_length == 0:
            return ""
    raise ValueError(f"the table must say what to send for {space}")
