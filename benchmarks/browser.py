"""How many steps a second pages of MiniWoB++ give, what recording adds, and what contexts and episodes cost in memory.

    python benchmarks/browser.py                      steps/s with 1, 8 and 16 contexts, and memory by context python
    benchmarks/browser.py --record             the same with and without recording, in turn python benchmarks/browser.py
    --bare               beside each the rate of a bare loop of Playwright on this machine python benchmarks/browser.py
    --reset script       episodes that start a kept page anew by its own script python benchmarks/browser.py --episodes
    2000      memory at the start and after 500, 1,000 and 2,000 episodes in a row

A step is a click, a picture and the page's reward; resets are included. Screens are 160x210 pixels. Recording is what a
rollout does with its pictures: each is encoded and put into a store's folder. Memory is the proportional set size of
the browser's processes. The bare loop does the same with Playwright alone and one page for all episodes of a context:
it loads the page again, or starts it by its script, clicks, has Chromium take the picture and reads whether the page is
done. It tells how fast the machine is.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
import psutil
from playwright.async_api import Page, async_playwright

from cuarl.env.browser.backend import paced
from cuarl.env.browser.browser import ARGUMENTS, UNPACED, Browser, find_program
from cuarl.env.browser.miniwob import SIZE, MiniWoBEnv, pages_folder
from cuarl.env.browser.options import BrowserOptions, Reset
from cuarl.env.leases import Ledger
from cuarl.env.processes import marked
from cuarl.store.blobs import Blobs
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click

TASK = TaskInstance(task_id="b", goal="", env="browser", preset={"page": "click-button"})


class Rate(NamedTuple):
    steps: float
    """A second, of all contexts together."""
    episodes: float
    memory_mb: float


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


async def episode(browser: Browser, seed: int, record: Blobs | None, until: float, reset: Reset = "load") -> int:
    env, rng, steps = MiniWoBEnv(browser, BrowserOptions(reset=reset)), random.Random(seed), 0
    try:
        await env.reset(TASK, seed)
        while steps < 20 and time.perf_counter() < until:
            result = await env.step(Click(x=rng.randrange(160), y=rng.randrange(210)))
            steps += 1
            if record is not None:
                await record.put_async((result.observation.screenshot,))
            if result.terminated:
                break
    finally:
        await env.close()
    return steps


async def several(browser: Browser, contexts: int, until: float, record: Blobs | None, reset: Reset) -> tuple[int, int]:
    """Steps and episodes of so many contexts at the same time."""
    steps = episodes = 0

    async def worker(number: int) -> None:
        nonlocal steps, episodes
        seed = number
        while time.perf_counter() < until:
            made = await episode(browser, seed, record, until, reset)
            steps += made  # not in one statement: it would read the count before the episode
            episodes += 1
            seed += contexts

    async with anyio.create_task_group() as group:
        for number in range(contexts):
            group.start_soon(worker, number)
    return steps, episodes


async def rate(contexts: int, seconds: float, record: bool, reset: Reset) -> Rate:
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Ledger(Path(folder)), paced=paced([], contexts))
        blobs = Blobs(f"{folder}/blobs") if record else None
        await several(browser, contexts, time.perf_counter() + seconds / 4, blobs, reset)
        start = time.perf_counter()
        counts = await several(browser, contexts, start + seconds, blobs, reset)
        took = time.perf_counter() - start
        async with anyio.create_task_group() as group:  # reading what each process maps takes cores for a while
            group.start_soon(several, browser, contexts, time.perf_counter() + 2, blobs, reset)
            await anyio.sleep(1)
            memory = await anyio.to_thread.run_sync(memory_mb, browser)
        await browser.close()
    return Rate(counts[0] / took, counts[1] / took, memory)


async def bare_rate(contexts: int, seconds: float, reset: Reset) -> float:
    """Steps a second of Playwright alone."""
    address = (pages_folder() / "miniwob" / "click-button.html").as_uri()
    arguments = ARGUMENTS if paced([], contexts) else ARGUMENTS + UNPACED
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(find_program()), args=list(arguments))
        pages = [
            await (await browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]})).new_page()
            for _ in range(contexts)
        ]
        count, until = 0, time.perf_counter() + seconds

        async def worker(page: Page, rng: random.Random) -> None:
            nonlocal count
            session = await page.context.new_cdp_session(page)
            await page.goto(address)
            while time.perf_counter() < until:
                if reset == "load":
                    await page.goto(address)
                await page.evaluate("core.EPISODE_MAX_TIME = 1e8; core.startEpisodeReal()")
                done, steps = False, 0
                while steps < 20 and not done and time.perf_counter() < until:
                    await page.mouse.click(rng.randrange(160), rng.randrange(210))
                    await session.send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
                    done = await page.evaluate("WOB_DONE_GLOBAL")
                    steps += 1
                count += steps

        async with anyio.create_task_group() as group:
            for number, page in enumerate(pages):
                group.start_soon(worker, page, random.Random(number))
        await browser.close()
    return count / seconds


def rates(contexts: Sequence[int], seconds: float, record: bool, bare: bool, reset: Reset) -> None:
    print(
        "contexts  steps/s  episodes/s  browser MB"
        + "  steps/s recorded  recording ms/step" * record
        + "  steps/s bare" * bare
    )
    memory: dict[int, float] = {}
    for number in contexts:
        plain = anyio.run(rate, number, seconds, False, reset)
        memory[number] = plain.memory_mb
        line = f"{number:8d} {plain.steps:8.1f} {plain.episodes:11.1f} {plain.memory_mb:11.0f}"
        if record:
            kept = anyio.run(rate, number, seconds, True, reset)
            line += f" {kept.steps:17.1f} {1000 / kept.steps - 1000 / plain.steps:18.2f}"
        if bare:
            line += f" {anyio.run(bare_rate, number, seconds, reset):13.1f}"
        print(line, flush=True)
    few, many = min(memory), max(memory)
    if few < many:
        print(f"a further context: {(memory[many] - memory[few]) / (many - few):.0f} MB")


async def endurance(marks: Sequence[int], reset: Reset, contexts: int = 8) -> None:
    """Print memory once so many episodes are over, with no other under way."""
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Ledger(Path(folder)))
        await episode(browser, 0, None, time.perf_counter() + 60, reset)
        done, start = 0, time.perf_counter()

        async def worker(last: int) -> None:
            nonlocal done
            while done < last:
                done += 1
                await episode(browser, done, None, time.perf_counter() + 60, reset)

        for mark in marks:
            async with anyio.create_task_group() as group:
                for _ in range(contexts):
                    group.start_soon(worker, mark)
            mine = psutil.Process().memory_info().rss / 2**20
            theirs = await anyio.to_thread.run_sync(memory_mb, browser)
            took = time.perf_counter() - start
            print(
                f"{done:6d} episodes  {took:6.0f} s  browser {theirs:6.0f} MB  this process {mine:6.0f} MB", flush=True
            )
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contexts", default="1,8,16")
    parser.add_argument("--seconds", type=float, default=8, help="for each rate")
    parser.add_argument("--record", action="store_true", help="measure with recording, too")
    parser.add_argument("--bare", action="store_true", help="measure a bare loop, too")
    parser.add_argument("--reset", choices=("load", "script"), default="load", help="how an episode begins")
    parser.add_argument("--episodes", type=int, default=0, help="memory over so many episodes instead of rates")
    options = parser.parse_args()
    if options.episodes:
        anyio.run(endurance, [0, options.episodes // 4, options.episodes // 2, options.episodes], options.reset)
        return
    rates(
        [int(number) for number in options.contexts.split(",")],
        options.seconds,
        options.record,
        options.bare,
        options.reset,
    )


if __name__ == "__main__":
    main()
