"""How long a look-up takes in a large store: a million turns in 130,000 episodes of 50 runs, as it is after weeks of
use.

    python -m benchmarks.lookups                        a SQLite file in a temporary folder, made in about a minute
    python -m benchmarks.lookups --folder big           kept there, and used again
    python -m benchmarks.lookups --url postgresql://…   another database (it must be migrated and empty, and is left
    full)

Each look-up is one that a command or a monitor makes to show one page; ``worst_ms`` is the slowest of 20, of which the
first has found nothing warm but what the operating system keeps; ``cpu_ms`` doesn't depend on what else runs.
``rss_mib`` is what all of them together added.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, literal, select
from sqlalchemy import text as sql

from benchmarks.store import episode, screen
from cuarl.store import EvaluationRecord, PolicyRecord, RunRecord, Store
from cuarl.store import tables as t
from cuarl.store import writes as w
from cuarl.store.engine import writing
from cuarl.store.status import status
from cuarl.trajectory import Trajectory
from cuarl.workflow.stored_episodes import find_episode

RUNS = 50
TEMPLATES = 400
"""Episodes that are written as a run writes them; the others are copies of them under other ids."""
STEPS = 200
TRIALS = 20


def build(store: Store, turns: int, runs: int = RUNS) -> None:
    """Fill an empty store with about so many turns of so many runs."""
    rng = random.Random(0)
    pool = [screen(rng) for _ in range(20)]
    made = [_slim(episode(rng, pool, "run-00", number)[0]) for number in range(TEMPLATES)]
    for run in range(runs):
        store.start_run(RunRecord(id=f"run-{run:02d}", name=f"settings-{run}", started_at=1e9 + run))
    store.write([w.SaveTrajectory(trajectory=e, at=1e9) for e in made])
    per_template = -(-turns // sum(len(e.turns) for e in made))
    for copy in range(1, per_template):
        with writing(store.engine) as connection:
            multiply(connection, copy, f"run-{copy % runs:02d}", copy // runs % STEPS)
    analyze(store)
    for step in range(0, STEPS, 20):
        record = EvaluationRecord(id=f"v{step}", run_id="run-01", suite="settings", step=step)
        store.save_evaluation(record, [some(i) for i in range(100)])
        store.save_policy(PolicyRecord(name="p", version=step, run_id="run-01", step=step))
    for step in range(STEPS):
        store.write([w.LogMetrics(run_id="run-01", step=step, values={f"m/{i}": 0.5 for i in range(60)}, at=1e9)])


def analyze(store: Store) -> None:
    """Let the database count what it has, as it does by itself in time."""
    with writing(store.engine) as connection:
        connection.execute(sql("ANALYZE"))


def _slim(e: Trajectory) -> Trajectory:
    """Without most of its prompt, which would only make the file ten times as large; on one of three devices."""
    kind = ("phone", "desktop", "browser")[e.attempt % 3]
    turns = [
        turn.model_copy(update={"sampled": turn.sampled.model_copy(update={"prompt_ids": (1,) * 800})})
        for turn in e.turns
        if turn.sampled
    ]
    return e.model_copy(update={"turns": tuple(turns), "backend": kind, "wall_s": 12.0 + e.attempt})


def some(i: int) -> str:
    """The id of an episode, another one for each ``i`` below 100."""
    return f"run-00-{i * 4:05d}-c0001x"


def multiply(connection: Connection, copy: int, run: str, step: int) -> None:
    """All templates once more, in another run and at another step."""
    suffix = f"-c{copy:04d}x"
    changed = {"run_id": run, "step": step, "saved_at": 1e9 + copy}
    keys = {t.GroupRow: "id", t.EpisodeRow: "id", t.TurnRow: "episode_id", t.SampleRow: "episode_id"}
    keys |= {t.VerdictRow: "episode_id", t.StatusRow: "entity_id"}
    for table, key in keys.items():
        columns = table.__table__.columns
        source = columns[key]
        values = [
            source + suffix
            if c.name in (key, "group_id") and c is source
            else c + suffix
            if c.name == "group_id"
            else literal(changed[c.name], c.type)
            if c.name in changed
            else c
            for c in columns
        ]
        mine = select(*values).where(source.like("run-00-_____" if table is not t.GroupRow else "run-00-g%"))
        mine = mine.where(~source.like("%-c____x"))
        if table is t.StatusRow:
            mine = mine.where(t.StatusRow.entity == "episode")
        connection.execute(insert(table).from_select([c.name for c in columns], mine))


def lookups(store: Store, url: str, folder: Path) -> dict[str, Callable[[int], Any]]:
    """What is asked, by name; each takes the number of the trial, so that no two ask for the same."""
    return {
        "rollout show latest": lambda i: find_episode(store, "latest"),
        "rollout show ID": lambda i: find_episode(store, some(i)),
        "rollout show BEGINNING": lambda i: find_episode(store, some(i)[:-1]),
        "newest episodes": lambda i: store.newest(50),
        "first episodes": lambda i: store.episodes(limit=50),
        "runs": lambda i: store.runs(),
        "episodes of a run": lambda i: store.episodes(run=f"run-{i:02d}", limit=50),
        "episodes of a step": lambda i: store.episodes(run="run-01", step=i, purpose="train", limit=50),
        "episodes of a task": lambda i: store.episodes(task="bench", limit=50),
        "episodes of a policy": lambda i: store.episodes(policy="", limit=50),
        "episodes under way": lambda i: store.episodes(status="started", limit=50),
        "episodes of an evaluation": lambda i: store.episodes(evaluation=f"v{i % 10 * 20}", limit=50),
        "what is new": lambda i: store.episodes(saved_after=1e9 + 1e6, limit=50),
        "a group": lambda i: store.group(f"run-00-g{i}-c0001x"),
        "a metric of a run": lambda i: store.metrics("run-01", name=f"m/{i}"),
        "metrics after a step": lambda i: store.metrics("run-01", after_step=STEPS - 2),
        "history of an episode": lambda i: store.history("episode", some(i)),
        "evaluations": lambda i: store.evaluations(run="run-01"),
        "policies": lambda i: store.policies(run="run-01"),
        "db status": lambda i: status(url, None, folder),
    }


def measure(name: str, ask: Callable[[int], Any]) -> dict[str, object]:
    times = []
    cpu = time.process_time()
    for trial in range(TRIALS):
        started = time.perf_counter()
        ask(trial)
        times.append(1e3 * (time.perf_counter() - started))
    cpu_ms = 1e3 * (time.process_time() - cpu) / TRIALS
    times.sort()
    median = times[len(times) // 2]
    return {"look_up": name, "median_ms": round(median, 1), "worst_ms": round(times[-1], 1), "cpu_ms": round(cpu_ms, 1)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--url")
    options.add_argument("--folder", type=Path)
    options.add_argument("--turns", type=int, default=1_000_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        url = given.url or f"sqlite:///{folder}/lookups.db"
        started = time.perf_counter()
        with Store.open(url, f"{folder}/blobs", runs_dir=folder) as store:
            if not store.runs():
                build(store, given.turns)
        built_s = time.perf_counter() - started
        with Store.open(url, f"{folder}/blobs", runs_dir=folder) as store:
            counts = status(url, None, folder).counts
            facts = {"episodes": counts["episodes"], "turns": counts["turns"], "built_s": round(built_s, 1)}
            print(json.dumps(facts), flush=True)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for name, ask in lookups(store, url, folder).items():
                print(json.dumps(measure(name, ask)), flush=True)
            added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(json.dumps({"rss_mib": round(added / 1024)}))


if __name__ == "__main__":
    main()
