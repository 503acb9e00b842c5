"""What training costs while people watch it in the monitor: its own processor time, with the monitor open and without.

    python -m benchmarks.watched                 two trainings each way, in turn
    python -m benchmarks.watched --repeats 3 --looking 50 --steps 20

With the monitor, ``--looking`` clients follow ``/events``, and one of them loads the run's page whenever something has
moved. All trainings have the same seed, so that a step does the same work in each: it is compared with itself. What a
process takes until its first step has ended is not counted, nor what the monitor takes, which is another process. One
JSON line a training: processor seconds a step; then, over the pairs of steps, the mean of how much more a watched one
took and its standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

TRAINED = (
    "--tasks", "settings", "--difficulty", "easy", "--groups-per-batch", "2", "--group-size", "8",
    "--eval-episodes", "8", "--skip-baseline", "--save-every", "0", "--eval-every", "0",
)  # fmt: skip
POLL_S = 0.02
"""How long a step's end may go unseen: what is done then counts as the next one's."""


def trained(folder: Path, name: str, steps: int) -> list[float]:
    """Processor seconds of each step of one training but the first."""
    command = [sys.executable, "-m", "cuarl", "--quiet", "train", *TRAINED, "--max-steps", str(steps), "--name", name]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    used: dict[int, float] = {}
    while process.poll() is None and len(used) < steps:
        for step in set(_ended(folder / "runs" / name / "metrics.jsonl")) - used.keys():
            times = psutil.Process(process.pid).cpu_times()
            used[step] = times.user + times.system
        time.sleep(POLL_S)
    if process.wait() or len(used) < steps:
        raise SystemExit(f"training ended with {process.returncode} after {len(used)} steps")
    ends = [used[step] for step in sorted(used)]
    return [later - before for before, later in itertools.pairwise(ends)]


def _ended(metrics: Path) -> Iterator[int]:
    """The steps whose metrics are written."""
    if metrics.exists():
        for line in metrics.read_text().splitlines():
            written = json.loads(line)
            if "time/step_s" in written:
                yield written["step"]


@contextmanager
def watched(folder: Path, looking: int) -> Iterator[None]:
    """Inside, a monitor serves the folder's runs, and clients in a process of their own look."""
    command = [sys.executable, "-m", "cuarl", "monitor", "serve", "--port", "0", "--json"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    clients = subprocess.Popen([sys.executable, "-m", "benchmarks.watched", "--look", url, "--looking", str(looking)])
    try:
        yield
    finally:
        for process in (clients, server):
            process.terminate()
            process.wait()


async def look(url: str, looking: int) -> None:
    """Follow the news ``looking`` times; the first loads the run's page when there are some."""
    limits = httpx.Limits(max_connections=looking + 2)

    async def follow(client: httpx.AsyncClient, number: int) -> None:
        async with client.stream("GET", f"{url}events") as events:
            async for line in events.aiter_lines():
                if number == 0 and line.startswith("data: "):
                    for run in json.loads(line.removeprefix("data: ")):
                        # a kept connection may be closed just then
                        await client.get(f"{url}runs/{run}", headers={"connection": "close"})

    async with httpx.AsyncClient(timeout=None, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(follow(client, number) for number in range(looking)))


def compared(folder: Path, given: argparse.Namespace) -> list[float]:
    """How much more each watched step took than the same one alone, as a share of it."""
    more = []
    for repeat in range(given.repeats):
        took: dict[bool, list[float]] = {}
        for open_ in (False, True) if repeat % 2 else (True, False):
            if open_:
                with watched(folder, given.looking):
                    took[open_] = trained(folder, f"open-{repeat}", given.steps)
            else:
                took[open_] = trained(folder, f"alone-{repeat}", given.steps)
            mean = statistics.mean(took[open_])
            print(
                json.dumps({"monitor": open_, "cpu_s_per_step": round(mean, 3), "steps": len(took[open_])}), flush=True
            )
        more += [beside / alone - 1 for alone, beside in zip(took[False], took[True], strict=True)]
    return more


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--looking", type=int, default=50)
    options.add_argument("--look", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.look:
        asyncio.run(look(given.look, given.looking))
        return
    here = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        trained(folder, "first", 2)  # it makes the database, and warms what the operating system keeps
        more = compared(folder, given)
    error = statistics.stdev(more) / math.sqrt(len(more))
    print(json.dumps({"more": round(statistics.mean(more), 4), "standard_error": round(error, 4), "pairs": len(more)}))


if __name__ == "__main__":
    main()
