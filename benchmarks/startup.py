"""What it takes from a command to its first step: processor seconds and seconds on the clock, phase by phase.

    python -m benchmarks.startup                              this checkout, three times
    python -m benchmarks.startup --tree ../before --tree .    two checkouts in turn, in one run

One JSON line a run of a command, then one line for each tree with the least of each number. Of ``cuarl train`` on the
tiny base the phases end when the plan is printed (options, tasks and model checked), when the first step begins (model
loaded, run opened), when its first episode is over, and when the process has gone. Of other commands there is the whole
alone. ``libraries`` is a Python that only imports those that the tiny base needs: no start can be faster than that. On
a machine that others use, too, the processor's seconds say more than the clock.
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

TRAIN = (
    "train", "--tasks", "settings", "--difficulty", "easy", "--max-steps", "1", "--skip-baseline", "--eval-every", "0",
    "--eval-episodes", "1", "--groups-per-batch", "1", "--group-size", "2", "--max-turns", "1", "--json",
)  # fmt: skip
LIBRARIES = """
import gc, json
gc.disable()
import torch, transformers, peft, accelerate
from transformers import AutoTokenizer, Qwen2VLImageProcessorPil
from transformers.models.qwen3_vl import modeling_qwen3_vl
print(json.dumps({"event": "imported"}), flush=True)
"""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "help": ("-m", "cuarl", "--help"),
    "tasks": ("-m", "cuarl", "--quiet", "tasks", "list"),
    "train": ("-m", "cuarl", "--quiet", *TRAIN),
    "libraries": ("-c", LIBRARIES),
}
"""What Python is called with."""
PHASES: Mapping[str, str] = {
    "plan": "checked",
    "start": "first step",
    "episode": "first episode",
    "done": "done",
    "imported": "imported",
}
"""Events that end a phase, and its name."""


Seconds = dict[str, dict[str, float]]
"""Of a processor and on the clock, by phase."""


@dataclass(slots=True)
class Started:
    """A command while it runs. ``seconds`` are since it was started, by phase."""

    process: subprocess.Popen[bytes]
    began: float
    seconds: Seconds = field(default_factory=dict)

    def mark(self, phase: str, processor_s: float | None = None) -> None:
        """The end of a phase, now."""
        used = _used(self.process.pid) if processor_s is None else processor_s
        wall = time.perf_counter() - self.began
        self.seconds.setdefault(phase, {"processor_s": round(used, 2), "wall_s": round(wall, 2)})


def measure(tree: Path, command: tuple[str, ...]) -> Seconds:
    """Run a command with the cuarl in ``tree``, in an empty folder. Raises CalledProcessError if it fails."""
    with _started(tree, command) as started:
        assert started.process.stdout is not None, "it was asked for"
        for line in started.process.stdout:
            if line.startswith(b"{") and (phase := PHASES.get(json.loads(line)["event"])):
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
        process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, cwd=folder, env=environment)
        try:
            yield Started(process, began)
        finally:
            process.kill()
            process.wait()


def _used(pid: int) -> float:
    """Processor seconds of all threads of a process, by Linux's own count of them."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


def least(runs: list[Seconds]) -> Seconds:
    """The least of each number."""
    return {
        phase: {what: min(run[phase][what] for run in runs) for what in ("processor_s", "wall_s")} for phase in runs[0]
    }


def _told(tree: Path, name: str, run: int | str, seconds: Seconds) -> None:
    describe = ["git", "-C", str(tree), "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
    line = {"commit": commit, "command": name, "run": run, "load": round(os.getloadavg()[0], 1), "until": seconds}
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, action="append", help="checkout of cuarl; repeatable")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each command in each tree")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="one of the commands; repeatable")
    given = parser.parse_args()
    trees = [tree.resolve() for tree in given.tree or [Path(__file__).parents[1]]]
    runs: dict[tuple[Path, str], list[Seconds]] = {}
    for repeat in range(given.repeats):
        for name in given.only or COMMANDS:
            for tree in trees:
                seconds = measure(tree, COMMANDS[name])
                runs.setdefault((tree, name), []).append(seconds)
                _told(tree, name, repeat + 1, seconds)
    for (tree, name), measured in runs.items():
        _told(tree, name, "least", least(measured))


if __name__ == "__main__":
    main()
