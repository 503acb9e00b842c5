"""``MiniAgentEnv``: an execution in which gbox-mini-agent acts, with a model that cuarl serves.

The usual loop of an episode drives it. The agent that ``follow`` gives tells what the mini-agent has done, and ``step``
then shows what the model was shown next. So limits, verdict, score and record are those of any other episode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from cuarl.agent.base import Decision
from cuarl.agent.relay import RelayAgent
from cuarl.env.base import Capabilities
from cuarl.env.gym.client import Gym
from cuarl.env.gym.devices import Devices
from cuarl.env.gym.env import GymEnv
from cuarl.env.gym.follow import Conversation, FollowedRun
from cuarl.env.gym.runs import MiniAgent, Order
from cuarl.env.leases import Ledger
from cuarl.env.plans.steps import Line
from cuarl.errors import EnvError
from cuarl.policy.sampler import Sampler, SamplingParams
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Turn
from cuarl.types import Action, Finish, Observation, Screenshot, StepResult

Talk = Callable[[Sampler, SamplingParams, int], Conversation]
"""Begins a session with a sampler, which always samples so, its draws decided by a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How the mini-agent is told to run."""

    agent: str = "mai-ui"
    action_space: str = "mobile"
    max_turns: int = 30
    max_run_s: float = 600.0
    max_step_s: float = 120.0
    poll_s: float = 1.0
    picture_hosts: tuple[str, ...] = ()


class MiniAgentEnv(GymEnv):
    """One execution and, unless a scripted agent acts in its device, one run of the mini-agent.

    ``talk`` begins a session with a served model.
    """

    def __init__(
        self,
        gym: Gym,
        ledger: Ledger,
        devices: Devices,
        starting: anyio.CapacityLimiter,
        agent: MiniAgent,
        talk: Talk,
        options: RunOptions,
        plan: Sequence[Line] = (),
    ) -> None:
        super().__init__(gym, ledger, devices, starting, plan)
        self._agent, self._talk, self._run_options = agent, talk, options
        self._conversation: Conversation | None = None
        self._run: FollowedRun | None = None
        self._next: Turn | None = None
        self._shown: Screenshot | None = None
        self._asked = self._max_steps = 0

    @property
    def capabilities(self) -> Capabilities:
        """Those of the device."""
        return super().capabilities

    def follow(self, sampler: Sampler, params: SamplingParams, sampling_seed: int) -> RelayAgent:
        """Have the mini-agent act, asking ``sampler``; the agent that tells what it does.

        To be called before ``reset``.
        """
        self._conversation = self._talk(sampler, params, sampling_seed)
        return RelayAgent(f"mini-agent-{self._run_options.agent}", self._decision)

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Start the execution and the run, and wait for the first screen that the model is shown."""
        conversation = self._conversation
        if conversation is None:
            return await super().reset(task, seed)
        started = await self.begin(task, seed)
        options = self._run_options
        self._max_steps = min(task.max_steps, options.max_turns)
        order = Order(
            task=task.goal,
            model_url=await conversation.open(),
            model_name=conversation.model,
            gym_url=self._gym.service.base_url,
            gym_id=self._gym.gym_id,
            execution=started.id,
            agent=options.agent,
            action_space=options.action_space,
            max_steps=self._max_steps,
            max_run_s=options.max_run_s,
            max_step_s=options.max_step_s,
        )
        run = await self._agent.start(order)
        self._run = FollowedRun(self._agent, run, conversation, poll_s=options.poll_s, hosts=options.picture_hosts)
        self._next = await self._run.turn(0)
        if self._next is None:
            raise EnvError("the run of gbox-mini-agent ended without asking its model", where=f"run {run}")
        self._shown = conversation.pictures(self._next)[self._next.screenshot.digest]
        return Observation(self._shown)

    async def _decision(self, history: Sequence[Turn]) -> Decision:
        """What the mini-agent did upon the screen that is shown. Raises EnvError, AgentError."""
        run, turn = self._following()
        if turn is None:  # the run is over, and said nothing about having finished
            return Decision(action=Finish(success=False, message=""))
        assert self._conversation is not None
        done = await run.done(self._asked, turn)
        self._asked += 1
        decision = Decision(
            action=done.action,
            parse_error=done.error,
            warnings=(*turn.warnings, *done.warnings),
            sampled=turn.sampled,
            pictures=self._conversation.pictures(turn),
        )
        if done.action is None:
            await self._look()
        return decision

    async def step(self, action: Action) -> StepResult:
        """Show what followed from ``action``, which the mini-agent has carried out."""
        if self._run is None:
            return await super().step(action)
        before = self._shown
        over = await self._look()
        assert self._shown is not None and before is not None
        changed = self._shown.digest != before.digest
        # out of turns is for the loop to say, which counts them, too
        return StepResult(
            Observation(self._shown), terminated=over and self._asked < self._max_steps, info={"changed": changed}
        )

    async def close(self) -> None:
        """End the execution, and with it what the run acts in."""
        try:
            await super().close()
        finally:
            if self._conversation is not None:
                await self._conversation.close()

    async def _look(self) -> bool:
        """Go on to the model's next turn; whether there is none."""
        run, _ = self._following()
        assert self._conversation is not None
        self._next = await run.turn(self._asked)
        if self._next is not None:
            self._shown = self._conversation.pictures(self._next)[self._next.screenshot.digest]
        elif (last := await run.last_picture()) is not None:
            self._shown = last
        return self._next is None

    def _following(self) -> tuple[FollowedRun, Turn | None]:
        if self._run is None:
            raise EnvError("no run of gbox-mini-agent is followed", hint="call follow and reset first")
        return self._run, self._next
