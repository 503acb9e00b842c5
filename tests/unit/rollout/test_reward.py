from __future__ import annotations

import math

import pytest

from cuarl.errors import ConfigError, RewardError
from cuarl.rollout import reward
from cuarl.trajectory import CheckResult, RewardPart, Trajectory, Turn, Verdict
from cuarl.types import Click, Failure, ImageRef, ParseError, StopReason

SCREEN = ImageRef(digest="0" * 64, width=10, height=10)


def turn(i, x=None, **fields):
    action = None if "parse_error" in fields else Click(x=i if x is None else x, y=0)
    return Turn(index=i, screenshot=SCREEN, action=action, **fields)


def episode(success, claimed, turns=4, stop=StopReason.DONE, max_turns=10, **fields):
    check = CheckResult(path="wifi", op="equals", expected=True, actual=success, passed=success)
    verdict = Verdict(success=success, score=float(success), checks=(check,), claimed=claimed)
    turns = [turn(i) for i in range(turns)] if isinstance(turns, int) else turns
    return Trajectory(
        **{
            "episode_id": "e",
            "task_id": "t",
            "goal": "g",
            "turns": tuple(turns),
            "stop": stop,
            "verdict": verdict,
            "info": {"max_turns": max_turns},
            **fields,
        }
    )


def value(name, trajectory):
    return reward.score(trajectory, reward.get(name))[0]


@pytest.mark.parametrize(
    ("name", "done", "claimed_wrongly", "neither"),
    [
        ("simple", 1.0, 0.0, 0.0),
        ("finished", 1.0, 0.0, 0.0),
        ("honest", 1.0, -0.5, 0.0),
        ("completion", 1.0, 0.1, 0.0),
        ("efficiency", 1.0 - 0.08, 0.1 - 0.08, -0.5 - 0.08),
        ("shaped", 1.0, 0.1, 0.0),
        ("comprehensive", 1.5 + 0.3 + (0.05 + 0.10 * 0.6) + 0.2 * 0.6, 0.3, -1.0),
    ],
)
def test_recipe_values_of_four_clean_turns(name, done, claimed_wrongly, neither):
    assert value(name, episode(True, True)) == pytest.approx(done)
    assert value(name, episode(False, True)) == pytest.approx(claimed_wrongly)
    assert value(name, episode(False, False)) == pytest.approx(neither)


def test_finished_wants_the_agent_to_say_so():
    assert value("simple", episode(True, False)) == 1.0
    assert value("finished", episode(True, False)) == 0.0


def test_finished_asks_for_no_word_where_the_environment_ended_the_episode():
    assert value("finished", episode(True, None, stop=StopReason.ENV_DONE)) == 1.0
    assert value("finished", episode(False, None, stop=StopReason.ENV_DONE)) == 0.0
    assert value("finished", episode(True, None, stop=StopReason.MAX_TURNS)) == 0.0


def test_efficiency_takes_a_tenth_off_for_each_error():
    turns = [turn(0, parse_error=ParseError(code="bad_json")), turn(1, rejected="outside"), turn(2)]
    assert value("efficiency", episode(True, True, turns)) == pytest.approx(1 - 3 * 0.02 - 2 * 0.1)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["bad_json"], -2.0),
        (["no_call"], -2.0),
        (["unknown_tool"], -1.8),
        (["bad_argument"], -1.5),
        (["missing_argument", "unknown_tool"], -1.8),
        (["out_of_range", "truncated"], -2.0),
    ],
)
def test_comprehensive_is_overridden_by_the_worst_unusable_output_even_on_success(codes, expected):
    turns = [*(turn(i, parse_error=ParseError(code=c)) for i, c in enumerate(codes)), turn(len(codes))]
    assert value("comprehensive", episode(True, True, turns)) == expected


def test_comprehensive_is_three_flat_for_a_clean_success_in_a_fifth_of_the_turns():
    assert value("comprehensive", episode(True, True, 2)) == 3.0
    assert value("comprehensive", episode(True, True, 3)) < 2.8
    assert value("comprehensive", episode(True, True, [turn(0, x=1), turn(1, x=1)])) < 2.8


def test_comprehensive_out_of_turns_counts_trying():
    out = StopReason.MAX_TURNS
    assert value("comprehensive", episode(False, None, 10, stop=out)) == pytest.approx(-0.4)
    assert value("comprehensive", episode(False, None, 2, stop=out, max_turns=2)) == pytest.approx(-0.5)
    assert value("comprehensive", episode(False, None, stop=StopReason.REPETITIVE_LOOP)) == pytest.approx(-1.0)


def test_comprehensive_penalties_stop_at_five():
    for n in (5, 8):
        turns = [turn(i, x=1, rejected="no") for i in range(n + 1)]
        assert value("comprehensive", episode(False, True, turns)) == pytest.approx(0.3 - 5 * 0.15 - 5 * 0.08)


@pytest.mark.parametrize("name", [n for n in reward.BUILTIN if n not in ("env", "judge")])
def test_reward_is_the_sum_of_its_parts_and_the_evidence_names_what_failed(name):
    total, parts = reward.score(episode(False, True), reward.get(name))
    assert total == pytest.approx(sum(p.value for p in parts))
    assert "wifi is False" in " ".join(p.evidence for p in parts)


@pytest.mark.parametrize("name", reward.BUILTIN)
def test_no_function_scores_without_a_verdict_or_after_a_failure(name):
    failure = Failure(boundary="env", kind="EnvError", message="gone")
    assert value(name, episode(True, True, verdict=None)) is None
    assert value(name, episode(True, True, stop=StopReason.FAILED, failure=failure)) is None
    assert value(name, episode(True, True, stop=StopReason.DEADLINE, failure=failure)) is None
    assert value(name, episode(True, True, stop=StopReason.CANCELLED)) is None


def test_env_sums_the_rewards_of_the_steps_and_needs_no_verdict():
    turns = [turn(0, reward=0.5), turn(1), turn(2, reward=-0.25)]
    assert value("env", episode(True, True, turns, verdict=None)) == 0.25


def steps_only(trajectory):
    return [RewardPart(name="steps", value=len(trajectory.turns))]


def not_a_number(trajectory):
    return math.nan


class NotAFunction:
    pass


def test_plug_in_is_found_by_either_kind_of_dotted_path():
    assert value(f"{__name__}:steps_only", episode(True, True)) == 4.0
    assert reward.get(f"{__name__}.steps_only") is steps_only
    assert reward.score(episode(True, True), lambda t: 2)[0] == 2.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("simpel", r'unknown reward "simpel" \(did you mean "simple"\?\)'),
        ("no.such.module", "can't be imported"),
        (f"{__name__}:missing", "can't be imported"),
        (f"{__name__}:NotAFunction", "no function"),
    ],
)
def test_wrong_name_is_a_configuration_error(name, message):
    with pytest.raises(ConfigError, match=message):
        reward.get(name)


def test_reward_that_is_no_number_is_refused():
    with pytest.raises(RewardError, match="nan"):
        reward.score(episode(True, True), not_a_number)


def test_env_takes_the_return_that_the_verdict_tells_also_where_no_step_was_taken():
    told = CheckResult(path="return", op="told", actual=2.5, passed=True)
    verdict = Verdict(success=True, score=1.0, checks=(told,))
    assert value("env", episode(True, True, turns=0, verdict=verdict)) == 2.5
    assert value("env", episode(True, True, turns=0)) is None
