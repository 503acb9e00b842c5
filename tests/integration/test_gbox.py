"""Many boxes at once on a server that misbehaves, and boxes of a killed run."""

from __future__ import annotations

import json
import os
import signal
import time

import anyio
import pytest

from tests import warm

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import GBoxEnv
from cuarl.env.gbox.options import Options as BoxOptions
from cuarl.env.leases import Ledger
from cuarl.errors import EnvError
from cuarl.local.faults import Faults
from cuarl.local.threads import served
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button
from tests.fakes.chat_server import ChatServer
from tests.fakes.gbox_server import KEY, serving
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
PHONE = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))


def test_c40_many_episodes_with_faults_leave_nothing_and_double_nothing(tmp_path):
    async def episode(boxes, ledger, failures, starting):
        env = GBoxEnv(boxes, ledger, "phone", BoxOptions(settle_ms=10, start_seconds=60), starting=starting)
        try:
            await env.reset(PHONE, 1)
            for _ in range(2):
                await env.step(Button(name="home"))
        except EnvError as error:
            failures.append(str(error))
        finally:
            await env.close()

    async def run(url, failures):
        boxes, ledger, starting = GBox(url, KEY), Ledger(tmp_path), anyio.CapacityLimiter(8)
        async with anyio.create_task_group() as group:
            for _ in range(64):
                group.start_soon(episode, boxes, ledger, failures, starting)
        await boxes.close()
        assert ledger.leases() == []

    failures: list[str] = []
    with serving(Faults(refuse=0.1, breaks=0.05, drop=0.02, start_s=0.3, seed=1)) as (fake, url):
        anyio.run(run, url, failures)
        counts = fake.counts()
    assert (counts["live"], counts["doubled"]) == (0, 0)
    # a box can't be pending longer than it is being started
    assert fake.most_pending <= 8
    assert 0 < len(failures) < 64
    assert all("GBox answered 500" in f or "GBox did not answer" in f for f in failures)


def described(**arguments):
    return f"<tool_call>\n{json.dumps({'name': 'mobile_use', 'arguments': arguments})}\n</tool_call>"


def test_a_policy_describes_gboxs_model_points_and_the_boxs_shell_tells_the_verdict(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "s"))
    place = Place(tmp_path, capsys)
    task = {
        "id": "open_camera", "env": "gbox", "description": "Open the camera and say done", "category": "app",
        "difficulty": "easy", "max_steps": 4,
        "preset": {
            "setup": ["settings put system screen_brightness 40"],
            "reads": {"brightness": "settings system screen_brightness"},
        },
        "checks": [{"path": "brightness", "value": 40}, {"path": "answer", "value": "done"}],
    }  # fmt: skip
    (tmp_path / "boxes.json").write_text(json.dumps([task]))
    answers = (
        described(action="click", target={"element": "icon", "label": "Camera"}),
        described(action="click", target={"element": "picture of a unicorn"}),
        described(action="terminate", status="success", text="done"),
    )
    with serving() as (fake, url), served(ChatServer(*answers).app()) as policy:
        monkeypatch.setenv("GBOX_API_KEY", KEY)
        monkeypatch.setenv("GBOX_CLIENT_BASE_URL", url)  # as the SDK calls it
        done = place.cuarl(
            "rollout",
            "--env",
            "gbox",
            "--coordinate-mode",
            "gbox",
            "--model-base-url",
            f"{policy}/v1",
            "--tasks",
            "boxes.json",
            "--episodes",
            "1",
            "--gbox-settle-ms",
            "5",
            "--name",
            "r",
            "--json",
        )
        assert done.code == 0, done.err
        assert fake.counts() == {"made": 1, "live": 0, "actions": 1, "doubled": 0}
    (episode,) = place.episodes()
    click, lost, last = episode.turns
    assert click.action.kind == "click" and (click.action.x, click.action.y) != (0, 0)
    assert "Camera" in click.sampled.text and click.rejected is None
    assert lost.parse_error.code == "not_found" and last.action.kind == "finish"
    assert episode.verdict.success and episode.agent == "described-mobile"


def test_sweep_ends_the_boxes_of_a_killed_run(tmp_path):
    def cuarl(url, *words):
        environment = os.environ | {
            "GBOX_API_KEY": KEY,
            "GBOX_BASE_URL": url,
            "CUARL_SESSIONS_DIR": str(tmp_path / "s"),
        }
        return warm.Command(*words, env=environment, cwd=tmp_path, stdout=warm.PIPE)

    with serving() as (fake, url):
        with cuarl(
            url,
            "rollout",
            "--env",
            "gbox",
            "--agent",
            "oracle",
            "--tasks",
            "system",
            "--episodes",
            "2",
            "--gbox-settle-ms",
            "30000",
        ) as run:
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
