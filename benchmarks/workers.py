"""Collecting by workers: episodes a second of the oracle with 1, 2, 4 and 8 of them, stored.

    python -m benchmarks.workers                        400 episodes on the simulated phone
    python -m benchmarks.workers --workers 1 2 --episodes 80 --rounds 1
    python -m benchmarks.workers --latency 0 0.05 0.2 1 --workers 2   asynchronous against in turn, see below

Each row is what ``cuarl rollout --agent oracle`` does, in this process and its workers: screenshots and records are
written to a temporary folder. Workers are started before the clock is, and the best of the rounds counts. Efficiency is
the rate by the rate of one worker and by their number. What each episode came to is compared with one process's: turns,
pictures, verdicts, rewards. ``collector_ms`` is the processor time that this process takes for an episode, with the
threads that store: what no number of workers makes less.

With ``--latency`` the environment waits so many seconds in every step, and a policy is trained for some steps, in turn
and asynchronously, while a server (``cuarl serve``, a process of its own) samples.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from benchmarks import worker_latency
from cuarl.config.load import resolve
from cuarl.rollout.spec import plan
from cuarl.settings import Settings
from cuarl.store import RunRecord, Store
from cuarl.tasks.task import Task
from cuarl.trajectory import Trajectory
from cuarl.workflow import episodes as parts
from cuarl.workflow.players import scripted
from cuarl.workflow.workers import hire

ROOT = Path(__file__).parents[1]
CLOCK = {"started_at", "wall_s", "ready_s", "check_at", "check_s", "model_s", "env_s"}


def timeless(record: Any) -> Any:
    """A record without what depends on the clock."""
    if isinstance(record, dict):
        return {name: timeless(value) for name, value in record.items() if name not in CLOCK}
    return [timeless(value) for value in record] if isinstance(record, list) else record


@contextmanager
def stored() -> Iterator[Store]:
    """A store in a temporary folder, with a run in it."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{Path(folder) / 'b.db'}") as store:
        store.start_run(RunRecord(id="b", name="b"))
        yield store


def collected(
    count: int | None, profile: str, tasks: Sequence[Task], episodes: int, store: Store
) -> tuple[list[Any], float, float]:
    """The oracle's episodes without what depends on the clock, and the seconds that they took: wall, processor."""
    config, settings = resolve(flags={"workers": count, "profile": profile}).config, Settings()
    player, crew = scripted("oracle"), hire.crew(config, settings)
    specs = plan([tasks[i % len(tasks)] for i in range(episodes)], group_size=1, run_seed=0, prefix="b", run_id="b")
    backend = hire.backend(config, tasks, settings, crew)

    async def work() -> tuple[list[Trajectory], tuple[float, float]]:
        setup = parts.setup(config, backend, player)
        async with hire.employed(crew), parts.playing(player, backend):
            await parts.collected(specs[:32], setup, backend, config, save=nothing)  # caches are warm, as in a long run
            start, cpu = time.perf_counter(), time.process_time()
            groups = await parts.collected(
                specs, setup, backend, config, save=lambda one: store.submit(one.trajectory, one.pictures)
            )
            store.drain()
            spent = time.perf_counter() - start, time.process_time() - cpu
            return [t for group in groups for t in group.trajectories], spent

    found, spent = anyio.run(work)
    return [timeless(t.model_dump(mode="json")) for t in found], *spent


async def nothing(episode: object) -> None:
    """Keep nothing."""


def measured(counts: Sequence[int], profile: str, episodes: int, rounds: int) -> list[dict[str, Any]]:
    """A row for one process without workers, and for each number of workers."""
    config = resolve(flags={}).config
    tasks = parts.select_tasks(config, Settings(), "train").tasks
    rows: list[dict[str, Any]] = []
    alone: list[Any] = []
    for count in (None, *counts):
        best = least = float("inf")
        for _ in range(rounds):
            with stored() as store:
                found, seconds, cpu = collected(count, profile, tasks, episodes, store)
            best, least = min(best, seconds), min(least, cpu)
        alone = alone or found
        rate, own = episodes / best, 1000 * least / episodes
        rows.append({"workers": count or 0, "episodes_per_s": rate, "equal": found == alone, "collector_ms": own})
        rows[-1]["success"] = sum(one["verdict"]["success"] for one in found) / episodes
    one = next((row["episodes_per_s"] for row in rows if row["workers"] == 1), None)
    for row in rows:
        row["efficiency"] = row["episodes_per_s"] / one / row["workers"] if one and row["workers"] else None
    return rows


def machine() -> Mapping[str, Any]:
    """What it was measured with, and on."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = next(
        (line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), platform.processor()
    )
    return {"commit": commit.stdout.strip(), "cpu": model, "cores": cores, "load": os.getloadavg()[0]}


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--profile", default="small", help="screen of the simulated phone: small, phone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, nargs="+", help="seconds of each of the environment's steps")
    parser.add_argument("--steps", type=int, default=6, help="with --latency: steps of training")
    parser.add_argument("--out", type=Path, help="file for the JSON that is printed last")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if args.latency:
        rows = worker_latency.measured(args.latency, args.workers[-1], args.steps)
    else:
        rows = measured(args.workers, args.profile, args.episodes, args.rounds)
    names = list(rows[0])
    print("  ".join(f"{name:>14}" for name in names))
    for row in rows:
        print("  ".join(f"{_cell(row[name]):>14}" for name in names))
    text = json.dumps({**machine(), "profile": args.profile, "episodes": args.episodes, "rows": rows})
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
