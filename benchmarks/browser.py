"""How many steps a second pages of MiniWoB++ give, by the number of contexts, and what they cost in memory.

    python benchmarks/browser.py [--contexts 1,8,16] [--seconds 8] [--record]

A step is a click, a picture and the page's reward; resets (a fresh load each) are included. ``--record`` also encodes each
picture as the record does. Memory is the proportional set size of the browser's processes. ``--episodes N`` runs N episodes
in a row instead, and prints memory as they go.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import anyio
import psutil

from cuarl.env.browser.browser import Browser
from cuarl.env.browser.miniwob import MiniWoBEnv
from cuarl.env.browser.options import BrowserOptions
from cuarl.env.leases import Ledger
from cuarl.env.processes import marked
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click

TASK = TaskInstance(task_id="b", goal="", env="browser", preset={"page": "click-button"})


def memory_mb(browser: Browser) -> float:
    # renderers overwrite their environment, and with it the mark: they are found as children
    found = {
        p for pid in marked(browser.mark) for p in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))
    }
    total = 0
    for process in found:
        try:
            total += process.memory_full_info().pss
        except psutil.NoSuchProcess:  # its page was closed meanwhile
            continue
    return total / 2**20


async def episode(browser: Browser, seed: int, record: bool, until: float) -> int:
    env, rng, steps = MiniWoBEnv(browser, BrowserOptions()), random.Random(seed), 0
    try:
        await env.reset(TASK, seed)
        while steps < 20 and time.perf_counter() < until:
            result = await env.step(Click(x=rng.randrange(160), y=rng.randrange(50, 210)))
            steps += 1
            if record:
                await anyio.to_thread.run_sync(result.observation.screenshot.png)
            if result.terminated:
                break
    finally:
        await env.close()
    return steps


async def rate(contexts: int, seconds: float, record: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Ledger(Path(folder)))
        await episode(browser, 0, record, time.perf_counter() + 60)
        counts, peak = [0, 0], 0.0
        start = time.perf_counter()
        until = start + seconds

        async def worker(number: int) -> None:
            seed = number
            while time.perf_counter() < until:
                counts[0] += await episode(browser, seed, record, until)
                counts[1] += 1
                seed += contexts

        async with anyio.create_task_group() as group:
            for number in range(contexts):
                group.start_soon(worker, number)
            await anyio.sleep(seconds / 2)
            peak = await anyio.to_thread.run_sync(memory_mb, browser)
        took = time.perf_counter() - start
        await browser.close()
    print(
        f"{contexts:4d} contexts  {counts[0] / took:7.1f} steps/s  {counts[1] / took:6.1f} episodes/s  {peak:6.0f} MB",
        flush=True,
    )


async def endurance(episodes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Ledger(Path(folder)))
        done = 0

        async def worker(number: int) -> None:
            nonlocal done
            while done < episodes:
                done += 1
                await episode(browser, done, False, time.perf_counter() + 60)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(worker, number)
            while done < episodes:
                mine = psutil.Process().memory_info().rss / 2**20
                theirs = await anyio.to_thread.run_sync(memory_mb, browser)
                print(f"{done:6d} episodes  browser {theirs:6.0f} MB  this process {mine:6.0f} MB", flush=True)
                await anyio.sleep(10)
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contexts", default="1,8,16")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--episodes", type=int, default=0)
    options = parser.parse_args()
    if options.episodes:
        anyio.run(endurance, options.episodes)
        return
    for contexts in map(int, options.contexts.split(",")):
        anyio.run(rate, contexts, options.seconds, options.record)


if __name__ == "__main__":
    main()
