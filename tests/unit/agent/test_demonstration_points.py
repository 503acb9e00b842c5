"""Demonstrations point anywhere inside what they act on, in the steps in which a model names points."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent import formats
from cuarl.agent.base import Decision
from cuarl.agent.demonstration_points import stepped, within
from cuarl.agent.formats import Size
from cuarl.agent.scripted import DemonstratingAgent
from cuarl.agent.wording import Wording
from cuarl.env.sim.phone import SimEnv
from cuarl.tasks.source import load
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Click, Finish, LongPress, Swipe, TypeText, points

SCREEN = Size(192, 384)


@given(
    x0=st.integers(0, 180),
    y0=st.integers(0, 370),
    w=st.integers(1, 192),
    h=st.integers(1, 384),
    seed=st.integers(0, 99),
)
def test_a_tap_is_spread_over_the_middle_of_its_box(x0, y0, w, h, seed):
    box = (x0, y0, min(x0 + w, 192), min(y0 + h, 384))
    tap = within(Click(x=x0, y=y0), box, SCREEN, random.Random(seed))
    assert box[0] <= tap.x < box[2] and box[1] <= tap.y < box[3]
    assert abs(tap.x - (box[0] + box[2]) / 2) <= 0.36 * (box[2] - box[0]) + 1


def test_taps_differ_and_what_is_no_tap_stays():
    box = (10, 20, 110, 60)
    taps = {within(LongPress(x=60, y=40), box, SCREEN, random.Random(i)) for i in range(30)}
    assert len(taps) > 20
    swipe = Swipe(x=60, y=40, x2=60, y2=10)
    assert within(swipe, box, SCREEN, random.Random(0)) == swipe


@given(x=st.integers(0, 191), y=st.integers(0, 383), x2=st.integers(0, 191), y2=st.integers(0, 383))
def test_points_are_named_in_steps_and_stay_where_they_are(x, y, x2, y2):
    swipe = Swipe(x=x, y=y, x2=x2, y2=y2)
    for (a, b), (c, d) in zip(points(swipe), points(stepped(swipe, SCREEN, 10)), strict=True):
        assert c % 10 == 0 and d % 10 == 0 and 0 <= c <= 990 and 0 <= d <= 990
        assert abs(c * 192 / 1000 - a) <= 2 and abs(d * 384 / 1000 - b) <= 4
    assert stepped(TypeText(text="a"), SCREEN, 10) == TypeText(text="a")


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["remove_home_icon", "quick_settings_tile", "close_recent_app", "search_notes"])
async def test_a_spread_demonstration_still_goes_through_the_tasks_plan(name):
    """The oracle takes its tap at another place of the same control for its own."""
    (task,) = [t for t in load(["phone_train"]).tasks if t.id == name]
    instance, env, fmt = task.instantiate(3), SimEnv(clutter=0.0), formats.get("qwen3-vl")
    told, turns = list[str](), list[Turn]()

    class Oracle:
        name = "oracle"

        async def act(self, *_):
            return Decision(action=env.oracle_action())

    def write(messages, text, limit):
        told.append(text)
        return Sampled(prompt_ids=(1,), token_ids=(2,), text=text)

    agent = DemonstratingAgent(Oracle(), Wording(fmt, write, step=10), around=env.around)
    observation = await env.reset(instance, 3)
    for index in range(20):
        decision = await agent.act(instance, observation, turns, seed=index)
        if isinstance(decision.action, Finish):
            assert decision.action.success
            break
        shown, action = observation.screenshot.ref, decision.action
        turns.append(Turn(index=index, screenshot=shown, action=action, sampled=decision.sampled))
        observation = (await env.step(action)).observation
    else:
        raise AssertionError(f"not solved: {told}")
    named = [int(n) for text in told for pair in re.findall(r"\[(\d+), (\d+)\]", text) for n in pair]
    assert named and all(n % 10 == 0 for n in named)
