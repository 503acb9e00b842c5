"""Train the shipped base with Tinker's own SDK, against a local server of its protocol: no account, no GPU.

    python examples/tinker_learns.py                        five steps on two tasks, measured before and after
    python examples/tinker_learns.py --group-size 8         the same with other options of cuarl train

The server (``cuarl/local/tinker.py``) really learns: gradients and samples are made by cuarl's own code, and reach the
run through the SDK alone. Needs the extras tinker and web.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEY = "tml-local-key"
TASKS = "turn_power_ends_call,turn_bubbles"
"""Each step trains on all of them, so that the rewards of its steps can be compared."""
OPTIONS = (
    "--tasks", TASKS, "--groups-per-batch", "2", "--group-size", "16", "--max-turns", "8", "--max-steps", "5",
    "--eval-every", "5", "--eval-episodes", "32", "--learning-rate", "5e-4",
)  # fmt: skip
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))


def train(options: Sequence[str], folder: Path) -> int:
    """Run ``cuarl train`` in ``folder`` with a server of its own; its exit code."""
    from cuarl.local.tinker import running, served_base

    with running(served_base()) as url:
        variables = {"TINKER_BASE_URL": url, "TINKER_API_KEY": KEY, "TINKER_TELEMETRY": "0"}
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        words = [sys.executable, "-m", "cuarl", "train", "--trainer", "tinker", *OPTIONS, *options]
        return subprocess.run(
            words, cwd=folder, env={**os.environ, **variables, "PYTHONPATH": path}, check=False
        ).returncode


if __name__ == "__main__":
    raise SystemExit(train(sys.argv[1:], Path.cwd()))
