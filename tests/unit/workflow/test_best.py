"""Which checkpoint of a run did best."""

import json

import pytest

from cuarl.errors import ConfigError
from cuarl.evaluate.suite import VALIDATION, Evaluation, write_results
from cuarl.evaluate.summary import Outcome, Summary, summarise
from cuarl.types import StopReason
from cuarl.workflow.best import best_step


@pytest.fixture
def run(tmp_path):
    """A run with checkpoints of steps 4, 8 and 12."""
    for step in (4, 8, 12):
        (tmp_path / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    return tmp_path


def evaluated(run, rates, seed=0, label="tasks"):
    for step, rate in rates.items():
        made = Evaluation(
            label=label,
            step=step,
            seed=seed,
            started_at=step,
            settings={"purpose": label} if label == VALIDATION else {},
            overall=Summary(n=10, tasks=1, success_rate=rate, failed=0),
        )
        write_results(run / "evals" / f"{label}-{seed}-{step}", made)


def metrics(run, values):
    lines = [json.dumps({"step": step, "reward/mean": value}) for step, value in values.items()]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def test_the_highest_success_among_steps_with_a_checkpoint_is_best_and_the_earliest_of_equals(run):
    evaluated(run, {0: 0.9, 4: 0.5, 8: 0.7, 12: 0.7, 16: 1.0})
    found = best_step(run)
    assert (
        found.step == 8
        and not found.fair
        and found.why == "step 8 of 3 checkpoints has the highest success in an evaluation, 0.7"
    )


def test_only_evaluations_of_equal_conditions_are_compared(run):
    evaluated(run, {4: 0.6, 8: 0.5, 12: 0.4})
    evaluated(run, {12: 1.0}, seed=1)
    assert best_step(run).step == 4


def test_validation_chooses_where_there_is_one(run):
    evaluated(run, {4: 0.5, 8: 0.9, 12: 0.7})
    evaluated(run, {4: 0.6, 12: 0.4}, label=VALIDATION)
    found = best_step(run)
    assert found == (4, "step 4 of 2 checkpoints has the highest success in validation, 0.6", True)


def test_any_metric_chooses_and_what_is_not_a_number_does_not_count(run):
    metrics(run, {4: 0.5, 8: float("nan"), 12: 0.2, 13: 9.0})
    assert best_step(run, "reward/mean").step == 4


def test_what_can_not_be_chosen_by_is_said(run):
    with pytest.raises(
        ConfigError, match=r"no checkpoint of the run has a value .* \(there are checkpoints of steps 4, 8, 12\)"
    ):
        best_step(run)
    metrics(run, {1: 0.5})
    with pytest.raises(ConfigError, match="no checkpoint"):
        best_step(run, "reward/mean")
    with pytest.raises(ConfigError, match=r'no metric "reward/men" \(did you mean "reward/mean"\?\)'):
        best_step(run, "reward/men")


def test_what_people_say_of_verdicts_chooses_with_the_rest(run):
    def outcome(i, success):
        return Outcome(episode_id=i, task_id="t", seed=1, success=success, stop=StopReason.DONE)

    for step, successes in ((4, (True, False)), (8, (False, False))):
        outcomes = tuple(outcome(f"e{step}.{n}", success) for n, success in enumerate(successes))
        made = Evaluation(
            label="tasks", step=step, seed=0, started_at=step, outcomes=outcomes, overall=summarise(outcomes)
        )
        write_results(run / "evals" / f"tasks-{step}", made)
    assert best_step(run).step == 4
    found = best_step(run, said={"e4.0": False, "e8.1": True})
    assert found[:2] == (
        8,
        "step 8 of 2 checkpoints has the highest success in an evaluation, 0.5, with verdicts of people",
    )
    assert best_step(run, said={"somebody else's": True}).why.endswith("0.5")
