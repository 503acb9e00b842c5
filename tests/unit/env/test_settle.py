import anyio
import pytest
from PIL import Image

from cuarl.env.settle import Patience, Settled, is_black, settle
from cuarl.env.sim.faults import Faults, SimClock
from cuarl.env.sim.phone import SimEnv
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Screenshot, Swipe, Wait

PATIENCE = Patience(quiet_ms=300, cap_ms=3000)
DRAWER = Swipe(x=96, y=250, x2=96, y2=100)


def stepped(faults, action=DRAWER):
    """The result of one action on a phone with faults, and the screen that a faultless phone shows."""

    async def both():
        results = []
        for trouble in (faults, None):
            env = SimEnv(clutter=0.0, faults=trouble, patience=PATIENCE)
            await env.reset(TaskInstance(task_id="t", goal="g"), 0)
            results.append(await env.step(action))
        return results[0], results[1].observation.screenshot.digest

    return anyio.run(both)


def test_c42_picture_shows_the_new_page_when_the_screen_reacts_late():
    result, wanted = stepped(Faults(render_delay_ms=600))
    assert result.observation.screenshot.digest == wanted
    assert 600 <= result.info["settle_ms"] <= 1300
    assert result.info["settled"] and result.info["changed"]


def test_c42_settle_returns_at_the_cap_when_the_screen_never_rests():
    result, _ = stepped(Faults(spinner=True))
    assert result.info["settled"] is False
    assert 3000 <= result.info["settle_ms"] <= 3100


def test_c42_black_screen_is_an_environment_error():
    with pytest.raises(EnvError, match="black"):
        stepped(Faults(black_frames=50))


def test_c42_a_few_black_frames_are_waited_out():
    result, wanted = stepped(Faults(black_frames=3))
    assert result.observation.screenshot.digest == wanted and result.info["settled"]


def test_c42_action_without_effect_is_reported_as_no_change():
    result, _ = stepped(Faults(render_delay_ms=600), Wait())
    assert result.info["settled"] and not result.info["changed"]


def test_device_dies_at_the_given_step():
    with pytest.raises(EnvError, match="step 0"):
        stepped(Faults(crash_at=0))


def test_hanging_step_can_be_cancelled():
    async def run():
        env = SimEnv(faults=Faults(hang=True))
        await env.reset(TaskInstance(task_id="t", goal="g"), 0)
        with anyio.move_on_after(0.01) as scope:
            await env.step(DRAWER)
        return scope.cancelled_caught

    assert anyio.run(run)


def test_health_is_asked_before_a_black_screen_is_an_error():
    asked = []

    async def shoot():
        return Screenshot(Image.new("RGB", (4, 4)))

    async def check():
        asked.append(True)
        raise EnvError("the device is asleep")

    async def run() -> Settled:
        return await settle(Screenshot(Image.new("RGB", (4, 4), "white")), shoot, clock=SimClock(), check_health=check)

    with pytest.raises(EnvError, match="asleep"):
        anyio.run(run)
    assert asked == [True]


@pytest.mark.parametrize(("colour", "black"), [((0, 0, 0), True), ((2, 1, 0), True), ((0, 0, 9), False)])
def test_black_means_every_pixel_is_nearly_black(colour, black):
    assert is_black(Screenshot(Image.new("RGB", (4, 4), colour))) is black
