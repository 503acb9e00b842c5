"""Which training tasks are kept aside for validation."""

import pytest

from cuarl.errors import TaskError
from cuarl.tasks.build import bindings
from cuarl.tasks.review import goal_words
from cuarl.tasks.source import load
from cuarl.tasks.split import kept_aside
from cuarl.tasks.task import Task

NAMED = [Task(id=f"t{i:02d}", description=f"Do thing {i}") for i in range(20)]


def goals(tasks):
    return {goal_words(instance) for task in tasks for instance in bindings(task, 500)}


def test_a_share_of_the_tasks_is_drawn_by_the_seed_and_all_stay_in_order():
    split = kept_aside(NAMED, 0.25, seed=0)
    assert len(split.validation) == 5 and sorted([*split.training, *split.validation], key=lambda t: t.id) == NAMED
    assert split.training == [t for t in NAMED if t in split.training]
    assert kept_aside(NAMED, 0.25, seed=0) == split
    assert kept_aside(NAMED, 0.25, seed=1).validation != split.validation


def test_one_task_more_changes_little():
    before = {t.id for t in kept_aside(NAMED[:-1], 0.3, seed=3).validation}
    after = {t.id for t in kept_aside(NAMED, 0.3, seed=3).validation}
    assert len(before ^ after) <= 2


def test_nothing_is_kept_unless_it_is_asked_for_and_one_of_two_is_the_least():
    assert kept_aside(NAMED, 0.0, seed=0) == (NAMED, [])
    assert [len(part) for part in kept_aside(NAMED[:2], 0.01, seed=0)] == [1, 1]
    assert [len(part) for part in kept_aside(NAMED[:2], 0.99, seed=0)] == [1, 1]


def test_tasks_with_a_goal_in_common_stay_together():
    colours = Task(id="colours", description="Paint it {c}", params={"c": ("red", "blue")})
    red, blue = (Task(id=c, description=f"paint it {c}!") for c in ("red", "blue"))
    for seed in range(20):
        split = kept_aside([red, colours, blue, *NAMED[:2]], 0.5, seed)
        assert not goals(split.training) & goals(split.validation), seed
        assert split.training and split.validation


def test_no_goal_that_is_evaluated_is_drawn():
    evaluated = [
        task.model_copy(update={"id": f"e{task.id}", "description": task.description.upper()}) for task in NAMED[:18]
    ]
    for seed in range(10):
        assert {t.id for t in kept_aside(NAMED, 0.5, seed, evaluated).validation} == {"t18", "t19"}


@pytest.mark.parametrize(
    ("tasks", "evaluated", "said"),
    [
        (NAMED, NAMED, "evaluated on"),
        (NAMED[:1], (), "goals in common"),
        ([NAMED[0], NAMED[0].model_copy(update={"id": "again"})], (), "goals in common"),
    ],
    ids=["evaluated", "alone", "the same"],
)
def test_what_can_not_be_parted_is_said(tasks, evaluated, said):
    with pytest.raises(TaskError, match=said):
        kept_aside(tasks, 0.5, 0, evaluated)


def test_shipped_training_tasks_are_parted_without_a_goal_in_common():
    train, evaluated = (load(("settings",), role=role).tasks for role in ("train", "eval"))
    split = kept_aside(train, 0.2, 0, evaluated)
    assert 0.15 < len(split.validation) / len(train) < 0.25
    assert not goals(split.validation) & (goals(split.training) | goals(evaluated))
