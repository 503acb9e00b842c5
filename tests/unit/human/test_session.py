"""What agents ask and a page answers, without a page."""

from __future__ import annotations

import time

import anyio
import pytest

from cuarl.agent import formats
from cuarl.agent.base import Decision
from cuarl.agent.wording import Wording
from cuarl.env.base import Capabilities
from cuarl.errors import AgentError
from cuarl.human.agent import AssistedAgent, HumanAgent
from cuarl.human.session import NotNow, Session
from cuarl.human.vocabulary import offered
from cuarl.rollout.spec import EpisodeSpec
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled
from cuarl.types import Answer, Click, Finish, Key, Move, Observation, Swipe, Wait
from tests.unit.policy.pictures import screen

TASK = TaskInstance(task_id="t", goal="turn on wifi", max_steps=9)
SPEC = EpisodeSpec(task=TASK, seed=0, sampling_seed=0, group_id="g")
SEEN = Observation(screen(1))
LUNCH_S = 0.2
PHONE = frozenset({"click", "swipe", "type", "button", "wait"})


class Device:
    def __init__(self, actions=PHONE, kind="phone"):
        self.capabilities = Capabilities(actions, kind=kind)


class Teacher:
    name = "policy"

    async def act(self, *_):
        return Decision(action=Click(x=1, y=1), sampled=Sampled(text="tap", token_ids=(5,), logprobs=(-0.5,)))


def wording(kind="phone"):
    def write(messages, text, limit):
        return Sampled(prompt_ids=(1,), token_ids=(2,), text=text)

    return Wording(formats.get("qwen3-vl", kind), write)


async def decided(session, agent, does):
    """What ``agent`` decides when a person does something once they are asked."""
    found = []

    async def act():
        with anyio.CancelScope(deadline=anyio.current_time() + LUNCH_S / 2) as scope, session.pause.bounding(scope):
            found.append(await agent.act(TASK, SEEN, (), 0))

    async with anyio.create_task_group() as group:
        group.start_soon(act)
        view = session.view()
        while not view["waiting"]:
            view = await session.changed(view["version"], 5)
        does(view["turn"])
    return found[0]


@pytest.mark.anyio
async def test_a_turn_waits_for_the_person_and_the_clock_for_the_turn():
    session = Session(1, 20)
    agent = HumanAgent(session, SPEC, Device(), wording())
    before = session.clock()

    def later(turn):
        time.sleep(LUNCH_S)
        assert (turn["goal"], turn["index"], turn["max_turns"], turn["number"]) == ("turn on wifi", 0, 9, 1)
        assert session.picture(turn["screen"]["digest"]) is SEEN.screenshot
        with pytest.raises(NotNow, match="behind"):
            session.act("g.0", 1, Wait())
        with pytest.raises(AgentError, match="no word for move"):
            session.act("g.0", 0, Move(x=1, y=1))
        words, said = session.act("g.0", 0, Click(x=30, y=40))
        assert "click" in words and isinstance(said, Click)
        with pytest.raises(NotNow, match="at work"):
            session.act("g.0", 0, Click(x=30, y=40))

    decision = await decided(session, agent, later)
    assert decision.action == Click(x=30, y=40) and decision.info["by"] == "human"
    assert decision.sampled.token_ids == (2,) and decision.sampled.logprobs is None
    assert session.clock() - before < LUNCH_S


@pytest.mark.anyio
async def test_an_episode_can_be_skipped():
    session = Session(1, 20)
    agent = HumanAgent(session, SPEC, Device(), wording())
    assert (await decided(session, agent, lambda turn: session.skip("g.0", 0))).skipped


@pytest.mark.anyio
async def test_a_policy_is_let_or_corrected_and_goes_on_by_itself_when_told():
    session = Session(1, 20, assist=True, notice_s=0.05)

    def agent():
        return AssistedAgent(Teacher(), session, SPEC, Device(), wording())

    def corrects(turn):
        assert turn["proposal"]["action"]["words"] == "click (1, 1)"
        session.act("g.0", 0, Swipe(x=9, y=90, x2=9, y2=20))

    assert (await decided(session, agent(), lambda turn: session.let_it("g.0", 0))).sampled.logprobs == (-0.5,)
    corrected = await decided(session, agent(), corrects)
    assert isinstance(corrected.action, Swipe) and corrected.info["instead_of"] == "tap"
    assert (await decided(session, agent(), lambda turn: session.walk(stepwise=False))).action == Click(x=1, y=1)
    with anyio.fail_after(5):
        assert (await agent().act(TASK, SEEN, (), 0)).info == {}, "nobody is asked"
    session.notice_s = 9

    async def takes_over():
        version = session.version
        while not (await session.changed(version, 9))["turn"]:
            pass
        session.walk(stepwise=True)

    async with anyio.create_task_group() as group:
        group.start_soon(takes_over)
        taken = await decided(session, agent(), lambda turn: session.act("g.0", 0, Wait()))
    assert taken.action == Wait() and taken.info["by"] == "human"


def test_a_page_offers_what_both_the_device_and_the_model_know():
    words = wording()
    words.see(SEEN, ())
    found = offered(words, PHONE)
    assert {"click", "swipe", "scroll", "type", "button back", "answer", "finish"} <= found, "a scroll is a slide"
    assert not found & {"move", "drag", "key", "open app", "right click"}
    desktop = wording("desktop")
    desktop.see(SEEN, ())
    assert {"right click", "double click", "key"} <= offered(desktop, frozenset({"click", "key"}))
    assert desktop.understood(Key(keys=("ctrl", "a")))[1] == Key(keys=("ctrl", "a"))
    assert words.understood(Answer(text="7"))[1] in (Answer(text="7"), Finish(message="7"))
