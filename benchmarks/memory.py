"""Whether training's memory grows: hundreds of short steps, in turn with collecting and beside it.

    python -m benchmarks.memory                     500 steps each way, with the shipped base
    python -m benchmarks.memory --steps 100 --ways turn

A step collects two episodes of two turns on varied tasks, learns from them (an entropy bonus gives every row a
gradient), and is saved now and then. ``rss_mib`` is the memory of the process after steps along the way, and
``grown_mib`` what was added in the second half of them: in the first one the simulator fills its caches, which are
bounded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

WAYS = {"turn": (), "beside": ("--max-steps-off-policy", "2")}
_SHORT = (
    "--tasks", "settings", "--group-size", "2", "--groups-per-batch", "1", "--max-turns", "2", "--max-tokens", "12",
    "--history-images", "2", "--history-turns", "2", "--entropy-coef", "0.001", "--eval-every", "0", "--eval-episodes",
    "1",
    "--save-every", "50", "--save-total-limit", "1", "--skip-baseline", "--device", "cpu",
)  # fmt: skip


def measure(way: str, steps: int) -> dict[str, object]:
    """Memory along the way of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "cuarl",
            "train",
            "--name",
            "run",
            "--max-steps",
            str(steps),
            *_SHORT,
            *WAYS[way],
        ]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = (Path(folder) / "runs" / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    rss = {row["step"]: 1024 * row["perf/rss_gib"] for row in rows if "perf/rss_gib" in row}
    every = max(1, steps // 10)
    return {
        "steps": len(rss),
        "updates": sum(row["optim/updates"] for row in rows),
        "rss_mib": {step: round(rss[step]) for step in sorted({1, *range(every, steps + 1, every)})},
        "grown_mib": round(rss[steps] - rss[steps // 2], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS))
    args = parser.parse_args()
    print(json.dumps({way: measure(way, args.steps) for way in args.ways}, indent=1))


if __name__ == "__main__":
    main()
