"""The store: one writer for everything a run records, and typed queries over it.

    with Store.open("sqlite:///runs/cuarl.db") as store:
        store.start_run(RunRecord(id="r1", name="r1"))
        await store.submit(trajectory, pictures)   # queued, off the event loop
        await store.flush()                                                # stored, or StoreError
        store.trajectories(run="r1", step=3)

The ``save_…`` and ``log_…`` methods return once their row is durable. ``submit`` and ``enqueue`` hand a write to a
background thread through a bounded queue, so that collecting and training never wait for the disk; what went wrong
there comes out at ``flush`` and ``close``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio.to_thread
from sqlalchemy import Engine

from cuarl.errors import StoreError
from cuarl.store import schema
from cuarl.store import writes as w
from cuarl.store.blobs import Blobs, Pictures
from cuarl.store.engine import make_engine, shrink_wal, use_wal
from cuarl.store.link import Link
from cuarl.store.reader import Reader
from cuarl.store.records import (
    EpisodeStart,
    EvaluationRecord,
    EventRecord,
    HumanVerdict,
    PolicyRecord,
    RunRecord,
    RunStatus,
    SessionRecord,
)
from cuarl.store.spool import DEFAULT_LIMIT_BYTES, Spool
from cuarl.store.transaction import ANSWER_S, RETRY_S
from cuarl.store.url import default_blobs_url, masked, parse_url
from cuarl.store.writer import Writer
from cuarl.tasks.task import Task
from cuarl.trajectory import Group, Trajectory

_QUEUE = 256


class Store(Reader):
    """Runs, policies, tasks, episodes, evaluations, metrics and events. Thread-safe; make one per process."""

    def __init__(
        self,
        engine: Engine,
        blobs: Blobs,
        spool: Spool | None,
        *,
        queue: int = _QUEUE,
        retry_s: float = RETRY_S,
        answer_s: float = ANSWER_S,
        away_s: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Use ``open``, which checks the schema first."""
        super().__init__(engine)
        self.blobs = blobs
        self._clock = clock
        self._link = Link(engine, spool, retry_s=retry_s, answer_s=answer_s, away_s=away_s)
        self._writer = Writer(self._link.write, queue)

    @classmethod
    def open(
        cls,
        url: str,
        blobs_url: str | None = None,
        *,
        runs_dir: Path | str = "runs",
        spool_limit_bytes: int = DEFAULT_LIMIT_BYTES,
        queue: int = _QUEUE,
        retry_s: float = RETRY_S,
        answer_s: float = ANSWER_S,
        away_s: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open a store whose schema is the newest; an empty SQLite file is made so.

        Args:
            url: SQLAlchemy URL of a SQLite file or a PostgreSQL database.
            blobs_url: fsspec URL of the screenshots; unset: ``blobs`` beside the SQLite file, or in ``runs_dir``.
            runs_dir: folder whose ``spool`` keeps writes that find the PostgreSQL server away.
            spool_limit_bytes: how much may wait there before recording stops with an error.
            queue: how many submitted writes may wait in memory.
            retry_s: how long a write is tried again before the server counts as away.
            answer_s: how long a PostgreSQL server may take over one write before it counts as away.
            away_s: how long it is then left alone before it is looked for again.
            clock: Unix seconds.

        Raises DatabaseBehind or PrerequisiteError for another schema version, StoreError if it can't be reached,
        ConfigError for a URL that can't be used.
        """
        parsed = parse_url(url)
        engine = make_engine(parsed)
        with ExitStack() as undo:
            undo.callback(engine.dispose)
            schema.require_current(engine)
            sqlite = engine.dialect.name == "sqlite"
            if sqlite:
                use_wal(engine)
            waiting = None if sqlite else Spool(Path(runs_dir) / "spool", parsed, spool_limit_bytes)
            blobs = Blobs(blobs_url or default_blobs_url(parsed, Path(runs_dir)))
            store = cls(
                engine, blobs, waiting, queue=queue, retry_s=retry_s, answer_s=answer_s, away_s=away_s, clock=clock
            )
            store._link.adopt()
            undo.pop_all()
        return store

    # --- queueing --------------------------------------------------------------------------------------------------

    async def submit(self, what: Trajectory | Group | w.Write, pictures: Pictures = ()) -> None:
        """Queue an episode, a group or any write behind its screenshots; waits only while the queue is full.

        The screenshots are stored first, so that no row ever refers to a missing one.
        """
        await self.blobs.put_async(pictures)
        await self._writer.put_async(self._as_write(what))

    def enqueue(self, what: Trajectory | Group | w.Write, pictures: Pictures = ()) -> None:
        """``submit`` for code that isn't async."""
        self.blobs.put(pictures)
        self._writer.put(self._as_write(what))

    def _as_write(self, what: Trajectory | Group | w.Write) -> w.Write:
        if isinstance(what, Trajectory):
            return w.SaveTrajectory(trajectory=what, at=self._clock())
        if isinstance(what, Group):
            return w.SaveGroup(group=what, at=self._clock())
        return what

    async def flush(self) -> None:
        """Wait until everything submitted is stored (or spooled). Raises StoreError if any of it was refused."""
        await anyio.to_thread.run_sync(self._writer.flush)

    def drain(self) -> None:
        """``flush`` for code that isn't async."""
        self._writer.flush()

    @property
    def away(self) -> bool:
        """Whether the database server is away and writes are spooled."""
        return self._link.away

    @property
    def spooled(self) -> bool:
        """Whether writes, of this process or another one, wait in the spool."""
        return self._link.spooled

    # --- runs ------------------------------------------------------------------------------------------------------

    def start_run(self, run: RunRecord) -> None:
        """Record that a run starts or is resumed; an earlier row of the same id is replaced."""
        at = self._clock()
        begun = run.model_copy(
            update={"status": "running", "started_at": run.started_at or at, "heartbeat_at": at, "finished_at": None}
        )
        self._link.write([w.SaveRun(run=begun, at=at)])

    def finish_run(self, run_id: str, status: RunStatus = "completed", message: str = "") -> None:
        """Record how a run ended, after everything that was submitted before; also if some of that was refused."""
        try:
            self.drain()
        finally:
            self._link.write([w.FinishRun(run_id=run_id, status=status, message=message, at=self._clock())])

    def heartbeat(self, run_id: str, step: int | None = None) -> None:
        """Record that a run is alive, and its step. Queued."""
        self.enqueue(w.Heartbeat(run_id=run_id, step=step, at=self._clock()))

    def rewind_run(self, run_id: str, step: int) -> None:
        """Forget what a run recorded after ``step``: it is resumed from that step's checkpoint and records it anew."""
        self.drain()
        self._link.write([w.RewindRun(run_id=run_id, step=step)])

    def save_policy(self, policy: PolicyRecord) -> None:
        """Record a policy version, e.g. a checkpoint."""
        self._link.write([w.SavePolicy(policy=policy)])

    def save_tasks(self, tasks: Sequence[Task]) -> None:
        """Record the definitions of tasks that a run uses."""
        self._link.write([w.SaveTasks(tasks=tuple(tasks), at=self._clock())])

    # --- episodes and results --------------------------------------------------------------------------------------

    def start_episode(self, episode: EpisodeStart) -> None:
        """Make an episode visible as started. Queued."""
        self.enqueue(w.StartEpisode(episode=episode, at=self._clock()))

    def save_evaluation(self, evaluation: EvaluationRecord, episode_ids: Iterable[str] = ()) -> None:
        """Store an evaluation and which episodes it counts, after everything that was submitted before."""
        self.drain()
        write = w.SaveEvaluation(evaluation=evaluation, episode_ids=tuple(episode_ids), at=self._clock())
        self._link.write([write])

    def log_metrics(self, run_id: str, step: int, values: Mapping[str, float]) -> None:
        """Record metrics of one step. Queued."""
        self.enqueue(w.LogMetrics(run_id=run_id, step=step, values=values, at=self._clock()))

    def log_event(self, run_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Record that something happened. Queued."""
        self.enqueue(w.LogEvent(event=EventRecord(run_id=run_id, kind=kind, data=data, at=self._clock())))

    def write_sessions(self, sessions: Sequence[SessionRecord]) -> None:
        """Record devices outside this process, in their order: before they are used, and when their status changes."""
        if sessions:
            self._link.write([w.SaveSession(session=session, at=self._clock()) for session in sessions])

    def save_human_verdict(self, verdict: HumanVerdict) -> HumanVerdict:
        """Record what a person says of a finished episode, as of now. Raises StoreError if there is none of that id."""
        self.trajectory(verdict.episode_id)
        dated = verdict.model_copy(update={"at": self._clock()})
        self._link.write([w.SaveHumanVerdict(verdict=dated)])
        return dated

    def write(self, writes: Sequence[w.Write]) -> None:
        """Commit any writes together."""
        self._link.write(writes)

    # --- end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Store what is queued and let go. Raises StoreError if something could not be stored. Safe to call twice."""
        with ExitStack() as last_steps:  # each is taken, whatever the ones before it raise
            last_steps.callback(self.engine.dispose)
            if self.engine.dialect.name == "sqlite":
                last_steps.callback(shrink_wal, self.engine)
            last_steps.callback(self._link.close)
            last_steps.callback(self._writer.close)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except StoreError as late:
            if error is None:
                raise
            error.add_note(f"closing the store failed, too: {late}")

    def __repr__(self) -> str:
        return f"Store({masked(self.engine.url)!r}, blobs={self.blobs.root!r})"
