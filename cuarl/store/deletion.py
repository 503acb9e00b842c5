"""Takes a run out of a store, and screenshots that nothing refers to any more.

A screenshot is written before the row that refers to it, and one that is there already is not written again. So none is
removed while anybody else may be about to refer to it: a run that is under way, writes that wait in a spool, or another
database that uses the same folder. It is kept then, and ``prune`` removes it later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement, Text, cast, select
from sqlalchemy.orm import Session

from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store import writes as w
from cuarl.store.store import Store
from cuarl.store.url import sqlite_path

_DIGEST = re.compile("[0-9a-f]{64}")
_ALIVE_S = 86_400.0
"""A run that says it is running is believed for so long after its last sign of life."""
_HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was taken out."""

    episodes: int = 0
    screenshots: int = 0
    """Files that were removed."""
    kept: int = 0
    """Screenshots that no row refers to, and that are there still."""
    because: str = ""
    """Why they were kept."""


def delete_run(store: Store, run_id: str) -> Deleted:
    """Remove all that a run has recorded, and the screenshots that it alone refers to. A run that isn't there is fine.

    Sessions stay, since they name devices that may have to be given back; runs that came from this one stay, too.
    """
    store.drain()
    seen = transaction.read(store.engine, lambda session: _digests(session, t.EpisodeRow.run_id == run_id))
    episodes = len(store.episode_ids(run=run_id))
    store.write([w.DeleteRun(run_id=run_id)])
    pruned = _prune(store, seen, apart_from=run_id)
    return Deleted(episodes, pruned.screenshots, pruned.kept, pruned.because)


def prune(store: Store) -> Deleted:
    """Remove all screenshots that no row refers to."""
    return _prune(store, set(store.blobs.digests()))


def _prune(store: Store, among: set[str], apart_from: str | None = None) -> Deleted:
    because = _in_use(store, apart_from)
    unused = among - transaction.read(store.engine, _digests)
    if because or not unused:
        return Deleted(kept=sum(map(store.blobs.exists, unused)), because=because)
    return Deleted(screenshots=store.blobs.remove(unused))


def _in_use(store: Store, apart_from: str | None) -> str:
    """Who else may be about to refer to a screenshot; empty if nobody."""
    if store.spooled:
        return "writes are waiting for the database server"
    since = time.time() - _ALIVE_S
    for run in store.runs():
        if run.id != apart_from and run.status == "running" and max(run.heartbeat_at or 0, run.started_at) > since:
            return f'run "{run.name}" is under way'
    other = _other_database(store)
    return f"{other} uses the same folder" if other else ""


def _other_database(store: Store) -> Path | None:
    """Another SQLite file whose screenshots would be here, too; copies from before a migration don't count."""
    mine, folder = sqlite_path(store.engine.url), Path(store.blobs.root).parent
    for path in sorted(folder.glob("*")) if store.blobs.is_local and folder.is_dir() else ():
        same = mine is not None and mine.exists() and path.samefile(mine)
        if not same and path.suffix != ".bak" and path.is_file() and _begins(path, _HEADER):
            return path
    return None


def _begins(path: Path, header: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(header)) == header


def _digests(session: Session, condition: ColumnElement[bool] | None = None) -> set[str]:
    """All that rows refer to: those of episodes with a condition, or of all."""
    e, s = t.EpisodeRow, t.SampleRow
    turns, final = select(t.TurnRow.digest).distinct(), select(e.final_digest).where(e.final_digest.is_not(None))
    samples = select(cast(s.images, Text))  # as text: decoding a million lists would take half a minute
    if condition is not None:
        mine = select(e.id).where(condition)
        turns, samples = turns.where(t.TurnRow.episode_id.in_(mine)), samples.where(s.episode_id.in_(mine))
        final = final.where(condition)
    found = {digest for query in (turns, final) for digest in session.scalars(query) if digest}
    found.update(_in_text(session.scalars(samples.execution_options(yield_per=10_000))))
    return found


def _in_text(texts: Iterable[str | None]) -> Iterator[str]:
    for text in texts:
        yield from _DIGEST.findall(text or "")
