"""What collecting costs: 1,000 oracle episodes on the simulated phone, 64 at a time, stored and not; and the runner
alone.

    python -m benchmarks.rollout                    1,000 episodes at 192x384, SQLite in a temporary folder
    python -m benchmarks.rollout --profile phone --episodes 200

The runner alone is measured on an environment that does nothing, so what is left is the cost of a turn: limits, seeds,
records, loop guard, scheduling. The store's share is what of the wall time goes when nothing is stored.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
from PIL import Image

from cuarl.agent.base import Agent, Decision
from cuarl.agent.scripted import OracleAgent
from cuarl.env.base import Capabilities, Env
from cuarl.env.sim.phone import SimEnv
from cuarl.rollout.pool import Save, collect
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec, plan
from cuarl.store import RunRecord, Store
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.trajectory import Group
from cuarl.types import Click, Observation, Screenshot, StepResult

AT_ONCE = 64
SWITCHES = (
    "network.wifi.enabled", "network.bluetooth.enabled", "network.airplane_mode", "display.dark_theme",
    "display.night_light", "battery.saver", "sound.dnd", "location.enabled",
)  # fmt: skip


def switches() -> list[Task]:
    """One task a switch: turn it the other way."""
    return [
        Task(
            id=path,
            description=f"Switch {path} on",
            preset={path: False},
            max_steps=20,
            checks=(Check(path=path, value=True),),
        )
        for path in SWITCHES
    ]


class Still:
    """An environment that does nothing, at once."""

    capabilities = Capabilities(actions=frozenset({"click"}))
    seen = (
        Observation(Screenshot(Image.new("RGB", (192, 384)))),
        Observation(Screenshot(Image.new("RGB", (192, 384), "red"))),
    )

    def __init__(self) -> None:
        self.steps = 0

    async def reset(self, task: object, seed: int) -> Observation:
        return self.seen[0]

    async def step(self, action: object) -> StepResult:
        self.steps += 1
        return StepResult(self.seen[self.steps % 2])

    async def state(self) -> dict[str, object]:
        return {}

    async def close(self) -> None:
        pass


class Clicks:
    """An agent that clicks somewhere else each time."""

    name = "clicks"

    async def act(self, task: object, observation: object, history: Sequence[object], seed: int) -> Decision:
        return Decision(action=Click(x=7 * len(history), y=0))


def run(specs: Sequence[EpisodeSpec], setup: Setup, save: Save | None = None) -> tuple[int, float, float]:
    """Turns, wall and processor seconds."""

    async def work() -> list[Group]:
        return await collect(specs, setup, max_concurrent=AT_ONCE, save=save)

    wall, cpu = time.perf_counter(), time.process_time()
    groups = anyio.run(work)
    turns = sum(len(t.turns) for g in groups for t in g.trajectories)
    failed = [t.task_id for g in groups for t in g.trajectories if setup.make_agent is oracle and not t.success]
    assert not failed, f"the oracle failed at {failed[:5]}"
    return turns, time.perf_counter() - wall, time.process_time() - cpu


def oracle(spec: EpisodeSpec, env: Env) -> Agent:
    return OracleAgent(env)


def runner_alone(episodes: int) -> dict[str, float]:
    async def make_env(task: TaskInstance) -> Env:
        return Still()

    task = Task(id="still", description="Click", max_steps=20)
    specs = plan([task] * episodes, group_size=1, run_seed=0, prefix="still")
    turns, _, cpu = run(specs, Setup(make_env=make_env, make_agent=lambda s, e: Clicks()))
    return {"turns": turns, "us_per_turn": round(1e6 * cpu / turns, 1)}


def oracle_episodes(episodes: int, profile: str) -> dict[str, float]:
    async def make_env(task: TaskInstance) -> Env:
        return SimEnv(profile)

    setup, tasks = Setup(make_env=make_env, make_agent=oracle), switches()
    specs = plan([tasks[i % len(tasks)] for i in range(episodes)], group_size=1, run_seed=0, prefix="b")
    run(specs[:AT_ONCE], setup)
    turns, bare, _ = run(specs, setup)
    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{Path(folder) / 'b.db'}") as store:
        store.start_run(RunRecord(id="b", name="b"))

        async def save(episode: Episode) -> None:
            await store.submit(episode.trajectory, episode.pictures)

        start = time.perf_counter()
        run(specs, setup, save)
        store.drain()
        stored = time.perf_counter() - start
        kept = len(store.episodes())
    assert kept == episodes
    return {
        "episodes": episodes,
        "turns": turns,
        "episodes_per_s": round(episodes / bare, 1),
        "turns_per_s": round(turns / bare),
        "stored_episodes_per_s": round(episodes / stored, 1),
        "store_share": round(1 - bare / stored, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--profile", default="small")
    args = parser.parse_args()
    print(json.dumps({"runner": runner_alone(300), "oracle": oracle_episodes(args.episodes, args.profile)}, indent=1))


if __name__ == "__main__":
    main()
