"""Collecting by workers: episodes a second of the oracle with 1, 2, 4 and 8 of them, stored.

    python -m benchmarks.workers                        200 episodes a worker on the simulated phone, twice
    python -m benchmarks.workers --workers 1 2 --episodes 80 --rounds 1
    python -m benchmarks.workers --latency 0 0.05 0.2 1 --workers 2   asynchronous against in turn, see below

A JSON line for each number of workers (0: one process without any), as soon as it is measured, and a table at the end.
Each is what ``cuarl rollout --agent oracle`` does, in this process and its workers: screenshots, records and how far
the run has come are written to a temporary folder. Workers have started and are warm before the clock is, and the best
of the rounds counts. Efficiency is the rate by the rate of one worker and by their number. What each episode came to is
compared with one process's: turns, pictures, verdicts, rewards. ``collector_ms`` is the processor time that this
process takes for an episode, with the threads that store: what no number of workers makes less.

With ``--latency`` the environment waits so many seconds in every step, and a policy is trained for some steps, in turn
and asynchronously, while a server (``cuarl serve``, a process of its own) samples.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from benchmarks import worker_latency
from cuarl.config.load import resolve
from cuarl.rollout.spec import EpisodeSpec, plan
from cuarl.settings import Settings
from cuarl.store import RunRecord, Store
from cuarl.tasks.task import Task
from cuarl.trajectory import Trajectory
from cuarl.workflow import episodes as parts
from cuarl.workflow.live import Live
from cuarl.workflow.players import scripted
from cuarl.workflow.workers import hire

ROOT = Path(__file__).parents[1]
WARM = 48
"""Episodes that a worker has run before it is measured: its caches are filled, as in a long run."""
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


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured with so many workers."""

    found: Sequence[Any]
    """The first round's episodes, without what depends on the clock."""
    rate: float
    """Episodes a second in the best round."""
    collector_ms: float


def collected(count: int | None, profile: str, tasks: Sequence[Task], episodes: int, rounds: int) -> Cell:
    """The oracle's episodes by ``count`` workers, or by this process alone."""
    config, settings = resolve(flags={"workers": count, "profile": profile}).config, Settings()
    player, crew = scripted("oracle"), hire.crew(config, settings)
    backend = hire.backend(config, tasks, settings, crew)

    def specs(name: str, number: int) -> Sequence[EpisodeSpec]:
        wanted = [tasks[i % len(tasks)] for i in range(number)]
        return plan(wanted, group_size=1, run_seed=0, prefix=name, run_id="b")

    async def work(record: parts.Recording) -> Cell:
        setup = parts.setup(config, backend, player, record)

        async def episodes_of(wanted: Sequence[EpisodeSpec]) -> list[Trajectory]:
            groups = await parts.collected(wanted, setup, backend, config, save=record.save)
            await store.flush()
            return [t for group in groups for t in group.trajectories]

        first, spent = [], []
        async with hire.employed(crew), parts.playing(player, backend):
            await episodes_of(specs("warm", WARM * (count or 1)))
            for number in range(rounds):
                start, cpu = time.perf_counter(), time.process_time()
                found = await episodes_of(specs(f"round{number}", episodes))
                spent.append((time.perf_counter() - start, time.process_time() - cpu))
                first = first or [timeless(t.model_dump(mode="json")) for t in found]
        wall, cpu = (min(each) / episodes for each in zip(*spent, strict=True))
        return Cell(first, 1 / wall, 1000 * cpu)

    with stored() as store, Live(store, "b", backend="sim", max_turns=config.max_turns) as live:
        return anyio.run(work, parts.Recording(store, live))


def measured(counts: Sequence[int], profile: str, episodes: int, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for one process without workers, and for each number of workers; ``episodes`` for each of these."""
    config = resolve(flags={}).config
    tasks = parts.select_tasks(config, Settings(), "train").tasks
    alone: Sequence[Any] = ()
    one = None
    for count in (None, *counts):
        total = episodes * (count or 1)
        cell = collected(count, profile, tasks, total, rounds)
        alone, one = alone or cell.found, cell.rate if count == 1 else one
        yield {
            "workers": count or 0,
            "episodes": total,
            "episodes_per_s": round(cell.rate, 2),
            "efficiency": round(cell.rate / one / count, 3) if one and count else None,
            "collector_ms": round(cell.collector_ms, 2),
            "equal": cell.found[:episodes] == alone,
            "success": sum(t["verdict"]["success"] for t in cell.found) / total,
        }


def machine() -> Mapping[str, Any]:
    """What it was measured with, and on."""
    asked = [shutil.which("git") or "true", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
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
    parser.add_argument("--episodes", type=int, default=200, help="for each worker")
    parser.add_argument("--profile", default="small", help="screen of the simulated phone: small, phone")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--latency", type=float, nargs="+", help="seconds of each of the environment's steps")
    parser.add_argument("--steps", type=int, default=6, help="with --latency: steps of training")
    parser.add_argument("--out", type=Path, help="file for the JSON lines, too")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if args.latency:
        rows = worker_latency.measured(args.latency, args.workers[-1], args.steps)
    else:
        rows = measured(args.workers, args.profile, args.episodes, args.rounds)
    about, told = {**machine(), "profile": args.profile}, []
    for row in rows:
        print(json.dumps({**row, **about}), flush=True)
        told.append(row)
    names = list(told[0])
    print("  ".join(f"{name:>14}" for name in names))
    for row in told:
        print("  ".join(f"{_cell(row[name]):>14}" for name in names))
    if args.out:
        args.out.write_text("".join(json.dumps({**row, **about}) + "\n" for row in told))


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
