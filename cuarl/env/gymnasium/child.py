"""The worker that runs a Gymnasium environment: ``python -m cuarl.env.gymnasium.child``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from cuarl.env.foreign.pictures import NoPicture, at, pixels
from cuarl.env.gymnasium.spaces import sample_of, told
from cuarl.env.workers.frames import Refused
from cuarl.env.workers.serve import serve

LONGEST_TEXT = 4000
MOST_ITEMS = 64
"""Longest list of numbers that the owner is told of what stands in ``info``."""
DEPTH = 4


@dataclass(slots=True)
class Open:
    """The environment that is open."""

    env: gymnasium.Env[Any, Any]
    picture: str
    """``render``, or the dotted path of the picture in the observation (empty for the observation itself)."""


class Child:
    """Answers the owner's requests: open, reset, step, close."""

    def __init__(self) -> None:
        self._open: Open | None = None

    def __call__(self, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], bytes]:
        """One request. Raises Refused for what the owner can put right, and whatever the environment raises."""
        match request["call"]:
            case "open":
                return self._make(request), b""
            case "reset":
                env = self._ready()
                seen, info = env.env.reset(seed=request["seed"], options=request.get("options"))
                return self._shown(env, seen, {"info": plain(info)})
            case "step":
                return self._step(request)
        self._close()
        return {}, b""

    def _make(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._close()
        env = made(request["id"], request.get("kwargs", {}), request["picture"])
        try:
            picture = where_picture(env, request["picture"])
        except Refused:
            env.close()
            raise
        self._open = Open(env, picture)
        return {
            "space": told(env.action_space),
            "names": names(env),
            "threshold": getattr(env.spec, "reward_threshold", None),
        }

    def _step(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        env = self._ready()
        try:
            action = sample_of(request["action"], env.env.action_space)
        except (ValueError, TypeError) as error:
            raise Refused(str(error)) from error
        total, terminated, truncated = 0.0, False, False
        seen: Any = None
        info: Any = {}
        for _ in range(request.get("repeat", 1)):
            seen, reward, terminated, truncated, info = env.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        result = {"reward": total, "terminated": bool(terminated), "truncated": bool(truncated), "info": plain(info)}
        return self._shown(env, seen, result)

    def _shown(self, env: Open, seen: Any, reply: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        given = env.env.render() if env.picture == "render" else at(seen, env.picture) if env.picture else seen
        try:
            picture = pixels(given)
        except NoPicture as error:
            raise Refused(f"what is shown is no picture: {error}") from error
        height, width = picture.shape[:2]
        return {**reply, "width": width, "height": height, "text": texts(seen)}, picture.tobytes()

    def _ready(self) -> Open:
        assert self._open is not None, "the owner opens first"
        return self._open

    def _close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.env.close()


def made(id: str, kwargs: Mapping[str, Any], picture: str) -> gymnasium.Env[Any, Any]:
    """Make a registered environment (``module:id`` imports the module first), or call ``module:name``.

    Raises Refused.
    """
    module, _, name = id.rpartition(":")
    try:
        found = import_module(module) if module else None
        if name not in gymnasium.registry and found is not None and hasattr(found, name):
            return getattr(found, name)(**kwargs)  # type: ignore[no-any-return]
        return gymnasium.make(name, disable_env_checker=True, **_rendered(name, kwargs, picture))
    except (ImportError, gymnasium.error.Error, TypeError) as error:
        raise Refused(f"{id} can't be made: {type(error).__name__}: {error}") from error


def _rendered(name: str, kwargs: Mapping[str, Any], picture: str) -> dict[str, Any]:
    """The arguments, with a rendered picture asked for where the environment can draw one."""
    entry = gymnasium.spec(name).entry_point
    creator = gymnasium.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    modes = getattr(creator, "metadata", {}).get("render_modes") or []
    if picture in ("auto", "render") and "rgb_array" in modes:
        return {"render_mode": "rgb_array", **kwargs}
    return dict(kwargs)


def where_picture(env: gymnasium.Env[Any, Any], wanted: str) -> str:
    """Where the picture is to be found, as in ``Open``. Raises Refused if there is none."""
    if wanted not in ("auto", "render", "observation"):
        return wanted.removeprefix("observation.")
    if wanted != "observation" and env.render_mode == "rgb_array":
        return "render"
    space = env.observation_space
    if wanted != "render" and _is_picture(space):
        return ""
    entries = space.spaces.items() if isinstance(space, spaces.Dict) and wanted != "render" else []
    found = next((name for name, one in entries if _is_picture(one)), None)
    if found is None:
        how = (
            "it does not draw itself (rgb_array)" if wanted == "render" else "it neither draws itself nor observes one"
        )
        raise Refused(f"this environment shows no picture: {how}; its observation is {space}")
    return str(found)


def _is_picture(space: Any) -> bool:
    """Whether members of a space are pictures that are large enough to be looked at."""
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if dtype != np.uint8 or shape is None or len(shape) not in (2, 3):
        return False
    sides = [side for side in shape if side not in (1, 3, 4)]
    return len(sides) == 2 and all(side >= 16 or side < 0 for side in sides)


def names(env: gymnasium.Env[Any, Any]) -> list[str] | None:
    """What the environment calls the actions of a Discrete space, if it says so as Atari's does."""
    meanings = getattr(env.unwrapped, "get_action_meanings", None)
    return [str(name) for name in meanings()] if callable(meanings) else None


def texts(seen: Any) -> dict[str, str]:
    """The text entries of an observation."""
    entries = seen.items() if isinstance(seen, Mapping) else []
    return {str(name): value[:LONGEST_TEXT] for name, value in entries if isinstance(value, str)}


def plain(given: Any, depth: int = DEPTH) -> Any:
    """``given`` as JSON: scalars, texts, short lists, and mappings of these; None for anything else."""
    match given:
        case None | bool() | int():
            return given
        case str():
            return given[:LONGEST_TEXT]
        case float():
            return given if np.isfinite(given) else None
        case np.generic():
            return plain(given.item(), depth)
        case np.ndarray() if given.size <= MOST_ITEMS:
            return plain(given.tolist(), depth)
        case list() | tuple() if depth and len(given) <= MOST_ITEMS:
            return [plain(one, depth - 1) for one in given]
        case Mapping() if depth:
            return {str(name): plain(one, depth - 1) for name, one in given.items()}
    return None


if __name__ == "__main__":
    serve(Child())
