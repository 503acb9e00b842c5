import anyio
import pytest

from cuarl.env.sim.desktop import DesktopEnv
from cuarl.errors import TaskError
from cuarl.sim.desktop.elements import elements
from cuarl.sim.desktop.look import DesktopLook
from cuarl.sim.desktop.oracle import holds, writers
from cuarl.sim.desktop.pointing import hit_test
from cuarl.sim.desktop.report import state_mapping
from cuarl.sim.desktop.start import prepare
from cuarl.sim.desktop.state import DesktopState
from cuarl.sim.desktop.world import PROFILES
from cuarl.sim.device.tree import get
from cuarl.tasks.check import evaluate, verdict
from cuarl.tasks.source import load
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Answer
from tests.unit.sim.desktop.mouse import click, desktop


def solve(checks, plan=(), preset=None, seed=0, limit=25):
    """Steps that the oracle takes, and whether the task is done without side effects."""
    task = TaskInstance(task_id="t", goal="g", env="desktop", checks=checks, plan=plan, preset=preset or {})

    async def run():
        env, answer = DesktopEnv(clutter=0.5), None
        await env.reset(task, seed)
        before = await env.state()
        for steps in range(1, limit):
            action = env.oracle_action()
            if action.kind == "finish":
                assert action.success, action.message
                return steps, verdict(task, before, await env.state(), answer, volatile=env.volatile)
            answer = action.text if isinstance(action, Answer) else answer
            assert "rejected" not in (await env.step(action)).info
        raise AssertionError("the oracle does not finish")

    return anyio.run(run)


SWITCHES = [path for path in writers() if isinstance(get(DesktopState(), path), bool)]


@pytest.mark.parametrize("path", SWITCHES[::6])
@pytest.mark.parametrize("seed", [1, 2])
def test_any_switch_of_the_settings_is_found_and_used(path, seed):
    start = bool(get(DesktopState(), path))
    _, judged = solve((Check(path=path, value=not start),), preset={path: start}, seed=seed)
    assert judged.success


@pytest.mark.parametrize(
    "check",
    [
        Check(path="sound.input_volume", op="between", value=[8, 12]),
        Check(path="display.orientation", value="Portrait"),
        Check(path="ui.windows", op="has", value={"app": "files", "page": "Documents/Archive", "maximised": True}),
        Check(path="ui.windows", op="has", value={"app": "editor", "page": "Downloads/setup.log"}),
        Check(path="ui.windows", op="has", value={"app": "browser", "page": "wiki.test/rain"}),
        Check(path="ui.windows", op="has", value={"app": "terminal", "page": "Documents"}),
        Check(path="ui.menu", value="applications"),
    ],
    ids=lambda check: f"{check.path}-{check.value}",
)
def test_other_goals_are_reached_from_any_start(check):
    for seed in range(3):
        assert solve((check,), seed=seed)[1].success


def test_a_plan_says_what_checks_can_not():
    check = Check(path="files", op="has", value={"path": "Music/new.txt", "text": "la"})
    plan = (
        {"open": "editor"},
        {"type": "la"},
        {"key": "ctrl+shift+s"},
        {"type": "Music/new.txt", "into": "Name"},
        {"click": "Save", "role": "button"},
    )
    assert solve((check,), plan)[1].success
    assert solve((Check(path="answer", value=3),), ({"run": "wc -l todo.txt"}, {"answer": "3"}))[1].success


def test_a_line_that_says_nothing_known_is_the_tasks_error():
    with pytest.raises(TaskError, match="none of open, click"):
        solve((Check(path="sound.muted", value=True),), ({"tap": "Mute"},))


def test_the_oracle_says_where_it_is_stuck():
    with pytest.raises(AssertionError, match=r"no way to 'power\.battery'"):
        solve((Check(path="power.battery", value=1),))


@pytest.mark.parametrize("seed", range(3))
def test_a_click_at_an_element_reaches_it(seed):
    world = desktop("files/", "settings/sound", "terminal", seed=seed)
    found = elements(world)
    assert len({e.id for e in found}) == len(found) >= 20
    for element in found:
        assert hit_test(world, *element.centre).widget.label == element.label


def test_elements_say_what_they_do():
    world = desktop("settings/sound")
    by_label = {e.label: e for e in elements(world)}
    assert (by_label["Volume"].role, by_label["Volume"].writes, by_label["Volume"].value) == (
        "slider",
        "sound.volume",
        "65",
    )
    assert (by_label["Mute"].checked, by_label["Mute"].writes) == (False, "sound.muted")
    assert by_label["Output device"].writes == "sound.output"
    menu = {e.label: e for e in elements(click(world, "Applications"))}
    assert (menu["Files"].role, menu["Files"].opens, menu["Files"].app) == ("menuitem", "app/files", "files")


def test_the_oracle_judges_checks_as_the_verdict_does():
    for task in load(["desktop_train"]).tasks:
        instance = task.instantiate(0)
        world = prepare(instance, DesktopLook.drawn(0), PROFILES["desktop-small"])
        for check in instance.checks:
            if check.path != "answer":
                assert holds(world, check) == evaluate(check, state_mapping(world)).passed, (task.id, check)
