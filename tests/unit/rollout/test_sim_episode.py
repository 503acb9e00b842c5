"""Episodes on the simulator, with the troubles of real devices injected."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import nullcontext

import anyio
import pytest
from counter_env import Listed, spec

from cuarl import pacing
from cuarl.agent.formats.plain_json.format import PlainJSON
from cuarl.agent.model import ModelAgent
from cuarl.agent.scripted import DoNothingAgent, OracleAgent
from cuarl.env.sim.faults import Faults
from cuarl.env.sim.phone import SimEnv
from cuarl.policy.sampler import SamplerCapabilities, SamplingParams
from cuarl.policy.sampling.batcher import Batcher
from cuarl.rollout.episode import run_episode
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import Limits
from cuarl.tasks.task import Check, TaskInstance
from cuarl.trajectory import Sampled
from cuarl.types import OpenApp, StopReason

pytestmark = pytest.mark.anyio

TASK = TaskInstance(
    task_id="wifi_off", goal="Turn Wi-Fi off", max_steps=12, checks=(Check(path="network.wifi.enabled", value=False),)
)
OPEN = OpenApp(name="Settings")


async def play(agent, faults=None, **limits):
    async def make_env(task):
        return SimEnv(clutter=0, faults=faults)

    made = Setup(make_env=make_env, make_agent=lambda s, env: agent(env), limits=Limits(**limits))
    return await run_episode(spec(task=TASK), made)


async def test_oracle_succeeds_without_side_effects_and_doing_nothing_fails():
    done = (await play(OracleAgent)).trajectory
    assert (done.stop, done.reward, done.verdict.side_effects) == (StopReason.DONE, 1.0, ())
    nothing = (await play(lambda env: DoNothingAgent())).trajectory
    assert (nothing.stop, nothing.reward, nothing.verdict.claimed) == (StopReason.DONE, 0.0, False)


async def test_slow_screen_is_waited_for_and_the_waiting_is_recorded():
    episode = await play(lambda env: Listed(OPEN), Faults(render_delay_ms=600), max_turns=1)
    (turn,) = episode.trajectory.turns
    assert 600 <= turn.settle_ms <= 1300
    assert (turn.settled, turn.changed) == (True, True)
    at_once = (await play(lambda env: Listed(OPEN), max_turns=1)).trajectory
    assert episode.trajectory.final_screenshot == at_once.final_screenshot


async def test_screen_that_never_rests_is_recorded_as_it_is():
    (turn,) = (await play(lambda env: Listed(OPEN), Faults(spinner=True), max_turns=1)).trajectory.turns
    assert (turn.settled, turn.changed, turn.settle_ms <= 3100) == (False, True, True)


async def test_black_screen_is_a_failure_of_the_environment_and_no_step_of_the_policy():
    t = (await play(lambda env: Listed(OPEN), Faults(black_frames=50))).trajectory
    assert (t.stop, t.failure.boundary, t.reward) == (StopReason.FAILED, "env", None)
    assert "black" in t.failure.message


async def test_dead_device_fails_the_episode_and_keeps_what_came_before():
    t = (await play(OracleAgent, Faults(crash_at=2))).trajectory
    assert (t.stop, t.failure.boundary, len(t.turns)) == (StopReason.FAILED, "env", 3)
    assert t.turns[1].changed is True


async def test_action_that_never_returns_is_left_at_the_deadline():
    begin = time.monotonic()
    t = (await play(lambda env: Listed(OPEN), Faults(hang=True), deadline_s=1)).trajectory
    assert time.monotonic() - begin < 10
    assert (t.stop, t.reward) == (StopReason.DEADLINE, None)


class Passes:
    """Counts passes of the event loop; ``work`` says in which of them which parts of an episode's work were done."""

    def __init__(self):
        self.now, self.work = 0, defaultdict(list)

    async def count(self):
        while True:
            await anyio.lowlevel.checkpoint()
            self.now += 1

    def noting(self, function, name):
        def noted(*args, **kwargs):
            self.work[self.now].append(name)
            return function(*args, **kwargs)

        return noted

    def most(self, *names):
        return max(sum(name in names for name in done) for done in self.work.values())

    def count_of(self, name):
        return sum(done.count(name) for done in self.work.values())


async def count_work(monkeypatch, make_agent, join=nullcontext, **limits):
    """Twelve episodes at once, and how their work was spread over passes of the event loop."""
    passes = Passes()
    monkeypatch.setattr(pacing, "SLICE_S", 0.0)
    for name in ("start", "act", "oracle_action"):
        monkeypatch.setattr(SimEnv, name, passes.noting(getattr(SimEnv, name), name))
    monkeypatch.setattr(PlainJSON, "parse", passes.noting(PlainJSON.parse, "parse"))

    async def make_env(task):
        return SimEnv(clutter=0)

    made = Setup(make_env=make_env, make_agent=make_agent, join=join, limits=Limits(**limits))
    plan = [spec(attempt, group, task=TASK) for group in range(3) for attempt in range(4)]
    async with anyio.create_task_group() as counting:
        counting.start_soon(passes.count)
        groups = await collect(plan, made, max_concurrent=12)
        counting.cancel_scope.cancel()
    return passes, [t for group in groups for t in group.trajectories]


async def test_a_pass_of_the_event_loop_has_at_most_one_episode_s_work(monkeypatch):
    passes, done = await count_work(monkeypatch, lambda s, env: OracleAgent(env))
    assert all(t.success for t in done)
    assert passes.count_of("start") == 12
    assert passes.count_of("act") >= 12
    assert passes.most("start", "oracle_action") == passes.most("start", "act") == 1


class Tapper:
    """A sampler that answers all who ask at once."""

    capabilities = SamplerCapabilities(token_ids=True, logprobs=True, images=True, name="t")

    def __init__(self):
        self._batcher, self.sizes = Batcher(self._run, lambda r: r.seed, max_batch=99), []
        self.join = self._batcher.join

    async def sample(self, request):
        return await self._batcher.ask(request)

    async def close(self):
        pass

    async def _run(self, requests):
        self.sizes.append(len(requests))
        return [
            Sampled(text=f'{{"action": "click", "coordinate": [{r.seed % 900}, 500]}}', policy="t") for r in requests
        ]


async def test_answers_that_come_at_once_are_read_and_carried_out_one_a_pass(monkeypatch):
    sampler = Tapper()

    def make_agent(spec, env):
        return ModelAgent(sampler, PlainJSON("phone"), params=SamplingParams())

    passes, done = await count_work(monkeypatch, make_agent, sampler.join, max_turns=3)
    assert sampler.sizes == [12, 12, 12]
    assert passes.count_of("parse") == passes.count_of("act") == 36
    assert {len(t.turns) for t in done} == {3}
    assert passes.most("parse", "act") == 1
