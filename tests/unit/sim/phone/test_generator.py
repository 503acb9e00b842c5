"""Generated tasks: different goals in the parts they say, solvable, clear of evaluation suites, the same everywhere."""

import hashlib
import json
import os
import subprocess
import sys
from itertools import islice

import pytest

from cuarl.errors import TaskError
from cuarl.sim.phone.generator.catalogue import catalogue
from cuarl.sim.phone.generator.draw import Draw
from cuarl.sim.phone.generator.generate import generate
from cuarl.sim.phone.generator.part import KINDS
from cuarl.sim.phone.generator.splits import HELD_OUT_APPS, HELD_OUT_KINDS
from cuarl.sim.phone.generator.wordings import WORDINGS
from cuarl.sim.phone.generator.words import is_held_out
from cuarl.tasks.changes import content
from cuarl.tasks.nearest import BAR, Nearest
from cuarl.tasks.review import goal_words
from cuarl.tasks.suites import shipped_folder
from cuarl.tasks.task import SPLITS
from cuarl.workflow.generated_tasks import evaluated
from cuarl.workflow.task_proofs import prove_all


@pytest.fixture(scope="module")
def avoid():
    """What the evaluation suites ask for."""
    return evaluated([shipped_folder()])


@pytest.fixture(scope="module")
def some(avoid):
    """As many as show every kind."""
    return list(generate(600, 3, avoid))


def told(tasks):
    return hashlib.sha256(json.dumps([content(task) for task in tasks]).encode()).hexdigest()


def test_every_kind_of_goal_has_wordings_of_which_some_are_held_out():
    assert KINDS.keys() == WORDINGS.keys()
    assert all(len(texts) >= 4 for texts in WORDINGS.values())


def test_the_same_seed_gives_the_same_in_every_process_and_a_larger_count_goes_on():
    code = (
        "import hashlib, json; from cuarl.sim.phone.generator.generate import generate;"
        "from cuarl.tasks.changes import content;"
        "print(hashlib.sha256(json.dumps([content(task) for task in generate(40, 3)]).encode()).hexdigest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == told(generate(40, 3)) == told(islice(generate(10_000, 3), 40))
    assert told(generate(40, 4)) != told(generate(40, 3))


def test_draws_are_those_that_they_have_always_been():
    draw = Draw("a", 1)
    assert [draw.below(1000) for _ in range(4)] == [331, 885, 783, 140]
    assert draw.some("abcdef", 3) == ["d", "b", "f"]


def test_no_two_have_one_goal_and_each_part_is_there(some):
    assert len({goal_words(task.bind({})) for task in some}) == len({task.id for task in some}) == 600
    shares = {split: sum(task.split == split for task in some) / 600 for split in SPLITS}
    assert 0.6 < shares["train"] < 0.8 and all(shares[split] > 0.04 for split in SPLITS[1:])
    forms = {task.tags[0] for task in some}
    assert forms == {"one", "several", "sparing", "condition"}
    assert {task.difficulty for task in some} == {"easy", "medium", "hard"}


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_held_out_stands_in_its_part_alone(split, some):
    apps, kinds = set(HELD_OUT_APPS), set(HELD_OUT_KINDS)
    shown = {catalogue().apps[key] for key in apps}
    for task in some:
        if task.split == split:
            used = {KINDS[kind].app for kind in task.tags[1:]}
            text = json.dumps(content(task))
            assert split == "app" or not (used & apps or any(f"apps.{key}." in text for key in apps)), task
            assert (split == "kind") == bool(kinds & set(task.tags)), task
            names = [person["name"] for person in task.preset.get("contacts", ())]
            assert all(is_held_out(word) == (split == "object") for name in names for word in name.split()), task
            if split == "app":
                assert used & apps or any(name in task.description for name in shown) or _of_app(task), task


def _of_app(task):
    apps = set(HELD_OUT_APPS)
    settings = {one.path for one in catalogue().settings if apps & {one.app, one.about}}
    return any(
        check.path in settings or apps & {check.path.split(".")[0], str(check.value).split("/")[0]}
        for check in task.checks
    )


def test_nothing_that_evaluation_suites_ask_for_is_asked(avoid, some):
    nearest = Nearest([instance.goal for instance in avoid])
    assert max(nearest.of(task.description).similarity for task in some) < BAR
    settings = {one.path for one in catalogue().settings}
    asked = {check.path for instance in avoid for check in instance.checks} & settings
    assert asked and not asked & {check.path for task in some for check in task.checks}
    pages = {check.value for i in avoid for check in i.checks if check.path == "ui.current_activity"}
    assert not pages & {c.value for task in some for c in task.checks if c.path == "ui.current_activity"}


def test_a_goal_that_is_avoided_is_another_one(avoid, some):
    first = some[0]
    assert first.description not in {task.description for task in generate(20, 3, [*avoid, first.bind({})])}


def test_when_nothing_more_is_left_that_is_said(monkeypatch):
    monkeypatch.setattr("cuarl.sim.phone.generator.generate.TRIES", 0)
    with pytest.raises(TaskError, match="no goal beyond 0 is left"):
        next(generate(1, 3))


def test_the_oracle_solves_them_and_doing_nothing_does_not(some):
    sample = [task for split in SPLITS for task in [t for t in some if t.split == split][:5]]
    proofs = [proof for proofs in prove_all(sample, 1, profile="small", jobs=1) for proof in proofs]
    assert [(proof.task_id, proof.problem) for proof in proofs if proof.problem] == []
