"""Plans on phones, through the real adb client."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")

from cuarl.env.adb.plan import read_screen
from cuarl.env.plans.elements import find
from cuarl.env.plans.targets import Target
from cuarl.errors import AgentError, EnvError, TaskError
from cuarl.local import adb_phone
from cuarl.local.adb_phone import FakePhone
from cuarl.sim.phone.elements import elements
from cuarl.tasks.check import verdict
from cuarl.tasks.task import Check
from cuarl.types import Answer, Click, Finish, OpenApp, TypeText, Wait
from tests.unit.env.adb.phones import shell_task, with_phone

PEOPLE = "content content://com.android.contacts/contacts display_name"
NEW_CONTACT: list[dict[str, Any]] = [
    {"open": "Contacts"},
    {"click": {"description": "New contact"}},
    {"wait_for": {"label": "Name"}},
    {"type": "Zoe Quist", "into": "Name"},
    {"type": "555-0199", "into": {"id": "phone"}},
    {"click": "Save contact"},
    {"answer": {"id": "title", "nth": 1}},
]


async def play(env, *, most: int = 40) -> list:
    """What the plan did, its end included."""
    done = []
    while not (done and isinstance(done[-1], Finish)) and len(done) < most:
        done.append(await env.ask_oracle())
        if not isinstance(done[-1], Finish):
            assert "rejected" not in (await env.step(done[-1])).info
    return done


def test_a_plan_is_followed_by_touches_and_solves_its_task() -> None:
    task = shell_task(Check(path="people", op="contains", value="Zoe Quist"), reads={"people": PEOPLE})

    async def work(env_of, phone):
        env = env_of(plan=NEW_CONTACT)
        assert env.capabilities.oracle
        await env.reset(task, 1)
        before = await env.state()
        assert not verdict(task, before, before).success
        done = await play(env)
        assert verdict(task, before, await env.state()).success
        kinds = [OpenApp, Click, Click, TypeText, Click, TypeText, Click, Answer, Finish]
        assert [type(action) for action in done] == kinds
        await env.close()
        assert not env_of().capabilities.oracle

    with_phone(work)


def test_a_step_that_can_not_be_done_is_named() -> None:
    async def work(env_of, phone):
        env = env_of(plan=[{"open": "Settings"}, {"click": "Flux capacitor"}])
        await env.reset(shell_task(), 1)
        await env.step(await env.ask_oracle())
        with pytest.raises(AgentError, match=r'step 2 of the plan, click text "Flux capacitor": nothing on the screen'):
            await env.ask_oracle()
        await env.close()

    with_phone(work)


def test_what_is_further_down_is_scrolled_to_and_what_never_comes_is_waited_for_in_vain() -> None:
    plan = [{"open": "Settings"}, {"scroll": "down", "until": "About phone"}, {"wait_for": "Nobody", "seconds": 1}]

    async def work(env_of, phone):
        env = env_of(plan=plan)
        await env.reset(shell_task(), 1)
        with pytest.raises(AgentError, match=r'step 3 of the plan, wait_for text "Nobody": after 1 s nothing on the'):
            await play(env)
        seen = find(await read_screen(env.device, (192, 384)), Target("text", "About phone"))
        assert seen.box
        await env.close()

    with_phone(work)


def test_it_waits_for_a_screen_that_looks_as_in_the_screenshot() -> None:
    async def work(env_of, phone):
        env = env_of(plan=[{"click": "Notes"}])
        await env.reset(shell_task(), 0)
        phone.black = 1  # what is there now is not what was shown
        assert isinstance(await env.ask_oracle(), Wait)
        assert isinstance(await env.ask_oracle(), Click)
        await env.close()

    with_phone(work)


def test_all_that_can_be_touched_has_a_name_that_leads_back_to_it() -> None:
    async def work(env_of, phone):
        env = env_of()
        await env.reset(shell_task(), 1)
        by_words = 0
        for app in ("Settings", "Contacts", "Clock", "Files", "Messages"):
            await env.step(OpenApp(name=app))
            world = (await phone.sim()).world
            for one in elements(world):
                if one.role in ("key", "slider") or one.label in ("Back", "Home", "Recents"):
                    continue
                named = await env.name_at(*one.centre)
                by_words += "at" not in named.target
                if "at" not in named.target:
                    ((by, value),) = named.target.items()
                    found = find(await read_screen(env.device, (192, 384)), Target(by, str(value)))
                    left, top, right, bottom = found.box
                    x0, y0, x1, y1 = one.box
                    assert x0 <= (left + right) / 2 <= x1 and y0 <= (top + bottom) / 2 <= y1, (app, one, named)
        assert by_words >= 25
        await env.close()

    with_phone(work)


def test_a_phone_that_is_turned_tells_its_things_where_they_are_shown() -> None:
    async def work(env_of, phone):
        phone.kept["system", "user_rotation"] = "1"
        env = env_of(plan=[{"click": "Notes"}], prepare=False)
        await env.reset(shell_task(), 0)
        await play(env)
        world = (await phone.sim()).world
        assert world.ui.app == "notes"
        await env.close()

    with_phone(work)


@pytest.mark.parametrize(("moving", "fails"), [(2, False), (3, True)])
def test_a_screen_that_never_rests_is_asked_again_and_then_given_up(moving, fails, monkeypatch) -> None:
    monkeypatch.setattr("cuarl.env.adb.plan.PAUSE_S", 0.01)
    left = [moving]
    real = FakePhone._uiautomator

    async def restless(self, words):
        left[0] -= 1
        return (0, b"ERROR: could not get idle state.\n") if left[0] >= 0 else await real(self, words)

    monkeypatch.setitem(adb_phone._TOOLS, "uiautomator", restless)

    async def work(env_of, phone):
        env = env_of(plan=[{"click": "Notes"}])
        await env.reset(shell_task(), 0)
        if fails:
            with pytest.raises(EnvError, match=r"does not tell what is on its screen.*could not get idle state"):
                await env.ask_oracle()
        else:
            assert isinstance(await env.ask_oracle(), Click)
        await env.close()

    with_phone(work)


def test_a_plan_that_some_parameters_spoil_fails_its_episode_and_gives_the_phone_back() -> None:
    async def work(env_of, phone):
        given_back = list[bool]()
        env = env_of(plan=[{"press": "bakc"}], release=given_back.append)
        with pytest.raises(TaskError, match="step 1 of the plan: press is 'bakc'"):
            await env.reset(shell_task(), 0)
        await env.close()
        assert given_back == [False]  # it was not brought up

    with_phone(work)
