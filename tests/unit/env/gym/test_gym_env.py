"""An execution as an environment: the contract, the ledger, and devices of both kinds."""

from __future__ import annotations

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.adb.transport import Device
from cuarl.env.conformance import CHECKS
from cuarl.env.gbox.client import GBox
from cuarl.env.gym.client import Gym, Started
from cuarl.env.gym.devices import Devices
from cuarl.env.gym.env import GymEnv
from cuarl.env.leases import Ledger, sweep
from cuarl.errors import EnvError, RewardError
from cuarl.settings import Settings
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.types import Button
from tests.fakes.gym_server import BOX_KEY, GYM_KEY, field

NFC = Task(id="nfc", description="Turn NFC off", checks=(Check(path="network.nfc", value=False),))
BARE = Task(id="bare", description="Nobody can judge this")
TASK = TaskInstance(task_id="nfc", goal="g", env="gym")


@pytest.fixture(scope="module")
def server():
    with field(tasks=[NFC, BARE]) as running:
        yield running


class Alone(GymEnv):
    """An execution with connections of its own."""

    def __init__(self, running, folder, key=GYM_KEY):
        self.boxes = GBox(running.variables["GBOX_BASE_URL"], BOX_KEY)
        gym, ledger = Gym(running.variables["GYM_BASE_URL"], "any", key), Ledger(folder)
        devices = Devices(ledger, lambda: self.boxes, lambda: None, space="mobile", settle_ms=5)
        super().__init__(gym, ledger, devices, anyio.CapacityLimiter(1))

    async def close(self):
        await super().close()
        await self.boxes.close()
        await self._gym.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_keeps_the_contract(check, server, tmp_path):
    async def make():
        return Alone(server, tmp_path)

    anyio.run(check, make, TASK)
    assert server.gym.counts()["live"] == 0 and Ledger(tmp_path).leases() == []


def test_the_gym_lists_tasks_in_every_wording(server):
    async def tasks():
        gym = Gym(server.variables["GYM_BASE_URL"], "any", GYM_KEY)
        try:
            return await gym.tasks()
        finally:
            await gym.close()

    assert [(t.task.id, t.task.description) for t in anyio.run(tasks)] == [
        ("nfc", NFC.description),
        ("bare", BARE.description),
    ]


def test_the_gym_judges_by_its_own_checks(server, tmp_path):
    async def play(task):
        env = Alone(server, tmp_path)
        try:
            await env.reset(task, 3)
            await env.step(Button(name="home"))
            return await env.judge("an answer", True)
        finally:
            await env.close()

    verdict = anyio.run(play, TASK)
    assert (verdict.success, verdict.score, verdict.claimed) == (False, 0.0, True)
    assert [c.path for c in verdict.checks] == ["network.nfc"]
    with pytest.raises(RewardError, match="no checks"):
        anyio.run(play, TASK.model_copy(update={"task_id": "bare"}))


def test_a_killed_execution_is_swept_with_the_key_of_the_settings(server, tmp_path):
    async def leave_and_sweep():
        env = Alone(server, tmp_path)
        await env.begin(TASK, 1)
        (lease,) = Ledger(tmp_path).leases()
        assert server.gym.counts()["live"] == 1 and GYM_KEY not in lease.path.read_text()
        await sweep(lease, Settings(gym_api_key=GYM_KEY))
        await env.close()

    anyio.run(leave_and_sweep)
    assert server.gym.counts()["live"] == 0 and Ledger(tmp_path).leases() == []


def test_an_abandoned_start_is_ended_once_its_id_is_known(server, tmp_path):
    async def abandon():
        env = Alone(server, tmp_path)
        with anyio.move_on_after(0.001):
            await env.reset(TASK, 1)
        await env.close()

    before = server.gym.counts()["made"]
    anyio.run(abandon)
    assert server.gym.counts()["live"] == 0 and server.gym.counts()["made"] - before in (0, 1)
    assert Ledger(tmp_path).leases() == []


def test_a_refused_start_leaves_nothing(server, tmp_path):
    async def refused():
        env = Alone(server, tmp_path, key="wrong")
        try:
            await env.reset(TASK, 1)
        finally:
            await env.close()

    with pytest.raises(EnvError, match="answered 401"):
        anyio.run(refused)
    assert Ledger(tmp_path).leases() == []


def test_a_device_of_adb_is_used_as_it_is_shown(tmp_path):
    adbutils = pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")
    from cuarl.local.adb import FakePhone, serve

    async def play():
        phone = FakePhone("one")
        async with serve(phone) as port:
            adb = adbutils.AdbClient("127.0.0.1", port)
            devices = Devices(Ledger(tmp_path), lambda: None, lambda: adb, space="mobile", settle_ms=1)
            await Device(adb, "one").shell("input keyevent 187")  # the gym has the recent apps open
            there = await Device(adb, "one").screencap()
            env = devices.env(Started("e", serial="one"))
            try:
                shown = (await env.reset(TASK, 1)).screenshot
            finally:
                await env.close()
            return shown.png(), type(shown).decode(there).png()

    seen, there = anyio.run(play)
    assert seen == there


def test_a_gym_that_hides_its_device_is_for_the_mini_agent(tmp_path):
    devices = Devices(Ledger(tmp_path), lambda: None, lambda: None, space="pc", settle_ms=1)
    with pytest.raises(EnvError, match="does not tell the device") as caught:
        devices.env(Started("e"))
    assert "mini-agent" in (caught.value.hint or "")
