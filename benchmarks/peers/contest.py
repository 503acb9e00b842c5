"""Runs the cells: each side of each in its own process, one at a time, and compares what both did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.results import ROOT, differences
from benchmarks.peers.side import MARK
from benchmarks.peers.work import Work


def measure(side: str, work: Work, timeout_s: float) -> dict[str, Any]:
    """One side of a cell: what its process says, or why it ``failed``."""
    command = [sys.executable, "-m", "benchmarks.peers.side", side, json.dumps(work.task | _own(side, work))]
    environment = dict(os.environ)
    if work.device == "cpu":
        # threads that spin while they wait stall on cores that others want, too; cuarl train sets this by itself
        environment = {"OMP_WAIT_POLICY": "PASSIVE"} | environment | {"OMP_NUM_THREADS": str(work.threads)}
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {timeout_s:g} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        return {"failed": _last_words(done.stderr) or f"ended with status {done.returncode}"}
    found: dict[str, Any] = json.loads(lines[-1].removeprefix(MARK))
    return found | {"process_s": round(time.perf_counter() - start, 1)}


def _own(side: str, work: Work) -> dict[str, Any]:
    return {"activation_gib": work.activation_gib} if side == "cuarl" else {}


def _last_words(text: str) -> str:
    """The line of a traceback that says what went wrong."""
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "\t"))]
    return lines[-1][:300] if lines else ""


def contest(
    cells: Sequence[Work], sides: Sequence[str], surroundings: dict[str, Any], timeout_s: float, out: Path | None
) -> Iterator[str]:
    """A short line for each side of each cell, and one that begins with ``!`` for sides that did not do the same."""
    run = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for work in cells:
        found: dict[str, dict[str, Any]] = {}
        for side in sides:
            load = round(os.getloadavg()[0], 1)
            result = {
                "run": run,
                "side": side,
                "cell": work.cell,
                "work": work.task,
                **_own(side, work),
                **surroundings,
                "load": load,
                **measure(side, work, timeout_s),
            }
            if out:
                with out.open("a") as file:
                    file.write(json.dumps(result) + "\n")
            if "failed" not in result:
                found[side] = result
            yield line(result, found.get("trl") if side == "cuarl" else None)
        if len(found) == 2:
            wrong = differences(found["trl"], found["cuarl"])
            yield from [f"! {work.cell}: the sides did not do the same: {'; '.join(wrong)}"] if wrong else []


def line(result: dict[str, Any], trl: dict[str, Any] | None) -> str:
    """A result in a line; with TRL's, how many times faster it is."""
    begin = f"{result['side']:5} {result['cell']:18}"
    if "failed" in result:
        return f"{begin} FAILED: {result['failed']}"
    memory = f"{result['update_gib']:.1f} GiB" if result["update_gib"] else f"{result['rss_gib']:.2f} GiB RSS"
    ratio = f"  {trl['step_s'] / result['step_s']:.2f}x" if trl else ""
    return (
        f"{begin} step {result['step_s']:.2f} s ({result['step_min_s']:.2f}-{result['step_max_s']:.2f}) = "
        f"{result['rollout_s']:.2f} + {result['update_s']:.2f}, first {result['first_step_s']:.2f}, {memory}{ratio}"
    )
