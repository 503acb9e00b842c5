"""Every algorithm from the same base on the same tasks with equally many episodes: success, interval, change.

    python benchmarks/algorithms.py --plan                                       what would be run
    python benchmarks/algorithms.py --out /tmp/algorithms --jobs 16 --cores-per-job 2
    python benchmarks/algorithms.py --out /tmp/algorithms --table                only print the table of what is there

Each algorithm and seed is a run of ``cuarl train`` in a folder and a store of its own, on cores of its own. What is
complete is not run again and what was interrupted goes on, so the same command may be repeated until all is there;
``--limit-seconds`` interrupts what runs by then. The base is measured once a seed, on the instances that the runs of
that seed are measured on.

sft imitates as many demonstrations of the oracle as the others collect episodes. dapo's further collections are
switched off, for they cost episodes that the others don't have.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuarl.config.algorithms import ALGORITHMS
from cuarl.evaluate.stats import Comparison, Rate, clustered_rate, compare
from cuarl.store import Store
from cuarl.store.records import EpisodeSummary

ROOT = Path(__file__).parents[1]
BASE = "base"
OWN: Mapping[str, Sequence[str]] = {
    "dapo": ("--dynamic-sampling-rounds", "0"),
    "sft": ("--sft-runs", "demonstrations"),
}
"""Flags that an algorithm needs here."""
GRACE_S = 60.0
"""What an interrupted run may take to save its last step."""


@dataclass(frozen=True)
class Experiment:
    """What is equal for all runs."""

    tasks: Sequence[str]
    measured: Sequence[str]
    difficulty: Sequence[str]
    steps: int
    groups: int
    group_size: int
    eval_episodes: int
    max_turns: int
    device: str
    extra: Sequence[str]
    category: Sequence[str] = ()

    @property
    def episodes(self) -> int:
        return self.steps * self.groups * self.group_size


@dataclass(frozen=True)
class Job:
    """One algorithm with one seed."""

    algorithm: str
    seed: int
    out: Path

    @property
    def folder(self) -> Path:
        return self.out / f"{self.algorithm}-{self.seed}"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'store.db'}"

    def commands(self, e: Experiment) -> Iterator[list[str]]:
        """What is still to be run, in order."""
        place = ["--runs-dir", str(self.folder / "runs"), "--db", self.url]
        shared = [
            *place,
            "--seed",
            str(self.seed),
            "--device",
            e.device,
            "--difficulty",
            ",".join(e.difficulty),
            "--max-turns",
            str(e.max_turns),
            *(["--category", ",".join(e.category)] if e.category else []),
        ]
        run = self.folder / "runs" / "run"
        if self.algorithm == BASE:
            yield [
                "eval",
                BASE,
                "--tasks",
                ",".join(e.measured),
                "--episodes",
                str(e.eval_episodes),
                "--no-baselines",
                *shared,
            ]
            return
        if (run / "manifest.json").is_file():
            yield ["train", "--resume", str(run), *place]
            return
        if self.algorithm == "sft":
            yield [
                "rollout",
                "--agent",
                "demonstration",
                "--tasks",
                ",".join(e.tasks),
                "--episodes",
                str(e.episodes),
                "--name",
                "demonstrations",
                "--overwrite",
                *shared,
            ]
        yield [
            "train",
            "--algorithm",
            self.algorithm,
            "--tasks",
            ",".join(e.tasks),
            "--eval-tasks",
            ",".join(e.measured),
            "--max-steps",
            str(e.steps),
            "--groups-per-batch",
            str(e.groups),
            "--group-size",
            str(e.group_size),
            "--eval-episodes",
            str(e.eval_episodes),
            "--eval-every",
            "0",
            "--skip-baseline",
            "--name",
            "run",
            *shared,
            *OWN.get(self.algorithm, ()),
            *e.extra,
        ]


# --- running -------------------------------------------------------------------------------------------------------


class Slot:
    """Some cores, and what runs on them."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = cores
        self._job: Job | None = None
        self._left: list[list[str]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._start = 0.0

    @property
    def free(self) -> bool:
        return self._job is None

    def begin(self, job: Job, e: Experiment) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        self._job, self._left, self._start = job, list(job.commands(e)), time.monotonic()
        self._next()

    def look(self) -> str | None:
        """What has become of the job, once it is over."""
        if self._process is None or self._job is None or self._process.poll() is None:
            return None
        if self._process.returncode == 0 and self._left:
            self._next()
            return None
        code, log = self._process.returncode, self._job.folder / "log.txt"
        how = "done" if code == 0 else f"ended with code {code}, see {log},"
        said = f"{self._job.folder.name}: {how} after {time.monotonic() - self._start:.0f} s"
        self._job = None
        return said

    def interrupt(self) -> None:
        self._left = []
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _next(self) -> None:
        assert self._job is not None
        pinned = ["taskset", "-c", ",".join(map(str, self._cores))]
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        threads = str(len(self._cores))
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(paths)}
        with (self._job.folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                [*pinned, sys.executable, "-m", "cuarl", *self._left.pop(0)],
                stdout=log,
                stderr=log,
                env=environment,
                # an interrupt of this process is passed on once, and not twice
                start_new_session=True,
            )


def run(jobs: Sequence[Job], e: Experiment, slots: Sequence[Slot], deadline: float) -> None:
    """Run all jobs, as many at a time as there are slots, until the monotonic time ``deadline``."""
    left = list(jobs)
    try:
        while left or not all(slot.free for slot in slots):
            for slot in slots:
                if slot.free and left:
                    slot.begin(left.pop(0), e)
                if said := slot.look():
                    say(f"{said}; {len(left)} left to start")
            if time.monotonic() > deadline:
                say("out of time: run the same command again to go on")
                return
            time.sleep(0.5)
    finally:
        for slot in slots:
            slot.interrupt()
        patience = time.monotonic() + GRACE_S
        while time.monotonic() < patience and not all(slot.free for slot in slots):
            for slot in slots:
                slot.look()
            time.sleep(0.5)
        for slot in slots:
            slot.end()


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def slots_for(jobs: int | None, cores_per_job: int) -> list[Slot]:
    cores = sorted(os.sched_getaffinity(0))
    fit = max(1, len(cores) // cores_per_job)
    count = min(jobs or fit, fit)
    return [Slot(cores[i * cores_per_job : (i + 1) * cores_per_job]) for i in range(count)]


# --- the table -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What one finished run has in its store."""

    evaluated: Sequence[EpisodeSummary]
    trained: int


def result(job: Job, e: Experiment) -> Result | None:
    """The last evaluation of a run; None while there is none."""
    if not (job.folder / "store.db").is_file():
        return None
    step = 0 if job.algorithm == BASE else e.steps
    with Store.open(job.url) as store:
        last = [v for v in store.evaluations() if v.step == step]
        if not last:
            return None
        runs = {record.name: record.id for record in reversed(store.runs())}  # the newest last
        # what was collected while training, or demonstrated before
        which = ("demonstrations", "rollout") if job.algorithm == "sft" else ("run", "train")
        trained = len(store.episode_ids(run=runs[which[0]], purpose=which[1])) if job.algorithm != BASE else 0
        return Result(store.episodes(evaluation=last[-1].id), trained)


def rate(episodes: Sequence[EpisodeSummary]) -> Rate:
    """Success with its interval, clustered by task."""
    by_task: dict[str, list[float]] = {}
    for s in episodes:
        if s.success is not None:
            by_task.setdefault(s.task_id, []).append(float(s.success))
    return clustered_rate(by_task)


def difference(base: Sequence[EpisodeSummary], other: Sequence[EpisodeSummary]) -> Comparison:
    """Paired by instance."""
    both: list[dict[tuple[str, int], list[float]]] = [{}, {}]
    for instances, episodes in zip(both, (base, other), strict=True):
        for s in episodes:
            if s.success is not None:
                instances.setdefault((s.task_id, s.seed), []).append(float(s.success))
    return compare(*both)


def tables(results: Mapping[str, Mapping[int, Result]]) -> Iterator[str]:
    """Markdown: success over all seeds, the change against the base on the same instances, and success by category."""
    pooled = {name: [s for r in by_seed.values() for s in r.evaluated] for name, by_seed in results.items()}
    base = pooled.get(BASE, [])
    yield "| algorithm | episodes | success | 95 % interval | each seed | change | 95 % interval | p |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, episodes in pooled.items():
        found, seeds = rate(episodes), [rate(r.evaluated).value for r in results[name].values()]
        cells = [
            name,
            str(sum(r.trained for r in results[name].values()) // len(results[name])),
            percent(found.value),
            interval(found.low, found.high),
            " ".join(f"{100 * s:.0f}" for s in seeds),
        ]
        # only seeds that the base was measured with, too
        met = [s for seed, r in results[name].items() if seed in results.get(BASE, {}) for s in r.evaluated]
        if base and name != BASE and met:
            d = difference(base, met)
            cells += [f"{100 * d.difference:+.1f}", f"{100 * d.low:+.1f} to {100 * d.high:+.1f}", f"{d.p_value:.4f}"]
        else:
            cells += ["", "", ""]
        yield row(cells)
    categories = sorted({s.category for episodes in pooled.values() for s in episodes})
    yield ""
    yield f"| algorithm | {' | '.join(categories)} |"
    yield "|---|" + "---|" * len(categories)
    for name, episodes in pooled.items():
        cells = [name]
        for category in categories:
            here, there = (rate([s for s in part if s.category == category]) for part in (episodes, base))
            lifted = " *" if base and name != BASE and here.value > there.high else ""
            cells.append(f"{percent(here.value)} ({interval(here.low, here.high)}){lifted}")
        yield row(cells)
    yield ""
    yield "\\* above the interval of the base"


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def interval(low: float, high: float) -> str:
    return f"{100 * low:.1f}–{100 * high:.1f}"


# --- the command ---------------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the runs")
    parser.add_argument("--algorithms", nargs="+", choices=sorted(ALGORITHMS), default=list(ALGORITHMS), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--tasks", nargs="+", default=["settings_train", "phone_train"])
    parser.add_argument("--eval-tasks", nargs="+", default=["settings_eval", "phone_eval"])
    parser.add_argument("--difficulty", nargs="+", default=["easy"])
    parser.add_argument("--category", nargs="+", default=[], help="only these; all unless given")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--groups", type=int, default=6, help="groups a step")
    parser.add_argument("--group-size", type=int, default=16)
    parser.add_argument("--eval-episodes", type=int, default=258, help="a run; 43 easy tasks with six instances each")
    parser.add_argument("--max-turns", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--extra", default="", help="further flags of cuarl train for every algorithm, as one text")
    parser.add_argument("--jobs", type=int, help="runs at a time; as many as fit onto the cores unless given")
    parser.add_argument("--cores-per-job", type=int, default=2)
    parser.add_argument("--limit-seconds", type=float, default=float("inf"))
    parser.add_argument("--plan", action="store_true", help="print the commands, and stop")
    parser.add_argument("--table", action="store_true", help="print the table of what is there, and stop")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    experiment = Experiment(
        args.tasks,
        args.eval_tasks,
        args.difficulty,
        args.steps,
        args.groups,
        args.group_size,
        args.eval_episodes,
        args.max_turns,
        args.device,
        shlex.split(args.extra),
        args.category,
    )
    out = (args.out or Path("algorithms")).resolve()
    jobs = [Job(name, seed, out) for seed in args.seeds for name in (BASE, *args.algorithms)]
    missing = [job for job in jobs if result(job, experiment) is None]
    if args.plan or not (args.out or args.table):
        for job in missing:
            for command in job.commands(experiment):
                print(shlex.join(["cuarl", *command]))
        return
    deadline = time.monotonic() + args.limit_seconds
    if not args.table:
        say(f"{len(missing)} of {len(jobs)} runs to go, {experiment.episodes} episodes each")
        run(missing, experiment, slots_for(args.jobs, args.cores_per_job), deadline)
    found = {job: result(job, experiment) for job in jobs}
    by_name = {
        name: {job.seed: r for job, r in found.items() if job.algorithm == name and r is not None}
        for name in (BASE, *args.algorithms)
    }
    print("\n".join(tables({name: by_seed for name, by_seed in by_name.items() if by_seed})))
    raise SystemExit(0 if all(found.values()) else 1)


if __name__ == "__main__":
    main()
