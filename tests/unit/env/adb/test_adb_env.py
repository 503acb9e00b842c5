"""The adb environment through the real client library against a server on loopback."""

import gc

import anyio
import pytest

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")

from cuarl.env.adb.options import Options as AdbOptions
from cuarl.env.conformance import CHECKS
from cuarl.errors import EnvError, TaskError
from cuarl.sim.kit.widgets import Field
from cuarl.tasks.task import Check
from cuarl.types import Answer, Button, Click, Finish, OpenApp, TypeText, Wait
from tests.unit.env.adb.phones import TASK, shell_task, with_phone

# adbutils leaves the socket of a refused request to the collector
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
BRIGHTNESS = {
    "setup": ["settings put system screen_brightness 40"],
    "teardown": ["settings put system screen_brightness 9"],
}


@pytest.fixture(autouse=True, scope="module")
def collected():
    yield
    gc.collect()


def brightness(phone):
    return phone._sim.world.state.display.brightness


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "task", [TASK, shell_task(reads={"brightness": "settings system screen_brightness"})], ids=["phone", "adb"]
)
def test_keeps_the_contract(check, task):
    async def work(env_of, phone):
        async def make():
            return env_of(managed=task.env == "phone")

        await check(make, task)

    with_phone(work)


def test_a_task_of_shell_commands_is_set_up_read_and_torn_down():
    reads = {
        "brightness": "settings system screen_brightness", "gone": "settings secure nothing", "app": "package android",
        "awake": "dumpsys power mWakefulness=([A-Za-z]+)", "file": "file /nothing", "none": "files /nothing",
        "saved": "file /sdcard/a.txt", "folder": "files /sdcard",
        "people": "content content://com.android.contacts/contacts display_name",
        "camera": "permission com.android.camera android.permission.CAMERA", "shown": "foreground",
        "told": "notifications",
        "up": "property sys.boot_completed", "unset": "property nothing",
    }  # fmt: skip

    async def work(env_of, phone):
        phone.files = {"/sdcard/a.txt": "one\n", "/sdcard/b/c.txt": "two"}
        env = env_of()
        await env.reset(shell_task(**BRIGHTNESS, reads=reads), 1)
        state = await env.state()
        world = (await phone.sim()).world
        assert {name: state[name] for name in reads if name not in ("people", "told")} == {
            "brightness": 40, "gone": None, "app": True, "awake": "Awake", "file": None, "none": None, "saved": "one\n",
            "folder": ["a.txt", "b"], "camera": world.app("camera").camera, "up": 1, "unset": None,
            "shown": {"app": "com.android.launcher3", "activity": ".Launcher"},
        }  # fmt: skip
        assert state["people"] == [one.name for one in world.state.contacts]
        assert state["told"] == len(world.state.notifications.items)
        await env.close()
        assert brightness(phone) == 9

    with_phone(work)


def test_what_a_failed_setup_began_is_torn_down():
    preset = BRIGHTNESS | {"setup": [*BRIGHTNESS["setup"], "no-such-command"]}

    async def work(env_of, phone):
        env = env_of()
        with pytest.raises(EnvError):
            await env.reset(shell_task(**preset), 1)
        await env.close()
        assert brightness(phone) == 9

    with_phone(work)


def test_what_ends_an_episode_is_on_record_before_it_begins_and_off_it_afterwards():
    noted = []

    async def work(env_of, phone):
        phone.kept["system", "user_rotation"] = "3"
        env = env_of(note_undo=lambda commands: noted.append((list(commands), list(phone.ran))))
        await env.reset(shell_task(**BRIGHTNESS), 1)
        await env.close()
        assert phone.kept["system", "user_rotation"] == "3"

    with_phone(work)
    (commands, ran), (nothing, _) = noted
    assert (commands[0], nothing) == (BRIGHTNESS["teardown"][0], [])
    assert all("settings get" in line for line in ran)


def test_a_tap_a_button_and_text_arrive_and_what_has_no_effect_is_no_rejection():
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK, 1)
        for action in (Click(x=20, y=60), Button(name="home"), TypeText(text="nowhere", submit=True)):
            assert "rejected" not in (await env.step(action)).info
        assert "outside" in (await env.step(Click(x=5000, y=1))).info["rejected"]

    with_phone(work)


@pytest.mark.parametrize(
    "text",
    [
        "很",
        "☝️👩‍💻",
        "שלום!",
        "a b  c",
        "$HOME `x` \"q\" 'r' & ; | %s",
        "two\nlines",
        "",
        "100%sure && rm -rf *",
        "Łódź",
    ],
)
def test_c44_text_arrives_as_it_is(text):
    async def work(env_of, phone):
        env = env_of(managed=True)
        await env.reset(TASK.model_copy(update={"preset": {"ui.page": "notes/new"}}), 1)
        sim = await phone.sim()
        field = next(i for i in sim.scene(sim.world).items if isinstance(i.widget, Field))
        await env.step(
            Click(x=(field.visible[0] + field.visible[2]) // 2, y=(field.visible[1] + field.visible[3]) // 2)
        )
        await env.step(TypeText(text=text))
        assert sim.world.get(field.widget.path) == text

    with_phone(work)


def test_waiting_is_done_by_the_device_and_an_answer_is_told_to_it():
    async def work(env_of, phone):
        env = env_of(managed=True)
        task = TASK.model_copy(update={"checks": (Check(path="answer", value="blue"),), "plan": ({"wait": 7},)})
        await env.reset(task, 1)
        with anyio.fail_after(5):  # the simulated phone's seconds are not ours
            assert await env.ask_oracle() == Wait(seconds=7)
            await env.step(Wait(seconds=7))
        assert await env.ask_oracle() == Answer(text="blue")
        await env.step(Answer(text="blue"))
        assert await env.ask_oracle() == Finish(success=True)

    with_phone(work)


# --- apps, resets, rotation ------------------------------------------------------------------------------------------


def test_apps_open_by_the_name_people_see_the_tasks_own_or_the_package():
    async def work(env_of, phone):
        env = env_of()
        named = {"Shop": "com.android.vending"}
        await env.reset(shell_task(open="Shop", apps=named, reads={"shown": "foreground"}), 1)
        assert (await env.state())["shown"]["app"] == "com.android.vending"
        for name, package in (
            ("settings", "com.android.settings"),
            ("Weather", "com.android.weather"),
            ("com.android.chrome", "com.android.chrome"),
        ):
            assert "rejected" not in (await env.step(OpenApp(name=name))).info
            assert (await env.state())["shown"]["app"] == package
        assert "no installed app" in (await env.step(OpenApp(name="Doom"))).info["rejected"]
        assert "no screen" in (await env.step(OpenApp(name="com.gbox.keyboard"))).info["rejected"]

    with_phone(work)


@pytest.mark.parametrize(
    ("reset", "shown", "ran"),
    [
        ("none", "com.android.chrome", ()),
        ("home", "com.android.launcher3", ("input keyevent 3",)),
        ("force-stop", "com.android.launcher3", ("am force-stop com.android.chrome", "input keyevent 3")),
        ("clear", "com.android.launcher3", ("pm clear com.android.chrome", "input keyevent 3")),
    ],
)
def test_a_device_comes_back_as_the_task_or_the_run_says(reset, shown, ran):
    async def work(env_of, phone):
        await (await phone.sim()).step(OpenApp(name="Chrome"))
        env = env_of(options=AdbOptions(settle_ms=1, reset=reset))
        await env.reset(shell_task(apps={"Chrome": "com.android.chrome"}, reads={"shown": "foreground"}), 1)
        assert (await env.state())["shown"]["app"] == shown
        done = [line.partition(";")[0] for line in phone.ran]
        assert [line for line in done if line in ("input keyevent 3",) or "com.android.chrome" in line] == list(ran)

    with_phone(work)


@pytest.mark.parametrize(
    ("preset", "said"),
    [
        ({"reset": "factory"}, 'reset by "factory"'),
        ({"reset": "clear"}, "names no apps"),
        ({"reset": "snapshot"}, "names none"),
        ({"apps": ["a"]}, "not a mapping"),
        ({"reads": {"x": "settings nowhere key"}}, "reads x"),
        ({"wifi": True}, "presets wifi"),
        ({"open": "Doom"}, "no installed app"),
    ],
)
def test_a_preset_that_no_device_can_follow_is_refused(preset, said):
    async def work(env_of, phone):
        with pytest.raises(TaskError, match=said):
            await env_of().reset(shell_task(**preset), 1)

    with_phone(work)


def test_a_check_of_something_that_is_not_read_is_refused():
    async def work(env_of, phone):
        with pytest.raises(TaskError, match="checks brightness, which it does not read"):
            await env_of().reset(shell_task(Check(path="brightness", value=1)), 1)

    with_phone(work)


def test_sideways_the_points_of_the_policy_are_those_of_the_picture():
    async def work(env_of, phone):
        env = env_of(options=AdbOptions(settle_ms=1, rotation="landscape"))
        shown = (await env.reset(shell_task(reads={"shown": "foreground"}), 1)).screenshot
        assert shown.width > shown.height
        sim = await phone.sim()
        icon = next(i for i in sim.scene(sim.world).items if getattr(i.widget, "label", "") == "Chrome")
        x, y = (icon.visible[0] + icon.visible[2]) // 2, (icon.visible[1] + icon.visible[3]) // 2
        await env.step(Click(x=y, y=shown.height - 1 - x))
        assert (await env.state())["shown"]["app"] == "com.android.chrome"
        await env.close()
        assert phone.kept == {}

    with_phone(work)
