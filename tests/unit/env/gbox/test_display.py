"""Displays that turn, pictures that come by half, answers that are lost, keys that a box lacks."""

from __future__ import annotations

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import GBoxEnv
from cuarl.env.gbox.options import Options as BoxOptions
from cuarl.env.leases import Ledger
from cuarl.errors import EnvError
from cuarl.local.box import ROTATIONS, SimulatedBox
from cuarl.local.faults import Faults
from cuarl.sim.phone import elements as phone
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button, Click, Key, Scroll, Swipe
from tests.fakes.gbox_server import KEY, serving

PHONE = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))
OPTIONS = BoxOptions(settle_ms=10, start_seconds=10)


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


def with_box(server, tmp_path, work):
    """Run ``work(env, box)``: an environment after its reset, and the server's side of it."""

    async def main():
        boxes = GBox(server[1], KEY)
        env = GBoxEnv(boxes, Ledger(tmp_path), "phone", OPTIONS)
        try:
            await env.reset(PHONE, 1)
            await work(env, list(server[0].boxes.values())[-1])
        finally:
            await env.close()
            await boxes.close()

    anyio.run(main)


async def icon(box, label):
    """The middle of an icon on the upright screen."""
    (found,) = (one for one in phone.elements((await box.device()).world) if one.label == label)
    return found.centre


async def opened(env):
    return str((await env.state())["ui"])


@pytest.mark.parametrize("turned", [1, 2, 3], ids=ROTATIONS[1:])
def test_tap_lands_where_the_policy_sees_it_on_a_turned_display(turned, server, tmp_path):
    async def work(env, box):
        box.turned = turned
        shown = (await env.step(Button(name="home"))).observation.screenshot
        x, y = await icon(box, "Camera")
        width, height = ((shown.width, shown.height), (shown.height, shown.width))[turned % 2]
        at = ((x, y), (y, width - 1 - x), (width - 1 - x, height - 1 - y), (height - 1 - y, x))[turned]
        result = await env.step(Click(x=at[0], y=at[1]))
        assert "rejected" not in result.info
        assert "camera" in await opened(env)

    with_box(server, tmp_path, work)


@pytest.mark.parametrize(
    "action",
    [Click(x=60, y=60), Swipe(x=60, y=60, x2=60, y2=20), Scroll(direction="down")],
    ids=lambda action: action.kind,
)
def test_nothing_is_done_at_a_place_that_the_display_turned_away_from_and_the_new_screen_is_shown(
    action, server, tmp_path
):
    async def work(env, box):
        acted, before = len(box.acted), await env.state()
        box.turned = 1
        result = await env.step(action)
        assert "turned" in result.info["rejected"]
        assert result.observation.screenshot.digest == (await box.screenshot()).digest
        assert (len(box.acted), await env.state()) == (acted, before)
        assert "rejected" not in (await env.step(action)).info, "the new screenshot is acted on"

    with_box(server, tmp_path, work)


def test_display_that_never_fits_its_picture_is_an_error_and_no_tap(server, tmp_path, monkeypatch):
    async def work(env, box):
        acted, upright = len(box.acted), await box.screenshot()

        async def stuck(self):
            return upright

        # the display's size is read from what is shown, so that the picture alone must lag behind
        monkeypatch.setattr("cuarl.env.gbox.env.TURNING_S", (0.0,))
        box.turned = 1
        monkeypatch.setattr(env, "_shoot", lambda: stuck(env))
        with pytest.raises(EnvError, match="taps would land elsewhere") as caught:
            await env.step(Click(x=60, y=60))
        assert "accelerometer_rotation" in str(caught.value.hint)
        assert len(box.acted) == acted

    with_box(server, tmp_path, work)


def test_half_a_picture_is_asked_for_again(server, tmp_path):
    async def work(env, box):
        box.halves = 2
        result = await env.step(Button(name="home"))
        assert (box.halves, result.observation.screenshot.digest) == (0, (await box.screenshot()).digest)

    with_box(server, tmp_path, work)


def test_half_a_picture_for_good_is_an_error_that_names_the_box(server, tmp_path, monkeypatch):
    monkeypatch.setattr("cuarl.env.picture.AGAIN_S", (0.0, 0.0))

    async def work(env, box):
        box.halves = 10**6
        with pytest.raises(EnvError, match=rf"the picture of box {box.id} can't be read"):
            await env.step(Button(name="home"))

    with_box(server, tmp_path, work)


class Lost(Faults):
    """The next answer is lost once it is said: ``drop`` with its connection, ``gateway`` with a status 502."""

    lost = False

    def draw(self):
        now, self.lost = self.lost, False
        return ("drop", True) if now else ("", True)


def test_action_whose_answer_is_lost_is_not_repeated_and_the_step_says_so(tmp_path):
    with serving(Lost()) as server:

        async def work(env, box):
            before = len(box.acted)
            server[0].faults.lost = True
            result = await env.step(Button(name="recents"))
            assert result.info["unknown_outcome"] is True
            assert result.observation.screenshot.digest == (await box.screenshot()).digest
            assert len(box.acted) == before + 1
            assert "unknown_outcome" not in (await env.step(Button(name="home"))).info

        with_box(server, tmp_path, work)
        assert server[0].counts()["doubled"] == 0


@pytest.mark.parametrize("key", ["hyper", "F25", "ctrl+nothing", "é", "+"])
def test_key_that_a_box_lacks_is_refused_by_name_and_never_sent(key, server, tmp_path, monkeypatch):
    async def work(env, box):
        asked = []
        act = SimulatedBox.act
        monkeypatch.setattr(SimulatedBox, "act", lambda self, *a: asked.append(a) or act(self, *a))
        result = await env.step(Key(keys=(key,)))
        assert "a box has no key" in result.info["rejected"]
        assert key.rpartition("+")[2] in result.info["rejected"]
        assert asked == []

    with_box(server, tmp_path, work)
