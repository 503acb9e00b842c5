"""Episodes on the simulator, with the troubles of real devices injected."""

from __future__ import annotations

import time

import pytest
from counter_env import Listed, spec

from cuarl.agent.scripted import DoNothingAgent, OracleAgent
from cuarl.env.sim.env import SimEnv
from cuarl.env.sim.faults import Faults
from cuarl.rollout.episode import run_episode
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import Limits
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import OpenApp, StopReason

pytestmark = pytest.mark.anyio

TASK = TaskInstance(
    task_id="wifi_off", goal="Turn Wi-Fi off", max_steps=12, checks=(Check(path="network.wifi.enabled", value=False),)
)
OPEN = OpenApp(name="Settings")


async def play(agent, faults=None, **limits):
    async def make_env(spec):
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
    t = (await play(lambda env: Listed(OPEN), Faults(hang=True), deadline_s=0.2)).trajectory
    assert time.monotonic() - begin < 1.2
    assert (t.stop, t.reward) == (StopReason.DEADLINE, None)
