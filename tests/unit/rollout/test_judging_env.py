"""An environment that gives the verdict itself: its score is taken as it is, and a missing one is no score."""

from __future__ import annotations

import anyio
import pytest

from cuarl.agent.base import Decision
from cuarl.env.sim.devices import make_sim
from cuarl.errors import RewardError
from cuarl.rollout.episode import run_episode
from cuarl.rollout.reward import get
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Finish, StopReason


class Judging:
    """The simulated phone, with a judge of its own."""

    def __init__(self, given):
        self._phone, self._given, self.asked = make_sim("phone", "small"), given, []

    @property
    def capabilities(self):
        return self._phone.capabilities

    async def reset(self, task, seed):
        return await self._phone.reset(task, seed)

    async def step(self, action):
        return await self._phone.step(action)

    async def state(self):
        return await self._phone.state()

    async def close(self):
        await self._phone.close()

    async def judge(self, answer, claimed):
        self.asked.append((answer, claimed))
        if self._given is None:
            raise RewardError("no verdict")
        return self._given


class Ends:
    name = "ends"

    async def act(self, task, observation, history, seed):
        return Decision(action=Finish(message="forty-two"))


def played(given):
    env = Judging(given)

    async def make_env(task):
        return env

    setup = Setup(make_env=make_env, make_agent=lambda spec, env: Ends(), reward=get("score"))
    spec = EpisodeSpec(task=TaskInstance(task_id="t", goal="g"), seed=1, sampling_seed=1, group_id="g")
    return anyio.run(run_episode, spec, setup).trajectory, env


@pytest.mark.parametrize("score", [0.0, 0.25, 1.0])
def test_its_score_is_the_reward(score):
    trajectory, env = played(Verdict(success=score == 1, score=score))
    assert trajectory.reward == score and trajectory.stop is StopReason.DONE
    assert env.asked == [("forty-two", True)]


def test_without_a_verdict_there_is_no_reward():
    trajectory, _ = played(None)
    assert trajectory.reward is None and trajectory.failure is not None and trajectory.failure.boundary == "reward"
