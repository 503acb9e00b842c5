import json

import anyio
import pytest

from cuarl.env.base import Env
from cuarl.env.sim.devices import make_sim
from cuarl.env.sim.phone import SimEnv
from cuarl.errors import EnvError, TaskError
from cuarl.sim.phone.elements import elements
from cuarl.tasks.task import TaskInstance
from cuarl.types import Button, Click, OpenApp, Swipe, TypeText


def started(seed=0, **preset):
    env = SimEnv(clutter=0.0)
    observation = anyio.run(env.reset, TaskInstance(task_id="t", goal="g", preset=preset), seed)
    return env, observation


def tap(env, label):
    element = next(e for e in elements(env.world) if e.label == label)
    return anyio.run(env.step, Click(x=element.centre[0], y=element.centre[1]))


def test_env_satisfies_the_protocol():
    assert isinstance(SimEnv(), Env)


def test_reset_gives_the_same_pixels_when_seed_and_task_are_the_same():
    assert started(7)[1].screenshot.digest == started(7)[1].screenshot.digest


def test_reset_gives_other_pixels_when_the_seed_differs():
    assert len({started(seed)[1].screenshot.digest for seed in range(6)}) == 6


def test_tap_on_a_switch_changes_its_path_and_the_picture():
    env, _ = started(**{"ui.page": "settings/nfc"})
    result = tap(env, "Use NFC")
    assert result.info["changed"] and env.world.state.network.nfc is False


def test_preset_is_applied_before_the_first_screen():
    env, _ = started(**{"network.wifi.enabled": False, "ui.page": "settings/wifi"})
    element = next(e for e in elements(env.world) if e.label == "Use Wi-Fi")
    assert element.checked is False


@pytest.mark.parametrize(
    "preset", [{"network.wify": True}, {"display.brightness": "high"}, {"ui.nothing": 1}, {"ui.home_page": 9}]
)
def test_reset_raises_a_task_error_when_the_preset_is_impossible(preset):
    with pytest.raises(TaskError, match="preset"):
        started(**preset)


def test_reset_raises_when_called_twice():
    env, _ = started()
    with pytest.raises(EnvError):
        anyio.run(env.reset, TaskInstance(task_id="t", goal="g"), 1)


def test_rejected_action_changes_nothing_and_says_why():
    env, _ = started()
    world = env.world
    result = anyio.run(env.step, Click(x=5000, y=5))
    assert "outside" in result.info["rejected"] and not result.info["changed"] and env.world is world


def test_state_is_plain_json_with_the_place_of_the_user():
    env, _ = started()
    anyio.run(env.step, OpenApp(name="Settings"))
    state = anyio.run(env.state)
    assert json.loads(json.dumps(state))["ui"]["current_app"] == "com.android.settings"
    anyio.run(env.step, Button(name="home"))
    assert anyio.run(env.state)["ui"]["is_home_screen"] is True


def test_airplane_mode_switches_radios_off_and_on_again_and_owns_up_to_it():
    env, _ = started(**{"network.bluetooth.enabled": True, "ui.page": "settings/network"})
    tap(env, "Airplane mode")
    network = env.world.state.network
    assert (network.wifi.enabled, network.bluetooth.enabled, network.wifi.connected) == (False, False, "")
    assert "network.wifi.enabled" in env.volatile
    tap(env, "Airplane mode")
    network = env.world.state.network
    assert (network.wifi.enabled, network.bluetooth.enabled, network.wifi.connected) == (True, True, "HomeNet")


def test_the_home_page_and_the_drawers_search_are_told():
    env, _ = started(**{"ui.home_page": 1})
    ui = anyio.run(env.state)["ui"]
    assert (ui["home_page"], ui["is_home_screen"], ui["drawer_query"]) == (1, True, "")
    for action in (Swipe(x=96, y=230, x2=96, y2=60), Click(x=96, y=30), TypeText(text="clo")):
        anyio.run(env.step, action)
    assert anyio.run(env.state)["ui"]["drawer_query"] == "clo"


@pytest.mark.parametrize("kind", ["phone", "desktop"])
def test_a_simulated_device_says_what_it_is(kind):
    assert make_sim(kind).device_name == f"simulated {kind}"
