"""An episode that somebody else's loop drives, action by action: turns are counted, the end is judged.

For interfaces in which the learner asks and cuarl answers (``integrations.gymnasium``, ``serve.openenv``), where
``run_episode`` is the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuarl.env.base import Env, JudgingEnv
from cuarl.errors import RolloutError
from cuarl.rollout.setup import Judge
from cuarl.tasks.check import verdict as judged
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Action, Answer, Finish, Observation


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one action came to. ``verdict`` is there once the episode is over."""

    observation: Observation
    reward: float | None = None
    """The environment's own reward of this step, where it has one."""
    terminated: bool = False
    truncated: bool = False
    verdict: Verdict | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether no further action is taken."""
        return self.terminated or self.truncated


class Driven:
    """One episode of ``task`` in ``env``, which is closed with it."""

    def __init__(self, env: Env, task: TaskInstance, *, max_turns: int, judge: Judge = judged) -> None:
        self.env, self.task, self.max_turns, self._judge = env, task, max_turns, judge
        self.turns, self.over = 0, False
        self._answer: str | None = None
        self._before: Mapping[str, Any] = {}
        self._shown: Observation | None = None

    async def begin(self, seed: int) -> Observation:
        """Reset the environment. Raises EnvError."""
        self._shown = await self.env.reset(self.task, seed)
        goal = self._shown.text.get("goal")
        if goal:  # worded by the device itself
            self.task = self.task.model_copy(update={"goal": goal})
        self._before = await self.env.state() if self.env.capabilities.state else {}
        return self._shown

    async def act(self, action: Action) -> Outcome:
        """Carry out one action; ``Finish`` ends the episode. Raises RolloutError."""
        if self._shown is None or self.over:
            raise RolloutError("the episode is over, or has not begun", hint="reset first")
        self.turns += 1
        outcome = await self._carried_out(action)
        self._shown = outcome.observation
        if not outcome.over and self.turns >= self.max_turns:
            outcome = Outcome(outcome.observation, outcome.reward, truncated=True, info=outcome.info)
        if not outcome.over:
            return outcome
        self.over = True
        verdict = await self._verdict(action.success if isinstance(action, Finish) else None)
        return Outcome(
            outcome.observation, outcome.reward, outcome.terminated, outcome.truncated, verdict, outcome.info
        )

    async def close(self) -> None:
        """Close the environment."""
        await self.env.close()

    async def _carried_out(self, action: Action) -> Outcome:
        assert self._shown is not None
        if isinstance(action, Finish):
            self._answer = action.message or self._answer
            return Outcome(self._shown, terminated=True)
        if isinstance(action, Answer):
            self._answer = action.text
            if "answer" not in self.env.capabilities.actions:
                return Outcome(self._shown)
        result = await self.env.step(action)
        return Outcome(result.observation, result.reward, result.terminated, result.truncated, info=result.info)

    async def _verdict(self, claimed: bool | None) -> Verdict:
        if isinstance(self.env, JudgingEnv):
            return await self.env.judge(self._answer, claimed)
        after = await self.env.state() if self.env.capabilities.state else {}
        volatile = getattr(self.env, "volatile", ())
        return self._judge(self.task, self._before, after, self._answer, claimed, volatile)
