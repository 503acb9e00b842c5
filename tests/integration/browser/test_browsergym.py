"""BrowserGym's real package in workers: its screens, calls, rewards and messages."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from functools import partial
from importlib.util import find_spec
from typing import Any

import pytest

from cuarl.cli.app import run as cuarl
from cuarl.env.browser.browser import find_program
from cuarl.env.browsergym.backend import option_tasks, source
from cuarl.env.browsergym.env import CHILD, BrowserGymEnv
from cuarl.env.browsergym.options import Options
from cuarl.env.conformance import CHECKS
from cuarl.env.leases import Ledger
from cuarl.env.workers.pool import Pool
from cuarl.errors import ConfigError
from cuarl.store import Store
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Answer, Button, Click, Drag, Key, Scroll, Swipe, TypeText
from tests.fakes.pools import with_pool
from tests.integration.rollout_place import bare

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("browsergym") is None, reason="browsergym-core is not installed: make browser"),
]

DESK = "tests.fakes.browsergym_tasks:cuarl.desk"
QUICK = "pre_observation_delay=0.1"


def prepared(*kwargs: str, device: Any = "desktop") -> tuple[Options, TaskInstance]:
    config = Options(tasks=(DESK,), kwargs=(QUICK, *kwargs), actions=device)
    (task,) = option_tasks(config)
    return config, task.instantiate(0)


@pytest.fixture
def play(tmp_path):
    """Runs a coroutine function with a pool of workers, of which nothing is left at the end."""
    return partial(with_pool, Ledger(tmp_path / "sessions"), CHILD)


def opened(pool: Pool, config: Options, task: TaskInstance) -> Awaitable[BrowserGymEnv]:
    return BrowserGymEnv.opened(pool, source(config, task, find_program()))


def test_keeps_the_contract(play):
    async def work(pool):
        config, task = prepared()
        for check in CHECKS:
            await check(lambda: opened(pool, config, task), task)

    play(work)


def test_the_goal_is_followed_by_mouse_and_keyboard(play):
    async def work(pool):
        config, task = prepared()
        env = await opened(pool, config, task)
        seen = await env.reset(task, 3)
        assert (seen.screenshot.width, seen.screenshot.height) == (320, 200)
        word = seen.text["goal"].removeprefix("Write ").removesuffix(".")
        assert word in ("lamp", "door", "bird")
        steps: list[Action] = [
            Click(x=50, y=75), TypeText(text=word + "x"), Key(keys=("BackSpace",)),
            Scroll(direction="down", amount=150),
            Scroll(x=200, y=100, direction="up", amount=150), Drag(path=((200, 100), (220, 110))), Click(x=50, y=20),
        ]  # fmt: skip
        results = [await env.step(action) for action in steps]
        assert all("rejected" not in r.info for r in results), [r.info for r in results]
        assert [r.reward for r in results] == [0.0] * 6 + [1.0]
        assert results[1].info["changed"]
        assert results[-1].terminated
        verdict = await env.judge(None, True)
        assert (verdict.success, verdict.checks[0].path, verdict.checks[0].actual) == (True, "return", 1.0)
        await env.close()

    play(work)


def test_what_it_can_not_do_is_told(play):
    async def work(pool):
        config, task = prepared()
        env = await opened(pool, config, task)
        await env.reset(task, 3)
        assert "no call" in (await env.step(Key(keys=("Hypr",)))).info["rejected"]
        assert "no call" in (await env.step(Drag(path=((1, 1), (2, 2), (3, 3))))).info["rejected"]
        assert "outside" in (await env.step(Click(x=320, y=1))).info["rejected"]
        assert not (await env.judge(None, True)).success
        await env.close()

    play(work)


@pytest.mark.parametrize("early", [True, False])
def test_an_answer_reaches_the_chat_before_the_verdict(play, early):
    async def work(pool):
        config, task = prepared("task.how=answer")
        env = await opened(pool, config, task)
        word = (await env.reset(task, 4)).text["goal"].removeprefix("Answer ").removesuffix(".")
        if early:
            assert (await env.step(Answer(text=word))).terminated
        verdict = await env.judge(word, True)
        assert verdict.success
        await env.close()

    play(work)


def test_giving_up_is_said_too(play):
    async def work(pool):
        config, task = prepared()
        env = await opened(pool, config, task)
        await env.reset(task, 4)
        verdict = await env.judge("there is no such field", False)
        assert (verdict.success, verdict.claimed) == (False, False)
        assert (await env.state())["terminated"]
        await env.close()

    play(work)


def test_a_phones_touches_are_the_mouses(play):
    async def work(pool):
        config, task = prepared(device="phone")
        env = await opened(pool, config, task)
        await env.reset(task, 4)
        assert env.capabilities.kind == "phone"
        assert "rejected" not in (await env.step(Swipe(x=10, y=150, x2=10, y2=60))).info
        assert (await env.step(Button(name="home"))).info["rejected"]
        await env.close()

    play(work)


def test_a_task_that_is_not_there_is_said_at_once(play):
    async def work(pool):
        config, task = prepared()
        with pytest.raises(ConfigError, match=r"no-such-task"):
            await opened(pool, config, task.model_copy(update={"preset": {"task": "no-such-task"}}))

    play(work)


def test_rollouts_record_goal_reward_and_verdict(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    options = ["--browsergym-tasks", DESK, "--browsergym-kwargs", QUICK, "--agent", "random", "--episodes", "2"]
    assert cuarl(["rollout", "--env", "browsergym", *options, "--max-turns", "3"]) == 0, capsys.readouterr().err
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        stored = list(store.trajectories())
    assert len(stored) == 2
    assert all(t.goal.startswith("Write ") and t.verdict is not None and not t.verdict.success for t in stored)
    assert list((tmp_path / "sessions").glob("*.json")) == []
