"""Plans in boxes, over the real wire paths."""

from __future__ import annotations

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.config.load import resolve
from cuarl.env.gbox.backend import backend
from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import GBoxEnv
from cuarl.env.gbox.options import Options
from cuarl.env.leases import Ledger
from cuarl.errors import AgentError, EnvError, TaskError
from cuarl.settings import Settings
from cuarl.tasks.check import verdict
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.types import Finish
from tests.fakes.gbox_server import KEY, serving

DARK = TaskInstance(
    task_id="dark",
    goal="g",
    env="gbox",
    preset={
        "setup": ["settings put secure ui_night_mode 1", "am start -a android.settings.SETTINGS"],
        "reads": {"night": "settings secure ui_night_mode"},
    },
    checks=(Check(path="night", value=2),),
    plan=({"scroll": "down", "until": "Display"}, {"click": "Display"}, {"click": "Dark theme"}),
)


@pytest.fixture(scope="module")
def server():
    with serving(stock=True) as (fake, url):
        yield fake, url


async def play(env, task):
    """The states before and after the plan was followed, and the actions."""
    await env.reset(task, 1)
    before, done = await env.state(), []
    while not (done and isinstance(done[-1], Finish)):
        done.append(await env.ask_oracle())
        if not isinstance(done[-1], Finish):
            result = await env.step(done[-1])
            assert "rejected" not in result.info, result.info
    return before, await env.state(), done


def in_box(url, ledger, work, **more):
    async def main():
        boxes = GBox(url, KEY)
        env = GBoxEnv(boxes, ledger, "gbox", Options(settle_ms=5, start_seconds=10, **more.pop("options", {})), **more)
        try:
            return await work(env)
        finally:
            await env.close()
            await boxes.close()

    return anyio.run(main)


def test_a_plan_is_followed_in_a_box_of_android(server, tmp_path):
    async def work(env):
        assert env.capabilities.oracle
        before, after, _ = await play(env, DARK)
        assert not verdict(DARK, before, before, volatile=env.volatile).success
        return verdict(DARK, before, after, volatile=env.volatile)

    said = in_box(server[1], Ledger(tmp_path), work, plan=DARK.plan)
    assert said.success and not said.side_effects


def test_a_plan_is_followed_in_a_box_of_linux_by_what_is_detected(server, tmp_path):
    task = TaskInstance(task_id="t", goal="g", env="gbox")

    async def look(env):
        await env.reset(task, 1)
        return [one.text for one in await env._look() if one.text]

    names = in_box(server[1], Ledger(tmp_path), look, options={"box_type": "linux"})
    single = next(name for name in names if names.count(name) == 1)
    plan = ({"click": single}, {"answer": "done"})

    async def work(env):
        return (await play(env, task))[2]

    done = in_box(server[1], Ledger(tmp_path), work, options={"box_type": "linux"}, plan=plan)
    assert [action.kind for action in done] == ["click", "answer", "finish"]


def test_a_step_that_can_not_be_done_is_named(server, tmp_path):
    async def work(env):
        await env.reset(DARK, 1)
        with pytest.raises(AgentError, match=r'step 1 of the plan, click text "Nobody": nothing on the screen matches'):
            await env.ask_oracle()

    in_box(server[1], Ledger(tmp_path), work, plan=({"click": "Nobody"},))


def test_what_is_no_hierarchy_is_an_error_of_the_box(server, tmp_path, monkeypatch):
    async def nonsense(self, box):
        return "<html/>"

    monkeypatch.setattr(GBox, "layout", nonsense)

    async def work(env):
        await env.reset(DARK, 1)
        with pytest.raises(EnvError, match="does not tell what is on its screen"):
            await env.ask_oracle()

    in_box(server[1], Ledger(tmp_path), work, plan=({"click": "Nobody"},))


def test_a_plan_is_checked_for_the_type_of_box_that_a_run_asks_for(tmp_path):
    task = Task(id="t", description="d", env="gbox", plan=({"run": "ls"},))
    settings = Settings(gbox_api_key="k", sessions_dir=tmp_path)

    def made(**flags):
        config = resolve(flags={"env": "gbox", **flags}).config
        return backend(config.env, config, [task], settings)

    with pytest.raises(TaskError, match="a box of type android shows no terminal"):
        made()
    assert made(gbox_box_type="linux").may_solve(task)
    assert not made(gbox_box_type="linux").may_solve(task.model_copy(update={"plan": ()}))


@pytest.mark.parametrize("quarters", range(4))
def test_a_display_that_is_turned_tells_its_things_where_it_shows_them(server, tmp_path, quarters):
    async def work(env):
        await env.reset(DARK, 1)
        box = server[0].boxes[env.device_name]
        upright = await box.screenshot()
        box.turned = quarters
        env._shown = await env._shoot()
        found = next(one for one in await env._look() if one.text == "Settings")
        left, top, right, bottom = map(int, found.box)
        shown = env._shown.image.crop((left, top, right, bottom))
        return upright, shown.rotate(-90 * quarters, expand=True).tobytes()

    upright, shown = in_box(server[1], Ledger(tmp_path), work)
    assert shown == upright.image.crop((10, 16, 190, 48)).tobytes(), "the title of the page"
