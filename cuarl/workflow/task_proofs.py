"""Proving tasks: doing nothing must not solve them, and the oracle must, without side effects.

On the simulator, spread over processes; in a browser or on a Linux desktop, several episodes at once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

import anyio

from cuarl.env.backend import Backend
from cuarl.env.base import AskedOracleEnv, Env, OracleEnv
from cuarl.env.sim.devices import SIMULATED, make_sim
from cuarl.errors import CuarlError, RolloutError
from cuarl.tasks.check import describe, verdict
from cuarl.tasks.task import Task, TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Action, Answer, Finish

__all__ = ["SIMULATED", "Proof", "ProvableEnv", "prove", "prove_all", "prove_live", "prove_task"]

NO_PLAN = "it has no plan, so nothing shows that it can be solved"


class ProvableEnv(Env, Protocol):
    """What a proof needs of an environment besides its oracle: which paths change by themselves."""

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


async def prove(task: Task, seed: int, env: ProvableEnv, *, planned: bool = True) -> Proof:
    """Reset, judge at once, let the oracle work, judge again. What goes wrong is told in the proof.

    Without a plan for the oracle, where it needs one, only doing nothing is tried.
    """
    steps = 0
    try:
        instance = task.instantiate(seed)
        await env.reset(instance, seed)
        before = await env.state()
        if _judge(instance, before, before, None, env).success:
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
        judged = _judge(instance, before, await env.state(), answer, env)
        return Proof(task.id, seed, _problem(judged, claimed, instance), steps)
    except CuarlError as error:
        return Proof(task.id, seed, error.what, steps)
    finally:
        await env.close()


def _oracle(env: ProvableEnv) -> Callable[[], Awaitable[Action]]:
    if isinstance(env, AskedOracleEnv):
        return env.ask_oracle

    async def told() -> Action:
        assert isinstance(env, OracleEnv)
        return env.oracle_action()

    return told


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
