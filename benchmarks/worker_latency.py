"""The part of ``benchmarks.workers`` that trains: asynchronous against in turn, with slow environments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

from cuarl.env.base import Env
from cuarl.env.sim.phone import SimEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, StepResult

ROOT = Path(__file__).parents[1]
LATENCY = "BENCHMARK_LATENCY_S"
PORT = 8471


class Slow(SimEnv):
    """The simulated phone, whose steps take as long as a device's or a page's."""

    async def step(self, action: Action) -> StepResult:
        """Wait, and act."""
        await anyio.sleep(float(os.environ[LATENCY]))
        return await super().step(action)


def slow(task: TaskInstance) -> Env:
    """An environment for ``--env``."""
    return Slow("small", clutter=0.0)


def measured(latencies: Sequence[float], workers: int, steps: int) -> list[dict[str, Any]]:
    """A row for each latency and schedule: seconds of collecting and training, success, staleness, dropped groups."""
    rows = []
    for latency in latencies:
        for off_policy in (0, 2):
            with tempfile.TemporaryDirectory() as folder, served(Path(folder), latency):
                rows.append(_trained(Path(folder), latency, workers, steps, off_policy))
        rows[-1]["faster"] = rows[-2]["wall_s"] / rows[-1]["wall_s"]
    return rows


@contextmanager
def served(folder: Path, latency: float) -> Iterator[None]:
    """Inside, ``cuarl serve`` samples from the base at ``PORT``, and takes adapters."""
    words = ["serve", "base", "--adapters", str(folder), "--fixed-sampling", "--port", str(PORT)]
    server = _started(folder, latency, [*words, "--runs-dir", str(folder / "served")])
    try:
        while True:
            assert server.poll() is None, "the server ended"
            try:
                httpx.get(f"http://127.0.0.1:{PORT}/v1/models", trust_env=False).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.2)
        yield
    finally:
        server.terminate()
        server.wait()


def _trained(folder: Path, latency: float, workers: int, steps: int, off_policy: int) -> dict[str, Any]:
    words = [
        "train", "--name", "run", "--tasks", "settings", "--difficulty", "easy", "--env", f"{__file__}:slow",
        "--model-base-url", f"http://127.0.0.1:{PORT}/v1", "--workers", str(workers), "--max-steps", str(steps),
        "--groups-per-batch", "4", "--group-size", "4", "--max-turns", "5", "--skip-baseline", "--eval-every", "0",
        "--eval-episodes", "1", "--max-steps-off-policy", str(off_policy), "--max-concurrent-rollouts", "64",
        "--runs-dir", str(folder / "runs"), "--quiet",
    ]  # fmt: skip
    run = _started(folder, latency, words)
    assert run.wait() == 0, "training failed"
    lines = (folder / "runs" / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    # the first step warms everything up, and asynchronous training has nothing to take before it
    found = [row for row in map(json.loads, lines) if row["step"] > 1]
    return {
        "latency_ms": 1000 * latency,
        "off_policy": off_policy,
        "wall_s": sum(row["time/step_s"] for row in found),
        "success": sum(row["episode/success_rate"] for row in found) / len(found),
        "staleness": max(row.get("async/staleness_max", 0.0) for row in found),
        "dropped": int(sum(row.get("async/dropped", 0.0) for row in found)),
        "faster": None,
    }


def _started(folder: Path, latency: float, words: Sequence[str]) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", "cuarl", *words],
        cwd=folder,
        env={**os.environ, LATENCY: str(latency), "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
