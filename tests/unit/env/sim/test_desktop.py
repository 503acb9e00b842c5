import json
import random

import anyio
import pytest
from PIL import ImageChops

from cuarl.env.base import OracleEnv
from cuarl.env.conformance import CHECKS
from cuarl.env.sim.desktop import DesktopEnv
from cuarl.env.sim.devices import make_sim
from cuarl.errors import ConfigError, TaskError
from cuarl.sim.desktop.device import Rejected, step
from cuarl.sim.desktop.view import view
from cuarl.sim.kit.render import draw, render
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Click, Drag, Key, LongPress, OpenApp, Scroll, TypeText
from tests.unit.sim.desktop.mouse import desktop

TASK = TaskInstance(task_id="t", goal="g", env="desktop", checks=(Check(path="sound.muted", value=True),))


async def make():
    return DesktopEnv()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_simulated_desktop_keeps_the_contract(check):
    anyio.run(check, make, TASK)


@pytest.mark.parametrize("action", [LongPress(x=5, y=5), OpenApp(name="Files")])
def test_what_only_phones_do_is_rejected(action):
    env = DesktopEnv()
    anyio.run(env.reset, TASK, 0)
    assert "a desktop has no" in anyio.run(env.step, action).info["rejected"]
    assert isinstance(env, OracleEnv) and action.kind not in env.capabilities.actions


def test_seeds_look_different():
    seen = set()
    for seed in range(8):
        env = DesktopEnv(clutter=0.0)
        seen.add(anyio.run(env.reset, TASK, seed).screenshot.digest)
    assert len(seen) == 8


def test_state_is_plain_json_with_the_windows():
    env = DesktopEnv()
    task = TASK.model_copy(update={"preset": {"ui.apps": ["files", "terminal"]}})
    anyio.run(env.reset, task, 0)
    ui = json.loads(json.dumps(anyio.run(env.state)))["ui"]
    assert (ui["focused"], ui["apps"], ui["count"]) == ("terminal", ["files", "terminal"], 2)
    assert [(w["app"], w["focused"], w["title"]) for w in ui["windows"]] == [
        ("files", False, "Home"),
        ("terminal", True, "sam@desk: ~"),
    ]


@pytest.mark.parametrize(
    "preset",
    [{"sound.volum": 1}, {"sound.volume": "loud"}, {"ui.app": "phone"}, {"ui.nothing": 1}, {"power.blank_minutes": 7}],
)
def test_an_impossible_preset_is_the_tasks_error(preset):
    with pytest.raises(TaskError, match="preset"):
        anyio.run(DesktopEnv().reset, TASK.model_copy(update={"preset": preset}), 0)


def random_action(rng, width, height):
    x, y, kind = rng.randrange(width), rng.randrange(height), rng.random()
    if kind < 0.7:
        return Click(
            x=x, y=y, count=rng.choice((1, 1, 2, 3)), button=rng.choice(("left", "left", "left", "right", "middle"))
        )
    if kind < 0.8:
        return Scroll(x=x, y=y, direction=rng.choice(("up", "down")), amount=120)
    if kind < 0.9:
        return Drag(path=((x, y), (rng.randrange(width), rng.randrange(height))))
    if kind < 0.95:
        return TypeText(text=rng.choice(("ls\n", "a b", "1+1")))
    return Key(keys=(rng.choice(("Return", "Escape", "Delete", "Tab", "Up")),))


@pytest.mark.parametrize("seed", range(3))
def test_any_action_is_carried_out_or_rejected_and_redrawing_equals_drawing_anew(seed):
    rng, last = random.Random(seed), None
    world = desktop("settings/sound", "files/Documents", "editor/todo.txt", seed=seed)
    for i in range(120):
        try:
            world = step(world, random_action(rng, 480, 320))
        except Rejected:
            continue
        last = draw(view(world), last)
        if i % 8 == 0:
            assert ImageChops.difference(last.image, render(view(world))).getbbox() is None


def test_a_device_is_made_for_a_kind_with_a_screen_of_the_profiles_size():
    sizes = {}
    for kind in ("phone", "desktop"):
        for profile in ("small", "phone"):
            screen = anyio.run(make_sim(kind, profile).reset, TaskInstance(task_id="t", goal="g"), 0).screenshot
            sizes[kind, profile] = screen.width, screen.height
    assert sizes == {
        ("phone", "small"): (192, 384), ("phone", "phone"): (360, 640), ("desktop", "small"): (480, 320),
        ("desktop", "phone"): (1024, 768),
    }  # fmt: skip
    with pytest.raises(ConfigError, match="phone has no profile 'desktop'"):
        make_sim("phone", "desktop")
