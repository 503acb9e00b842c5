"""How long 256 simulated episodes hold the event loop: the longest of its passes, and how much of it was collecting
garbage.

    python -m benchmarks.event_loop                     every kind, 256 episodes of shipped tasks in groups of 8
    python -m benchmarks.event_loop --kinds phone-oracle --episodes 1024

A pass is what the loop does between two polls of its sockets and timers: nothing else is served meanwhile. Milliseconds
are those of the processor in the loop's thread. ``phone-model`` asks a policy that answers at once, for all episodes in
step.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import selectors
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

import anyio
from anyio.lowlevel import checkpoint

from cuarl import garbage
from cuarl.agent.base import Agent
from cuarl.agent.formats import get
from cuarl.agent.model import ModelAgent
from cuarl.agent.scripted import OracleAgent, RandomAgent
from cuarl.env.base import Env
from cuarl.env.sim.devices import make_sim
from cuarl.policy.sampler import SamplerCapabilities, SampleRequest, SamplingParams
from cuarl.policy.sampling.batcher import Batcher
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec, plan
from cuarl.sim.device import memory
from cuarl.sim.kit.render import forget as forget_frames
from cuarl.tasks.source import load
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Group, Sampled

AT_ONCE, GROUP_SIZE = 256, 8
LONG_S = 0.02
PHONE, DESKTOP = ("phone_train", "settings_train"), ("desktop_train",)


class Pass(NamedTuple):
    """Seconds that the loop was held: of the processor in its thread, and of these, of garbage collections."""

    held: float
    collecting: float


class Watch(selectors.DefaultSelector):
    """A selector that notes how long the loop was away from it, inside ``noting``."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[Pass] = []
        self._on, self._since, self._collecting, self._began = False, 0.0, 0.0, 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._on:
            self.passes.append(Pass(time.thread_time() - self._since, self._collecting))
        found = super().select(timeout)
        self._since, self._collecting = time.thread_time(), 0.0
        return found

    @contextmanager
    def noting(self) -> Iterator[None]:
        gc.callbacks.append(self._collected)
        self._on = True
        try:
            yield
        finally:
            self._on = False
            gc.callbacks.remove(self._collected)

    def _collected(self, phase: str, info: object) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._collecting += time.thread_time() - self._began


class Taps:
    """A policy that answers at once, with a tap somewhere."""

    capabilities = SamplerCapabilities(token_ids=True, logprobs=True, images=True, name="taps")

    def __init__(self) -> None:
        self._batcher: Batcher[SampleRequest, Sampled] = Batcher(self._run, lambda r: r.seed, max_batch=AT_ONCE)
        self.join = self._batcher.join

    async def sample(self, request: SampleRequest) -> Sampled:
        return await self._batcher.ask(request)

    async def close(self) -> None:
        pass

    async def _run(self, requests: Sequence[SampleRequest]) -> list[Sampled]:
        return [_tap(random.Random(r.seed)) for r in requests]


def _tap(rng: random.Random) -> Sampled:
    arguments = {"action": "click", "coordinate": [rng.randrange(1000), rng.randrange(1000)]}
    call = json.dumps({"name": "mobile_use", "arguments": arguments})
    return Sampled(text=f"Action: tap\n<tool_call>\n{call}\n</tool_call>", policy="taps")


class Kind(NamedTuple):
    """What runs: which device, tasks of which suites, who acts."""

    device: str
    suites: tuple[str, ...]
    agent: Callable[[EpisodeSpec, Env], Agent]
    join: Callable[[], AbstractContextManager[object]] = nullcontext


def oracle(spec: EpisodeSpec, env: Env) -> Agent:
    return OracleAgent(env)


def at_random(spec: EpisodeSpec, env: Env) -> Agent:
    return RandomAgent(env.capabilities.actions)


def kinds() -> dict[str, Kind]:
    taps, words = Taps(), get("qwen3-vl", "phone")
    return {
        "phone-oracle": Kind("phone", PHONE, oracle),
        "phone-random": Kind("phone", PHONE, at_random),
        "phone-model": Kind("phone", PHONE, lambda s, e: ModelAgent(taps, words, params=SamplingParams()), taps.join),
        "desktop-oracle": Kind("desktop", DESKTOP, oracle),
    }


def measure(kind: Kind, episodes: int, profile: str) -> dict[str, float]:
    tasks = random.Random(0).choices(load(list(kind.suites)).tasks, k=-(-episodes // GROUP_SIZE))
    specs = plan(tasks, group_size=GROUP_SIZE, run_seed=0, prefix="loop")
    watch = Watch()

    async def make_env(task: TaskInstance) -> Env:
        return make_sim(kind.device, profile)

    async def work() -> list[Group]:
        setup = Setup(make_env=make_env, make_agent=kind.agent, join=kind.join)
        with watch.noting():
            groups = await collect(specs, setup, max_concurrent=AT_ONCE)
            await checkpoint()
        return groups

    memory.forget()
    forget_frames()
    start = time.process_time()
    groups = anyio.run(work, backend_options={"loop_factory": lambda: asyncio.SelectorEventLoop(watch)})
    took, longest = time.process_time() - start, max(watch.passes)
    return {
        "turns": sum(len(t.turns) for g in groups for t in g.trajectories),
        "processor_s": round(took, 2),
        "passes": len(watch.passes),
        "longest_ms": round(1e3 * longest.held, 1),
        "of_it_collecting_ms": round(1e3 * longest.collecting, 1),
        "over_20_ms": sum(p.held > LONG_S for p in watch.passes),
        "collecting_s": round(sum(p.collecting for p in watch.passes), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=AT_ONCE)
    parser.add_argument("--profile", choices=("small", "phone", "tall"), default="small")
    parser.add_argument("--kinds", nargs="*", choices=tuple(kinds()), default=tuple(kinds()))
    args = parser.parse_args()
    garbage.look_rarely()  # as the command does
    for name in args.kinds:
        print(json.dumps({"kind": name, **measure(kinds()[name], args.episodes, args.profile)}), flush=True)


if __name__ == "__main__":
    main()
