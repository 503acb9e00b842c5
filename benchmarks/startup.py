"""What it takes from a command to its first step: processor seconds and seconds on the clock, phase by phase.

    python -m benchmarks.startup                              this checkout, three times
    python -m benchmarks.startup --tree ../before --tree .    two checkouts in turn, in one run

One JSON line a run of a command, then one line for each tree with the least of each number. Of ``cuarl train`` on the
tiny base the phases end when the plan is printed (options, tasks and model checked), when the first step begins (model
loaded, run opened), when its first episode is over, and when the process has gone. Of other commands there is the whole
alone. On a machine that others use, too, the processor's seconds say more than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TRAIN = (
    "train", "--tasks", "settings", "--difficulty", "easy", "--max-steps", "1", "--skip-baseline", "--eval-every", "0",
    "--eval-episodes", "1", "--groups-per-batch", "1", "--group-size", "2", "--max-turns", "1", "--json",
)  # fmt: skip
COMMANDS = (("--help",), ("tasks", "list"), TRAIN)
PHASES: Mapping[str, str] = {"plan": "checked", "start": "first step", "episode": "first episode", "done": "done"}
"""Events that end a phase, and its name."""


@dataclass(slots=True)
class Started:
    """A command while it runs. ``seconds`` are since it was started, by phase."""

    process: subprocess.Popen[bytes]
    began: float
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)

    def mark(self, phase: str, processor_s: float | None = None) -> None:
        """The end of a phase, now."""
        used = _used(self.process.pid) if processor_s is None else processor_s
        wall = time.perf_counter() - self.began
        self.seconds.setdefault(phase, {"processor_s": round(used, 2), "wall_s": round(wall, 2)})


def measure(tree: Path, command: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Run a command of the cuarl in ``tree``, in an empty folder. Raises CalledProcessError if it fails."""
    with _started(tree, command) as started:
        assert started.process.stdout is not None, "it was asked for"
        for line in started.process.stdout:
            if "--json" in command and (phase := PHASES.get(json.loads(line)["event"])):
                started.mark(phase)
        _, status, usage = os.wait4(started.process.pid, 0)
        started.process.returncode = os.waitstatus_to_exitcode(status)
        if started.process.returncode:
            raise subprocess.CalledProcessError(started.process.returncode, command)
        started.mark("gone", usage.ru_utime + usage.ru_stime)
    return started.seconds


@contextmanager
def _started(tree: Path, command: tuple[str, ...]) -> Iterator[Started]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "cuarl", "--quiet", *command],
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environment,
        )
        try:
            yield Started(process, began)
        finally:
            process.kill()
            process.wait()


def _used(pid: int) -> float:
    """Processor seconds of all threads of a process, by Linux's own count of them."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


def least(runs: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """The least of each number."""
    return {
        phase: {what: min(run[phase][what] for run in runs) for what in ("processor_s", "wall_s")} for phase in runs[0]
    }


def _told(tree: Path, command: tuple[str, ...], what: str, seconds: object) -> None:
    revision = subprocess.run(
        ["git", "-C", str(tree), "describe", "--always", "--dirty"], check=True, capture_output=True, text=True
    )
    line: dict[str, Any] = {"commit": revision.stdout.strip(), "command": " ".join(command[:2]), "of": what}
    print(json.dumps({**line, "load": round(os.getloadavg()[0], 1), "until": seconds}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, action="append", help="checkout of cuarl; repeatable")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each command in each tree")
    parser.add_argument("--only", choices=[command[0] for command in COMMANDS], help="one of the commands")
    given = parser.parse_args()
    trees = [tree.resolve() for tree in given.tree or [Path(__file__).parents[1]]]
    commands = [command for command in COMMANDS if given.only in (None, command[0])]
    runs: dict[tuple[Path, tuple[str, ...]], list[dict[str, dict[str, float]]]] = {}
    for repeat in range(given.repeats):
        for command in commands:
            for tree in trees:
                seconds = measure(tree, command)
                runs.setdefault((tree, command), []).append(seconds)
                _told(tree, command, f"run {repeat + 1}", seconds)
    for (tree, command), measured in runs.items():
        _told(tree, command, "least", least(measured))


if __name__ == "__main__":
    main()
