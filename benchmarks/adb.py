"""The phone's suites through adb and in process: the same verdicts, and what the way through adb costs.

    python -m benchmarks.adb                        every phone task, oracle and random agent, one seed
    python -m benchmarks.adb --seeds 3 --suites settings_eval phone_eval --agents oracle

Each episode runs twice: on the simulated phone itself, and on the same phone behind the local adb server, through the
real client library. Differences in actions, screens or verdicts are printed, and the exit code is 1 if a verdict
differs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import anyio

from cuarl.agent.base import Agent
from cuarl.agent.scripted import OracleAgent, RandomAgent
from cuarl.env.adb.commands import swipes
from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.options import Options as AdbOptions
from cuarl.env.adb.transport import Device, client
from cuarl.env.base import Env
from cuarl.env.sim.phone import SimEnv
from cuarl.local.adb import serve
from cuarl.local.adb_phone import FakePhone
from cuarl.rollout.episode import run_episode
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec, Limits, plan
from cuarl.sim.phone.world import World
from cuarl.tasks.suites import load_suites
from cuarl.tasks.task import Task, TaskInstance
from cuarl.trajectory import Trajectory
from cuarl.types import Action, Scroll

AGENTS: dict[str, Callable[[Env], Agent]] = {
    "oracle": OracleAgent,
    "random": lambda env: RandomAgent(env.capabilities.actions),
}
PHONES = 4


class Fingered(SimEnv):
    """The phone in process, where a scroll is made by a finger as it is through adb, and not by a wheel.

    The oracle needs no such thing: it looks where a scroll has led. Random actions would part at the first scroll that
    starts on a slider.
    """

    def act(self, world: World, action: Action) -> World:
        """What a finger does."""
        if not isinstance(action, Scroll):
            return super().act(world, action)
        for swipe in swipes(action, (world.profile.width_px, world.profile.height_px)):
            world = super().act(world, swipe)
        return world


class Pair(NamedTuple):
    """One episode, both ways."""

    inside: Trajectory
    outside: Trajectory

    @property
    def same_course(self) -> bool:
        """Whether every action and every screen was the same, and the end."""
        return all(_course(t) == _course(self.inside) for t in self)

    @property
    def same_verdict(self) -> bool:
        """Whether the whole verdict was the same: success, each check, side effects, what was claimed."""
        return all((t.verdict, t.reward, t.failure) == (self.inside.verdict, self.inside.reward, None) for t in self)


def _course(t: Trajectory) -> tuple[Any, ...]:
    return t.stop, t.final_screenshot, [(turn.action, turn.screenshot) for turn in t.turns]


async def play(spec: EpisodeSpec, agent: str, env: Env) -> Trajectory:
    """Run one episode in ``env``."""

    async def make(task: TaskInstance) -> Env:
        return env

    how = Setup(make_env=make, make_agent=lambda spec, env: AGENTS[agent](env), limits=Limits(max_turns=40))
    return (await run_episode(spec, how)).trajectory


async def compare(
    specs: Sequence[EpisodeSpec], agent: str, *, profile: str = "small", phones: int = PHONES
) -> tuple[list[Pair], float, float]:
    """Play each episode both ways; gives the pairs, and the seconds that each way took in all."""
    lent = [FakePhone(f"phone-{n}", profile) for n in range(phones)]
    begin = time.perf_counter()
    inside = [await play(spec, agent, Fingered(profile) if agent == "random" else SimEnv(profile)) for spec in specs]
    between = time.perf_counter()
    outside: dict[str, Trajectory] = {}
    left = list(specs)

    async def worker(adb: Any, serial: str) -> None:
        while left:
            spec = left.pop(0)
            env = AdbEnv(Device(adb, serial), AdbOptions(settle_ms=0.01), managed=True)
            outside[spec.episode_id] = await play(spec, agent, env)

    async with serve(*lent) as port, anyio.create_task_group() as workers:
        for phone in lent:
            workers.start_soon(worker, client("127.0.0.1", port), phone.serial)
    pairs = [Pair(t, outside[t.episode_id]) for t in inside]
    return pairs, between - begin, time.perf_counter() - between


def phone_tasks(suites: Sequence[str] = ()) -> list[Task]:
    """The tasks of the simulated phone, of all suites or of those named."""
    return [t for s in load_suites() if not suites or s.name in suites for t in s.tasks if t.env == "phone"]


def report(agent: str, pairs: Sequence[Pair], inside_s: float, outside_s: float) -> bool:
    """Print what came of an agent's episodes; whether all verdicts were the same."""
    different = [pair for pair in pairs if not pair.same_verdict]
    solved = [sum(t.reward == 1 for t in ts) for ts in zip(*pairs, strict=True)]
    turns = sum(len(pair.outside.turns) for pair in pairs)
    print(
        f"{agent}: {len(pairs)} episodes, solved {solved[0]} in process and {solved[1]} through adb, "
        f"{len(different)} other verdicts, {sum(not pair.same_course for pair in pairs)} other courses; "
        f"{turns / inside_s:.0f} and {turns / outside_s:.0f} steps/s"
    )
    for inside, outside in different:
        print(f"  {inside.task_id} seed {inside.seed}:")
        for name, t in (("in process", inside), ("adb", outside)):
            print(f"    {name:10} {t.stop} reward {t.reward} {t.failure or ''} {t.verdict and t.verdict.side_effects}")
    return not different


async def main() -> int:
    """Compare, as told by the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suites", nargs="*", default=[])
    parser.add_argument("--agents", nargs="*", choices=sorted(AGENTS), default=sorted(AGENTS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--profile", choices=("small", "phone", "tall"), default="small")
    args = parser.parse_args()
    same = True
    for agent in args.agents:
        for seed in range(args.seeds):
            specs = plan(phone_tasks(args.suites), group_size=1, run_seed=seed, prefix=f"{agent}{seed}")
            same &= report(f"{agent}, seed {seed}", *await compare(specs, agent, profile=args.profile))
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(anyio.run(main))
