"""Links that drop, devices that are gone, black and started anew: named, and nothing is done twice."""

import gc

import anyio
import pytest

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")

from cuarl.errors import EnvError
from cuarl.local.adb import serve
from cuarl.local.adb_phone import FakePhone
from cuarl.types import Button, Wait
from tests.unit.env.adb.phones import TASK, env_of, with_phone

# adbutils leaves the socket of a refused request to the collector
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True, scope="module")
def collected():
    yield
    gc.collect()


def taps(phone, line="input keyevent 3;"):
    return sum(ran.startswith(line) for ran in phone.ran)


def test_a_device_that_is_away_for_a_moment_is_waited_for_and_the_action_arrives_once():
    async def work(env_of, phone):
        env = env_of(managed=True, reconnect_s=10)
        await env.reset(TASK, 1)

        async def come_back():
            await anyio.sleep(0.5)
            phone.gone = False

        phone.gone = True
        async with anyio.create_task_group() as group:
            group.start_soon(come_back)
            info = (await env.step(Button(name="home"))).info
        assert info["down_s"] > 0
        assert "unknown_outcome" not in info
        assert taps(phone) == 1
        assert "down_s" not in (await env.step(Button(name="home"))).info

    with_phone(work)


def test_an_action_whose_link_breaks_is_not_repeated_and_the_picture_is_fresh():
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        phone.drop_next = 1
        result = await env.step(Button(name="recents"))
        assert result.info["unknown_outcome"] is True
        assert taps(phone, "input keyevent 187;") == 1
        assert result.observation.screenshot.digest == (await phone.picture()).digest

    with_phone(work)


def test_a_reading_whose_link_breaks_is_asked_again():
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        phone.drop_next = 2
        assert (await env.state())["network"]

    with_phone(work)


WARNING = b"[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first one.\n"


@pytest.mark.parametrize(
    "printed", [(WARNING, b""), (b"", WARNING), (WARNING, WARNING)], ids=["before", "behind", "both"]
)
def test_b43_warnings_that_a_device_prints_around_its_picture_are_cut(printed):
    async def work(env_of, phone):
        env = env_of(managed=True, reconnect_s=0.5)
        phone.printed = printed
        await env.reset(TASK, 1)
        result = await env.step(Button(name="home"))
        assert result.observation.screenshot.digest == (await phone.picture()).digest
        assert "down_s" not in result.info

    with_phone(work)


def test_half_a_picture_is_asked_for_again():
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        phone.halves = 2
        result = await env.step(Button(name="home"))
        assert (phone.halves, result.observation.screenshot.digest) == (0, (await phone.picture()).digest)

    with_phone(work)


def test_a_device_that_stays_away_is_an_environment_error_within_its_time():
    async def work(env_of, phone):
        env = env_of(managed=True, reconnect_s=0.5)
        await env.reset(TASK, 1)
        phone.gone = True
        with anyio.fail_after(10), pytest.raises(EnvError, match="does not answer"):
            await env.step(Wait(seconds=0))

    with_phone(work)


def test_a_server_that_is_gone_is_an_environment_error_and_none_is_started_instead():
    async def main():
        async with serve(FakePhone("one")) as port:
            env = env_of(port, "one", managed=True, reconnect_s=0.3)
            await env.reset(TASK, 1)
        with anyio.fail_after(10), pytest.raises(EnvError, match="does not answer"):
            await env.step(Wait(seconds=0))
        with pytest.raises(OSError, match="connect"):
            await anyio.connect_tcp("127.0.0.1", port)

    anyio.run(main)


def test_a_device_that_was_started_anew_has_lost_the_episode():
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        phone.drop_next = 2
        phone.restart()
        with pytest.raises(EnvError, match="started anew"):
            await env.step(Button(name="home"))

    with_phone(work)


def test_black_frames_are_waited_out():
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        phone.black = 4
        result = await env.step(Button(name="home"))
        assert result.observation.screenshot.digest == (await phone.picture()).digest

    with_phone(work)


@pytest.mark.parametrize(("trouble", "said"), [("asleep", "the device is asleep"), ("black", "the screen is black")])
def test_a_screen_that_stays_black_says_why(trouble, said):
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        setattr(phone, trouble, 10_000)
        with pytest.raises(EnvError, match=said):
            await env.step(Button(name="home"))

    with_phone(work)


def test_a_device_that_hangs_lets_go_when_the_time_is_up():
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        phone.hang = True
        with anyio.move_on_after(0.3) as scope:
            await env.step(Button(name="home"))
        assert scope.cancelled_caught
        phone.hang = False

    with_phone(work)
