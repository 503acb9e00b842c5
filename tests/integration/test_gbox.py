"""Many boxes at once on a server that misbehaves, and boxes of a killed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import BoxOptions, GBoxEnv
from cuarl.env.gbox.fake import Faults
from cuarl.env.leases import Ledger
from cuarl.errors import EnvError
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button
from tests.fakes.gbox_server import KEY, serving

pytestmark = pytest.mark.integration
PHONE = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))


def test_many_episodes_with_faults_leave_nothing_and_double_nothing(tmp_path):
    async def episode(boxes, ledger, failures):
        env = GBoxEnv(boxes, ledger, "phone", BoxOptions(settle_ms=10, start_s=60))
        try:
            await env.reset(PHONE, 1)
            for _ in range(2):
                await env.step(Button(name="home"))
        except EnvError as error:
            failures.append(str(error))
        finally:
            await env.close()

    async def run(url, failures):
        boxes, ledger = GBox(url, KEY), Ledger(tmp_path)
        async with anyio.create_task_group() as group:
            for _ in range(64):
                group.start_soon(episode, boxes, ledger, failures)
        await boxes.close()
        assert ledger.leases() == []

    failures: list[str] = []
    with serving(Faults(refuse=0.1, breaks=0.05, drop=0.02, start_s=0.3, seed=1)) as (fake, url):
        anyio.run(run, url, failures)
        counts = fake.counts()
    assert (counts["live"], counts["doubled"]) == (0, 0)
    assert 0 < len(failures) < 64
    assert all("GBox answered 500" in f or "GBox did not answer" in f for f in failures)


def test_sweep_ends_the_boxes_of_a_killed_run(tmp_path):
    def cuarl(url, *words):
        environment = os.environ | {
            "GBOX_API_KEY": KEY,
            "GBOX_BASE_URL": url,
            "CUARL_SESSIONS_DIR": str(tmp_path / "s"),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "cuarl", *words], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )  # fmt: skip

    with serving() as (fake, url):
        with cuarl(
            url, "rollout", "--env", "gbox", "--agent", "oracle", "--tasks", "system", "--episodes", "2",
            "--gbox-settle-ms", "30000",
        ) as run:  # fmt: skip
            while fake.counts()["actions"] == 0 and run.poll() is None:
                time.sleep(0.05)
            assert run.poll() is None, run.stdout.read()
            run.send_signal(signal.SIGKILL)
        assert fake.counts()["live"] > 0
        with cuarl(url, "sessions", "sweep") as swept:
            said = swept.communicate()[0]
        assert swept.returncode == 0, said
        assert fake.counts()["live"] == 0
    told = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert told == []
