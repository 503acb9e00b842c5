"""Long texts into slow devices: the time-outs of every backend grow with the text (case B25)."""

from __future__ import annotations

import anyio
import pytest
import stamina

from cuarl.env.durations import CHARACTER_S, expected_s
from cuarl.errors import EnvError
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Click, Drag, LongPress, Scroll, Swipe, TypeText, Wait

TASK = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))
FORM = TaskInstance(
    task_id="t", goal="g", env="pods", checks=(Check(path="progress.num_correct_submissions", value=1),)
)
TEXT = TypeText(text="x" * 40)
SLOW_S = 1.0
"""What the devices here need for the text; as long as they may for a tap at most, and far less than for 40
characters."""
TAP_S = 0.5


def test_b25_what_takes_its_time_by_itself_says_how_much():
    assert expected_s(TypeText(text="x" * 1350)) == pytest.approx(1350 * CHARACTER_S)
    assert expected_s(TypeText(text="")) == expected_s(Click(x=1, y=1)) == expected_s(Scroll(direction="up")) == 0
    assert expected_s(Wait(seconds=7)) == 7
    assert expected_s(LongPress(x=1, y=1, duration_ms=1500)) == 1.5
    assert expected_s(Swipe(x=1, y=1, x2=2, y2=2, duration_ms=2500)) == 2.5
    assert expected_s(Drag(path=((1, 1), (2, 2)), duration_ms=3500)) == 3.5


async def outcome(env, task):
    """What the step of typing says."""
    try:
        await env.reset(task, 1)
        return (await env.step(TEXT)).info
    except EnvError as error:
        return str(error)
    finally:
        await env.close()


@pytest.fixture(params=[True, False], ids=["grows", "fixed"])
def grows(request, monkeypatch):
    """Whether time-outs grow; where they do not, the same text is too slow, so that the devices here are slow
    enough."""
    if not request.param:
        monkeypatch.setattr("cuarl.env.durations.CHARACTER_S", 0.0)
    return request.param


def typed(info, grows):
    return (isinstance(info, dict) and "unknown_outcome" not in info) is grows


def test_b25_adb_types_a_long_text_to_its_end(grows, monkeypatch):
    pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")
    from tests.unit.env.adb.phones import with_phone

    async def work(env_of, phone):
        act = phone._act

        async def slowly(action):
            if isinstance(action, dict) and action.get("kind") == "type":
                await anyio.sleep(SLOW_S)
            return await act(action)

        phone._act = slowly
        env = env_of(managed=True, reconnect_s=30)
        await env.reset(TASK, 1)
        monkeypatch.setattr("cuarl.env.adb.transport.TIMEOUT_S", TAP_S)
        monkeypatch.setattr("cuarl.env.adb.transport.CONNECT_S", 0.2)
        assert typed((await env.step(TEXT)).info, grows)
        await env.close()

    with_phone(work)


def test_b25_gbox_types_a_long_text_to_its_end(grows, monkeypatch, tmp_path):
    pytest.importorskip("uvicorn", reason="the local server needs the extra web")
    from cuarl.env.gbox.client import GBox
    from cuarl.env.gbox.env import GBoxEnv
    from cuarl.env.gbox.options import Options as BoxOptions
    from cuarl.env.leases import Ledger
    from cuarl.local.box import SimulatedBox
    from tests.fakes.gbox_server import KEY, serving

    async def slowly(self, route, body, key):
        if route == "type":
            await anyio.sleep(SLOW_S)

    monkeypatch.setattr(SimulatedBox, "act", slowly)
    monkeypatch.setattr("cuarl.env.gbox.client.TIMEOUT_S", TAP_S)

    async def run(url):
        boxes = GBox(url, KEY)
        boxes.service._timeout_s = 30.0  # for all else, however busy the machine is
        try:
            return await outcome(GBoxEnv(boxes, Ledger(tmp_path), "phone", BoxOptions(settle_ms=10)), TASK)
        finally:
            await boxes.close()

    with serving() as (_, url):
        assert typed(anyio.run(run, url), grows)


@pytest.mark.parametrize("kind", ["desktop", "pods"])
def test_b25_pods_type_a_long_text_to_its_end(kind, grows, monkeypatch, tmp_path):
    pytest.importorskip("uvicorn", reason="the local server needs the extra web")
    from cuarl.env.pods.hosted import HostedSession
    from cuarl.env.pods.session import Session
    from tests.fakes.kubernetes import cluster
    from tests.unit.env.pods.test_pod_env import Ledger, pod, with_task

    act, slow = HostedSession.act, Session.act

    async def slowly(self, action, *rest):
        if isinstance(action, TypeText):
            await anyio.sleep(SLOW_S)
            return self._shown
        return await act(self, action, *rest)

    async def hurried(self, query, *, takes_s=0.0):
        monkeypatch.setattr("cuarl.env.pods.session.TIMEOUT_S", TAP_S)
        try:
            return await slow(self, query, takes_s=takes_s)
        finally:
            monkeypatch.setattr("cuarl.env.pods.session.TIMEOUT_S", 30.0)

    monkeypatch.setattr(HostedSession, "act", slowly)
    monkeypatch.setattr(Session, "act", hurried)

    async def run(url):
        own = kind == "desktop"
        template = None if own else with_task("desk_dark_style")
        return await outcome(pod(url, Ledger(tmp_path), kind, template=template), TASK if own else FORM)

    with stamina.set_testing(True, attempts=1), cluster(forgetful=kind == "pods") as server:
        assert typed(anyio.run(run, server.url), grows)
