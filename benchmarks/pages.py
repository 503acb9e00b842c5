"""How long the monitor's server takes over a page: a thousand runs with a million turns, asked without a network.

    python -m benchmarks.pages                          a SQLite file in a temporary folder, made in some minutes
    python -m benchmarks.pages --folder big             kept there, and used again
    python -m benchmarks.pages --url postgresql://…     another database (it must be migrated and empty, and is left
    full)

Beside the thousand there is a run of 50,000 episodes. One JSON line a page: the median and the 99th percentile of
``--trials`` requests, each for another run or episode: by the clock, which depends on what else the machine does, and
of processor time. Then how much the process has grown over ``--requests`` further ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from benchmarks.lookups import STEPS, TEMPLATES, analyze, build, multiply, some
from cuarl.run.facts import resident_gib
from cuarl.store import EvaluationRecord, RunRecord, Store
from cuarl.store import writes as w
from cuarl.store.engine import writing
from cuarl.workflow.monitoring import Options, monitor_app

RUNS = 1_000
LARGE = 50_000
"""Episodes of the run that is larger than the others."""
NAMES = (
    "episode/success_rate", "reward/mean", "group/frac_mixed", "group/frac_all_pass", "group/frac_all_fail",
    "stop/done",
    "stop/max_turns", "episode/failed_rate", "policy/kl_sampler", "policy/loss", "time/step_s", "time/rollout_s",
    "time/train_s",
    "tokens/total",
)  # fmt: skip
MEASURED = 100
"""Runs with metrics and an evaluation."""


def fill(store: Store, turns: int) -> None:
    """The turns, and of some runs what training reports."""
    build(store, turns, RUNS)
    for run in range(MEASURED):
        points = [
            w.LogMetrics(run_id=f"run-{run:02d}", step=step, values=dict.fromkeys(NAMES, 0.5), at=1e9)
            for step in range(STEPS)
        ]
        store.write(points)
        copy = f"-c{run:04d}x" if run else ""
        ids = [f"run-00-{i:05d}{copy}" for i in range(100)]
        store.save_evaluation(EvaluationRecord(id=f"e{run}", run_id=f"run-{run:02d}", suite="settings"), ids)
    store.start_run(RunRecord(id="large", name="large", started_at=1e9))
    for copy in range(LARGE // TEMPLATES):
        with writing(store.engine) as connection:
            multiply(connection, 9000 + copy, "large", copy % STEPS)
        store.write([w.LogMetrics(run_id="large", step=copy % STEPS, values=dict.fromkeys(NAMES, 0.5), at=1e9)])
    analyze(store)


PAGES: dict[str, Callable[[int], str]] = {
    "runs": lambda i: f"/?page={i % 20}",
    "runs by name": lambda i: f"/?q=settings-{i}",
    "run": lambda i: f"/runs/run-{i % MEASURED:02d}",
    "run of 50,000 episodes": lambda i: "/runs/large",
    "its ledger": lambda i: "/runs/large/costs",
    "its steps": lambda i: f"/runs/large/steps/{i % 100}",
    "its episodes, worst first": lambda i: f"/episodes?run=large&sort=reward&page={i % 20}",
    "step": lambda i: f"/runs/run-{i % 400:02d}/steps/0",
    "episodes, newest": lambda i: f"/episodes?page={i}",
    "episodes of a run, worst first": lambda i: f"/episodes?run=run-{i % 400:02d}&sort=reward",
    "failures of a run": lambda i: f"/episodes?run=run-{i % 400:02d}&result=failure",
    "episode": lambda i: f"/episodes/{some(i % 100)}?turn=2",
    "evaluations": lambda i: "/evaluations",
    "evaluation": lambda i: f"/evaluations/e{1 + i % (MEASURED - 1)}",
    "compare": lambda i: f"/compare?a=evaluation:e{i % MEASURED}&b=evaluation:e{(i + 1) % MEASURED}",
    "api: trainings": lambda i: f"/api/trainings?page={i % 20}",
    "api: rollout": lambda i: f"/api/rollouts/{some(i % 100)}",
}  # fmt: skip


async def measure(client: httpx.AsyncClient, name: str, trials: int) -> dict[str, object]:
    """Ask for a page again and again."""
    times, cpu = [], []
    for trial in range(trials):
        started, cpu_started = time.perf_counter(), time.process_time()
        answer = await client.get(PAGES[name](trial))
        times.append(1e3 * (time.perf_counter() - started))
        cpu.append(1e3 * (time.process_time() - cpu_started))
        answer.raise_for_status()
    told: dict[str, object] = {"page": name}
    for what, values in (("", times), ("cpu_", cpu)):
        told[f"{what}median_ms"] = round(statistics.median(values), 1)
        told[f"{what}p99_ms"] = round(statistics.quantiles(values, n=100, method="inclusive")[-1], 1)
    return told


async def ask(store: Store, trials: int, requests: int) -> None:
    """All pages, then many more of them."""
    app = httpx.ASGITransport(monitor_app(store, Options()))
    async with httpx.AsyncClient(transport=app, base_url="http://127.0.0.1") as client:
        for name in PAGES:
            print(json.dumps(await measure(client, name, trials)), flush=True)
        before, light = resident_gib() or 0.0, [n for n in PAGES if n in ("runs", "episode", "step", "api: rollout")]
        for number in range(requests):
            await client.get(PAGES[light[number % len(light)]](number))
        print(json.dumps({"requests": requests, "grown_mib": round(1024 * ((resident_gib() or 0.0) - before), 1)}))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--url")
    options.add_argument("--folder", type=Path)
    options.add_argument("--turns", type=int, default=1_000_000)
    options.add_argument("--trials", type=int, default=40)
    options.add_argument("--requests", type=int, default=0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        with Store.open(given.url or f"sqlite:///{folder}/pages.db", f"{folder}/blobs", runs_dir=folder) as store:
            if not store.newest(1):
                fill(store, given.turns)
            asyncio.run(ask(store, given.trials, given.requests))


if __name__ == "__main__":
    main()
