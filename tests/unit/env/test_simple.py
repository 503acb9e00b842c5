import anyio
import pytest
from PIL import Image

from cuarl.env.base import Env
from cuarl.env.simple import SimpleEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Key, Wait

TASK = TaskInstance(task_id="a", goal="b")


class Door(SimpleEnv):
    open = False
    ended = 0

    def begin(self, task, seed):
        self.locked = seed == 1

    def screen(self):
        return Image.new("RGB", (20, 40), "white" if self.open else "black")

    def act(self, action):
        if self.locked:
            return "the door is locked"
        self.open = action.kind == "click"
        return None

    def facts(self):
        return {"open": self.open}

    def end(self):
        self.ended += 1


def played(env, seed, *actions):
    async def work():
        first = await env.reset(TASK, seed)
        return first, [await env.step(action) for action in actions], await env.state()

    return anyio.run(work)


def test_it_is_an_environment_that_shows_what_actions_do():
    env = Door()
    assert isinstance(env, Env) and env.capabilities.state and env.capabilities.kind == "phone"
    first, (clicked, waited), state = played(env, 0, Click(x=1, y=1), Wait())
    assert first.screenshot.image.getpixel((0, 0)) == (0, 0, 0)
    assert clicked.observation.screenshot.image.getpixel((0, 0)) == (255, 255, 255)
    assert (clicked.info, waited.info, state) == ({}, {}, {"open": False})


@pytest.mark.parametrize(
    ("seed", "action", "said"),
    [(1, Click(x=1, y=1), "locked"), (0, Key(keys=("a",)), "no key here")],
    ids=["own", "kind"],
)
def test_what_is_impossible_is_rejected_and_changes_nothing(seed, action, said):
    _, (result,), state = played(Door(), seed, action)
    assert said in result.info["rejected"] and state == {"open": False}


def test_it_is_closed_as_often_as_somebody_likes():
    env = Door()

    async def work():
        await env.close()
        await env.close()

    anyio.run(work)
    assert env.ended == 2


def test_methods_that_are_missing_are_no_silent_nothing():
    with pytest.raises(TypeError, match=r"act.*screen"):
        type("Half", (SimpleEnv,), {})()
