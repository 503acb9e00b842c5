"""The guard sees what differs, and takes no nothing for sameness."""

from pathlib import Path

import pytest

from benchmarks import guard
from benchmarks.guard import Found, Side, compared, main, timed


def found(**changes):
    turns = {
        "run.0001#0": {"token_ids": [1, 2], "policy_version": 0},
        "run.0001#1": {"token_ids": [3], "policy_version": 0},
    }
    whole = Found(
        turns, {"runs/run/checkpoints/step-000001": "ab"}, {"reward/mean@1": 0.5, "reward/mean@2": float("inf")}
    )
    for name, value in changes.items():
        setattr(whole, name, value)
    return whole


def test_what_is_equal_is_the_same():
    rows = list(compared("grpo", found(), found()))
    assert [(row.what, row.alike) for row in rows] == [("turns", True), ("adapters", True), ("metrics", True)]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"turns": {**found().turns, "run.0001#1": {"token_ids": [4], "policy_version": 0}}}, "turns"),
        ({"turns": {"run.0001#0": found().turns["run.0001#0"]}}, "turns"),
        ({"turns": {**found().turns, "run.0002#0": {}}}, "turns"),
        ({"adapters": {"runs/run/checkpoints/step-000001": "ac"}}, "adapters"),
        ({"metrics": {**found().metrics, "reward/mean@1": 0.5000000001}}, "metrics"),
        ({"metrics": {}}, "metrics"),
    ],
    ids=["token", "turn gone", "turn more", "adapter", "ninth digit", "no metrics"],
)
def test_each_difference_is_one_and_is_shown(changes, what):
    rows = {row.what: row for row in compared("grpo", found(), found(**changes))}
    assert [name for name, row in rows.items() if not row.alike] == [what]
    assert "->" in rows[what].detail


def test_nothing_on_both_sides_is_no_sameness():
    assert not any(row.alike for row in compared("grpo", Found(), Found()))


@pytest.mark.parametrize(
    ("old", "new", "alike", "runs"),
    [
        ([1.0, 1.0], [1.02, 1.02], True, guard.LEAST),
        ([1.0, 1.0, 1.0], [1.5, 1.5, 1.01], True, 3),
        ([1.0] * guard.MOST, [1.1] * guard.MOST, False, guard.MOST),
    ],
    ids=["at once", "once it was quiet", "slower"],
)
def test_the_best_of_some_runs_counts_and_more_are_made_where_it_did_not_suffice(tmp_path, old, new, alike, runs):
    seconds = {"old": iter(old), "new": iter(new)}
    made = []

    def measure(side):
        made.append(side.place.name)
        return next(seconds[side.code.name])

    row = timed("step", [Side(Path("old"), tmp_path / "a"), Side(Path("new"), tmp_path / "b")], measure)
    assert (row.alike, len(made)) == (alike, 2 * runs)


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path):
    with pytest.raises(RuntimeError, match=r"ended with 3:\nno luck"):
        Side(tmp_path, tmp_path).run("-c", "import sys; print('no luck', file=sys.stderr); sys.exit(3)")


def test_a_scenario_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "gpro"])
    assert "there is no gpro" in capsys.readouterr().err
