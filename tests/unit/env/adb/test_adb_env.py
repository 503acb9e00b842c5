"""The adb environment through the real client library against a server on loopback."""

import asyncio
import gc

import anyio
import pytest

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")

from cuarl.env.adb.commands import commands
from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.fake import FakePhone, serve
from cuarl.env.adb.transport import Device, client, serials
from cuarl.env.conformance import CHECKS
from cuarl.env.shell_checks.reads import check_preset
from cuarl.env.sim.env import SimEnv
from cuarl.errors import EnvError, TaskError
from cuarl.tasks.check import verdict
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button, Click, Finish, TypeText, Wait

TASK = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))


def env_of(port, *, managed=True):
    adb = client("127.0.0.1", port)
    return AdbEnv(Device(adb, serials(adb)[0]), managed=managed, settle_ms=1)


def with_phone(work):
    async def main():
        phone = FakePhone("one")
        async with serve(phone) as port:
            await work(port, phone)

    asyncio.run(main())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_keeps_the_contract(check):
    async def work(port, phone):
        async def make():
            return await anyio.to_thread.run_sync(env_of, port)

        await check(make, TASK)

    with_phone(work)


def test_a_task_of_shell_commands_is_set_up_read_and_torn_down():
    preset = {
        "setup": ["settings put system screen_brightness 40"], "teardown": ["settings put system screen_brightness 9"],
        "reads": {"brightness": "settings system screen_brightness", "gone": "settings secure nothing",
                  "awake": "dumpsys power mWakefulness=([A-Za-z]+)", "app": "package android", "file": "file /nothing"},
    }  # fmt: skip
    task = TaskInstance(task_id="t", goal="g", env="adb", preset=preset)

    async def work(port, phone):
        env = await anyio.to_thread.run_sync(lambda: env_of(port, managed=False))
        await env.reset(task, 1)
        assert await env.state() == {"brightness": 40, "gone": None, "awake": "Awake", "app": True, "file": None}
        await env.close()
        assert phone.kept["system", "screen_brightness"] == "9"

    with_phone(work)


def test_what_a_failed_setup_began_is_torn_down():
    preset = {
        "setup": ["settings put system screen_brightness 40", "no-such-command"],
        "teardown": ["settings put system screen_brightness 9"],
    }

    async def work(port, phone):
        env = await anyio.to_thread.run_sync(lambda: env_of(port, managed=False))
        with pytest.raises(EnvError):
            await env.reset(TaskInstance(task_id="t", goal="g", env="adb", preset=preset), 1)
        await env.close()
        assert phone.kept["system", "screen_brightness"] == "9"

    with_phone(work)


# adbutils leaves the socket of a refused request to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dropped_device_is_an_environment_error():
    async def work(port, phone):
        env = await anyio.to_thread.run_sync(env_of, port)
        await env.reset(TASK, 1)
        phone.gone = True
        with pytest.raises(EnvError, match="does not answer"):
            await env.step(Wait(seconds=0))

    with_phone(work)
    gc.collect()


def test_broken_readings_are_refused():
    with pytest.raises(TaskError, match="reads x"):
        check_preset("t", {"reads": {"x": "settings nowhere key"}})


def test_text_keeps_its_percent_signs_and_its_letters():
    assert commands(TypeText(text="a b%s", submit=True), (9, 9)) == [
        "input text a%sb%", "input text s", "input keyevent 66",
    ]  # fmt: skip
    assert any("ADB_INPUT_B64" in line for line in commands(TypeText(text="ñ"), (9, 9)))


async def judged(env, task, *, oracle):
    await env.reset(task, 3)
    before = await env.state()
    for _ in range(40 if oracle else 0):
        action = env.oracle_action() if isinstance(env, SimEnv) else await env.ask_oracle()
        if isinstance(action, Finish):
            break
        await env.step(action)
    found = verdict(task, before, await env.state(), None, True, env.volatile)
    await env.close()
    return found.success, found.score


def suite_tasks():
    return [TASK.model_copy(update={"task_id": "nfc"})]


def test_verdicts_are_those_of_the_phone_in_process():
    async def work(port, phone):
        for task in suite_tasks():
            for oracle in (True, False):
                outside = await anyio.to_thread.run_sync(env_of, port)
                inside = SimEnv("small", clutter=0.0)
                assert await judged(outside, task, oracle=oracle) == await judged(inside, task, oracle=oracle)

    with_phone(work)


def test_a_tap_and_a_button_arrive():
    async def work(port, phone):
        env = await anyio.to_thread.run_sync(env_of, port)
        await env.reset(TASK, 1)
        assert "rejected" not in (await env.step(Click(x=20, y=60))).info
        assert "rejected" not in (await env.step(Button(name="home"))).info

    with_phone(work)
