"""What training costs while people watch it in the monitor: its own processor time, with the monitor open and without.

    python -m benchmarks.watched                 three trainings each way, in turn
    python -m benchmarks.watched --repeats 5 --looking 50

With the monitor, ``--looking`` clients follow ``/events``, and one of them loads the run's page whenever something has
moved. One JSON line a training: processor seconds of its process a step (what the monitor itself takes is another
process's), then the medians and their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

STEPS = 4
TRAINED = (
    "--tasks", "settings", "--difficulty", "easy", "--max-steps", str(STEPS), "--groups-per-batch", "2",
    "--group-size", "8", "--eval-episodes", "8", "--skip-baseline", "--save-every", "0",
)  # fmt: skip


def trained(folder: Path, name: str) -> float:
    """Processor seconds a step of one training."""
    command = [sys.executable, "-m", "cuarl", "--quiet", "train", *TRAINED, "--name", name]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"training ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) / STEPS


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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--looking", type=int, default=50)
    options.add_argument("--look", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.look:
        asyncio.run(look(given.look, given.looking))
        return
    here = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    found: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        trained(folder, "first")  # it makes the database, and warms what the operating system keeps
        for repeat in range(given.repeats):
            for open_ in (False, True) if repeat % 2 else (True, False):
                if open_:
                    with watched(folder, given.looking):
                        found[open_].append(trained(folder, f"open-{repeat}"))
                else:
                    found[open_].append(trained(folder, f"alone-{repeat}"))
                print(json.dumps({"monitor": open_, "cpu_s_per_step": round(found[open_][-1], 3)}), flush=True)
    alone, beside = (statistics.median(found[open_]) for open_ in (False, True))
    print(json.dumps({"alone": round(alone, 3), "watched": round(beside, 3), "ratio": round(beside / alone, 4)}))


if __name__ == "__main__":
    main()
