"""Steps per second of other people's environments: Gymnasium in workers, an OpenEnv session, BrowserGym.

    python benchmarks/foreign.py

What is measured is the way there and back, with a small environment at its end. BrowserGym is left out where it is not
installed.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path

import anyio
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests' small environments, in the workers too

from cuarl.env.base import Env
from cuarl.env.gymnasium.env import CHILD, GymnasiumEnv, Source
from cuarl.env.leases import Ledger
from cuarl.env.openenv.backend import listed_task, terms
from cuarl.env.openenv.client import Server
from cuarl.env.openenv.env import OpenEnvEnv
from cuarl.env.openenv.options import Options as OpenEnv
from cuarl.env.sim.phone import SimEnv
from cuarl.env.workers.pool import Pool
from cuarl.rollout.driven import Driven
from cuarl.serve.openenv import EnvService
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.types import Action, Click
from cuarl.web.listen import serving

WIFI = Task(
    id="wifi", description="Turn Wi-Fi off.", checks=(Check(path="network.wifi.enabled", value=False),), max_steps=10**6
)
FORM = Source("tests.fakes.gym_envs:Form", {"render_mode": "rgb_array"}, actions={"click": {"at": ["$x", "$y"]}})


async def rate(
    make: Callable[[], Awaitable[Env]], task: TaskInstance, action: Action, *, at_once: int, steps: int
) -> float:
    """Steps per second of several environments together, resets not counted."""
    envs = [await make() for _ in range(at_once)]
    for env in envs:
        await env.reset(task, 1)

    async def walk(env: Env) -> None:
        for _ in range(steps):
            await env.step(action)

    begin = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for env in envs:
            tasks.start_soon(walk, env)
    took = time.perf_counter() - begin
    for env in envs:
        await env.close()
    return at_once * steps / took


async def gymnasium(ledger: Ledger) -> None:
    pool = Pool(ledger, CHILD)
    task = WIFI.instantiate(0)

    async def make() -> Env:
        return await GymnasiumEnv.opened(pool, FORM)

    begin = time.perf_counter()
    first = await GymnasiumEnv.opened(pool, FORM)
    started = time.perf_counter() - begin
    memory = psutil.Process(first._worker._process.pid).memory_full_info().uss / 2**20
    await first.close()
    print(f"gymnasium  a worker starts in {started:.2f} s and holds {memory:.0f} MiB")
    for at_once in (1, 4):
        found = await rate(make, task, Click(x=1, y=1), at_once=at_once, steps=500)
        print(f"gymnasium  {at_once} at once, 100x100: {found:.0f} steps/s")
    await pool.close()


async def openenv() -> None:
    async def begin(task: TaskInstance, seed: int) -> Driven:
        return Driven(SimEnv("small", clutter=0.0), task, max_turns=10**6)

    made = EnvService({"train": [WIFI]}, begin, {"phone": SimEnv().capabilities})
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    async with serving(made.app(), sock, websockets=True) as url:
        server = Server(url)
        config, schema = OpenEnv(url=url), await server.schema()
        (entry,) = await server.tasks("train") or ()
        task = listed_task(entry, config).instantiate(0)

        async def make() -> Env:
            return OpenEnvEnv(server, terms(config, schema, task))

        for at_once in (1, 4):
            found = await rate(make, task, Click(x=1, y=1), at_once=at_once, steps=200)
            print(f"openenv    {at_once} at once, client and server in one process, 192x384: {found:.0f} steps/s")
        await server.close()


async def browsergym(ledger: Ledger) -> None:
    from cuarl.env.browser.browser import find_program
    from cuarl.env.browsergym.backend import option_tasks, source
    from cuarl.env.browsergym.env import CHILD as BROWSERS
    from cuarl.env.browsergym.env import BrowserGymEnv
    from cuarl.env.browsergym.options import Options

    config = Options(tasks=("tests.fakes.browsergym_tasks:cuarl.desk",), kwargs=("pre_observation_delay=0",))
    (task,) = option_tasks(config)
    instance, pool = task.instantiate(0), Pool(ledger, BROWSERS)

    async def make() -> Env:
        return await BrowserGymEnv.opened(pool, source(config, instance, find_program()))

    for at_once in (1, 2):
        found = await rate(make, instance, Click(x=300, y=150), at_once=at_once, steps=20)
        print(f"browsergym {at_once} at once, 320x200, without its delay: {found:.1f} steps/s")
    await pool.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder))
        await gymnasium(ledger)
        await openenv()
        if find_spec("browsergym") is not None:
            await browsergym(ledger)


if __name__ == "__main__":
    anyio.run(main)
