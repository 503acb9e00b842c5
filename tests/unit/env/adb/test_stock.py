"""Tasks of the simulated phone on a device with Android's own shell alone, through the real adb client.

The device (``local.adb_stock``) prints what stock Android prints. What solves a task is the simulated phone's own
oracle, which looks into it; what judges it is the shell.
"""

import asyncio

import pytest

pytest.importorskip("adbutils", reason="the adb client needs the extra android")

from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.options import Options
from cuarl.env.adb.transport import Device, client
from cuarl.env.shell_checks import stock
from cuarl.env.shell_checks.facts import FACTS
from cuarl.errors import EnvError
from cuarl.local.adb import serve
from cuarl.local.adb_stock import StockPhone
from cuarl.tasks.check import verdict
from cuarl.tasks.paths import lookup
from cuarl.tasks.source import load
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Finish

TASKS = {f"{suite}/{t.id}": t for suite in ("recipe_train", "recipe_eval") for t in load([suite], role=None).tasks}
JUDGED = [name for name, task in TASKS.items() if not stock.missing(task.instantiate(0))]
SOME = [name for name in JUDGED if any(part in name for part in (
    "train_02_enable", "train_07", "train_16", "train_18", "train_21", "train_31", "train_34", "train_46", "train_52",
    "train_72", "train_21_create", "eval_01", "eval_04", "eval_07", "eval_12", "eval_05_enable", "eval_06_uninstall",
))]  # fmt: skip
"""Each kind of reading once; all of them are in ``test_every_task_that_a_shell_can_judge``."""


def with_stock(work, serial="one"):
    async def main():
        phone = StockPhone(serial, clutter=0.0)
        async with serve(phone) as port:
            device = Device(client("127.0.0.1", port), serial, reconnect_s=2.0)
            await work(phone, AdbEnv(device, Options(settle_ms=1, state="shell"), by_shell=True))

    asyncio.run(main())


def proven(task):
    """That the oracle passes and doing nothing does not, judged by the shell."""

    async def work(phone, env):
        await phone.set_up(task, 0)  # the apps and records that the task is about
        await env.reset(task, 0)
        before = await env.state()
        assert not verdict(task, before, before, "?", None, env.volatile).success
        answer = None
        for _ in range(40):
            action = (await phone.sim()).oracle_action()
            if isinstance(action, Finish):
                break
            answer = action.text if action.kind == "answer" else answer
            assert "rejected" not in (await env.step(action)).info
        after = await env.state()
        said = verdict(task, before, after, answer, True, env.volatile)
        assert said.success, said
        await env.close()
        assert not any("cuarl-device" in line for line in phone.ran)

    with_stock(work)


@pytest.mark.parametrize("name", SOME)
def test_a_task_is_set_up_and_judged_by_the_shell(name):
    proven(TASKS[name].instantiate(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGED)
def test_every_task_that_a_shell_can_judge(name):
    proven(TASKS[name].instantiate(0))


def test_what_can_be_judged_is_known():
    assert (len(TASKS), len(JUDGED)) == (129, 74)
    used = {check.path for name in JUDGED for check in TASKS[name].instantiate(0).checks} - {"answer"}
    assert used <= FACTS.keys()


@pytest.mark.parametrize("path", [path for path, fact in FACTS.items() if fact.put and path != "notifications.items"])
def test_what_the_shell_sets_is_what_it_reads_and_what_is_brought_back(path):
    async def work(phone, env):
        was = lookup(await (await phone.sim()).state(), path)
        wanted = {"display.font_size": "Large", "battery.saver_schedule": "At 20%"}.get(path)
        wanted = (not was if isinstance(was, bool) else was // 2 + 5) if wanted is None else wanted
        changed = Check(path=path, op="not_equals", value=wanted)
        task = TaskInstance(task_id="t", goal="g", preset={path: wanted}, checks=(changed,))
        await env.reset(task, 0)
        assert lookup(await env.state(), path) == wanted
        assert lookup(await (await phone.sim()).state(), path) == wanted
        await env.close()
        assert lookup(await (await phone.sim()).state(), path) == was

    with_stock(work)


def test_a_task_that_is_done_before_it_begins_is_a_failure_of_the_environment():
    lacks = Check(path="apps", op="lacks", value={"package": "org.example.never", "installed": True})
    task = TaskInstance(task_id="t", goal="g", checks=(lacks,))

    async def work(phone, env):
        with pytest.raises(EnvError, match="holds before task t has begun"):
            await env.reset(task, 0)

    with_stock(work)


def test_a_change_that_nobody_asked_for_is_seen():
    task = TaskInstance(task_id="t", goal="g", checks=(Check(path="sound.dnd", value=True),))

    async def work(phone, env):
        await env.reset(task, 0)
        before = await env.state()
        await phone.change("sound.dnd", True)
        await phone.change("location.enabled", False)
        said = verdict(task, before, await env.state(), None, True, env.volatile)
        assert (said.success, said.side_effects) == (False, ("location.enabled",))

    with_stock(work)
