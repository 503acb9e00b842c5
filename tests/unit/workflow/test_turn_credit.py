"""What turns were credited with, told from the group alone; nothing where that does not suffice."""

import pytest

from cuarl.workflow.turn_credit import credit_of


def never():
    raise AssertionError("the group is asked for only where credit goes by screens")


@pytest.mark.parametrize("kind", ["rloo", "reinforce++", "ppo", "gigpo"])
def test_what_needs_more_than_the_group_is_not_told(kind):
    assert credit_of({"algorithm": {"type": kind}}, [1.0, 0.0], never) == [None, None]


def test_a_run_of_another_trainer_has_none():
    assert credit_of({}, [1.0, 0.0], never) == [None, None]


def test_attempts_without_a_reward_have_none_and_do_not_count():
    options = {"type": "grpo", "credit": "episode", "advantage_normalization": "none"}
    assert credit_of({"algorithm": options}, [1.0, None, 0.0], never) == [0.5, None, -0.5]
