"""Training beside collecting against in turn, with slow environments: ``python benchmarks/offpolicy.py``.

First, wall time: the same few steps at each latency injected into every step of the environment, in turn (0) and with
groups at most 1 and 4 steps old. Then success: longer runs without latency, since latency changes no result, which is
checked: the weights of a mode must be the same at every latency. What is learnt is measured on new instances of the
tasks that are trained on. ``waits`` counts how often a step waits for environments, one wait after another: unlike wall
times it is the same on every machine. One thread a computation, so that training and sampling beside each other take a
core each; wall times mean something on quiet cores only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import torch

from cuarl.config.load import Resolved, resolve
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.evaluate.summary import Summary
from cuarl.policy.load import load_policy
from cuarl.settings import Settings
from cuarl.tasks.select import Filters
from cuarl.tasks.source import load
from cuarl.tasks.suites import shipped_folder
from cuarl.tasks.task import Task, TaskInstance
from cuarl.train.learner import Learner
from cuarl.train.loop import LoopConfig, train
from cuarl.train.processes import join_processes
from cuarl.types import Action, StepResult
from cuarl.workflow import environments, players
from cuarl.workflow.asynchronous import Asynchronous, own_copy
from cuarl.workflow.collector import Collector, InTurn
from cuarl.workflow.evaluation import EvaluationPlan, run_evaluation
from cuarl.workflow.from_config import learner_config, model_spec
from cuarl.workflow.source import Source


@dataclass
class Waits:
    """How often environments were waited for: those that are slow at the same time count once."""

    seconds: float
    slow: int = 0
    count: int = 0

    async def one(self) -> None:
        self.count += self.slow == 0
        self.slow += 1
        try:
            await anyio.sleep(self.seconds)
        finally:
            self.slow -= 1


class Slow:
    """An environment whose steps take longer."""

    def __init__(self, env: Env, waits: Waits) -> None:
        self._env, self._waits = env, waits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    async def step(self, action: Action) -> StepResult:
        await self._waits.one()
        return await self._env.step(action)


def slowed(backend: Backend, waits: Waits) -> Backend:
    """``backend`` with slow environments."""

    async def make(task: TaskInstance) -> Env:
        return Slow(await backend.make_env(task), waits)

    return replace(backend, make_env=make)


@dataclass
class Steps:
    """A sink that keeps the metrics of each step."""

    rows: list[Mapping[str, float]] = field(default_factory=list)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.rows.append(values)

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


class Unsaved:
    """Where nothing is kept."""

    def save(self, step: int) -> Path:
        return Path()

    def commit(self, step: int, metrics: Mapping[str, float], pending: Mapping[str, float] | None = None) -> None:
        pass


@dataclass(frozen=True)
class Trained:
    """What came of a run."""

    learner: Learner
    wall_s: float
    waits: float
    """For environments, one after another, a step."""
    rows: Sequence[Mapping[str, float]]

    def mean(self, name: str) -> float:
        return sum(r.get(name, 0.0) for r in self.rows) / len(self.rows)

    @property
    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.learner.policy.parameters()])


def configured(args: argparse.Namespace, age: int, steps: int, **fields: Any) -> Resolved:
    flags = {
        "max_steps": steps,
        "groups_per_batch": args.groups,
        "group_size": args.group_size,
        "device": "cpu",
        "max_turns": args.max_turns,
        "max_steps_off_policy": age,
        "seed": args.seed,
        # as many episodes at a time as there may be groups in flight
        "max_concurrent_rollouts": args.groups * args.group_size * (age + 1),
        **fields,
    }
    return resolve(flags=flags)


def trained(resolved: Resolved, tasks: Sequence[Task], latency_s: float) -> Trained:
    """Train as ``cuarl train`` does, without a record."""
    config, sink = resolved.config, Steps()
    learner = Learner(load_policy(model_spec(resolved, "cpu")), learner_config(config), join_processes("cpu"))
    waits = Waits(latency_s)
    backend = slowed(environments.backend(config, tasks, Settings()), waits)
    collector = Collector(config=config, tasks=tasks, run_id="b", backend=backend, curriculum=learner.curriculum)
    loop = LoopConfig(max_steps=config.max_steps, eval_every=0, save_every=0, skip_baseline=True)

    async def unmeasured(step: int) -> None:
        return None

    async def work() -> None:
        if config.max_steps_off_policy:
            beside = Asynchronous(collector, learner, own_copy(config, learner), sink)
            async with beside.running():
                await train(loop, learner, beside, unmeasured, sink, Unsaved(), 0, beside.settled)
            return
        player = players.in_process(config, learner.policy, temperature=config.temperature, strict=True)
        await train(loop, learner, InTurn(collector, Source(player)), unmeasured, sink, Unsaved())

    start = time.perf_counter()
    anyio.run(work)
    return Trained(learner, time.perf_counter() - start, waits.count / config.max_steps, sink.rows)


def measured(resolved: Resolved, tasks: Sequence[Task], learner: Learner, episodes: int) -> Summary:
    config = resolved.config
    player = players.in_process(config, learner.policy, temperature=config.eval_temperature, strict=True)
    what = EvaluationPlan(config=config, tasks=tasks, episodes=episodes)

    async def work() -> Summary:
        return (await run_evaluation(what, player, Settings(), prefix="e")).overall

    return anyio.run(work)


# --- the tables ----------------------------------------------------------------------------------------------------


def name(age: int) -> str:
    return f"beside, at most {age} old" if age else "in turn"


def timing(args: argparse.Namespace, tasks: Sequence[Task]) -> Iterator[str]:
    """Wall time by latency and mode."""
    yield f"{args.steps} steps of {args.groups} groups of {args.group_size}, at most {args.max_turns} turns"
    yield ""
    yield "| latency of a step | mode | wall s | against in turn | waits a step | staleness mean / max | dropped |"
    yield "|---|---|---|---|---|---|---|"
    weights: dict[int, torch.Tensor] = {}
    for latency in args.latencies:
        in_turn = None
        for age in (0, *args.ages):
            done = trained(configured(args, age, args.steps), tasks, latency / 1000)
            in_turn = in_turn or done.wall_s
            stale = max(r.get("async/staleness_max", 0.0) for r in done.rows)
            dropped = sum(r.get("async/dropped", 0.0) for r in done.rows)
            yield (
                f"| {latency} ms | {name(age)} | {done.wall_s:.1f} | {in_turn / done.wall_s:.2f}x | "
                f"{done.waits if latency else 0:.1f} | "
                f"{done.mean('async/staleness_mean'):.2f} / {stale:.0f} | {dropped:.0f} |"
            )
            if not torch.equal(weights.setdefault(age, done.weights), done.weights):
                raise SystemExit(f"{name(age)}: the weights depend on the latency")


def learning(args: argparse.Namespace, tasks: Sequence[Task]) -> Iterator[str]:
    """Success by mode."""
    yield f"{args.success_steps} steps without latency, {args.episodes} episodes of {len(tasks)} tasks measured"
    yield ""
    yield "| mode | success | 95 % interval | staleness mean / max | dropped | wall s |"
    yield "|---|---|---|---|---|---|"
    decoupled = {"decoupled": True, "importance_cap": 2.0}
    plain = [(age, name(age), {}) for age in (0, *args.ages)]
    runs: list[tuple[int, str, dict[str, Any]]] = [
        *plain,
        (max(args.ages), f"{name(max(args.ages))}, decoupled", decoupled),
    ]
    for i, (age, title, fields) in enumerate(runs):
        resolved = configured(args, age, args.success_steps, **fields)
        if i == 0:
            base = Learner(
                load_policy(model_spec(resolved, "cpu")), learner_config(resolved.config), join_processes("cpu")
            )
            yield f"| base | {success(measured(resolved, tasks, base, args.episodes))} | | | |"
        done = trained(resolved, tasks, 0.0)
        stale = max(r.get("async/staleness_max", 0.0) for r in done.rows)
        dropped = sum(r.get("async/dropped", 0.0) for r in done.rows)
        found = success(measured(resolved, tasks, done.learner, args.episodes))
        yield (
            f"| {title} | {found} | {done.mean('async/staleness_mean'):.2f} / {stale:.0f} | {dropped:.0f} | "
            f"{done.wall_s:.0f} |"
        )


def success(s: Summary) -> str:
    assert s.success_rate is not None and s.ci_low is not None and s.ci_high is not None
    return f"{100 * s.success_rate:.1f} % | {100 * s.ci_low:.1f}–{100 * s.ci_high:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--latencies", nargs="*", type=int, default=[0, 50, 200], help="milliseconds; none: no first table"
    )
    parser.add_argument("--ages", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--steps", type=int, default=10, help="a multiple of every age plus 1 compares best")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--max-turns", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=8, help="how many easy settings are trained on")
    parser.add_argument("--success-steps", type=int, default=24, help="0 leaves the second table out")
    parser.add_argument("--episodes", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    filters = Filters(categories=(), difficulties=("easy",), limit=args.tasks, seed=args.seed)
    tasks = load(("settings_train",), filters, role="train", folders=[shipped_folder()]).tasks
    if args.latencies:
        for line in timing(args, tasks):
            print(line, flush=True)
    if args.success_steps:
        print()
        for line in learning(args, tasks):
            print(line, flush=True)


if __name__ == "__main__":
    main()
