"""Episodes in a browser when things die, hang and ask: they end with a name and in time, siblings go on, nothing is
left."""

from __future__ import annotations

import os
import signal

import anyio
import psutil
import pytest

from cuarl.env.browser.browser import Browser
from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.env.leases import Ledger
from cuarl.env.processes import marked
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Click, StopReason
from tests.integration.faults import Acting, failed_in_env, roll_out, waits, went_well

pytestmark = pytest.mark.integration

BUTTON = "<button style='width:60px;height:60px' onclick='{}'>x</button>"
PRESS = Click(x=20, y=20)


@pytest.fixture
def pages(tmp_path):
    """Writes pages, and gives the tasks on them: a title that says done is the goal."""

    def write(**bodies):
        made = []
        for name, body in bodies.items():
            path = tmp_path / f"{name}.html"
            path.write_text(f"<!doctype html><title>{name}</title><body style='margin:0'>{body}", encoding="utf-8")
            made.append(
                TaskInstance(
                    task_id=name,
                    goal="g",
                    env="browser",
                    preset={"url": path.as_uri()},
                    checks=(Check(path="title", value="done"),),
                )
            )
        return made

    return write


@pytest.fixture
def play(tmp_path):
    """Rolls episodes out in a browser of its own, and sees to it that nothing outlives it."""

    def run(tasks, make_agent, *, answer_s=15.0, opened_before=False, **limits):
        options = BrowserOptions(
            viewport=(200, 200), fence=Fence((tmp_path.resolve(),)), settle="frame", answer_s=answer_s
        )
        ledger, marks = Ledger(tmp_path / "sessions"), set()

        async def work():
            browser = Browser(ledger)
            envs = {task.task_id: Watched(browser, options, marks) for task in tasks}
            try:
                if opened_before:
                    for task in tasks:
                        await envs[task.task_id].open_before(task)
                return await roll_out(tasks, lambda task: envs[task.task_id], make_agent, **limits)
            finally:
                await browser.close()

        found = anyio.run(work)
        assert ledger.leases() == []
        assert [pid for mark in marks for pid in marked(mark)] == []
        return found

    return run


class Watched(WebEnv):
    """A page whose browser's mark is noted down."""

    def __init__(self, browser, options, marks):
        super().__init__(browser, options)
        self.marks = marks
        self.shown_before = None

    async def open_before(self, task):
        """Start the browser and load the page now, so that an episode's time is not spent on it."""
        self.shown_before = await self.reset(task, 1)

    async def reset(self, task, seed):
        shown = self.shown_before or await super().reset(task, seed)
        self.marks.add(self._browser.mark)
        return shown


def kill_browser(env):
    for pid in marked(env._browser.mark):
        os.kill(pid, signal.SIGKILL)


def stop_browser(env):
    for pid in marked(env._browser.mark):
        os.kill(pid, signal.SIGSTOP)


def kill_driver(env):
    for child in psutil.Process().children():
        if child.name().startswith("node"):
            child.kill()


async def crash_page(env):
    session = await env._context.new_cdp_session(env._tabs.page)
    with anyio.move_on_after(0.5):  # a page that crashes does not answer
        await session.send("Page.crash")


@pytest.mark.parametrize("fault", [kill_browser, kill_driver], ids=["browser", "driver"])
def test_c46_what_a_killed_browser_takes_with_it_has_failed_and_the_next_episodes_have_a_new_one(fault, pages, play):
    tasks = pages(struck=BUTTON, beside=BUTTON, later=BUTTON, last=BUTTON)

    def agent(number, env):
        return Acting(env, waits(40) if number < 2 else waits(2), fault if number == 0 else None, at=3)

    struck, beside, later, last = play(tasks, agent, at_once=2)
    assert failed_in_env(struck), struck.failure
    assert failed_in_env(beside), beside.failure
    assert went_well(later), later.failure
    assert went_well(last), last.failure


def test_a_browser_that_hangs_is_replaced_once_it_was_silent_twice(pages, play):
    tasks = pages(struck=BUTTON, second=BUTTON, third=BUTTON, last=BUTTON)

    def agent(number, env):
        return Acting(env, waits(3), stop_browser if number == 0 else None)

    # whether the struck episode's own end is one of the two depends on how far it had come
    struck, second, _, last = play(tasks, agent, answer_s=1.0, at_once=1)
    assert failed_in_env(struck), struck.failure
    assert failed_in_env(second), second.failure
    assert went_well(last), last.failure


def test_a_page_that_crashes_leaves_the_others_alone(pages, play):
    tasks = pages(struck=BUTTON, beside=BUTTON.format("document.title=`done`"))

    def agent(number, env):
        return Acting(env, waits(3), crash_page) if number == 0 else Acting(env, [*waits(3), PRESS])

    struck, beside = play(tasks, agent)
    assert failed_in_env(struck)
    assert "crashed" in struck.failure.message
    assert (went_well(beside), beside.reward) == (True, 1.0)


@pytest.mark.parametrize("script", ["while(1);", "for(;;)alert(1)"], ids=["loop", "dialogs without end"])
def test_a_page_that_hangs_ends_its_episode_and_leaves_the_others_alone(script, pages, play):
    tasks = pages(struck=BUTTON.format(script), beside=BUTTON.format("document.title=`done`"))

    def agent(number, env):
        return Acting(env, [PRESS, *waits(3)]) if number == 0 else Acting(env, [*waits(3), PRESS])

    struck, beside = play(tasks, agent, answer_s=3.0)
    assert failed_in_env(struck), struck
    assert "does not answer" in struck.failure.message
    assert (went_well(beside), beside.reward) == (True, 1.0)


def test_c47_a_page_that_hangs_longer_than_an_episode_may_take_is_left_at_the_deadline(pages, play):
    tasks = pages(struck=BUTTON.format("while(1);"), beside=BUTTON.format("document.title=`done`"))

    def agent(number, env):
        return Acting(env, [PRESS, *waits(3)]) if number == 0 else Acting(env, [PRESS])

    struck, beside = play(tasks, agent, answer_s=600, deadline_s=8.0, opened_before=True)
    assert (struck.stop, struck.failure.boundary, struck.reward) == (StopReason.DEADLINE, "env", None)
    assert (went_well(beside), beside.reward) == (True, 1.0)


def test_a_page_that_never_loads_fails_the_reset(pages, play):
    tasks = pages(struck="<script>while(1);</script>", beside=BUTTON)
    struck, beside = play(tasks, lambda number, env: Acting(env, waits(2)), answer_s=3.0)
    assert failed_in_env(struck)
    assert struck.turns == ()
    assert went_well(beside)


@pytest.mark.parametrize("kind", ["alert", "confirm", "prompt", "print"])
def test_an_open_dialog_is_answered_and_the_episode_goes_on(kind, pages, play):
    (task,) = pages(asks=BUTTON.format(f"{kind}(`sure?`); document.title=`done`"))
    (t,) = play([task], lambda number, env: Acting(env, [PRESS, *waits(1)]))
    assert (went_well(t), t.reward) == (True, 1.0)


def test_a_dialog_at_the_first_sight_and_one_at_leaving_hold_nothing_up(pages, play):
    (task,) = pages(asks="<script>onbeforeunload=()=>`stay`;alert(1);document.title=`done`</script>")
    (t,) = play([task], lambda number, env: Acting(env, [PRESS, *waits(1)]))
    assert (went_well(t), t.reward) == (True, 1.0)
