from __future__ import annotations

import pytest

from cuarl.errors import ConfigError
from cuarl.evaluate.stats import pass_at_k
from cuarl.evaluate.summary import Outcome, breakdown, compare, summarise
from cuarl.trajectory import Trajectory, Turn, Verdict
from cuarl.types import Failure, ImageRef, StopReason


def outcome(task="t", seed=0, success: bool | None = True, **more):
    ids = {"episode_id": f"{task}.{seed}.{more.get('attempt', 0)}", "stop": StopReason.DONE}
    return Outcome(**{**ids, "task_id": task, "seed": seed, "success": success, **more})


def test_outcome_is_read_off_the_trajectory():
    verdict = Verdict(success=False, score=0.5, side_effects=("display.dark_theme",), claimed=True)
    screen = ImageRef(digest="0" * 64, width=1, height=1)
    t = Trajectory(
        episode_id="e",
        task_id="t",
        goal="g",
        seed=9,
        attempt=2,
        category="settings",
        difficulty="easy",
        turns=(Turn(index=0, screenshot=screen),),
        stop=StopReason.DONE,
        verdict=verdict,
    )
    o = Outcome.of(t)
    assert (o.success, o.false_completion, o.side_effects, o.steps) == (False, True, True, 1)
    assert (o.task_id, o.seed, o.attempt, o.category, o.difficulty) == ("t", 9, 2, "settings", "easy")


def test_episode_without_a_verdict_is_in_no_rate():
    lost = Trajectory(
        episode_id="e",
        task_id="t",
        goal="g",
        stop=StopReason.FAILED,
        failure=Failure(boundary="env", kind="EnvError", message="gone"),
    )
    summary = summarise([outcome(), Outcome.of(lost)])
    assert (summary.n, summary.failed, summary.success_rate) == (1, 1, 1.0)


def test_summary_of_nothing_has_no_rates():
    summary = summarise([outcome(success=None)])
    assert (summary.n, summary.failed, summary.success_rate, summary.ci_low) == (0, 1, None, None)
    assert summary.metrics() == {"n": 0, "tasks": 0, "failed": 1}


def test_summary_counts_claims_side_effects_and_steps():
    outcomes = [
        outcome("a", 0, True, steps=2),
        outcome("a", 1, False, steps=4, false_completion=True),
        outcome("b", 0, False, steps=6, side_effects=True, false_completion=True),
        outcome("b", 1, True, steps=8),
    ]
    s = summarise(outcomes)
    assert (s.n, s.tasks, s.success_rate, s.false_completion_rate, s.side_effect_rate, s.steps_mean) == (
        4,
        2,
        0.5,
        0.5,
        0.25,
        5.0,
    )
    assert s.ci_low < 0.5 < s.ci_high


def test_pass_at_k_is_per_task_when_instances_were_not_repeated():
    s = summarise([outcome("a", 0, True), outcome("a", 1, False), outcome("b", 0, False), outcome("b", 1, False)])
    assert s.pass_at == {1: 0.25, 2: 0.5}
    assert s.pass_hat == {1: 0.25, 2: 0.0}
    assert s.metrics()["pass@2"] == 0.5


def test_b39_pass_at_more_than_there_are_attempts_is_not_given():
    s = summarise([outcome("a", 0, ok, attempt=i) for i, ok in enumerate((True, False, False))])
    assert sorted(s.pass_at) == sorted(s.pass_hat) and max(s.pass_at) <= 3
    with pytest.raises(ZeroDivisionError):
        pass_at_k(3, 1, 7)


def test_pass_at_k_is_per_instance_when_they_were():
    repeated = [
        outcome("a", seed, ok, attempt=i) for seed, oks in ((0, (1, 0)), (1, (1, 1))) for i, ok in enumerate(oks)
    ]
    s = summarise(repeated)
    assert s.pass_at == {1: 0.75, 2: 1.0}
    assert s.pass_hat == {1: 0.75, 2: 0.5}


def test_breakdown_keeps_every_episode_once():
    outcomes = [outcome("a", category="settings"), outcome("b", category="app"), outcome("c", category="settings")]
    parts = breakdown(outcomes, "category")
    assert {k: v.n for k, v in parts.items()} == {"settings": 2, "app": 1}


def test_compare_is_paired_and_leaves_failed_episodes_out():
    a = [outcome("a", 0, False), outcome("b", 0, False), outcome("c", 0, None)]
    b = [outcome("a", 0, True), outcome("b", 0, True), outcome("c", 0, True)]
    found = compare(a, b)
    assert (found.difference, found.pairs) == (1.0, 2)


def test_compare_without_common_instances_says_what_to_do():
    with pytest.raises(ConfigError, match="--seed"):
        compare([outcome("a", 0)], [outcome("a", 1)])
