"""A store as a folder of files that anyone can read, and back.

    manifest.json     format version, what was exported, how much
    runs.jsonl        one run a line; likewise policies, tasks, evaluations, metrics, events, history,
                      human_verdicts
    episodes.jsonl    one whole episode (``trajectory.Trajectory``) a line
    turns.parquet     one turn a row, for data frames (only if pyarrow is installed)
    blobs/ab/….png    the screenshots, as they are in the store

The JSON lines are the whole truth; ``imports.import_store`` gives back equal records. Sessions stay behind: they name
devices that belong to this machine. ``dataset.export`` writes what is made to be given away. An export is there whole
or not at all: it is written aside and moved in the end.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from cuarl import __version__
from cuarl.errors import ConfigError, StoreError
from cuarl.regular_file import open_regular
from cuarl.store.aside import LAST, whole_or_not_at_all
from cuarl.store.blobs import Blobs
from cuarl.store.codec import dump_line, load_line
from cuarl.store.records import EvaluationRecord, RunRecord, StatusChange
from cuarl.store.redaction import RedactedEpisodes, Redaction
from cuarl.store.store import Store
from cuarl.suggest import did_you_mean
from cuarl.trajectory import SCHEMA_VERSION, Trajectory
from cuarl.types import ImageRef, Record

FORMAT = 2
"""The newest that is read: 1 is a folder as above, 2 a data set."""
R = TypeVar("R", bound=Record)


class EvaluationLine(EvaluationRecord):
    """An evaluation and the episodes that it counts."""

    episode_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export or import has moved."""

    folder: Path
    counts: dict[str, int]
    """Lines of each file, without the suffix."""
    screenshots: int
    missing_screenshots: int = 0
    """Named by episodes, but not in the store."""
    parquet: bool = False


def export_store(
    store: Store, folder: Path, *, run: str | None = None, images: bool = True, redact: str | None = None
) -> Exported:
    """Write a store, or one of its runs by id, by name (the newest) or ``latest``, to an empty folder.

    ``redact`` names a function that changes screenshots (``redaction.Redaction``). Raises ConfigError if the folder
    holds something, there is no such run, or the redaction fails; StoreError for what can't be read or written; then
    nothing is left.
    """
    found = Found()
    if run is not None:
        run = run_id(store.runs(), run)
    with whole_or_not_at_all(folder) as aside:
        redaction = RedactedEpisodes(Redaction(redact), store.blobs, Blobs(str(aside / "blobs"))) if redact else None
        tables = tables_of(store, run, found, redaction)
        counts = {name: write_lines(aside / f"{name}.jsonl", records) for name, records in tables.items()}
        copied = store.blobs.copy_all(Blobs(str(aside / "blobs")), found.digests) if images else 0
        parquet = importlib.util.find_spec("pyarrow") is not None
        if parquet:
            from cuarl.store.parquet import write_turns

            overruled = store.overruled(run=run)
            write_turns(aside / "turns.parquet", read_lines(aside / "episodes.jsonl", Trajectory), overruled)
        write_manifest(aside, {"format": 1, "run": run, "counts": counts, "screenshots": copied, "redacted": redact})
    missing = len(found.digests) - copied if images else 0
    return Exported(folder, counts, copied, missing, parquet)


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Say what an export is; by this file it is known to be complete."""
    manifest = {"trajectory_schema": SCHEMA_VERSION, "cuarl": __version__, **facts}
    (folder / LAST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Found:
    """What the exported episodes are, and refer to; fills up while they are read."""

    ids: set[str] = field(default_factory=set)
    digests: set[str] = field(default_factory=set)


def tables_of(
    store: Store, run: str | None, found: Found, redaction: RedactedEpisodes | None = None
) -> dict[str, Iterable[Record]]:
    """The records of each file, in the order in which they must be read; episodes with their pictures redacted."""
    runs = _oldest_first(store.runs(), run)
    ids = [r.id for r in runs] if run is None else [run]
    return {
        "history": _history(store, run),
        "runs": runs,
        "policies": store.policies(run=run),
        "tasks": store.tasks(),
        "episodes": _episodes(store, run, found, redaction),
        "human_verdicts": store.human_verdicts(run=run),
        "evaluations": _evaluations(store, run, found),
        "metrics": (point for i in ids for point in store.metrics(i)),
        "events": store.events(run=run),
    }


def run_id(runs: Sequence[RunRecord], reference: str) -> str:
    """The run of this id, the newest of this name, or ``latest``, of ``runs``, newest first. Raises ConfigError."""
    for record in runs:
        if reference in (record.id, record.name, "latest"):
            return record.id
    near = did_you_mean(reference, [name for r in runs for name in (r.name, r.id)])
    raise ConfigError(f'there is no run "{reference}" in the store{near}', where="--run", hint="cuarl db status")


def _oldest_first(runs: Iterable[RunRecord], run: str | None) -> list[RunRecord]:
    """All runs, or one and those it came from; parents before their children."""
    by_id = {r.id: r for r in runs}
    taken: dict[str, RunRecord] = {}

    def take(record: RunRecord) -> None:
        if record.parent_id and record.parent_id not in taken:
            take(by_id[record.parent_id])
        taken[record.id] = record

    for record in sorted(by_id.values(), key=lambda r: (r.started_at, r.id)) if run is None else [by_id[run]]:
        take(record)
    return list(taken.values())


def _history(store: Store, run: str | None) -> Iterable[StatusChange]:
    changes = [change for change in store.history() if change.entity != "session"]
    if run is None:
        return changes
    mine = {("run", run)}
    mine |= {("episode", e.episode_id) for e in store.episodes(run=run)}
    mine |= {("evaluation", e.id) for e in store.evaluations(run=run)}
    return [change for change in changes if (change.entity, change.entity_id) in mine]


def _episodes(store: Store, run: str | None, found: Found, redaction: RedactedEpisodes | None) -> Iterator[Trajectory]:
    everything = store.trajectories() if run is None else store.trajectories(run=run)
    for trajectory in map(redaction, everything) if redaction else everything:
        found.ids.add(trajectory.episode_id)
        found.digests.update(ref.digest for ref in screenshots_of(trajectory))
        yield trajectory


def _evaluations(store: Store, run: str | None, found: Found) -> Iterator[EvaluationLine]:
    """Without episodes of other runs, which are not in the export."""
    for record in store.evaluations(run=run):
        ids = tuple(i for i in store.evaluation_episode_ids(record.id) if i in found.ids)
        yield EvaluationLine(**record.model_dump(), episode_ids=ids)


def screenshots_of(trajectory: Trajectory) -> Iterator[ImageRef]:
    """Every screenshot that an episode refers to; some more than once."""
    for turn in trajectory.turns:
        yield turn.screenshot
        yield from turn.sampled.images if turn.sampled else ()
    if trajectory.final_screenshot:
        yield trajectory.final_screenshot


def write_lines(path: Path, records: Iterable[Record]) -> int:
    """Write one record a line, any text included; gives their number."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(f"{dump_line(record.model_dump())}\n")
            count += 1
    return count


def read_lines(path: Path, kind: type[R]) -> Iterator[R]:
    """Read what ``write_lines`` wrote. Raises StoreError that names the line which can't be read, or the file.

    Links are not followed: an export may come from anybody.
    """
    if not os.path.lexists(path):
        return
    try:
        opened = open_regular(path, follow=False)
    except OSError as error:
        raise StoreError(f"this file of the export can't be read: {error.strerror}", where=str(path)) from error
    with TextIOWrapper(opened, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield kind.model_validate(load_line(line))
            except (ValueError, ValidationError) as error:
                cause = str(error).splitlines()[0]
                raise StoreError(f"a line can't be read: {cause}", where=f"{path}, line {number}") from error
