"""Episodes that are struck by a fault, beside siblings that are not: what the fault tests have in common."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from cuarl.agent.base import Agent, Decision
from cuarl.env.base import Env
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec, Limits
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Trajectory, Turn
from cuarl.types import Action, Finish, Observation, StopReason, Wait

Fault = Callable[[Any], Awaitable[None] | None]
"""Done to an environment in the middle of its episode."""
PATIENCE_S = 60.0
"""A test that takes longer has found a fault that nobody notices."""


class Acting:
    """Does ``actions``, then finishes; before the ``at``-th (from 0) it has ``fault`` done to its environment."""

    name = "acting"

    def __init__(self, env: Env, actions: Sequence[Action], fault: Fault | None = None, at: int = 1) -> None:
        self._env, self._actions, self._fault, self._at = env, actions, fault, at

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The next action."""
        turn = len(history)
        if turn == self._at and self._fault is not None:
            done = self._fault(self._env)
            if inspect.isawaitable(done):
                await done
        return Decision(action=self._actions[turn] if turn < len(self._actions) else Finish(success=True))


def waits(count: int, seconds: float = 0.05) -> list[Action]:
    """Actions that take their time and change nothing."""
    return [Wait(seconds=seconds)] * count


async def roll_out(
    tasks: Sequence[TaskInstance],
    make_env: Callable[[TaskInstance], Env | Awaitable[Env]],
    make_agent: Callable[[int, Env], Agent],
    *,
    at_once: int = 8,
    patience_s: float = PATIENCE_S,
    **limits: float,
) -> list[Trajectory]:
    """One episode a task, the way ``cuarl rollout`` runs them; ``make_agent`` gets the position of the task and its
    env."""

    async def made(task: TaskInstance) -> Env:
        env = make_env(task)
        return await env if inspect.isawaitable(env) else env

    specs = [
        EpisodeSpec(task=task, seed=1, sampling_seed=1, group_id=f"g.{number}") for number, task in enumerate(tasks)
    ]
    how = Setup(
        make_env=made, make_agent=lambda spec, env: make_agent(int(spec.group_id[2:]), env), limits=Limits(**limits)
    )
    with anyio.fail_after(patience_s):
        groups = await collect(specs, how, max_concurrent=at_once)
    return [trajectory for group in groups for trajectory in group.trajectories]


def failed_in_env(t: Trajectory) -> bool:
    """Whether it ended as a failure of the environment: no reward, and nobody is blamed."""
    return t.stop is StopReason.FAILED and t.failure is not None and t.failure.boundary == "env" and t.reward is None


def went_well(t: Trajectory) -> bool:
    """Whether it came to its own end, and was judged."""
    return (t.stop, t.failure) == (StopReason.DONE, None) and t.reward is not None
