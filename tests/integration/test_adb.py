"""Phones through adb as users have them: the suite's verdicts, the example's tasks, whole commands, a run that is
killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import anyio
import pytest

from tests import warm

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")

from benchmarks.adb import AGENTS, compare, phone_tasks
from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.options import Options as AdbOptions
from cuarl.env.adb.transport import Device, client
from cuarl.env.leases import Ledger
from cuarl.local.adb import serve
from cuarl.local.adb_phone import FakePhone
from cuarl.rollout.spec import plan
from cuarl.tasks.files import load_file
from cuarl.types import Screenshot
from cuarl.workflow.task_proofs import prove
from tests.fakes.adb_server import served
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
EXAMPLE = Path(__file__).parents[2] / "examples/android.yaml"


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_tasks_of_the_phone_end_with_the_same_verdict_through_adb(agent):
    tasks = phone_tasks()
    some = [task for n, task in enumerate(tasks) if n % 30 == 0 or "airplane" in task.id]
    pairs, _, _ = anyio.run(compare, plan(some, group_size=1, run_seed=3, prefix="a"), agent)
    assert [pair.inside.task_id for pair in pairs if not pair.same_verdict] == []
    if agent == "oracle":
        assert all(pair.outside.reward == 1 for pair in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_every_task_of_the_phone_ends_with_the_same_verdict_through_adb(agent):
    pairs, _, _ = anyio.run(compare, plan(phone_tasks(), group_size=1, run_seed=0, prefix="a"), agent)
    assert [pair.inside.task_id for pair in pairs if not pair.same_verdict] == []


@pytest.mark.parametrize("task", [one.task for one in load_file(EXAMPLE)], ids=lambda task: task.id)
def test_tasks_declared_in_a_file_are_solved_by_their_plans_and_not_by_doing_nothing(task):
    async def main():
        async with serve(FakePhone("one", clutter=0.0)) as port:
            env = AdbEnv(
                Device(client("127.0.0.1", port), "one"), AdbOptions(settle_ms=1), plan=task.instantiate(1).plan
            )
            return await prove(task, 1, env)

    assert asyncio.run(main()).problem == ""


def test_androids_own_adb_sees_the_local_servers_phones():
    from adbutils import adb_path

    with served(FakePhone("one", clutter=0.0)) as port:

        def adb(*words):
            environment = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}
            done = subprocess.run(
                [adb_path(), "-P", str(port), *words], env=environment, capture_output=True, timeout=30
            )
            assert done.returncode == 0, done
            return done.stdout

        assert b"one\tdevice" in adb("devices")
        assert adb("-s", "one", "shell", "settings get global airplane_mode_on").strip() in (b"0", b"1")
        shown = Screenshot.decode(adb("-s", "one", "exec-out", "screencap -p"))
        assert (shown.width, shown.height) == (192, 384)


# --- whole commands --------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("ANDROID_ADB_SERVER_HOST", "127.0.0.1")
    return Place(tmp_path, capsys)


def test_rollouts_use_all_devices_and_give_them_back(place, monkeypatch):
    asked = ["--agent", "oracle", "--tasks", "settings_eval", "--limit", "4", "--adb-settle-ms", "1", "--json"]
    with served(FakePhone("one", clutter=0.0), FakePhone("two", clutter=0.0)) as port:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        done = place.cuarl("rollout", "--env", "adb", *asked)
    assert done.code == 0, done.err
    last = next(line for line in done.lines if line["event"] == "done")
    assert last["summary"]["success_rate"] == 1.0, last
    assert Ledger(place.folder / "s").leases() == []


def test_after_kill_9_a_sweep_undoes_what_was_begun_and_the_device_is_free(place, monkeypatch):
    task = {
        "id": "t", "description": "d", "env": "adb",
        "preset": {
            "setup": ["settings put system screen_brightness 40"], "reads": {"b": "settings system screen_brightness"},
            "teardown": ["settings put system screen_brightness 9"],
        },
        "checks": [{"path": "b", "value": 255}],
    }  # fmt: skip
    (place.folder / "tasks.json").write_text(json.dumps([task]))
    words = ("rollout", "--env", "adb", "--agent", "random", "--tasks", "tasks.json")
    phone = FakePhone("one", clutter=0.0)
    with served(phone) as port:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        with warm.Command(*words, "--adb-settle-ms", "30000", stdout=warm.PIPE, stderr=warm.STDOUT) as run:
            while not any("brightness 40" in line for line in phone.ran) and run.poll() is None:
                time.sleep(0.05)
            assert run.poll() is None, run.stdout.read()
            second = place.cuarl(*words)
            assert (second.code, "in use by other runs" in second.err) == (4, True), second.err
            run.send_signal(signal.SIGKILL)
        swept = place.cuarl("sessions", "sweep")
        assert swept.code == 0, swept.err
        assert Ledger(place.folder / "s").leases() == []
        assert any("brightness 9" in line for line in phone.ran)
        after = place.cuarl(*words, "--adb-settle-ms", "1", "--max-turns", "1")
        assert after.code == 0, after.err
