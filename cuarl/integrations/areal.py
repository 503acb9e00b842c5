"""An agent for AReaL: one episode of a cuarl task, acted by the policy behind AReaL's proxy.

AReaL takes any object with ``async run(data, **extra)`` that returns a reward, hands it the address of a proxy that
speaks OpenAI's chat completions, and records ids and log-probabilities there. So this module knows nothing of AReaL and
is imported inside its environment::

    from cuarl.integrations.areal import ScreenAgent
    workflow = ScreenAgent(max_turns=10)

``data`` is a row of a data set: ``task`` (an id, or the definition of a task as in a task file), and optionally
``seed``.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import httpx

from cuarl.agent import formats
from cuarl.agent.model import ModelAgent
from cuarl.env.backend import MakeEnv
from cuarl.env.base import Env
from cuarl.env.sim.devices import make_sim
from cuarl.errors import ConfigError, RolloutError
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.wire import NEUTRAL, EndpointFeatures
from cuarl.policy.sampler import SamplingParams
from cuarl.rollout.episode import run_episode
from cuarl.rollout.reward import RewardFunction, simple
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec, Limits
from cuarl.tasks.library import Library
from cuarl.tasks.suites import shipped_folder
from cuarl.tasks.task import Task, TaskInstance
from cuarl.trajectory import Trajectory


class ScreenAgent:
    """One episode a call. Makes a fresh environment each time, so one object serves any number of calls at once.

    ``make_env`` makes the environment of an episode; unset means the simulator. ``model`` is the name that the proxy is
    asked for, and ``renderer`` the format that the model was trained with. A missing verdict is never a reward of 0:
    ``run`` raises RolloutError then, which AReaL takes as a rejected sample.
    """

    def __init__(
        self,
        *,
        model: str = "default",
        renderer: str = "qwen3-vl",
        max_turns: int = 20,
        max_task_time_s: float = 1800.0,
        temperature: float = 1.0,
        max_tokens: int = 512,
        history_images: int | None = None,
        history_turns: int | None = None,
        history_older: str | None = None,
        max_prompt_tokens: int | None = None,
        reward: RewardFunction = simple,
        make_env: MakeEnv | None = None,
        profile: str = "small",
    ) -> None:
        self._model, self._renderer, self._reward = model, renderer, reward
        self._limits = Limits(max_turns=max_turns, deadline_s=max_task_time_s)
        self._params = SamplingParams(temperature=temperature, max_tokens=max_tokens)
        self._history = {
            "history_images": history_images,
            "history_turns": history_turns,
            "history_older": history_older,
            "max_prompt_tokens": max_prompt_tokens,
        }
        self._profile: Any = profile
        self._make_env = make_env or self._simulated

    async def run(
        self,
        data: Mapping[str, Any],
        *,
        base_url: str | None = None,
        http_client: httpx.AsyncClient | None = None,
        api_key: str | None = None,
        **extra: Any,
    ) -> float:
        """Act in one episode and return its reward.

        ``base_url``, ``http_client`` and ``api_key`` are those of AReaL's proxy; what else is given is not needed.
        Raises ConfigError for a row without a task, RolloutError for an episode that has no reward.
        """
        trajectory = await self.play(data, base_url=base_url, http_client=http_client, api_key=api_key)
        if trajectory.reward is None:
            failure = trajectory.failure
            raise RolloutError(
                f"no reward: {failure.message if failure else trajectory.stop}", where=trajectory.task_id
            )
        return trajectory.reward

    async def play(
        self,
        data: Mapping[str, Any],
        *,
        base_url: str | None = None,
        http_client: httpx.AsyncClient | None = None,
        api_key: str | None = None,
    ) -> Trajectory:
        """The same, with the whole record of the episode."""
        if base_url is None:
            raise ConfigError("AReaL's proxy gives no base_url", hint="run the agent through AReaL, or pass base_url")
        task, seed = task_of(data), seed_of(data)
        # the proxy has sampling settings of its own; those of a request that it does not know, it would refuse
        plain = EndpointFeatures(left_out=tuple(NEUTRAL))
        sampler = OpenAISampler(base_url, self._model, api_key=api_key, http_client=http_client, features=plain)
        name = self._renderer

        def make_agent(spec: EpisodeSpec, env: Env) -> ModelAgent:
            kind: Any = env.capabilities.kind
            format = formats.get(name, kind)
            return ModelAgent(
                sampler, format, params=self._params, window=format.window.but(**self._history), strict=True
            )

        setup = Setup(make_env=self._make_env, make_agent=make_agent, reward=self._reward, limits=self._limits)
        spec = EpisodeSpec(
            task=task.instantiate(seed),
            seed=seed,
            sampling_seed=secrets.randbits(62),
            group_id=f"areal.{task.id}.{seed}",
            purpose="train",
        )
        try:
            return (await run_episode(spec, setup)).trajectory
        finally:
            await sampler.close()

    async def _simulated(self, task: TaskInstance) -> Env:
        return make_sim(task.env, self._profile)


def task_of(data: Mapping[str, Any]) -> Task:
    """The task of a row. Raises ConfigError if it has none, TaskError for an unknown id or a broken definition."""
    task = data.get("task")
    if isinstance(task, Task):
        return task
    if isinstance(task, Mapping):
        return Task.model_validate(dict(task))
    if isinstance(task, str):
        return _library().by_id([task])[0].task
    raise ConfigError(
        "the row has no task", where=f"keys: {', '.join(map(str, data))}", hint='{"task": "train_02_enable_wifi"}'
    )


def seed_of(data: Mapping[str, Any]) -> int:
    """The seed of the device: the row's, or one of its task, so that the attempts of a group meet the same instance."""
    seed = data.get("seed")
    return int(seed) if seed is not None else _digest(str(data.get("task")))


@lru_cache(maxsize=1)
def _library() -> Library:
    return Library.open([shipped_folder()])


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1
