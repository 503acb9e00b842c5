from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cuarl.tasks.task import Check, Task
from cuarl.types import Action, Finish
from cuarl.workflow.task_proofs import Proof, prove, prove_task
from tests.unit.workflow.lamp_env import DONE, FAN, GAVE_UP, LAMP, NOWHERE, LampEnv, says

TASK = Task(id="lamp", description="Turn the lamp on", max_steps=3, checks=(Check(path="lamp", value=True),))
ASKED = Task(id="asked", description="What time is it?", checks=(Check(path="answer", op="icontains", value="noon"),))


@pytest.mark.parametrize(
    ("task", "changed", "moves", "problem"),
    [
        (TASK, {}, (LAMP, DONE), ""),
        (TASK, {"preset": {"lamp": True}}, (DONE,), "solved by doing nothing"),
        (TASK, {}, (DONE,), "the oracle missed lamp equals True (is False)"),
        (TASK, {}, (LAMP, FAN, DONE), "the oracle also changed fan"),
        (TASK, {"allow": ("fan",)}, (LAMP, FAN, DONE), ""),
        (TASK, {}, (NOWHERE, LAMP, DONE), "the oracle's click was rejected: nothing is there"),
        (TASK, {}, (LAMP, LAMP, LAMP, DONE), "the oracle needs more than 3 steps"),
        (TASK, {}, (FAN, FAN, FAN), "the oracle needs more than 3 steps; open: lamp equals True (is False)"),
        (TASK, {}, (LAMP, GAVE_UP), "the oracle gave up"),
        (TASK, {"preset": {"broken": True}}, (), "the lamp is broken"),
        (TASK, {"checks": (Check(path="lmp", value=True),)}, (),
            'the device state has no "lmp" (did you mean "lamp"?)'),
        (ASKED, {}, (says("It is noon"), DONE), ""),
        (ASKED, {}, (Finish(message="Noon, I think"),), ""),
        (ASKED, {}, (says("It is night"), DONE), "the oracle missed answer icontains 'noon' (is 'It is night')"),
    ],
)  # fmt: skip
def test_a_proof_tells_what_goes_wrong(
    task: Task, changed: dict[str, Any], moves: tuple[Action, ...], problem: str
) -> None:
    env = LampEnv(*moves)
    proof = asyncio.run(prove(task.model_copy(update=changed), 7, env))
    assert (proof.task_id, proof.seed, proof.problem) == (task.id, 7, problem)
    assert env.closed == 1


def test_a_task_is_proven_at_every_seed_in_a_fresh_environment() -> None:
    assert prove_task(TASK, 3, lambda: LampEnv(LAMP, DONE)) == [Proof("lamp", seed, "", 2) for seed in range(3)]


def test_b42_a_task_that_is_solved_at_the_start_is_found_before_anything_is_done() -> None:
    solved = TASK.model_copy(update={"preset": {"lamp": True}})
    assert prove_task(solved, 2, lambda: LampEnv(DONE)) == [
        Proof("lamp", seed, "solved by doing nothing", 0) for seed in range(2)
    ]
