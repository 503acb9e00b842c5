"""Proving tasks: doing nothing must not solve them, and the oracle must, without side effects.

On the simulator, spread over processes; elsewhere several episodes at once, as many as the environment bears.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import anyio

from cuarl.env.backend import Backend
from cuarl.env.base import AskedOracleEnv, Env, JudgingEnv, OracleEnv
from cuarl.env.sim.devices import SIMULATED, make_sim
from cuarl.errors import CuarlError, RolloutError
from cuarl.tasks.check import describe, verdict
from cuarl.tasks.task import Task, TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Action, Answer, Finish

__all__ = ["SIMULATED", "Proof", "prove", "prove_all", "prove_live", "prove_task"]

NO_PLAN = "it has no plan, so nothing shows that it can be solved"


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


def prove_task(task: Task, seeds: int, make_env: Callable[[], Env]) -> list[Proof]:
    """Proofs of one task."""

    async def all_seeds() -> list[Proof]:
        return [await prove(task, seed, make_env()) for seed in range(seeds)]

    return asyncio.run(all_seeds())


async def prove_live(
    tasks: Sequence[Task], seeds: int, backend: Backend, *, at_once: int, done: Callable[[], None]
) -> list[list[Proof]]:
    """Proofs of each task at the seeds 0 to ``seeds - 1``, in order, in environments of ``backend``.

    ``done`` is called after each. Raises PrerequisiteError for what is missing here.
    """
    found: dict[tuple[str, int], Proof] = {}
    limiter = anyio.CapacityLimiter(backend.concurrent(at_once))

    async def one(task: Task, seed: int) -> None:
        async with limiter:
            found[task.id, seed] = await _prove_made(task, seed, backend)
            done()

    try:
        await backend.start()
        async with anyio.create_task_group() as group:
            for task in tasks:
                for seed in range(seeds):
                    group.start_soon(one, task, seed)
    finally:
        with anyio.CancelScope(shield=True):
            await backend.close()
    return [[found[task.id, seed] for seed in range(seeds)] for task in tasks]


async def _prove_made(task: Task, seed: int, backend: Backend) -> Proof:
    try:
        env: Any = await backend.make_env(task.instantiate(seed))
    except RolloutError as error:
        return Proof(task.id, seed, error.what, 0)
    return await prove(task, seed, env, planned=backend.may_solve(task))


async def prove(task: Task, seed: int, env: Env, *, planned: bool = True) -> Proof:
    """Reset, judge at once, let the oracle work, judge again. What goes wrong is told in the proof.

    Without a plan for the oracle, where it needs one, only doing nothing is tried.
    """
    steps = 0
    try:
        instance = task.instantiate(seed)
        await env.reset(instance, seed)
        before = await env.state()
        if (await _judge(instance, before, env)).success:
            return Proof(task.id, seed, "solved by doing nothing", steps)
        if not planned:
            return Proof(task.id, seed, NO_PLAN, steps)
        answer, claimed, ask = None, None, _oracle(env)
        while claimed is None and steps < instance.max_steps:
            action = await ask()
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
        judged = await _judge(instance, before, env, answer, claimed)
        return Proof(task.id, seed, _problem(judged, claimed, instance), steps)
    except CuarlError as error:
        return Proof(task.id, seed, error.what, steps)
    finally:
        await env.close()


def _oracle(env: Env) -> Callable[[], Awaitable[Action]]:
    if isinstance(env, AskedOracleEnv):
        return env.ask_oracle

    async def told() -> Action:
        assert isinstance(env, OracleEnv)
        return env.oracle_action()

    return told


async def _judge(
    instance: TaskInstance,
    before: Mapping[str, Any],
    env: Env,
    answer: str | None = None,
    claimed: bool | None = None,
) -> Verdict:
    """By the task's checks, or by the environment where that judges itself. Raises RewardError without a verdict."""
    if isinstance(env, JudgingEnv):
        return await env.judge(answer, claimed)
    after = await env.state()  # which may tell anew what in it changes by itself
    return verdict(instance, before, after, answer, volatile=getattr(env, "volatile", ()))


def _missed(judged: Verdict, instance: TaskInstance) -> list[str]:
    """What does not hold, in words: the task's checks, or those that an environment has of its own."""
    if len(judged.checks) == len(instance.checks):
        pairs = zip(instance.checks, judged.checks, strict=True)
        return [f"{describe(c)} (is {found.actual!r})" for c, found in pairs if not found.passed]
    return [check.path for check in judged.checks if not check.passed]


def _problem(judged: Verdict, claimed: bool | None, instance: TaskInstance) -> str:
    missed = _missed(judged, instance)
    if claimed is None:
        return f"the oracle needs more than {instance.max_steps} steps" + (f"; open: {missed[0]}" if missed else "")
    if missed:
        return f"the oracle missed {missed[0]}"
    if judged.side_effects:
        return f"the oracle also changed {', '.join(judged.side_effects[:3])}"
    if not judged.success:
        return f"the oracle was given a score of {judged.score:g}"
    return "" if claimed else "the oracle gave up"
