"""Do two revisions train alike, and as fast? ``python -m benchmarks.guard OLD NEW``; the exit code is 1 if they don't.

For changes that are to change nothing. Both revisions are unpacked into a temporary folder and run tiny trainings side
by side, each with its own code: in turn (grpo, ppo, rejection, sft), asynchronously, by two processes, at Tinker (the
local server of its protocol), and sampled from ``cuarl serve``. Equal must be the token ids of every turn, the SHA-256
of every adapter, and every metric but times and memory; names of metrics that were changed stand in ``RENAMED``. The
processor time of a training step and of ``cuarl --help`` may differ by 3 %: the best of some runs counts, and more are
made where that was not enough. Processor time, since wall time tells more about what else the machine does.

Asynchronous training is compared whole, too: which group belongs to which step depends on the seed, not on the clock. A
policy behind a server (``cuarl serve``, Tinker) is asked one episode at a time, because what a server computes together
depends on who asks at the moment, and floating-point sums on what is computed together: the loss differed in its ninth
digit.

    python -m benchmarks.guard                       the working tree against ``BASE``
    python -m benchmarks.guard main HEAD --only grpo,sft
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import psutil

ROOT = Path(__file__).parents[1]
BASE = "bd927cd"
"""The last revision that changed numbers on purpose: sampling on a CPU keeps keys and values, so that log-probabilities
are rounded otherwise. The refactoring began at 3ac37ce; what it had done before (17a018d to 5068ba3) was compared, and
is alike."""
RENAMED: Mapping[str, str] = {}
"""Metrics by their old names, with the new ones."""
UNLIKE = ("time", "time/", "perf/")
"""Beginnings of metrics that depend on the machine's state."""
BAR = 0.03
"""By how much the new revision may be slower."""
LEAST, MOST = 2, 6
"""Timed runs: as many as this in any case, and at most so many."""

TASKS = ("--tasks", "turn_power_ends_call,turn_bubbles", "--profile", "small")
TINY = (
    *TASKS, "--max-steps", "2", "--groups-per-batch", "2", "--group-size", "6", "--max-turns", "6", "--eval-every", "0",
    "--eval-episodes", "2", "--skip-baseline", "--save-every", "1", "--learning-rate", "5e-4",
)  # fmt: skip
ONE_BY_ONE = ("--max-concurrent-rollouts", "1", "--group-size", "3")


# --- one revision --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One revision's code, and the folder that it works in."""

    code: Path
    place: Path

    def inside(self, name: str) -> Side:
        """The same in a folder below."""
        (self.place / name).mkdir(parents=True)
        return Side(self.code, self.place / name)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start ``python words`` with the revision's code; what it says on standard error goes to a file."""
        ours = ("CUARL_", "POSTGRES_", "DATABASE_URL", "OPENAI_", "TINKER_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        with (self.place / "stderr.txt").open("a") as said:
            return subprocess.Popen(
                [sys.executable, *words],
                cwd=self.place,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env=env | {"PYTHONPATH": str(self.code), "CUARL_SESSIONS_DIR": str(self.place / "sessions")},
            )

    def run(self, *words: str) -> Seconds:
        """Run it to its end. Raises RuntimeError if it fails."""
        child = self.start(*words)
        process, at_metrics = psutil.Process(child.pid), []
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                if line.startswith('{"event":"metrics"'):
                    at_metrics.append(sum(process.cpu_times()[:4]))
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said = (self.place / "stderr.txt").read_text()
            raise RuntimeError(f"{self.code.name}: {' '.join(words)} ended with {child.returncode}:\n{said}")
        return Seconds(at_metrics[-1] - at_metrics[0] if at_metrics else 0.0, used)

    def cuarl(self, *words: str) -> Seconds:
        """Run a command of cuarl's."""
        return self.run("-m", "cuarl", *words)


class Seconds(NamedTuple):
    """Processor time."""

    between_metrics: float
    """From the first step's metrics to the last step's."""
    used: resource.struct_rusage


@contextmanager
def unpacked(revision: str, folder: Path) -> Iterator[Path]:
    """The revision's files; those of the working tree as they are for ``.``."""
    if revision == ".":
        yield ROOT
        return
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
    yield folder


# --- what is run ---------------------------------------------------------------------------------------------------


def _in_turn(algorithm: str, *options: str) -> Callable[[Side], None]:
    def work(side: Side) -> None:
        side.cuarl("train", *TINY, "--algorithm", algorithm, *options, "--name", "run", "--json")

    return work


def _sft(side: Side) -> None:
    side.cuarl("rollout", *TASKS, "--agent", "demonstration", "--episodes", "8", "--name", "shown", "--json")
    side.cuarl("train", *TINY, "--algorithm", "sft", "--sft-runs", "shown", "--name", "run", "--json")


def _tinker(side: Side) -> None:
    side.run(str(side.code / "examples" / "tinker_learns.py"), *TINY, *ONE_BY_ONE, "--name", "run")


def _served(side: Side) -> None:
    (side.place / "runs").mkdir()
    server = side.start(
        "-m",
        "cuarl",
        "serve",
        "base",
        "--adapters",
        "runs",
        "--fixed-sampling",
        "--temperature",
        "1",
        "--port",
        "0",
        "--name",
        "server",
        "--json",
    )
    try:
        url = json.loads(server.stdout.readline() if server.stdout else "{}")["url"]
        side.cuarl("train", *TINY, *ONE_BY_ONE, "--model-base-url", url, "--name", "run", "--json")
    finally:
        server.terminate()
        server.communicate(timeout=60)


SCENARIOS: Mapping[str, Callable[[Side], None]] = {
    "grpo": _in_turn("grpo"),
    "ppo": _in_turn("ppo"),
    "rejection": _in_turn("rejection"),
    "sft": _sft,
    "async": _in_turn("grpo", "--max-steps-off-policy", "2", "--max-steps", "3"),
    "processes": _in_turn("grpo", "--processes", "2"),
    "tinker": _tinker,
    "served": _served,
}


# --- what is compared ----------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What came of a scenario, by names that do not depend on the run's id."""

    turns: dict[str, Any] = field(default_factory=dict)
    adapters: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


def outcome(side: Side) -> Found:
    """Read everything that a scenario has left in its folder."""
    found = Found()
    side.cuarl("db", "export", "exported", "--no-images")
    ids = {run["id"]: run["name"] for run in _lines(side.place / "exported" / "runs.jsonl")}
    for episode in _lines(side.place / "exported" / "episodes.jsonl"):
        name = episode["episode_id"].replace(episode["run_id"], ids.get(episode["run_id"], "run"))
        for turn in episode["turns"]:
            sampled = turn["sampled"] or {}
            ids_of = {key: sampled.get(key) for key in ("prompt_ids", "token_ids", "policy_version")}
            found.turns[f"{name}#{turn['index']}"] = {**ids_of, "action": turn["action"]}
    for file in sorted(side.place.glob("runs/*/checkpoints/step-*/adapter_model.safetensors")):
        found.adapters[str(file.relative_to(side.place))] = hashlib.sha256(file.read_bytes()).hexdigest()
    for row in _lines(side.place / "runs" / "run" / "metrics.jsonl"):
        step = row.pop("step")
        found.metrics |= {f"{RENAMED.get(k, k)}@{step}": v for k, v in row.items() if not k.startswith(UNLIKE)}
    return found


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


class Row(NamedTuple):
    """One line of the table."""

    scenario: str
    what: str
    old: str
    new: str
    alike: bool
    detail: str = ""


def compared(name: str, old: Found, new: Found) -> Iterator[Row]:
    """The rows of a scenario."""
    for what in ("turns", "adapters", "metrics"):
        a, b = getattr(old, what), getattr(new, what)
        unlike = [key for key in {**a, **b} if a.get(key) != b.get(key)]
        detail = "" if not unlike else f"{unlike[0]}: {_short(a.get(unlike[0]))} -> {_short(b.get(unlike[0]))}"
        if a or b or what == "metrics":
            yield Row(name, what, f"{len(a)}", f"{len(b)}, {len(unlike)} unlike", bool(b) and not unlike, detail)


def _short(value: object) -> str:
    return text if len(text := str(value)) <= 80 else f"{text[:77]}..."


# --- how fast ------------------------------------------------------------------------------------------------------


def timed(name: str, sides: Sequence[Side], measure: Callable[[Side], float]) -> Row:
    """The best of some runs of each revision, which are run at the same time, so that both meet the same load."""
    best = [float("inf"), float("inf")]
    for number in range(MOST):
        if number >= LEAST and best[1] <= (1 + BAR) * best[0]:
            break
        with ThreadPoolExecutor(2) as pool:
            found = pool.map(measure, [side.inside(f"{name}{number}") for side in sides])
        best = list(map(min, best, found))
    ratio = best[1] / best[0]
    return Row("speed", name, f"{best[0]:.3f} s", f"{best[1]:.3f} s", ratio <= 1 + BAR, f"ratio {ratio:.3f}")


def _step(side: Side) -> float:
    longer = ("--max-steps", "6", "--save-every", "0", "--group-size", "8")
    return side.cuarl("train", *TINY, *longer, "--name", "run", "--json").between_metrics / 5


def _help(side: Side) -> float:
    used = [side.cuarl("--help").used for _ in range(5)]
    return min(one.ru_utime + one.ru_stime for one in used)


SPEEDS: Mapping[str, Callable[[Side], float]] = {"step": _step, "help": _help}


# --- all together --------------------------------------------------------------------------------------------------


def rows(sides: Sequence[Side], names: Sequence[str]) -> Iterator[Row]:
    """What is wanted, scenario by scenario, both revisions at the same time."""
    for name in names:
        if name in SPEEDS:
            yield timed(name, sides, SPEEDS[name])
            continue

        def one(side: Side, name: str = name) -> Found:
            inside = side.inside(name)
            SCENARIOS[name](inside)
            return outcome(inside)

        with ThreadPoolExecutor(2) as pool:
            yield from compared(name, *pool.map(one, sides))


def main(args: Sequence[str] | None = None) -> int:
    """Print the table; 1 if anything differs."""
    everything = [*SCENARIOS, *SPEEDS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", default=BASE, help=f"a revision; else {BASE}")
    parser.add_argument("new", nargs="?", default=".", help="a revision; else the working tree as it is")
    parser.add_argument("--only", default=",".join(everything), help="some of: %(default)s")
    given = parser.parse_args(args)
    names = given.only.split(",")
    if unknown := set(names) - set(everything):
        parser.error(f"--only: there is no {', '.join(sorted(unknown))}; there are {', '.join(everything)}")
    alike = True
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with unpacked(given.old, home / "old") as old, unpacked(given.new, home / "new") as new:
            for row in rows([Side(old, home / "at-old"), Side(new, home / "at-new")], names):
                alike = alike and row.alike
                mark = "same" if row.alike else "DIFFERS"
                print(f"{row.scenario:<10} {row.what:<9} {row.old:>9} {row.new:>16}  {mark}  {row.detail}", flush=True)
    print("alike" if alike else "not alike")
    return not alike


if __name__ == "__main__":
    raise SystemExit(main())
