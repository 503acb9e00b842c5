"""The smallest real environment and agent: a screen whose colour is a counter, and a list of decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from PIL import Image

from cuarl.agent.base import Decision
from cuarl.env.base import Capabilities, Env
from cuarl.policy.sampler import Message, Picture, SampleRequest, SamplingParams
from cuarl.rollout.seeds import sampling_seed
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec, Limits
from cuarl.tasks.task import Check, TaskInstance
from cuarl.trajectory import CheckResult, Turn, Verdict
from cuarl.types import Action, Click, Finish, Observation, ParseError, Screenshot, StepResult

SIZE = (100, 200)
TASK = TaskInstance(
    task_id="count", goal="Count to two", max_steps=20, checks=(Check(path="counter", op="ge", value=2),)
)
UP = Click(x=10, y=10)
"""Counts up by one."""
NOTHING = Click(x=90, y=10)
"""Hits nothing."""


class CounterEnv:
    """Clicks on the left half count up; clicks on the right half do nothing; ``at`` gives a step its own behaviour."""

    capabilities = Capabilities(actions=frozenset({"click", "wait", "swipe"}), state=True, exact_reset=True)

    def __init__(self, at: Mapping[int, Callable[[], Awaitable[None]]] | None = None) -> None:
        self.counter = self.steps = self.closed = 0
        self.at = at or {}

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        return self.look()

    async def step(self, action: Action) -> StepResult:
        self.steps += 1
        if self.steps - 1 in self.at:
            await self.at[self.steps - 1]()
        if not isinstance(action, Click):
            return StepResult(self.look(), info={"rejected": "only clicks"} if action.kind == "swipe" else {})
        self.counter += action.x < SIZE[0] // 2
        return StepResult(self.look(), info={"settle_ms": 5.0, "settled": True, "battery": 80})

    async def state(self) -> Mapping[str, Any]:
        return {"counter": self.counter}

    async def close(self) -> None:
        self.closed += 1

    def look(self) -> Observation:
        return Observation(Screenshot(Image.new("RGB", SIZE, (self.counter % 256, 0, 0))), text={"app": "counter"})


class Listed:
    """Gives its decisions in order, then the last one for ever."""

    name = "listed"

    def __init__(self, *decisions: Action | ParseError | Decision) -> None:
        self.decisions, self.seeds = decisions, []

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        self.seeds.append(seed)
        chosen = self.decisions[min(len(history), len(self.decisions) - 1)]
        if isinstance(chosen, Decision):
            return chosen
        return Decision(parse_error=chosen) if isinstance(chosen, ParseError) else Decision(action=chosen)


class Asking:
    """Asks a sampler, counts up, and ends after so many turns."""

    name = "asking"

    def __init__(self, sampler, turns):
        self.sampler, self.turns = sampler, turns

    async def act(self, task, observation, history, seed):
        message = Message("user", (Picture(observation.screenshot),))
        sampled = await self.sampler.sample(SampleRequest((message,), SamplingParams(), seed))
        return Decision(action=UP if len(history) + 1 < self.turns else Finish(), sampled=sampled)


def judge(
    instance: TaskInstance,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    answer: str | None,
    claimed: bool | None,
    volatile: Sequence[str] = (),
) -> Verdict:
    """Success if the counter rose to the wanted number; the evidence shows both states."""
    check = instance.checks[0]
    passed = after["counter"] >= check.value
    result = CheckResult(path="counter", op="ge", expected=check.value, actual=after["counter"], passed=passed)
    effects = () if before["counter"] == 0 else ("counter",)
    return Verdict(success=passed, score=float(passed), checks=(result,), side_effects=effects, claimed=claimed)


def spec(attempt: int = 0, group: int = 0, task: TaskInstance = TASK) -> EpisodeSpec:
    return EpisodeSpec(
        task=task,
        seed=7,
        sampling_seed=sampling_seed(0, task.task_id, group, attempt),
        group_id=f"g.{group}",
        attempt=attempt,
    )


def setup(env: Env | Callable[[], Env], agent: Any, limits: Limits | None = None, **more: Any) -> Setup:
    """A setup around one environment (or a maker of fresh ones) and one agent."""

    async def make_env(task: TaskInstance) -> Env:
        return env() if callable(env) else env

    def make_agent(spec: EpisodeSpec, env: Env) -> Any:
        return agent(spec, env) if callable(agent) else agent

    return Setup(
        **{"make_env": make_env, "make_agent": make_agent, "judge": judge, "limits": limits or Limits(), **more}
    )
