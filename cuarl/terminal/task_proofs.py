"""Proves tasks where they can be played here, with a bar that shows how far it is."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cuarl.tasks.select import some
from cuarl.tasks.task import Task
from cuarl.terminal.output import console, is_terminal, note
from cuarl.terminal.state import STATE, load_settings

if TYPE_CHECKING:
    from cuarl.workflow.task_proofs import Proof


def prove_here(
    chosen: Sequence[Task], seeds: int, profile: str, jobs: int, live: Sequence[str], sets: Sequence[str]
) -> list[dict[str, Any]]:
    """What came of each task that can be played here, in the order of ``chosen``."""
    from rich.progress import Progress

    from cuarl.workflow.proof_record import remember
    from cuarl.workflow.task_proofs import SIMULATED, prove_all

    provable = [task for task in chosen if task.env in (*SIMULATED, *live)]
    if len(provable) < len(chosen):
        others = some([task.id for task in chosen if task.env not in (*SIMULATED, *live)])
        note(f"{'not played here' if live else 'not simulated'}, so not proven: {others}")
    silent = STATE.quiet or STATE.display in ("plain", "none") or not is_terminal(sys.stderr)
    found: dict[str, list[Proof]] = {}
    with Progress(console=console(stderr=True), transient=True, disable=silent) as bar:
        done = partial(bar.advance, bar.add_task("proving", total=len(provable) * seeds))
        for env in live:
            there = [task for task in provable if task.env == env]
            found |= {proofs[0].task_id: proofs for proofs in _live_proofs(env, there, seeds, jobs, sets, done)}
        simulated = [task for task in provable if task.env in SIMULATED]
        for proofs in prove_all(simulated, seeds, profile=profile, jobs=jobs):
            found[proofs[0].task_id] = proofs
            done(seeds)
    told = [_told(found[task.id]) for task in provable]
    remember(load_settings(), ((task, 0 if one["failed"] else seeds) for task, one in zip(provable, told, strict=True)))
    return told


def _live_proofs(
    env: str, tasks: Sequence[Task], seeds: int, jobs: int, sets: Sequence[str], done: Callable[[], None]
) -> list[list[Proof]]:
    from cuarl.config.load import resolve
    from cuarl.workflow import environments, signals
    from cuarl.workflow.task_proofs import prove_live

    if not tasks:
        return []
    config = resolve(flags={"env": env, "max_concurrent_rollouts": jobs}, sets=sets).config
    backend = environments.check(config, tasks, load_settings())
    return signals.run(partial(prove_live, tasks, seeds, backend, at_once=jobs, done=done))


def _told(proofs: Sequence[Proof]) -> dict[str, Any]:
    problems = Counter(proof.problem for proof in proofs if proof.problem)
    return {
        "task_id": proofs[0].task_id,
        "failed": problems.total(),
        "steps": max(proof.steps for proof in proofs),
        "problems": [
            {"problem": problem, "seeds": [proof.seed for proof in proofs if proof.problem == problem]}
            for problem in problems
        ],
    }
