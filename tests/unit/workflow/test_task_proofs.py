from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cuarl.env.backend import Backend
from cuarl.errors import EnvError
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.trajectory import CheckResult, Verdict
from cuarl.types import Action, Finish
from cuarl.workflow.task_proofs import NO_PLAN, Proof, prove, prove_live, prove_task
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


class AskedLampEnv(LampEnv):
    """The same, whose oracle has to be asked, as on a page."""

    async def ask_oracle(self) -> Action:
        return self.moves.pop(0)


def test_tasks_are_proven_in_their_own_environment_several_at_once() -> None:
    tasks = [TASK.model_copy(update={"id": name}) for name in ("asked", "dark", "planless", "gone")]
    made: list[LampEnv] = []
    events: list[str] = []

    async def make(task: TaskInstance) -> Any:
        if task.task_id == "gone":
            raise EnvError("no lamp is left")
        made.append(AskedLampEnv(LAMP, DONE) if task.task_id == "asked" else LampEnv(DONE))
        return made[-1]

    async def start() -> None:
        events.append("start")

    async def close() -> None:
        events.append("close")

    backend = Backend(make, start=start, close=close, may_solve=lambda task: task.id != "planless")
    proofs = asyncio.run(prove_live(tasks, 2, backend, at_once=3, done=lambda: events.append("done")))
    assert proofs == [
        [Proof("asked", seed, "", 2) for seed in (0, 1)],
        [Proof("dark", seed, "the oracle missed lamp equals True (is False)", 1) for seed in (0, 1)],
        [Proof("planless", seed, NO_PLAN, 0) for seed in (0, 1)],
        [Proof("gone", seed, "no lamp is left", 0) for seed in (0, 1)],
    ]
    assert events == ["start", *["done"] * 8, "close"]
    assert [env.closed for env in made] == [1] * 6


class JudgingLampEnv(AskedLampEnv):
    """One that judges by itself, and shows nobody its state."""

    async def state(self) -> dict[str, Any]:
        return {}

    async def judge(self, answer: str | None, claimed: bool | None) -> Verdict:
        done = self.device["lamp"]
        check = CheckResult(path="the lamp burns", op="equals", passed=done)
        return Verdict(success=done, score=float(done), checks=(check,), claimed=claimed)


@pytest.mark.parametrize(
    ("preset", "moves", "problem"),
    [
        ({}, (LAMP, DONE), ""),
        ({"lamp": True}, (DONE,), "solved by doing nothing"),
        ({}, (FAN, DONE), "the oracle missed the lamp burns"),
    ],
)
def test_an_environment_that_judges_itself_is_believed(
    preset: dict[str, Any], moves: tuple[Action, ...], problem: str
) -> None:
    task = TASK.model_copy(update={"checks": (), "preset": preset})
    assert asyncio.run(prove(task, 0, JudgingLampEnv(*moves))).problem == problem
