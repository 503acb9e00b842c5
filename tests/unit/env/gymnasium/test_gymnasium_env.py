"""Gymnasium environments in workers: every kind of action, pictures, rewards, faults."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from cuarl.env.conformance import CHECKS
from cuarl.env.gymnasium.backend import check_tasks
from cuarl.env.gymnasium.env import CHILD, GymnasiumEnv, Source
from cuarl.env.gymnasium.options import Options
from cuarl.env.leases import Ledger, sweep
from cuarl.env.workers.pool import Pool
from cuarl.errors import ConfigError, EnvError, TaskError
from cuarl.settings import Settings
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.types import Click, Key, StepResult, TypeText, Wait
from tests.fakes.pools import with_pool

pytest.importorskip("gymnasium")
FAKES = "tests.fakes.gym_envs"
LAMPS = f"{FAKES}:cuarl-tests/Lamps-v0"
TASK = TaskInstance(task_id="t", goal="g", env="gymnasium", checks=(Check(path="return", op="ge", value=3),))


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "sessions")


@pytest.fixture
def play_alone(ledger):
    """Runs a coroutine function with a pool of workers of its own, of which nothing is left at the end."""
    return partial(with_pool, ledger, CHILD)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Where coroutines run, and one pool of workers for all of them: to start a worker takes longer than most tests."""
    ledger = Ledger(tmp_path_factory.mktemp("workers") / "sessions")
    pool = Pool(ledger, CHILD)
    with start_blocking_portal() as portal:
        yield portal, pool
        portal.call(pool.close)
    assert ledger.leases() == []


@pytest.fixture
def play(shared):
    """Runs a coroutine function with the pool, to which every worker that is left is given back at the end."""
    portal, pool = shared
    yield lambda work: portal.call(work, pool)
    assert len(pool._ledger.leases()) == len(pool._free)


def press(env: GymnasiumEnv, label: str) -> Click:
    """The click on a drawn button."""
    assert env._strip is not None
    left, top, right, bottom = env._strip.box(env._strip.labels.index(label))
    return Click(x=(left + right) // 2, y=env._size[1] * env._source.scale + (top + bottom) // 2)


def test_keeps_the_contract(play):
    async def work(pool):
        async def make():
            return await GymnasiumEnv.opened(pool, Source(LAMPS))

        for check in CHECKS:
            await check(make, TASK)

    play(work)


def test_buttons_send_actions_and_rewards_are_judged(play):
    async def work(pool):
        env = await GymnasiumEnv.opened(pool, Source(LAMPS, scale=2))
        first = await env.reset(TASK, 5)
        assert first.screenshot.width == 128
        results: list[StepResult] = []
        while not results or not results[-1].terminated:
            lit = (await env.state())["info"]["lit"]
            results.append(await env.step(press(env, str(lit))))
        assert [r.reward for r in results] == [1.0, 1.0, 1.0]
        assert results[-1].info["changed"] is not None
        state = await env.state()
        assert (state["return"], state["steps"], state["terminated"], state["info"]["right"]) == (3.0, 3, True, 3)
        verdict = await env.judge(None, True)
        assert (verdict.success, verdict.score, verdict.checks[0].actual) == (True, 1.0, 3.0)
        late = await env.step(press(env, "0"))
        assert "ended" in late.info["rejected"]
        await env.close()

    play(work)


def test_a_click_beside_the_buttons_is_refused_and_a_time_limit_truncates(play):
    async def work(pool):
        env = await GymnasiumEnv.opened(pool, Source(LAMPS, {"needed": 9}, actions="buttons red green blue yellow"))
        await env.reset(TASK, 1)
        assert "no click" in (await env.step(Click(x=3, y=3))).info["rejected"]
        assert "neither" in (await env.step(Click(x=0, y=48))).info["rejected"]
        assert "no wait" in (await env.step(Wait())).info["rejected"]
        for turn in range(6):
            result = await env.step(press(env, "green"))
            assert (result.terminated, result.truncated) == (False, turn == 5)
        verdict = await env.judge(None, None)
        assert not verdict.success
        await env.close()

    play(work)


def test_keys_repeats_and_reset_options(play):
    async def work(pool):
        actions = {"key Left": 0, "key ctrl+a": 2, "any": 3}
        source = Source(LAMPS, {"needed": 2}, {"lit": 2}, actions, repeat=2)
        env = await GymnasiumEnv.opened(pool, source)
        await env.reset(TASK, 1)
        result = await env.step(Key(keys=("Control", "a")))
        assert result.reward is not None and result.reward >= 1
        assert (await env.state())["steps"] == 1
        await env.close()

    play(work)


@pytest.mark.parametrize(
    ("kwargs", "actions"), [({}, "auto"), ({"flat": True}, "grid 3x4"), ({}, {"click": ["$row", 0]})], ids=str
)
def test_cells_are_chosen_by_a_click_and_the_mission_is_the_goal(play, kwargs, actions):
    async def work(pool):
        source = Source(f"{FAKES}:cuarl-tests/Board-v0", kwargs, actions=actions, goal_from="observation.mission")
        if not isinstance(actions, str):
            with pytest.raises(ConfigError, match="row"):
                await GymnasiumEnv.opened(pool, source)
            return
        env = await GymnasiumEnv.opened(pool, source)
        seen = await env.reset(TASK, 3)
        assert seen.text["goal"] == "choose the bright cell"
        pixels = seen.screenshot.image.load()
        (x, y) = next((x, y) for y in range(0, 48, 16) for x in range(0, 64, 16) if pixels[x, y] == (250, 250, 250))
        result = await env.step(Click(x=x + 15, y=y + 15))
        assert (result.reward, result.terminated) == (1.0, True)
        solved = TASK.model_copy(update={"checks": (Check(path="info.solved", value=True),)})
        env._task = solved
        verdict = await env.judge(None, None)
        assert verdict.success
        assert [(c.path, c.actual) for c in verdict.checks] == [("info.solved", True), ("return", 1.0)]
        await env.close()

    play(work)


def test_a_point_is_scaled_into_the_box(play):
    async def work(pool):
        env = await GymnasiumEnv.opened(pool, Source(f"{FAKES}:Dart", {"render_mode": "rgb_array"}))
        seen = await env.reset(TASK, 0)
        assert (seen.screenshot.width, seen.screenshot.height) == (80, 40)
        assert seen.screenshot.image.getpixel((0, 0)) == (128, 128, 128)
        result = await env.step(Click(x=60, y=4))
        assert result.truncated
        assert (await env.state())["info"]["hit"] == pytest.approx([60.5 / 40 - 1, 4.5 / 4])
        await env.close()

    play(work)


def test_a_table_fills_a_dict(play):
    table = {"click": {"type": 1, "at": ["$x", "$y"]}, "type": {"type": 2, "text": "$text"}}

    async def work(pool):
        env = await GymnasiumEnv.opened(pool, Source(f"{FAKES}:Form", {"render_mode": "rgb_array"}, actions=table))
        await env.reset(TASK, 0)
        assert env.capabilities.actions == {"click", "type", "finish"}
        await env.step(Click(x=70, y=99))
        assert (await env.state())["info"] == {"type": 1, "at": [70, 99], "text": ""}
        result = await env.step(TypeText(text="lamp"))
        assert result.reward == 1
        refused = await env.step(TypeText(text="far too long for this field"))
        assert "no action of" in refused.info["rejected"]
        assert "no key" in (await env.step(Key(keys=("a",)))).info["rejected"]
        assert "no click right" in (await env.step(Click(x=1, y=1, button="right"))).info["rejected"]
        await env.close()

    play(work)


def test_buttons_stand_beside_rules_for_the_picture(play):
    table = {"click": {"type": 1, "at": ["$x", "$y"]}, "buttons": {"clear": {"type": 3}}}

    async def work(pool):
        made = {"render_mode": "rgb_array"}
        env = await GymnasiumEnv.opened(pool, Source(f"{FAKES}:Form", made, actions=table, scale=2))
        await env.reset(TASK, 0)
        await env.step(Click(x=199, y=199))
        assert (await env.state())["info"]["at"] == [99, 99]
        await env.step(press(env, "clear"))
        assert (await env.state())["info"] == {"type": 3, "at": [0, 0], "text": ""}
        await env.close()

    play(work)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Source("Nothing-v0"), "Nothing"),
        (Source("no_such_module_here:Nothing-v0"), "no_such_module_here"),
        (Source(LAMPS, {"colour": 3}), "colour"),
        (Source(LAMPS, actions="grid 2x3"), "does not fit"),
        (Source(LAMPS, actions="buttons a b"), "4 actions and 2 labels"),
        (Source(LAMPS, picture="observation"), "no picture"),
        (Source(f"{FAKES}:Form", {"render_mode": "rgb_array"}), "Dict"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_can_not_be_is_said_before_an_episode(play, source, said):
    async def work(pool):
        with pytest.raises(ConfigError, match=said):
            await GymnasiumEnv.opened(pool, source)

    play(work)


@pytest.mark.parametrize(("action", "said"), [(1, "the belt has come off"), (2, "going down"), (3, "changed its size")])
def test_faults_are_errors_of_the_environment(play_alone, action, said, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it would hide what Python writes only at the end

    async def work(pool):
        env = await GymnasiumEnv.opened(pool, Source(f"{FAKES}:Faulty", {"render_mode": "rgb_array"}))
        await env.reset(TASK, 0)
        with pytest.raises(EnvError, match=said):
            await env.step(press(env, str(action)))
        await env.close()
        # and the next episode has a worker again
        env = await GymnasiumEnv.opened(pool, Source(LAMPS))
        await env.reset(TASK, 0)
        await env.close()

    play_alone(work)


def test_one_that_hangs_is_ended_when_its_episode_is_abandoned(play):
    async def work(pool):
        env = await GymnasiumEnv.opened(pool, Source(f"{FAKES}:Faulty", {"render_mode": "rgb_array"}))
        await env.reset(TASK, 0)
        pid = env._worker._process.pid
        with anyio.move_on_after(0.3) as scope:
            await env.step(press(env, "0"))
        assert scope.cancelled_caught
        await env.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    play(work)


def test_a_worker_serves_one_episode_after_the_other(play):
    async def work(pool):
        pids = set()
        for seed in range(3):
            env = await GymnasiumEnv.opened(pool, Source(LAMPS))
            await env.reset(TASK, seed)
            pids.add(env._worker._process.pid)
            await env.close()
        assert len(pids) == 1

    play(work)


def test_what_a_killed_run_leaves_is_swept(ledger):
    async def work() -> None:
        env = await GymnasiumEnv.opened(Pool(ledger, CHILD), Source(LAMPS))
        (lease,) = ledger.leases()
        assert (lease.kind, lease.state) == ("worker", "live")
        await sweep(lease, Settings())
        with pytest.raises(EnvError, match="died"):
            await env.reset(TASK, 0)
        await env.close()

    anyio.run(work)
    assert ledger.leases() == []


def test_credentials_stay_here(play, monkeypatch):
    from cuarl.env.workers.worker import _environment

    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("OWN_SETTING", "kept")
    seen: Any = _environment("mark")
    assert "OPENAI_API_KEY" not in seen
    assert seen["OWN_SETTING"] == "kept"


@pytest.mark.parametrize(
    ("preset", "said"),
    [
        ({"id": 5}, "id can't be 5"), ({"id": "a", "device": "tv"}, "device can't be 'tv'"),
        ({"id": "a", "scale": 0}, "scale"),
        ({"kwargs": {}}, "no id"), ({"id": "a", "colour": 1}, "presets colour"), ({"id": "a", "kwargs": [1]}, "kwargs"),
        ({"id": "a", "actions": {"clik": 1}}, "did you mean"),
    ],
)  # fmt: skip
def test_presets_that_can_not_be_are_refused(preset, said):
    task = Task(id="t", description="g", env="gymnasium", preset=preset, checks=TASK.checks)
    with pytest.raises((TaskError, ConfigError), match=said):
        check_tasks([task], Options())
