"""Boxes over the real wire paths, against the local server."""

from __future__ import annotations

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.conformance import CHECKS
from cuarl.env.gbox.actions import refusal, request
from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import GBoxEnv
from cuarl.env.gbox.options import Options as BoxOptions
from cuarl.env.leases import Ledger, sweep
from cuarl.errors import EnvError
from cuarl.local.box import read_action
from cuarl.local.faults import Faults
from cuarl.settings import Settings
from cuarl.tasks.check import verdict
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button, Click, Drag, Finish, Key, LongPress, Scroll, Swipe, TypeText
from tests.fakes.gbox_server import KEY, serving

PHONE = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))
OPTIONS = BoxOptions(settle_ms=10, start_seconds=10)


@pytest.fixture(scope="module")
def server():
    # one server for all that expect no faults: a server takes half a second to start and stop
    with serving() as running:
        yield running


class Alone(GBoxEnv):
    """A box with connections of its own."""

    async def close(self):
        await super().close()
        await self._boxes.close()


def box(url, ledger, kind="phone", key=KEY):
    return Alone(GBox(url, key), ledger, kind, OPTIONS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_box_keeps_the_contract(check, server, tmp_path):
    fake, url = server
    ledger = Ledger(tmp_path)

    async def make():
        return box(url, ledger)

    anyio.run(check, make, PHONE)
    assert fake.counts()["live"] == 0
    assert ledger.leases() == []


@pytest.mark.parametrize(
    "action",
    [
        Click(x=3, y=4), Click(x=3, y=4, count=2), Click(x=3, y=4, button="right"),
        LongPress(x=1, y=2, duration_ms=700),
        Swipe(x=1, y=2, x2=3, y2=40, duration_ms=250), Drag(path=((1, 2), (3, 4), (5, 6)), duration_ms=400),
        Scroll(x=5, y=6, direction="up", amount=90), TypeText(text="ä b", submit=True), Key(keys=("ctrl", "c")),
        Key(keys=("Return",)), Button(name="recents"), Button(name="volume_up"),
    ],
    ids=str,
)  # fmt: skip
def test_action_means_the_same_on_the_other_side(action):
    route, body = request(action, (1.0, 1.0), (100, 200))
    assert read_action(route, body) == action


def test_points_are_sent_in_units_of_the_display():
    assert request(Click(x=10, y=20), (2.0, 3.0), (100, 200)) == ("tap", {"x": 20.0, "y": 60.0})


def test_what_a_box_lacks_is_refused_before_anything_is_sent():
    assert "triple" in refusal(Click(x=1, y=1, count=3), (9, 9), "linux")
    assert "outside" in refusal(Click(x=9, y=1), (9, 9), "linux")
    assert "no button" in refusal(Button(name="back"), (9, 9), "linux")


def test_wrong_key_is_named_and_not_shown(server, tmp_path):
    async def run():
        env = box(server[1], Ledger(tmp_path), key="another-key-9c")
        with pytest.raises(EnvError, match="401") as caught:
            await env.reset(PHONE, 1)
        assert "another-key-9c" not in str(caught.value)
        await env.close()

    anyio.run(run)


def test_refused_requests_are_sent_again_and_nothing_is_done_twice(tmp_path):
    async def run(url):
        env = box(url, Ledger(tmp_path))
        await env.reset(PHONE, 1)
        for _ in range(4):
            await env.step(Button(name="home"))
        await env.close()

    with serving(Faults(refuse=0.3)) as (fake, url):
        anyio.run(run, url)
        assert fake.counts() == {"made": 1, "live": 0, "actions": 4, "doubled": 0}


class Counted(Faults):
    """Refuses everything once it is told to, and counts what it draws."""

    drawn = 0

    def draw(self):
        self.drawn += 1
        return super().draw()


def test_used_up_quota_is_no_reason_to_wait_and_the_error_says_what_fixes_it(tmp_path):
    async def run(faults, url):
        env = box(url, Ledger(tmp_path))
        with pytest.raises(EnvError, match="429") as caught:
            await env.reset(PHONE, 1)
        assert "--gbox-boxes" in str(caught.value.hint)
        assert faults.drawn == 1
        faults.refuse = 0.0
        await env.close()

    with serving(Counted(refuse=1.0, retry_after_s=3600.0)) as (fake, url):
        anyio.run(run, fake.faults, url)
        assert fake.counts()["made"] == 0


def test_box_whose_time_is_over_fails_its_episode_by_name(server, tmp_path):
    fake, url = server

    async def run():
        ledger = Ledger(tmp_path)
        env = box(url, ledger)
        await env.reset(PHONE, 1)
        list(fake.boxes.values())[-1].expires_at = 0.0
        with pytest.raises(EnvError, match="409") as caught:
            await env.step(Button(name="home"))
        assert "--gbox-expires-in" in str(caught.value.hint)
        await env.close()
        assert ledger.leases() == []

    anyio.run(run)
    assert fake.counts()["live"] == 0


def test_what_is_described_is_pointed_at_and_what_is_not_there_is_not(server, tmp_path):
    async def run():
        env = box(server[1], Ledger(tmp_path))
        shown = (await env.reset(PHONE, 1)).screenshot
        at = await env.point(shown, 'icon labelled "Camera"')
        assert await env.point(shown, 'button labelled "No such thing"') is None
        assert at is not None
        opened = await env.step(Click(x=at[0], y=at[1]))
        ui = (await env.state())["ui"]
        await env.close()
        return opened.info["changed"], ui

    changed, ui = anyio.run(run)
    assert changed and "camera" in str(ui)


@pytest.mark.parametrize("fault", ["breaks", "drop"])
def test_action_of_unknown_fate_fails_the_episode_and_is_not_sent_again(fault, tmp_path):
    async def run(fake, url):
        ledger = Ledger(tmp_path)
        env = box(url, ledger)
        await env.reset(PHONE, 1)
        setattr(fake.faults, fault, 1.0)
        with pytest.raises(EnvError, match="GBox"):
            await env.step(Button(name="home"))
        setattr(fake.faults, fault, 0.0)
        await env.close()
        assert ledger.leases() == []

    with serving(Faults(seed=3)) as (fake, url):
        anyio.run(run, fake, url)
        assert fake.counts()["live"] == 0
        assert fake.counts()["actions"] <= 1
        assert fake.counts()["doubled"] == 0


def test_c40_box_whose_id_never_arrived_is_found_by_its_label_and_used(tmp_path):
    class CreatesThenBreaks(Faults):
        broken = False

        def draw(self):
            first, self.broken = not self.broken, True
            return ("drop", True) if first else ("", True)

    async def run(fake, url):
        ledger = Ledger(tmp_path)
        env = box(url, ledger)
        await env.reset(PHONE, 1)
        assert fake.counts()["live"] == 1
        await env.close()
        assert ledger.leases() == []

    with serving(CreatesThenBreaks()) as (fake, url):
        anyio.run(run, fake, url)
        assert (fake.counts()["made"], fake.counts()["live"]) == (1, 0)


def test_box_that_was_never_made_fails_its_episode_with_the_first_reason(tmp_path):
    class BreaksOnce(Faults):
        broken = False

        def draw(self):
            first, self.broken = not self.broken, True
            return ("break", False) if first else ("", True)

    async def run(url):
        env = box(url, Ledger(tmp_path))
        with pytest.raises(EnvError, match="500") as caught:
            await env.reset(PHONE, 1)
        assert "boxes/android" in str(caught.value.where)
        await env.close()

    with serving(BreaksOnce()) as (fake, url):
        anyio.run(run, url)
        assert fake.counts()["made"] == 0


def test_sweep_ends_what_an_environment_left(server, tmp_path):
    fake, url = server
    ledger = Ledger(tmp_path)

    async def run():
        env = box(url, ledger)
        await env.reset(PHONE, 1)
        assert fake.counts()["live"] == 1
        (lease,) = ledger.leases()
        assert KEY not in lease.path.read_text()
        await sweep(lease, Settings(gbox_api_key=KEY))
        await env.close()

    anyio.run(run)
    assert fake.counts()["live"] == 0
    assert ledger.leases() == []


# --- checks by the shell, and what only a box knows -------------------------------------------------------------------


def shell_task(**preset):
    return TaskInstance(task_id="t", goal="g", env="gbox", preset=preset)


def test_a_task_is_set_up_and_read_by_the_boxs_shell(server, tmp_path):
    task = shell_task(
        setup=["settings put system screen_brightness 40"], reads={"brightness": "settings system screen_brightness"}
    )

    async def run():
        env = box(server[1], Ledger(tmp_path), kind="gbox")
        await env.reset(task, 1)
        assert await env.state() == {"brightness": 40}
        await env.close()

    anyio.run(run)


def test_a_lent_box_is_torn_down_and_not_ended(server, tmp_path):
    fake, url = server
    put = ["settings put system screen_brightness 40"]

    async def run():
        boxes = GBox(url, KEY)
        lent = await boxes.create("android", "lent", "60m")
        env = GBoxEnv(boxes, Ledger(tmp_path), "gbox", OPTIONS, lent=lent)
        await env.reset(shell_task(setup=put, teardown=["settings put system screen_brightness 9"]), 1)
        await env.close()
        assert await boxes.command(lent, "settings get system screen_brightness") == (0, "9\n", "")
        assert fake.counts()["live"] == 1
        await boxes.terminate(lent)
        await boxes.close()

    anyio.run(run)


def test_a_setup_that_fails_is_an_environment_error(server, tmp_path):
    async def run():
        env = box(server[1], Ledger(tmp_path), kind="gbox")
        with pytest.raises(EnvError, match="no-such-command ended with status 127"):
            await env.reset(shell_task(setup=["no-such-command"]), 1)
        await env.close()

    anyio.run(run)


def test_answers_and_waits_are_told_to_the_box_and_it_tells_what_changed_by_itself(server, tmp_path):
    task = PHONE.model_copy(
        update={
            "checks": (Check(path="network.airplane_mode", value=True), Check(path="answer", value="blue")),
            "plan": ({"wait": 0.1},),
            "preset": {"network.wifi.enabled": True},
        }
    )

    async def run():
        env = box(server[1], Ledger(tmp_path))
        await env.reset(task, 1)
        before = await env.state()
        for _ in range(20):
            action = await env.ask_oracle()
            if isinstance(action, Finish):
                break
            await env.step(action)
        found = verdict(task, before, await env.state(), "blue", True, env.volatile)
        assert (action, found.success, found.side_effects) == (Finish(success=True), True, ())
        await env.close()

    anyio.run(run)
