"""An export back into a store. What is there already stays, so an import that broke off can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cuarl import strict_json
from cuarl.errors import ConfigError
from cuarl.regular_file import read_regular
from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store import writes as w
from cuarl.store.blobs import Blobs
from cuarl.store.dataset.read import copy_pictures, joined, put_pictures, read_episodes
from cuarl.store.export import FORMAT, EvaluationLine, Exported, read_lines
from cuarl.store.records import (
    EvaluationRecord,
    EventRecord,
    HumanVerdict,
    MetricPoint,
    PolicyRecord,
    RunRecord,
    StatusChange,
)
from cuarl.store.store import Store
from cuarl.tasks.task import Task
from cuarl.trajectory import SCHEMA_VERSION, Trajectory
from cuarl.types import Record

_CHUNK = 64
_KINDS: dict[str, type[Record]] = {
    "history": StatusChange, "runs": RunRecord, "policies": PolicyRecord, "tasks": Task, "episodes": Trajectory,
    "human_verdicts": HumanVerdict, "evaluations": EvaluationLine, "metrics": MetricPoint, "events": EventRecord,
}  # fmt: skip
"""What the files hold, in an order that satisfies foreign keys."""


def import_store(store: Store, folder: Path, *, at: float) -> Exported:
    """Add what an export holds, as of Unix time ``at``.

    Raises ConfigError if the folder is no export of a known format, StoreError if a line can't be read; before anything
    is written.
    """
    check_export(folder)
    # restored statuses may come from a machine whose clock is ahead, and must not look newer than the rows
    newest = max((change.at for change in read_lines(folder / "history.jsonl", StatusChange)), default=at)
    if _is_dataset(folder):
        copied = copy_pictures(folder, store.blobs)
    else:
        source = Blobs(str(folder / "blobs"))
        copied = source.copy_all(store.blobs, source.digests())
    counts = {name: _import(store, _records(folder, name), name, max(at, newest)) for name in _KINDS}
    return Exported(folder, counts, copied)


def import_loaded(
    store: Store, episodes: Iterable[Mapping[str, Any]], turns: Iterable[Mapping[str, Any]], *, at: float
) -> Exported:
    """Add the rows of a data set as ``datasets.load_dataset`` gives them: one split of both tables.

    ``at`` is Unix time. Runs that the store doesn't know are added by their ids alone. Raises StoreError for what can't
    be read.
    """
    known: set[str] = set()
    waiting = joined(_storing(episodes, store, known), _storing(turns, store, known))
    here, count = {run.id for run in store.runs()} | {""}, 0
    while chunk := list(islice(waiting, _CHUNK)):
        new = sorted({trajectory.run_id for trajectory in chunk} - here)
        store.write([w.SaveRun(run=RunRecord(id=i, name=i, status="completed"), at=at) for i in new])
        here.update(new)
        count += _import(store, chunk, "episodes", at)
    return Exported(Path(), {"episodes": count}, len(known))


def _storing(rows: Iterable[Mapping[str, Any]], store: Store, known: set[str]) -> Iterator[Mapping[str, Any]]:
    """Rows without their pictures, which are stored first."""
    for row in rows:
        known.update(put_pictures(row, store.blobs, known))
        yield {name: row[name] for name in ("episode_id", "turn_count", "record") if name in row}


def _is_dataset(folder: Path) -> bool:
    return (folder / "episodes").is_dir()


def _records(folder: Path, name: str) -> Iterator[Record]:
    if name == "episodes" and _is_dataset(folder):
        return read_episodes(folder)
    return read_lines(folder / f"{name}.jsonl", _KINDS[name])


def check_export(folder: Path) -> None:
    """Raise unless the folder is an export that this version can read, every line of it: see ``import_store``."""
    try:
        manifest = strict_json.reply(read_regular(folder / "manifest.json", follow=False))
        version = (int(manifest["format"]), int(manifest["trajectory_schema"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(
            "this is not an export of a store", where=str(folder), hint="cuarl db export FOLDER"
        ) from None
    if version > (FORMAT, SCHEMA_VERSION):
        raise ConfigError(
            f"the export has format {version[0]}.{version[1]}, newer than this program's {FORMAT}.{SCHEMA_VERSION}",
            where=str(folder),
            hint="pip install --upgrade cuarl",
        )
    for name in _KINDS:
        for _ in _records(folder, name):
            pass


def _import(store: Store, records: Iterable[Record], name: str, at: float) -> int:
    waiting = iter(records)
    count = 0
    while chunk := list(islice(waiting, _CHUNK)):
        key, column = _KEYS.get(name, (None, None))
        if key is not None:
            known = transaction.read(store.engine, _known(column, [getattr(r, key) for r in chunk]))
            chunk = [r for r in chunk if getattr(r, key) not in known]
        store.write(_WRITES[name](chunk, at))
        count += len(chunk)
    return count


def _known(column: Any, ids: Sequence[str]) -> Callable[[Session], set[str]]:
    query = select(column).where(column.in_(ids))
    if column is t.EpisodeRow.id:
        query = query.where(t.EpisodeRow.status != "started")
    return lambda session: set(session.scalars(query))


_KEYS: dict[str, tuple[str, Any]] = {
    "runs": ("id", t.RunRow.id),
    "episodes": ("episode_id", t.EpisodeRow.id),
    "evaluations": ("id", t.EvaluationRow.id),
}
"""By what is known whether a record is there already; the other writes are the same twice as once."""


def _evaluation(line: EvaluationLine, at: float) -> w.Write:
    record = EvaluationRecord.model_validate(line.model_dump(exclude={"episode_ids"}))
    return w.SaveEvaluation(evaluation=record, episode_ids=line.episode_ids, at=at)


def _metrics(points: Sequence[MetricPoint]) -> list[w.Write]:
    return [w.LogMetrics(run_id=p.run_id, step=p.step, values={p.name: p.value}, at=p.at) for p in points]


_WRITES: dict[str, Callable[[Sequence[Any], float], Sequence[w.Write]]] = {
    "history": lambda records, at: [w.RestoreHistory(changes=tuple(records))],
    "runs": lambda records, at: [w.SaveRun(run=r, at=at) for r in records],
    "policies": lambda records, at: [w.SavePolicy(policy=r) for r in records],
    "tasks": lambda records, at: [w.SaveTasks(tasks=tuple(records), at=at)],
    "episodes": lambda records, at: [w.SaveTrajectory(trajectory=r, at=at) for r in records],
    "human_verdicts": lambda records, at: [w.SaveHumanVerdict(verdict=r) for r in records],
    "evaluations": lambda records, at: [_evaluation(r, at) for r in records],
    "metrics": lambda records, at: _metrics(records),
    "events": lambda records, at: [w.LogEvent(event=r) for r in records],
}
