from __future__ import annotations

import time
from itertools import count

import anyio
import pytest
from counter_env import NOTHING, SIZE, TASK, UP, CounterEnv, Listed, judge, setup, spec
from PIL import Image

from cuarl.agent.base import Decision
from cuarl.errors import MissingSecret, RewardError, SamplerError
from cuarl.policy.sampler import PromptTooLong
from cuarl.rollout.episode import run_episode
from cuarl.rollout.spec import Limits
from cuarl.tasks.task import Check
from cuarl.trajectory import Sampled
from cuarl.types import (
    Answer,
    Click,
    Finish,
    Observation,
    ParseError,
    Screenshot,
    StepResult,
    StopReason,
    Swipe,
    TypeText,
    Wait,
)

pytestmark = pytest.mark.anyio
BAD = ParseError(code="bad_json", message="no closing brace")


async def play(env, agent, **more):
    return (await run_episode(spec(), setup(env, agent, **more))).trajectory


# --- what is recorded ----------------------------------------------------------------------------------------------


async def test_record_holds_turns_pictures_and_verdict_when_the_task_is_done():
    env = CounterEnv()
    episode = await run_episode(spec(), setup(env, Listed(UP, UP, Finish(message="two"))))
    t = episode.trajectory
    assert (t.stop, t.success, t.reward, t.answer, t.agent) == (StopReason.DONE, True, 1.0, "two", "listed")
    assert [turn.changed for turn in t.turns] == [True, True, None]
    assert [turn.settle_ms for turn in t.turns] == [5.0, 5.0, None]
    assert t.turns[0].text == {"app": "counter"}
    assert {x.screenshot.digest for x in t.turns} | {t.final_screenshot.digest} == set(episode.pictures)
    assert all(p.digest == d for d, p in episode.pictures.items())
    assert t.info["steps"] == {"0": {"battery": 80}, "1": {"battery": 80}}
    assert env.closed == 1


async def test_turn_seeds_follow_the_sampling_seed_and_differ():
    first, again = Listed(UP), Listed(UP)
    for agent in (first, again):
        await play(CounterEnv(), agent, limits=Limits(max_turns=4))
    assert first.seeds == again.seeds
    assert len(set(first.seeds)) == 4


async def test_policy_is_taken_from_what_was_sampled():
    sampled = Sampled(token_ids=(1,), logprobs=(-0.5,), policy="tiny", policy_version=3)
    t = await play(CounterEnv(), Listed(Decision(action=Finish(), sampled=sampled)))
    assert (t.policy, t.policy_version, t.turns[0].sampled) == ("tiny", 3, sampled)


async def test_the_size_at_which_the_model_saw_a_screen_is_recorded_with_its_turn():
    t = await play(CounterEnv(), Listed(Decision(action=UP, resized=(28, 56)), Finish()))
    assert [turn.resized for turn in t.turns] == [(28, 56), None]


async def test_answer_is_kept_and_does_not_reach_an_environment_that_has_none():
    env = CounterEnv()
    t = await play(env, Listed(Answer(text="five"), Finish(success=False)))
    assert (t.answer, t.verdict.claimed, env.steps) == ("five", False, 0)


async def test_rejected_action_is_a_turn_that_changed_nothing():
    t = await play(CounterEnv(), Listed(Swipe(x=0, y=0, x2=9, y2=9), Finish()))
    assert (t.turns[0].rejected, t.turns[0].changed) == ("only clicks", False)


# --- how it ends ---------------------------------------------------------------------------------------------------


async def test_invalid_output_is_a_scored_turn_that_does_not_step_the_environment():
    env = CounterEnv()
    t = await play(env, Listed(BAD, UP, BAD, BAD, BAD), limits=Limits(max_invalid=3))
    assert (t.stop, t.reward, env.steps, len(t.turns)) == (StopReason.INVALID_ACTIONS, 0.0, 1, 5)
    assert t.turns[0].parse_error == BAD
    assert t.turns[0].changed is None


async def test_task_done_without_saying_so_is_a_success_when_turns_run_out():
    t = await play(CounterEnv(), Listed(UP), limits=Limits(max_turns=3))
    assert (t.stop, t.success, t.verdict.claimed, len(t.turns)) == (StopReason.MAX_TURNS, True, None, 3)


async def test_task_bound_of_turns_wins_when_it_is_lower():
    short = TASK.model_copy(update={"max_steps": 2})
    t = (await run_episode(spec(task=short), setup(CounterEnv(), Listed(UP)))).trajectory
    assert (t.stop, len(t.turns), t.info["max_turns"]) == (StopReason.MAX_TURNS, 2, 2)


async def test_prompt_that_does_not_fit_ends_the_episode_and_is_scored():
    t = await play(CounterEnv(), Listed(UP, Decision(too_long=PromptTooLong(needed=900, limit=800))))
    assert (t.stop, len(t.turns), t.reward, t.info["prompt_tokens_needed"]) == (StopReason.CONTEXT_FULL, 1, 0.0, 900)


class OneStep(CounterEnv):
    async def step(self, action):
        return StepResult(self.look(), reward=0.25, terminated=True)


async def test_environment_that_ends_by_itself_ends_the_episode():
    t = await play(OneStep(), Listed(UP))
    assert (t.stop, t.turns[0].reward) == (StopReason.ENV_DONE, 0.25)


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param([Wait(seconds=s) for s in (1, 2, 1, 3, 2, 1)], id="waits of varying length"),
        pytest.param([NOTHING] * 6, id="taps that change nothing"),
        pytest.param([Click(x=90 + i % 2, y=11) for i in range(6)], id="jitter of a pixel"),
    ],
)
async def test_c47_loop_ends_the_episode_after_the_threshold_and_is_scored(actions):
    t = await play(CounterEnv(), Listed(*actions), limits=Limits(loop_threshold=5))
    assert (t.stop, len(t.turns), t.reward) == (StopReason.REPETITIVE_LOOP, 5, 0.0)


class Toggle(CounterEnv):
    async def step(self, action):
        self.counter = 1 - self.counter
        return StepResult(self.look())


async def test_going_back_and_forth_is_a_loop_although_the_screen_changes():
    t = await play(Toggle(), Listed(UP), limits=Limits(loop_threshold=5))
    assert (t.stop, len(t.turns)) == (StopReason.REPETITIVE_LOOP, 9)


async def test_c47_same_click_is_no_loop_when_the_screen_changes_each_time():
    t = await play(CounterEnv(), Listed(UP), limits=Limits(loop_threshold=5, max_turns=12))
    assert (t.stop, len(t.turns)) == (StopReason.MAX_TURNS, 12)


# --- time ----------------------------------------------------------------------------------------------------------


async def test_c47_step_that_never_returns_is_abandoned_at_the_deadline_and_not_scored():
    env = CounterEnv(at={1: anyio.sleep_forever})
    begin = time.monotonic()
    t = await play(env, Listed(UP), limits=Limits(deadline_s=0.5))
    assert time.monotonic() - begin < 10
    assert (t.stop, t.reward, t.verdict, env.closed) == (StopReason.DEADLINE, None, None, 1)
    assert (t.failure.boundary, len(t.turns), t.turns[1].action) == ("env", 2, UP)
    assert t.final_screenshot is None


async def test_deadline_that_many_turns_used_up_is_scored_by_the_state_at_the_end():
    slow = {i: lambda: anyio.sleep(0.03) for i in range(100)}
    t = await play(CounterEnv(at=slow), Listed(UP), limits=Limits(deadline_s=0.2))
    assert (t.stop, t.failure, t.reward) == (StopReason.DEADLINE, None, 1.0)


async def test_deadline_is_kept_by_the_injected_clock_when_nothing_ever_waits():
    ticks = iter(range(1000))
    t = await play(CounterEnv(), Listed(UP), limits=Limits(deadline_s=50), clock=lambda: float(next(ticks)))
    assert t.stop is StopReason.DEADLINE
    assert 0 < len(t.turns) < 20
    assert t.success is True


class DropsOff(CounterEnv):
    """Away for four of the clock's seconds in each step."""

    async def step(self, action):
        result = await super().step(action)
        return StepResult(result.observation, info={**result.info, "down_s": 4.0})


async def test_time_in_which_the_device_was_not_there_is_not_the_policys():
    turns = []
    for env in (CounterEnv(), DropsOff()):
        t = await play(env, Listed(UP), limits=Limits(deadline_s=50), clock=count(0.0).__next__)
        turns.append(len(t.turns))
    assert t.info["steps"]["0"]["down_s"] == 4.0
    assert turns[0] < turns[1]


class SlowAgent(Listed):
    async def act(self, task, observation, history, seed):
        if history:
            await anyio.sleep_forever()
        return await super().act(task, observation, history, seed)


async def test_model_call_beyond_the_turn_limit_is_a_failure_of_the_sampler():
    t = await play(CounterEnv(), SlowAgent(UP), limits=Limits(turn_s=0.05))
    assert (t.stop, t.failure.boundary, t.reward, len(t.turns)) == (StopReason.FAILED, "sampler", None, 1)


@pytest.mark.parametrize(("action", "stop"), [(TypeText(text="x" * 40), StopReason.DONE), (UP, StopReason.FAILED)])
async def test_b25_limit_of_a_turn_grows_with_the_text_that_is_typed(action, stop):
    async def slowly():
        await anyio.sleep(0.4)

    t = await play(CounterEnv({0: slowly}), Listed(action, Finish()), limits=Limits(turn_s=0.1))
    assert t.stop is stop


class HungReset(CounterEnv):
    async def reset(self, task, seed):
        await anyio.sleep_forever()


class HungState(CounterEnv):
    async def state(self):
        if self.steps:
            await anyio.sleep_forever()
        return await super().state()


class HungClose(CounterEnv):
    async def close(self):
        await super().close()
        await anyio.sleep_forever()


async def test_reset_that_never_returns_is_bounded_by_the_deadline():
    t = await play(HungReset(), Listed(UP), limits=Limits(deadline_s=0.05))
    assert (t.stop, t.failure.boundary, t.turns, t.reward) == (StopReason.DEADLINE, "env", (), None)


async def test_state_that_is_never_read_leaves_no_verdict():
    limits = Limits(deadline_s=1, verdict_grace_s=0.05)
    t = await play(HungState(), Listed(UP, Finish()), limits=limits)
    assert (t.stop, t.failure.boundary, t.verdict, t.reward) == (StopReason.FAILED, "env", None, None)


async def test_close_that_never_returns_is_given_up_and_noted():
    t = await play(HungClose(), Listed(UP, UP, Finish()), limits=Limits(close_s=0.05))
    assert t.success is True
    assert "0.05 s" in t.info["close_failed"]


# --- failures ------------------------------------------------------------------------------------------------------


async def _crash():
    raise ConnectionResetError("socket closed")


async def test_error_in_a_step_is_a_failure_of_the_environment_that_keeps_the_turns():
    env = CounterEnv(at={1: _crash})
    t = await play(env, Listed(UP))
    assert (t.stop, t.reward, t.verdict, len(t.turns)) == (StopReason.FAILED, None, None, 2)
    assert (t.failure.boundary, t.failure.kind) == ("env", "ConnectionResetError")
    assert "the action click failed" in t.failure.message
    assert "_crash" in t.failure.traceback
    assert env.closed == 1


async def test_secret_in_an_error_is_not_recorded():
    async def leak():
        raise OSError("can't reach http://user:hunter2-and-more@box/")

    t = await play(CounterEnv(at={0: leak}), Listed(UP))
    assert "hunter2" not in t.model_dump_json()
    assert "can't reach" in t.failure.message


class BrokenAgent(Listed):
    def __init__(self, error):
        super().__init__(UP)
        self.error = error

    async def act(self, task, observation, history, seed):
        raise self.error


@pytest.mark.parametrize(
    ("error", "boundary"), [(ValueError("no template"), "agent"), (SamplerError("endpoint gone"), "sampler")]
)
async def test_typed_error_keeps_its_boundary_and_any_other_gets_the_one_of_its_seam(error, boundary):
    t = await play(CounterEnv(), BrokenAgent(error))
    assert (t.failure.boundary, t.failure.kind) == (boundary, type(error).__name__)


async def test_failed_creation_of_the_environment_leaves_an_unscored_record():
    async def no_box(spec):
        raise OSError("no box left")

    t = await play(CounterEnv(), Listed(UP), make_env=no_box)
    assert (t.stop, t.failure.boundary, t.reward, t.turns) == (StopReason.FAILED, "env", None, ())


async def test_verdict_that_cannot_be_given_is_no_verdict():
    def unreachable(*args):
        raise RewardError("validator unreachable")

    t = await play(CounterEnv(), Listed(UP, UP, Finish()), judge=unreachable)
    assert (t.stop, t.failure.boundary, t.verdict, t.reward) == (StopReason.FAILED, "reward", None, None)


async def test_reward_function_that_raises_leaves_the_episode_unscored():
    def broken(trajectory):
        raise ZeroDivisionError

    t = await play(CounterEnv(), Listed(UP, UP, Finish()), reward=broken)
    assert (t.failure.boundary, t.failure.kind, t.reward) == ("reward", "ZeroDivisionError", None)
    assert t.success is True


async def test_task_without_checks_has_neither_verdict_nor_failure():
    free = TASK.model_copy(update={"checks": ()})
    t = (await run_episode(spec(task=free), setup(CounterEnv(), Listed(Finish())))).trajectory
    assert (t.stop, t.failure, t.verdict, t.reward) == (StopReason.DONE, None, None, None)


async def test_missing_prerequisite_stops_everything_and_still_closes():
    env = CounterEnv()
    with pytest.raises(MissingSecret):
        await play(env, BrokenAgent(MissingSecret("no key")))
    assert env.closed == 1


class Blind(CounterEnv):
    capabilities = type(CounterEnv.capabilities)(actions=frozenset({"click"}), state=False)


async def test_environment_that_cannot_read_the_state_fails_before_it_starts():
    t = await play(Blind(), Listed(UP))
    assert (t.failure.boundary, t.turns) == ("env", ())
    assert "count" in t.failure.message


async def test_checks_of_the_answer_need_no_state():
    task = TASK.model_copy(update={"checks": (Check(path="answer", value="x"),)})

    def by_answer(instance, before, after, answer, claimed, volatile=()):
        return judge(TASK, {"counter": 0}, {"counter": 2 if answer == "x" else 0}, answer, claimed)

    finish = Finish(message="x")
    t = (await run_episode(spec(task=task), setup(Blind(), Listed(finish), judge=by_answer))).trajectory
    assert t.success is True


@pytest.mark.parametrize(
    ("exit", "scored"),
    [
        ("box_create_failed", False),
        ("reward_server_unreachable", False),
        ("max_steps", True),
        ("wall_clock_timeout_by_policy", True),
        ("invalid_action_limit", True),
    ],
)
async def test_c30_exit_is_scored_exactly_if_the_policy_can_bring_it_about(exit, scored):
    async def no_box(spec):
        raise OSError("quota")

    def unreachable(*args):
        raise ConnectionError("refused")

    slow = {i: lambda: anyio.sleep(0.02) for i in range(9)}
    env, agent, more = CounterEnv(), Listed(UP), {"limits": Limits(max_turns=5, deadline_s=30)}
    if exit == "box_create_failed":
        more["make_env"] = no_box
    elif exit == "reward_server_unreachable":
        more["judge"] = unreachable
    elif exit == "wall_clock_timeout_by_policy":
        env, more["limits"] = CounterEnv(at=slow), Limits(deadline_s=0.09)
    elif exit == "invalid_action_limit":
        agent = Listed(BAD)
    t = await play(env, agent, **more)
    assert t.scored is scored
    assert (t.failure is None) is scored


# --- cancellation --------------------------------------------------------------------------------------------------


async def test_cancellation_closes_the_environment_and_hands_over_what_there_is():
    env, kept = CounterEnv(at={2: anyio.sleep_forever}), []
    with anyio.move_on_after(0.05) as scope:
        await run_episode(spec(), setup(env, Listed(UP)), on_cancel=kept.append)
    assert scope.cancelled_caught
    assert env.closed == 1
    (episode,) = kept
    assert (episode.trajectory.stop, episode.trajectory.reward) == (StopReason.CANCELLED, None)
    assert [t.warnings for t in episode.trajectory.turns] == [(), (), ("cancelled",)]


async def test_verdict_sees_the_state_after_reset_and_at_the_end():
    class Preset(CounterEnv):
        async def reset(self, task, seed):
            self.counter = 1
            return self.look()

    t = await play(Preset(), Listed(UP), limits=Limits(max_turns=1))
    assert (t.verdict.side_effects, t.verdict.checks[0].actual) == (("counter",), 2)


async def test_equal_screens_share_one_picture():
    class Still(CounterEnv):
        def look(self):
            return Observation(Screenshot(Image.new("RGB", SIZE)))

    episode = await run_episode(spec(), setup(Still(), Listed(UP, NOTHING, Finish())))
    assert len(episode.pictures) == 1
