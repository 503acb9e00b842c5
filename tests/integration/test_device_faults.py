"""Episodes on displays and devices that die, hang and drop off: a name, in time, siblings go on, nothing is left."""

from __future__ import annotations

import gc
import os
import signal
from importlib.util import find_spec

import anyio
import pytest

from cuarl.env.leases import Ledger
from cuarl.env.linux.env import LinuxEnv
from cuarl.env.linux.programs import APPS, MODULES, missing
from cuarl.env.processes import marked
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button, StopReason, TypeText
from tests.integration.faults import Acting, failed_in_env, roll_out, waits, went_well

pytestmark = pytest.mark.integration

ABSENT = missing(APPS) + [name for name in MODULES if find_spec(name) is None]
needs_desktop = pytest.mark.skipif(bool(ABSENT), reason=f"a desktop needs {', '.join(ABSENT)} (make desktop)")
FOLDER = TaskInstance(
    task_id="make_folder",
    goal="g",
    env="linux",
    preset={"ui.app": "xterm"},
    checks=(Check(path="files", op="has", value={"path": "new", "folder": True}),),
)
MAKE = TypeText(text="mkdir new", submit=True)


# --- displays --------------------------------------------------------------------------------------------------------


def server(env):
    return env._session._children[0].pid


def kill_server(env):
    os.kill(server(env), signal.SIGKILL)


def stop_server(env):
    os.kill(server(env), signal.SIGSTOP)


def kill_manager(env):
    os.kill(env._session._children[2].pid, signal.SIGKILL)


def on_displays(tmp_path, fault, **limits):
    ledger, sessions = Ledger(tmp_path / "sessions"), []

    async def work():
        def env(task):
            made = LinuxEnv(ledger, (320, 240), settle_ms=30)
            sessions.append(made._session)
            return made

        def agent(number, env):
            return Acting(env, [*waits(2), MAKE, *waits(2)], fault if number == 0 else None)

        return await roll_out([FOLDER] * 2, env, agent, **limits)

    struck, beside = anyio.run(work)
    assert (went_well(beside), beside.reward) == (True, 1.0)
    assert ledger.leases() == []
    assert [pid for one in sessions for pid in marked(one.mark)] == []
    assert [one.home.folder for one in sessions if one.home.folder.exists()] == []
    return struck


@needs_desktop
@pytest.mark.parametrize("fault", [kill_server, kill_manager])
def test_a_display_that_is_gone_ends_its_episode_and_leaves_the_others_alone(fault, tmp_path):
    struck = on_displays(tmp_path, fault)
    assert failed_in_env(struck), struck
    assert "has gone (SIGKILL)" in struck.failure.message


@needs_desktop
def test_a_display_that_hangs_is_left_when_the_turns_time_is_up(tmp_path):
    struck = on_displays(tmp_path, stop_server, turn_s=5.0)
    assert failed_in_env(struck), struck
    assert "did not return within" in struck.failure.message
    assert len(struck.turns) == 2


@needs_desktop
def test_c47_a_display_that_hangs_for_most_of_the_episode_is_left_at_the_deadline(tmp_path):
    struck = on_displays(tmp_path, stop_server, deadline_s=12.0, turn_s=60.0)
    assert (struck.stop, struck.failure.boundary, struck.reward) == (StopReason.DEADLINE, "env", None)


# --- devices behind adb ----------------------------------------------------------------------------------------------


def on_phones(tmp_path, fault, *, tasks=2, phones=2, **limits):
    pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")
    from cuarl.env.adb.backend import Devices, choose
    from cuarl.env.adb.options import Options as AdbOptions
    from cuarl.env.adb.transport import client
    from cuarl.local.adb import serve
    from cuarl.local.adb_phone import FakePhone

    nfc = TaskInstance(task_id="t", goal="g", checks=(Check(path="ui.is_home_screen", value=True),))
    ledger, served = Ledger(tmp_path / "sessions"), {f"p{n}": FakePhone(f"p{n}", clutter=0.0) for n in range(phones)}

    async def work():
        async with serve(*served.values()) as port:
            adb = client("127.0.0.1", port)
            chosen = await anyio.to_thread.run_sync(choose, [adb], [], ledger)
            devices = Devices(chosen, ledger, AdbOptions(settle_ms=1, reconnect_seconds=0.5))
            await devices.start()

            def agent(number, env):
                def strike(env):
                    return fault(served[env.device.serial])

                return Acting(env, [*waits(2), Button(name="home"), *waits(2)], strike if number == 0 else None)

            try:
                return await roll_out([nfc] * tasks, lambda task: devices.env(task), agent, at_once=phones, **limits)
            finally:
                for phone in served.values():
                    phone.hang = False
                await devices.close()

    struck, *others = anyio.run(work)
    gc.collect()
    assert [(went_well(one), one.reward) for one in others] == [(True, 1.0)] * len(others)
    assert ledger.leases() == []
    return struck, served


# adbutils leaves the socket of a refused request to the collector
dropped = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@dropped
def test_c46_a_device_that_drops_off_ends_its_episode_and_the_later_ones_have_the_others(tmp_path):
    def drop(phone):
        phone.gone = True

    struck, phones = on_phones(tmp_path, drop, tasks=5)
    assert failed_in_env(struck), struck
    assert "does not answer" in struck.failure.message
    assert [phone.serial for phone in phones.values() if phone.gone] != []


@dropped
def test_c46_a_device_that_is_back_in_time_goes_on_and_the_episode_says_how_long_it_was_away(tmp_path):
    async def drop(phone):
        phone.gone = True

        def back():
            phone.gone = False

        import asyncio

        asyncio.get_running_loop().call_later(0.3, back)

    struck, _ = on_phones(tmp_path, drop)
    assert (went_well(struck), struck.reward) == (True, 1.0)
    assert any("down_s" in step for step in struck.info["steps"].values())


@dropped
def test_a_device_that_hangs_is_left_when_the_turns_time_is_up(tmp_path):
    def hang(phone):
        phone.hang = True

    struck, _ = on_phones(tmp_path, hang, turn_s=3.0)
    assert failed_in_env(struck), struck
    assert "did not return within" in struck.failure.message
