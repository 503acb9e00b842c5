"""What a run is given besides its configuration is compared when it is resumed."""

from dataclasses import replace

import pytest

from cuarl.config.load import resolve
from cuarl.errors import ResumeMismatch
from cuarl.run import Run
from cuarl.workflow import inputs
from cuarl.workflow.inputs import Inputs
from tests.unit.workflow.switch import TASKS, experiment

OTHER = TASKS[0].model_copy(update={"description": "Turn the lamp on now"})


def resumed(folder, **fields):
    """A run that was started with the lamps' tasks, and the experiment that resumes it."""
    run = Run.create(folder / "runs", resolve(), name="mine", kind="train")
    inputs.keep(run, Inputs.of("finished", TASKS, TASKS[:1]))
    return run, replace(experiment(folder), resume=run.path, **fields)


def test_the_same_inputs_go_on(tmp_path):
    _, asked = resumed(tmp_path)
    inputs.check(asked, Inputs.of("finished", TASKS, TASKS[:1]))
    assert asked.watcher.notes == []


@pytest.mark.parametrize(
    ("train", "evaluated", "said"),
    [
        ([OTHER, TASKS[1]], TASKS[:1], "training task lamp_on: description"),
        (TASKS[:1], TASKS[:1], "training task lamp_off is gone"),
        (TASKS, TASKS, "evaluation task lamp_off is new"),
        (TASKS[::-1], TASKS[:1], "training task the tasks are the same in another order"),
    ],
    ids=["another", "gone", "new", "order"],
)
def test_what_changed_is_refused_and_told_where_it_is_accepted(tmp_path, train, evaluated, said):
    run, asked = resumed(tmp_path)
    given = Inputs.of("finished", train, evaluated)
    with pytest.raises(ResumeMismatch, match=said) as error:
        inputs.check(asked, given)
    assert inputs.OPTION in error.value.hint
    asked = replace(asked, accept_changes=True)
    inputs.check(asked, given)
    assert said in asked.watcher.notes[0]
    inputs.keep(run, given)
    inputs.check(replace(asked, accept_changes=False), given)


def test_episodes_to_imitate_are_compared_too(tmp_path):
    run, asked = resumed(tmp_path)
    inputs.check_imitated(asked, run.path, ["a", "b"])
    inputs.check_imitated(asked, run.path, ["a", "b"])
    with pytest.raises(ResumeMismatch, match="of 2 episodes 1 are gone, and 2 are new"):
        inputs.check_imitated(asked, run.path, ["b", "c", "d"])


def test_a_record_that_can_not_be_read_is_said(tmp_path):
    run, asked = resumed(tmp_path)
    (run.path / "tasks.json").write_text("{")
    with pytest.raises(ResumeMismatch, match="can't be read"):
        inputs.check(asked, Inputs.of("finished", TASKS, TASKS[:1]))


def test_a_new_run_has_nothing_to_compare(tmp_path):
    inputs.check(experiment(tmp_path), Inputs.of("finished", TASKS, TASKS))
