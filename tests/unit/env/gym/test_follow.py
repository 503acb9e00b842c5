"""Following a run: whose action is whose, runs that end early, and answers that are not those that were recorded."""

from __future__ import annotations

import anyio
import pytest

from cuarl.env.gym.follow import FollowedRun
from cuarl.env.gym.runs import MiniAgent, Order, Status, _modern
from cuarl.errors import AgentError, EnvError
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Click, Finish
from tests.unit.policy.pictures import screen

SHOWN = screen(1, 200, 400)


def output(text, step=1, ts=1):
    return {
        "type": "model_output",
        "ts": ts,
        "step": step,
        "modelOutput": {"choices": [{"message": {"content": text}}]},
    }


def acted(name, step=1, ts=2, **args):
    return {
        "type": "action_executed",
        "ts": ts,
        "step": step,
        "action": {"name": name, "args": args, "rawFeedback": "ok"},
    }


def end(step=1, ts=3):
    return {"type": "step_end", "ts": ts, "step": step}


POINT = {"x": 0.5, "y": 0.5}


class Scripted(MiniAgent):
    """Tells events bit by bit: each status call goes one on."""

    def __init__(self, *told, status=None):
        self.told, self.asked, self.final = list(told), 0, status or Status("running")

    async def status(self, run):
        self.asked += 1
        return self.final if self.asked >= len(self.told) else Status("running")

    async def events(self, run, since=None):
        return [_modern(e) for part in self.told[: self.asked] for e in part]

    async def last_picture(self, run):
        return "http://elsewhere/shot.png"


class Recorded:
    """A conversation whose turns are there already."""

    model = "m"

    def __init__(self, *texts):
        self.turns = [
            Turn(index=i, screenshot=SHOWN.ref, sampled=Sampled(text=text, token_ids=(1,)))
            for i, text in enumerate(texts)
        ]

    async def turn(self, index):
        if index >= len(self.turns):
            await anyio.sleep_forever()
        return self.turns[index]


def followed(agent, *texts):
    talk = Recorded(*texts)
    return FollowedRun(agent, "r", talk, poll_s=0.01), talk.turns


def test_the_kth_output_is_the_kth_turn_and_later_events_are_waited_for():
    agent = Scripted(
        [output("a")], [acted("click", point=POINT)], [end(), output("b", 2, 4), acted("finished", 2, 5)], [end(2, 6)]
    )
    run, turns = followed(agent, "a", "b")

    async def play():
        return [await run.done(0, turns[0]), await run.done(1, turns[1])]

    first, second = anyio.run(play)
    assert first.action == Click(x=100, y=200) and first.feedback == "ok" and isinstance(second.action, Finish)


def test_an_answer_that_led_to_nothing_is_the_policys_own():
    run, turns = followed(
        Scripted([output("a"), output("b", 1, 2), acted("click", ts=3, point=POINT), end(ts=4)]), "a", "b"
    )

    async def play():
        return [await run.done(0, turns[0]), await run.done(1, turns[1])]

    first, second = anyio.run(play)
    assert first.action is None and first.error.code == "no_call" and second.action is not None


def test_several_actions_of_one_answer_are_noted():
    run, turns = followed(
        Scripted([output("a"), acted("click", point=POINT), acted("pressBack", ts=3), end(ts=4)]), "a"
    )
    done = anyio.run(run.done, 0, turns[0])
    assert done.action == Click(x=100, y=200) and done.warnings == ("then also pressBack",)


def test_another_answer_than_the_recorded_one_is_an_error():
    run, turns = followed(Scripted([output("something else"), acted("click", point=POINT), end()]), "a")
    with pytest.raises(AgentError, match="not what was recorded"):
        anyio.run(run.done, 0, turns[0])


def test_events_of_older_servers_are_read():
    old = [
        {**output("a"), "turn": 1},
        {**acted("click", point=POINT), "turn": 1},
        {"type": "turn_end", "ts": 3, "turn": 1},
    ]
    run, turns = followed(Scripted([{k: v for k, v in event.items() if k != "step"} for event in old]), "a")
    assert anyio.run(run.done, 0, turns[0]).action == Click(x=100, y=200)


def test_a_run_that_ended_has_no_further_turn():
    run, _ = followed(Scripted([], status=Status("completed")))
    assert anyio.run(run.turn, 0) is None


@pytest.mark.parametrize("reason", ["max steps reached", "timeout", "run time limit"])
def test_running_out_is_the_policys_doing(reason):
    run, _ = followed(Scripted([], status=Status("failed", reason)))
    assert anyio.run(run.turn, 0) is None


def test_a_run_that_failed_is_a_failure_with_its_reason():
    run, _ = followed(
        Scripted([{"type": "error", "ts": 1, "message": "device lost"}], status=Status("failed", "error"))
    )
    with pytest.raises(EnvError, match="error; device lost"):
        anyio.run(run.turn, 0)


def test_pictures_of_other_hosts_are_not_fetched():
    run, _ = followed(Scripted([]))
    assert anyio.run(run.last_picture) is None


def test_an_order_says_all_that_a_run_needs():
    body = Order(
        task="T", model_url="http://m/v1", model_name="n", gym_url="http://g", gym_id="i", execution="e"
    ).body()
    assert body["model"] == {"baseUrl": "http://m/v1", "name": "n", "provider": "openai"}
    assert body["env"] == {"type": "genv", "gymBaseUrl": "http://g", "gymId": "i", "executionId": "e"}
    assert (body["agent"], body["maxSteps"], body["maxRunTimeSec"], body["maxStepTimeSec"]) == ("mai-ui", 30, 600, 120)
