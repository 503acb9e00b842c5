"""Proving tasks on the simulator: doing nothing must not solve them, and the oracle must, without side effects."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

from cuarl.env.base import OracleEnv
from cuarl.env.sim.devices import SIMULATED, make_sim
from cuarl.errors import CuarlError
from cuarl.tasks.check import describe, verdict
from cuarl.tasks.task import Task, TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Answer, Finish

__all__ = ["SIMULATED", "Proof", "ProvableEnv", "prove", "prove_all", "prove_task"]


class ProvableEnv(OracleEnv, Protocol):
    """What a proof needs of an environment: the oracle, and which paths change by themselves."""

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault."""
        ...


class Proof(NamedTuple):
    """What came of one task at one seed."""

    task_id: str
    seed: int
    problem: str
    """Empty if the task is proven."""
    steps: int
    """Turns that the oracle took, its last one included."""


def prove_all(tasks: Sequence[Task], seeds: int, *, profile: str, jobs: int) -> Iterator[list[Proof]]:
    """Proofs of each task at the seeds 0 to ``seeds - 1``, task by task in order, spread over processes."""
    prove = partial(_prove_simulated, seeds=seeds, profile=profile)
    if jobs == 1 or len(tasks) < 2:
        yield from map(prove, tasks)
        return
    with ProcessPoolExecutor(min(jobs, len(tasks)), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(prove, tasks)


def _prove_simulated(task: Task, seeds: int, profile: str) -> list[Proof]:
    return prove_task(task, seeds, partial(make_sim, task.env, profile))


def prove_task(task: Task, seeds: int, make_env: Callable[[], ProvableEnv]) -> list[Proof]:
    """Proofs of one task."""

    async def all_seeds() -> list[Proof]:
        return [await prove(task, seed, make_env()) for seed in range(seeds)]

    return asyncio.run(all_seeds())


async def prove(task: Task, seed: int, env: ProvableEnv) -> Proof:
    """Reset, judge at once, let the oracle work, judge again. What goes wrong is told in the proof."""
    steps = 0
    try:
        instance = task.instantiate(seed)
        await env.reset(instance, seed)
        before = await env.state()
        if _judge(instance, before, before, None, env).success:
            return Proof(task.id, seed, "solved by doing nothing", steps)
        answer, claimed = None, None
        while claimed is None and steps < instance.max_steps:
            action = env.oracle_action()
            steps += 1
            match action:
                case Finish():
                    claimed, answer = action.success, action.message or answer
                case Answer():
                    answer = action.text
            if claimed is None:
                rejected = (await env.step(action)).info.get("rejected")
                if rejected:
                    return Proof(task.id, seed, f"the oracle's {action.kind} was rejected: {rejected}", steps)
        judged = _judge(instance, before, await env.state(), answer, env)
        return Proof(task.id, seed, _problem(judged, claimed, instance), steps)
    except CuarlError as error:
        return Proof(task.id, seed, error.what, steps)
    finally:
        await env.close()


def _judge(
    instance: TaskInstance, before: Mapping[str, Any], after: Mapping[str, Any], answer: str | None, env: ProvableEnv
) -> Verdict:
    return verdict(instance, before, after, answer, volatile=env.volatile)


def _problem(judged: Verdict, claimed: bool | None, instance: TaskInstance) -> str:
    missed = [
        f"{describe(c)} (is {r.actual!r})" for c, r in zip(instance.checks, judged.checks, strict=True) if not r.passed
    ]
    if claimed is None:
        return f"the oracle needs more than {instance.max_steps} steps" + (f"; open: {missed[0]}" if missed else "")
    if missed:
        return f"the oracle missed {missed[0]}"
    if judged.side_effects:
        return f"the oracle also changed {', '.join(judged.side_effects[:3])}"
    return "" if claimed else "the oracle gave up"
