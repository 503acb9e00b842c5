"""cuarl's environments as Gymnasium's: its own checker, and an episode that is solved through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cuarl.env.sim.phone import SimEnv
from cuarl.errors import ConfigError
from cuarl.integrations.gymnasium import KINDS, CuarlEnv
from cuarl.tasks.source import load
from cuarl.types import Action, Button, Click, Finish, Scroll, Swipe

TASKS = load(["settings"]).tasks[:6]


@pytest.fixture
def env() -> Iterator[CuarlEnv]:
    made = CuarlEnv(TASKS, make_env=lambda task: SimEnv("small", clutter=0.0), render_mode="rgb_array")
    yield made
    made.close()


def _said(action: Action, width: int = 192, height: int = 384) -> dict[str, Any]:
    """The oracle's action in the words of the action space."""
    kind, start, end = "", (0.0, 0.0), (0.0, 0.0)
    match action:
        case Click(x=x, y=y):
            kind, start = "click", (x, y)
        case Scroll(direction=way):
            far = 100 if way == "up" else -100
            kind, start, end = "swipe", (96, 200), (96, 200 + far)
        case Swipe():
            kind, start, end = "swipe", (action.x, action.y), (action.x2, action.y2)
        case Button(name="back" | "home" as kind):
            pass
        case Finish():
            kind = "finish"
    share = np.array([width, height], np.float32)
    return {
        "kind": KINDS.index(kind),
        "text": "",
        "point": (np.array(start, np.float32) + 0.5) / share,
        "to": (np.array(end, np.float32) + 0.5) / share,
    }


def test_gymnasiums_checker_finds_nothing(env: CuarlEnv) -> None:
    check_env(env, skip_render_check=True)  # the render check wants an environment that is registered


def test_the_oracle_solves_a_task_through_it(env: CuarlEnv) -> None:
    for task in TASKS:
        _, info = env.reset(seed=1, options={"task": task.id})
        assert info["goal"]
        reward, over, turns = 0.0, False, 0
        while not over:
            assert env._driven is not None
            assert isinstance(env._driven.env, SimEnv)
            _, reward, terminated, truncated, info = env.step(_said(env._driven.env.oracle_action()))
            over, turns = terminated or truncated, turns + 1
        assert (reward, info["verdict"]["success"], turns > 2) == (1.0, True, True), task.id
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(_said(Finish()))


def test_finishing_at_once_earns_nothing(env: CuarlEnv) -> None:
    env.reset(seed=3)
    _, reward, terminated, truncated, info = env.step(_said(Finish()))
    assert (reward, terminated, truncated, info["verdict"]["claimed"]) == (0.0, True, False, True)


def test_turns_run_out() -> None:
    env = CuarlEnv(TASKS, max_turns=2)
    env.reset(seed=0)
    ends = [env.step(_said(Button(name="home")))[2:4] for _ in range(2)]
    assert ends == [(False, False), (False, True)]
    env.close()


def test_the_seed_decides_task_and_pixels(env: CuarlEnv) -> None:
    first, told = env.reset(seed=11)
    again, told_again = env.reset(seed=11)
    assert told == told_again
    assert np.array_equal(first, again)
    assert any(not np.array_equal(first, env.reset(seed=s)[0]) for s in range(3))


def test_what_is_not_there_is_said(env: CuarlEnv) -> None:
    with pytest.raises(ConfigError, match="no task nonsense"):
        env.reset(options={"task": "nonsense"})
    with pytest.raises(ConfigError, match="no tasks"):
        CuarlEnv([])
