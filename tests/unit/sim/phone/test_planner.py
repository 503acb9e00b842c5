import anyio
import pytest

from cuarl.env.sim.phone import SimEnv
from cuarl.tasks.check import verdict
from cuarl.tasks.task import Check, TaskInstance


async def solve(task, seed=0, clutter=0.0):
    """Let the oracle solve a task; the verdict and the kinds of its actions."""
    env = SimEnv(clutter=clutter)
    await env.reset(task, seed)
    before, kinds, answer = await env.state(), [], None
    for _ in range(40):
        action = env.oracle_action()
        kinds.append(action.kind)
        if action.kind == "answer":
            answer = action.text
        if action.kind == "finish":
            return verdict(task, before, await env.state(), answer, action.success, env.volatile), kinds
        await env.step(action)
    raise AssertionError(f"not done after {kinds}")


def solved(checks, preset=None, plan=(), seed=0, clutter=0.0):
    checks = tuple(Check(**c) for c in checks)
    task = TaskInstance(task_id="t", goal="g", preset=preset or {}, checks=checks, plan=plan)
    return anyio.run(solve, task, seed, clutter)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "check",
    [
        {"path": "network.nfc", "value": False},
        {"path": "display.timeout_ms", "value": 300000},
        {"path": "system.language", "value": "es"},
        {"path": "sound.media", "value": 100},
        {"path": "display.brightness", "value": 1},
        {"path": "sound.ring", "op": "between", "value": [20, 25]},
        {"path": "network.hotspot_name", "value": "Blue 7"},
        {"path": "network.wifi.saved", "op": "not_contains", "value": "Office"},
        {"path": "network.wifi.connected", "value": "Office"},
        {"path": "notifications.items", "op": "empty"},
        {"path": "apps", "op": "lacks", "value": {"package": "com.instagram.android", "installed": True}},
        {"path": "apps.facebook.cache_kb", "op": "le", "value": 1023},
        {"path": "system.developer_options", "value": True},
        {"path": "security.unknown_sources", "value": True},
        {"path": "display.wallpaper", "op": "equals", "value": "Dunes"},
        {"path": "ui.current_app", "value": "com.android.settings"},
        {"path": "ui.current_activity", "op": "contains", "value": "bluetooth"},
        {"path": "ui.quick_settings_open", "value": True},
        {"path": "ui.drawer_open", "value": True},
        {"path": "ui.is_recents", "value": True},
    ],
    ids=lambda check: check["path"],
)
def test_oracle_meets_a_check_without_side_effects(check, seed):
    if check["path"] == "notifications.items":
        preset = {"notifications.items": [{"app": "mail", "title": "Hello"}]}
    else:
        preset = {}
    result, _ = solved([check], preset, seed=seed, clutter=0.5)
    assert result.success, (result.checks, result.side_effects)


def test_oracle_finishes_at_once_when_all_checks_hold():
    assert solved([{"path": "network.nfc", "value": True}])[1] == ["finish"]


def test_oracle_meets_several_checks_in_turn():
    checks = [{"path": "network.nfc", "value": False}, {"path": "ui.is_home_screen", "value": True}]
    result, kinds = solved(checks)
    assert result.success and kinds[-1] == "finish"


def test_oracle_answers_when_asked():
    result, kinds = solved([{"path": "answer", "op": "icontains", "value": "83"}])
    assert result.success and kinds == ["answer", "finish"]


def test_oracle_follows_the_plan_line_by_line():
    plan = (
        {"open": "settings/hotspot"},
        {"tap": "Hotspot name"},
        {"type": "Car", "into": "Name"},
        {"tap": "Save"},
        {"button": "home"},
    )
    checks = [{"path": "network.hotspot_name", "value": "Car"}, {"path": "ui.is_home_screen", "value": True}]
    assert solved(checks, plan=plan)[0].success


def test_oracle_admits_when_there_is_no_way():
    result, kinds = solved([{"path": "apps.settings.installed", "value": False}])
    assert not result.success and result.claimed is False and kinds[-1] == "finish"


def test_oracle_first_switches_on_what_hides_the_control():
    checks = [{"path": "system.stay_awake", "value": True}, {"path": "system.developer_options", "value": True}]
    assert solved(checks)[0].success


def test_a_plan_swipes_across_the_thing_that_it_names():
    preset = {"notifications.items": [{"app": "mail", "title": "Library"}, {"app": "clock", "title": "Alarm"}]}
    checks = [{"path": "notifications.items", "op": "lacks", "value": {"title": "Library"}}]
    plan = [{"open": "layer/shade"}, {"swipe": "right", "on": "Library"}]
    verdict, kinds = solved(checks, preset, plan)
    assert (verdict.success, kinds) == (True, ["swipe", "swipe", "finish"])
