"""Which run and which episode gets which device."""

import asyncio
import json
import os
import socket

import anyio
import pytest

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")

from cuarl.env.adb import console
from cuarl.env.adb.backend import SICK, Devices, Phone, check_tasks, choose
from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.lease import claim
from cuarl.env.adb.options import Options as AdbOptions
from cuarl.env.adb.transport import Device, client
from cuarl.env.leases import Ledger, sweep
from cuarl.errors import ConfigError, EnvError, PrerequisiteError, TaskError
from cuarl.local.adb import console as fake_console
from cuarl.local.adb import serve
from cuarl.local.adb_phone import FakePhone
from cuarl.run.owner import process_start
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.types import OpenApp
from tests.unit.env.adb.phones import TASK, shell_task

QUICK = AdbOptions(settle_ms=1, reconnect_seconds=1)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "sessions")


def with_phones(count, work):
    async def main():
        phones = [FakePhone(f"p{n}", clutter=0.0) for n in range(count)]
        async with serve(*phones) as port:
            await work(client("127.0.0.1", port), phones)

    asyncio.run(main())


def orphan(lease):
    """As a process that is gone has left it."""
    owner = lease.record.owner.model_copy(update={"started": "1"})
    lease.path.write_text(lease.record.model_copy(update={"owner": owner}).model_dump_json())


def phones_of(adb, *serials):
    return [Phone(adb, serial) for serial in serials]


def chosen(adb, wanted, ledger):
    return [phone.serial for phone in choose([adb], wanted, ledger)]


async def in_thread(function, *args):
    return await anyio.to_thread.run_sync(function, *args)


def of_another(lease):
    """As if a process that lives had it, and not this one."""
    changed = {"pid": os.getppid(), "started": process_start(os.getppid())}
    owner = lease.record.owner.model_copy(update=changed)
    lease.path.write_text(lease.record.model_copy(update={"owner": owner}).model_dump_json())


def test_two_runs_never_share_a_device(ledger):
    async def work(adb, phones):
        first = Devices(phones_of(adb, "p0"), ledger, QUICK)
        await first.start()
        (lease,) = ledger.leases()
        assert lease.id == f"p0@127.0.0.1:{adb.port}"
        await first.close()
        assert ledger.leases() == []
        of_another(ledger.hold(lease.kind, lease.id, lease.detail))
        assert await in_thread(chosen, adb, [], ledger) == ["p1"]
        with pytest.raises(PrerequisiteError, match="p0 is in use by another run"):
            await in_thread(chosen, adb, ["p0"], ledger)
        with pytest.raises(PrerequisiteError, match="another run has taken"):
            await first.start()

    with_phones(2, work)


def test_a_device_that_can_not_be_brought_up_rests_while_another_can(ledger, monkeypatch):
    """It fails faster than others succeed, and would have most episodes of a run."""

    async def episode(devices):
        env = await devices.env(shell_task())
        try:
            await env.reset(shell_task(), 0)
        except EnvError:
            return f"{env.device_name} failed"
        finally:
            await env.close()
        return env.device_name

    async def work(adb, phones):
        devices = Devices(phones_of(adb, "p0", "p1"), ledger, QUICK)
        await devices.start()
        phones[0].halves = 1000  # pictures that are cut short
        assert [await episode(devices) for _ in range(5)] == ["p0 failed"] * SICK + ["p1"] * (5 - SICK)
        phones[1].gone = True  # better one that was sick than none
        assert await episode(devices) == "p0 failed"
        phones[0].halves, phones[1].gone = 0, False
        assert await episode(devices) == "p1"
        monkeypatch.setattr("cuarl.env.adb.backend.REST_S", 0.0)
        assert [await episode(devices) for _ in range(3)] == ["p0"] * 3
        monkeypatch.undo()
        assert await episode(devices) == "p0"
        await devices.close()

    with_phones(2, work)


def with_servers(work):
    """Two servers, each of which has a device p0, and one of which p1."""

    async def main():
        first, second, third = (FakePhone(name, clutter=0.0) for name in ("p0", "p1", "p0"))
        async with serve(first, second) as one, serve(third) as two:
            await work(client("127.0.0.1", one), client("127.0.0.1", two), (first, second, third))

    asyncio.run(main())


def test_a_run_has_the_devices_of_several_servers_and_goes_on_when_one_is_gone(ledger):
    async def work(one, two, phones):
        found = await in_thread(choose, [one, two], [], ledger)
        seen = [("p0", one), ("p1", one), ("p0", two)]
        assert [phone.name for phone in found] == [f"{serial}@127.0.0.1:{adb.port}" for serial, adb in seen]
        with pytest.raises(PrerequisiteError, match="2 servers have a device p0"):
            await in_thread(choose, [one, two], ["p0"], ledger)
        named = await in_thread(choose, [one, two], ["p1", f"p0@127.0.0.1:{two.port}"], ledger)
        assert named == [Phone(one, "p1"), Phone(two, "p0")]
        devices = Devices(found, ledger, QUICK)
        await devices.start()
        envs = [await devices.env(TASK) for _ in range(3)]
        assert sorted(env.device.serial for env in envs) == ["p0", "p0", "p1"] and len(ledger.leases()) == 3
        for env in envs:
            await env.close()
        await devices.close()
        gone = client("127.0.0.1", unused_port())
        left = Devices([Phone(gone, "p9"), Phone(two, "p0")], ledger, QUICK)
        await left.start()
        lent = await left.env(TASK)
        assert lent.device.serial == "p0"
        await lent.close()
        await left.close()
        with pytest.raises(PrerequisiteError, match="no adb server answers"):
            await in_thread(choose, [one, gone], [], ledger)

    with_servers(work)


def unused_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize("text", ["lab", "lab:", ":5037", "lab:70000", "a:1,"])
def test_what_names_no_server_is_refused(text):
    assert Settings(adb_servers="a:1, b:2").adb_places == [("a", 1), ("b", 2)]
    with pytest.raises(ConfigError, match="is no adb server"):
        Settings(adb_servers=text).adb_places  # noqa: B018


def test_what_trains_and_what_measures_in_one_process_take_turns_on_a_device(ledger):
    async def work(adb, phones):
        training, measuring = (Devices(phones_of(adb, "p0"), ledger, QUICK) for _ in range(2))
        await training.start()
        assert await in_thread(chosen, adb, [], ledger) == ["p0"]
        await measuring.start()
        assert len(ledger.leases()) == 1
        busy = await training.env(TASK)
        with anyio.move_on_after(0.5) as scope:
            await measuring.env(TASK)
        assert scope.cancelled_caught
        await training.close()
        await busy.close()
        await (await measuring.env(TASK)).close()
        assert len(ledger.leases()) == 1
        await measuring.close()
        assert ledger.leases() == []
        await training.start()
        await training.close()

    with_phones(1, work)


def test_processes_that_train_together_have_a_device_each(ledger, monkeypatch):
    async def work(adb, phones):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
        for rank, serials in (("0", ["p0", "p2"]), ("1", ["p1"])):
            monkeypatch.setenv("LOCAL_RANK", rank)
            assert await in_thread(chosen, adb, [], ledger) == serials
        with pytest.raises(PrerequisiteError, match="2 processes need a device each, and there are 1"):
            await in_thread(chosen, adb, ["p0"], ledger)

    with_phones(3, work)


def test_a_device_that_is_not_there_is_named(ledger):
    async def work(adb, phones):
        with pytest.raises(PrerequisiteError, match="no device p7 that is ready"):
            await in_thread(chosen, adb, ["p0", "p7"], ledger)
        phones[0].gone = True
        with pytest.raises(PrerequisiteError, match="no device that is ready"):
            await in_thread(chosen, adb, [], ledger)

    with_phones(1, work)


def test_an_episode_waits_for_a_device_and_one_that_is_lost_is_passed_over(ledger):
    async def work(adb, phones):
        devices = Devices(phones_of(adb, "p0", "p1"), ledger, QUICK)
        await devices.start()
        one, two = await devices.env(TASK), await devices.env(TASK)
        assert {one.device.serial, two.device.serial} == {"p0", "p1"}
        with anyio.move_on_after(0.2) as scope:
            await devices.env(TASK)
        assert scope.cancelled_caught

        async def give_back():
            await anyio.sleep(0.1)
            await one.close()
            await one.close()

        phones[0].gone = True
        async with anyio.create_task_group() as group:
            group.start_soon(give_back)
            group.start_soon(two.close)
            third = await devices.env(TASK)
        assert third.device.serial == "p1"
        await third.close()
        phones[1].gone = True
        with pytest.raises(EnvError, match="no device of this run is ready"):
            await devices.env(TASK)
        await devices.close()

    with_phones(2, work)


@pytest.mark.parametrize("by", ["sweep", "the next run"])
def test_what_a_killed_run_began_is_undone_and_the_device_is_free(ledger, by):
    preset = {
        "setup": ["settings put system screen_brightness 40"],
        "teardown": ["settings put system screen_brightness 9"],
    }

    async def work(adb, phones):
        devices = Devices(phones_of(adb, "p0"), ledger, QUICK)
        await devices.start()
        await (await devices.env(shell_task(**preset))).reset(shell_task(**preset), 1)
        (lease,) = ledger.leases()
        assert json.loads(lease.detail["undo"])[0] == preset["teardown"][0]
        assert await claim(ledger, adb, "p0") is None
        orphan(lease)
        assert await in_thread(chosen, adb, ["p0"], ledger) == ["p0"]
        if by == "sweep":
            await sweep(lease, Settings())
            assert ledger.leases() == []
        else:
            (await claim(ledger, adb, "p0")).release()
        assert (await phones[0].sim()).world.state.display.brightness == 9

    with_phones(1, work)


def test_a_device_with_something_to_undo_that_does_not_answer_stays_on_record(ledger):
    async def work(adb, phones):
        lease = ledger.hold(
            "adb",
            f"p0@127.0.0.1:{adb.port}",
            {"host": "127.0.0.1", "port": str(adb.port), "serial": "p0", "undo": '["rm -f /sdcard/a"]'},
        )
        orphan(lease)
        phones[0].gone = True
        with pytest.raises(EnvError, match="does not answer"):
            await sweep(lease, Settings())
        assert await claim(ledger, adb, "p0") is None
        assert len(ledger.leases()) == 1

    with_phones(1, work)


def test_a_claim_is_given_once(ledger):
    first = ledger.claim("adb", "x")
    assert ledger.claim("adb", "x") is None
    first.release()
    again = ledger.claim("adb", "x")
    assert again is not None
    assert ledger.claim("display", "x") is not None


def test_an_emulator_goes_back_to_its_snapshot(tmp_path, monkeypatch):
    (tmp_path / console.TOKEN_FILE).write_text("secret-word\n")
    monkeypatch.setenv("HOME", str(tmp_path))

    async def main():
        phone = FakePhone("unnamed", clutter=0.0)
        async with fake_console(phone, "secret-word") as port:
            phone.serial = f"emulator-{port}"
            async with serve(phone) as server:
                sim = await phone.sim()
                await sim.step(OpenApp(name="Chrome"))
                phone.snapshots["clean"] = sim.world
                await sim.step(OpenApp(name="Maps"))
                sim.world = sim.world.put("display.brightness", 3)

                def env(name):
                    options = AdbOptions(settle_ms=1, reset="snapshot", snapshot=name)
                    return AdbEnv(Device(client("127.0.0.1", server), phone.serial), options)

                await env("clean").reset(shell_task(), 1)
                assert sim.world.get("display.brightness") == phone.snapshots["clean"].get("display.brightness")
                with pytest.raises(EnvError, match="refuses: no snapshot lost"):
                    await env("lost").reset(shell_task(), 1)

    asyncio.run(main())


def test_a_phone_has_no_snapshots():
    with pytest.raises(EnvError, match="no emulator"):
        anyio.run(console.load_snapshot, "127.0.0.1", "R58M1234", "clean")


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        ({"env": "linux"}, AdbOptions(), "is for linux"),
        ({"env": "adb"}, AdbOptions(reset="snapshot"), "names none"),
        ({"env": "adb", "preset": {"reset": "snapshot"}}, AdbOptions(snapshot="clean"), ""),
        ({"env": "adb", "preset": {"snapshot": "own"}}, AdbOptions(reset="snapshot"), ""),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_starts(task, options, said):
    made = Task(id="t", description="d", **task)
    if not said:
        check_tasks([made], options)
        return
    with pytest.raises((ConfigError, TaskError), match=said):
        check_tasks([made], options)
