"""The oracle answers from states that somebody else led to: it finds back, undoes what it can, never claims falsely."""

import random
from functools import partial

import anyio
import pytest

from cuarl.env.sim.phone import SimEnv
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.generator.generate import generate
from cuarl.tasks.check import verdict
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button, Click, Scroll, TypeText

TASKS = [task.instantiate(0) for task in generate(40, 11) if task.split == "train"][:16]
NOTE = TaskInstance(
    task_id="t",
    goal="g",
    preset={"notes": [{"title": "Oak"}, {"title": "Elm"}]},
    checks=(Check(path="notes", op="lacks", value={"title": "Elm"}),),
    plan=({"open": "notes/note:1"}, {"tap": "Delete note"}, {"tap": "Delete"}),
)


async def begun(task, seed=0, **options):
    env = SimEnv(clutter=0.0, **options)
    await env.reset(task, seed)
    return env, await env.state()


async def tap(env, label):
    found = next(e for e in elements(env.world) if e.label == label)
    await env.step(Click(x=found.centre[0], y=found.centre[1]))


async def solved(env, task, before):
    """Whether the oracle brings the episode to its end, the kinds of its actions, and its claim."""
    kinds, answer = [], None
    for _ in range(100):
        action = env.oracle_action()
        kinds.append(action.name if action.kind == "button" else action.kind)
        if action.kind == "answer":
            answer = action.text
        if action.kind == "finish":
            return verdict(task, before, await env.state(), answer, action.success, env.volatile), kinds
        await env.step(action)
    raise AssertionError(f"in circles: {kinds}")


async def wander(env, taps, seed):
    rng = random.Random(seed)
    for _ in range(taps):
        at = rng.choice(elements(env.world)).centre
        tapped = Click(x=at[0], y=at[1])
        others = (Button(name="back"), Scroll(x=96, y=200, direction="down"), TypeText(text="zip"))
        await env.step(rng.choice((tapped, tapped, tapped, *others)))


def test_whatever_was_done_before_a_task_is_solved_or_given_up_honestly():
    async def go(task):
        env, before = await begun(task)
        await wander(env, 5, task.task_id)
        return (await solved(env, task, before))[0]

    found = [anyio.run(go, task) for task in TASKS]
    assert [one.success for one in found] == [one.claimed for one in found]
    assert sum(one.success for one in found) >= 0.8 * len(TASKS)


async def _elsewhere(env):
    await tap(env, "Phone")


async def _half_way(env):
    for _ in range(3):
        await env.step(env.oracle_action())


async def _in_the_dialog(env):
    await _half_way(env)
    while env.world.ui.dialog is None:
        await env.step(env.oracle_action())


@pytest.mark.parametrize("led", [_elsewhere, _half_way, _in_the_dialog])
def test_a_plan_goes_on_where_it_stands(led):
    async def go():
        env, before = await begun(NOTE)
        await led(env)
        env._oracle.stray()
        return (await solved(env, NOTE, before))[0].success

    assert anyio.run(go)


def test_in_the_dialog_of_its_own_plan_the_oracle_goes_on_and_does_not_go_back():
    async def go():
        env, before = await begun(NOTE)
        await _in_the_dialog(env)
        env._oracle.stray()
        found, kinds = await solved(env, NOTE, before)
        return found.success, kinds

    assert anyio.run(go) == (True, ["click", "finish"])


def test_what_was_changed_besides_is_undone_and_what_can_not_be_is_admitted():
    task = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))

    async def go(spoil):
        env, before = await begun(task)
        env.world = env.world.put(*spoil)
        env._oracle.stray()
        return await solved(env, task, before)

    undone, _ = anyio.run(go, ("network.cast", True))
    assert undone.success and undone.claimed
    lost, _ = anyio.run(go, ("phone.calls", ()))
    assert not lost.success and lost.claimed is False


def test_an_answer_is_given_after_the_page_was_seen():
    task = TaskInstance(
        task_id="t",
        goal="g",
        preset={"sound.ringtone": "Pulse"},
        checks=(Check(path="answer", op="icontains", value="Pulse"),),
        plan=({"open": "settings/ringtone"}, {"answer": "Pulse"}),
    )

    async def go():
        env, before = await begun(task)
        await tap(env, "Phone")
        found, kinds = await solved(env, task, before)
        return found.success, kinds

    success, kinds = anyio.run(go)
    assert success and kinds[-2:] == ["answer", "finish"] and len(kinds) > 4


def test_phones_that_begin_astray_show_how_to_find_back_and_remember_nothing_of_it():
    ways = set()

    async def go(task, seed):
        env, before = await begun(task, seed, astray=4)
        fresh, at_first = await begun(task, seed)
        spared = ("ui", "apps")
        assert {k: v for k, v in before.items() if k not in spared} == {
            k: v for k, v in at_first.items() if k not in spared
        }
        again, _ = await begun(task, seed, astray=4)
        assert again.world.ui == env.world.ui
        found, kinds = await solved(env, task, before)
        assert found.success
        ways.update(kinds)
        return env.world.ui.page != fresh.world.ui.page

    began_elsewhere = [anyio.run(go, NOTE, seed) for seed in range(12)]
    assert any(began_elsewhere) and "back" in ways


@pytest.mark.parametrize("task", [NOTE, *TASKS[:4]], ids=lambda task: task.task_id)
def test_apps_are_opened_by_their_names_where_that_is_asked_for(task):
    async def go(**options):
        env, before = await begun(task, **options)
        return await solved(env, task, before)

    by_name, named = anyio.run(partial(go, oracle_opens=True))
    by_icon, found = anyio.run(go)
    assert by_name.success and by_icon.success
    assert "open_app" not in found and len(named) <= len(found)
    assert "open_app" in named or task is not NOTE


def test_from_within_another_app_the_name_is_enough():
    async def go():
        env, before = await begun(NOTE, oracle_opens=True)
        await tap(env, "Phone")
        return await solved(env, NOTE, before)

    found, kinds = anyio.run(go)
    assert found.success and kinds == ["open_app", "click", "click", "click", "finish"]
