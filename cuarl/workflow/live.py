"""How far a run has come just now, for those who watch it: the table ``live`` of its store.

What is told here is noted in memory, which costs microseconds; a thread of its own writes what has changed, at most
once a second. Nothing depends on the table: a run whose database can't be reached goes on without it, and its rows are
gone when it ends. The record of an episode is another matter, and is stored whole when the episode is over.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from types import TracebackType
from typing import Any, Literal

from cuarl.errors import CuarlError
from cuarl.rollout.setup import Phase
from cuarl.rollout.spec import EpisodeSpec
from cuarl.store.live import LiveWriter
from cuarl.store.records import LiveRecord, SessionRecord
from cuarl.store.store import Store
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Screenshot

logger = logging.getLogger(__name__)

RunPhase = Literal["starting", "collecting", "training", "saving", "evaluating"]
EVERY_S = 1.0
"""The table is written at most this often."""
_SIGN_OF_LIFE_S = 5.0
_STEPS = 5
"""The time that is left is reckoned from so many steps."""


@dataclass(slots=True)
class _Running:
    """One episode, as far as it has come."""

    spec: EpisodeSpec
    started_at: float
    phase: Phase = "creating"
    device: str = ""
    turns: list[Turn] = field(default_factory=list)
    screen: Screenshot | None = None
    new_screens: dict[str, Screenshot] = field(default_factory=dict)
    changed: bool = True
    written: bool = False

    def record(self, at: float, backend: str, max_turns: int) -> LiveRecord:
        spec = self.spec
        data = {
            "task_id": spec.task.task_id,
            "goal": spec.task.goal,
            "category": spec.task.category,
            "difficulty": spec.task.difficulty,
            "group_id": spec.group_id,
            "attempt": spec.attempt,
            "step": spec.step,
            "purpose": spec.purpose,
            "seed": str(spec.seed),
            "backend": backend,
            "device": self.device,
            "started_at": self.started_at,
            "max_turns": min(max_turns, spec.task.max_steps),
            "turns": [_light(turn) for turn in self.turns],
            "screen": self.screen.ref.model_dump() if self.screen else None,
        }
        return LiveRecord(run_id=spec.run_id, episode_id=spec.episode_id, phase=self.phase, at=at, data=data)


class Live:
    """Follows one run and its episodes. A ``rollout.setup.Observer``; thread-safe. ``with`` runs its thread."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        *,
        backend: str = "",
        max_turns: int = 20,
        total_steps: int | None = None,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._writer, self.run_id = store, LiveWriter(store.engine), run_id
        self.backend, self._max_turns = backend, max_turns
        self._lends = backend != "sim"  # a simulated device is a part of the process, and ends with its episode
        self._total, self._every_s, self._clock = total_steps, every_s, clock
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._write_until_over, name="cuarl-live", daemon=True)
        self._episodes: dict[str, _Running] = {}
        self._gone: list[str] = []
        self._sessions: list[SessionRecord] = []
        self._phase: RunPhase = "starting"
        self._step, self._of, self._done = 0, 0, 0
        self._since = self._told_at = clock()
        self._begun: deque[float] = deque(maxlen=_STEPS + 1)
        self._changed, self._warned = True, False

    # --- what is told ----------------------------------------------------------------------------------------------

    def begin(self, phase: RunPhase, step: int = 0, episodes: int = 0) -> None:
        """The run has come to ``phase`` of training step ``step``, in which ``episodes`` are to be made."""
        with self._lock:
            self._phase, self._since, self._of, self._done, self._changed = phase, self._clock(), episodes, 0, True
            if phase == "collecting" and step != self._step:
                self._begun.append(self._since)
            self._step = step

    def phase(self, spec: EpisodeSpec, phase: Phase, device: str = "") -> None:
        """An episode has come to ``phase``."""
        with self._lock:
            if phase == "done":
                self._end(spec)
                return
            running = self._episodes.setdefault(spec.episode_id, _Running(spec, self._clock()))
            if device and not running.device:
                running.device = device
                if self._lends:
                    self._sessions.append(self._session(running, "running"))
            running.phase, running.changed = phase, True

    def screen(self, spec: EpisodeSpec, screen: Screenshot) -> None:
        """What an episode's device shows now."""
        with self._lock:
            running = self._episodes[spec.episode_id]
            running.screen, running.changed = screen, True
            running.new_screens[screen.digest] = screen

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """A turn of an episode is over."""
        with self._lock:
            running = self._episodes[spec.episode_id]
            running.turns.append(turn)
            running.changed = True

    def _end(self, spec: EpisodeSpec) -> None:
        running = self._episodes.pop(spec.episode_id, None)
        if running is None:
            return
        self._done += 1
        self._changed = True
        self._gone.append(spec.episode_id)
        if running.device and self._lends:
            self._sessions.append(self._session(running, "closed"))

    def _session(self, running: _Running, status: Literal["running", "closed"]) -> SessionRecord:
        spec, now = running.spec, self._clock()
        return SessionRecord(
            id=spec.episode_id,
            backend=self.backend,
            external_id=running.device,
            run_id=spec.run_id,
            episode_id=spec.episode_id,
            owner=f"{socket.gethostname()}:{os.getpid()}",
            status=status,
            created_at=running.started_at,
            seen_at=now,
            closed_at=now if status == "closed" else None,
        )

    # --- what is written -------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write what has changed. What goes wrong costs one warning, and nothing else."""
        now = self._clock()
        with self._lock:
            records, gone, pictures, sessions = self._taken(now)
        try:
            self._store.blobs.put(pictures)
            if records or gone:
                self._writer.write(records, self.run_id, gone)
            self._store.write_sessions(sessions)
        except CuarlError as error:
            if not self._warned:
                logger.warning("how far the run has come can't be written, and the run goes on without: %s", error)
            self._warned = True

    def _taken(self, now: float) -> tuple[list[LiveRecord], list[str], dict[str, Screenshot], Sequence[SessionRecord]]:
        """What there is to write, which then counts as written."""
        records = []
        if self._changed or now - self._told_at >= _SIGN_OF_LIFE_S:
            records.append(self._record(now))
            self._changed, self._told_at = False, now
        pictures: dict[str, Screenshot] = {}
        for running in self._episodes.values():
            if running.changed:
                records.append(running.record(now, self.backend, self._max_turns))
                pictures |= running.new_screens
                running.new_screens, running.changed = {}, False
        gone, self._gone = self._gone, []
        sessions, self._sessions = self._sessions, []
        return records, gone, pictures, sessions

    def _record(self, now: float) -> LiveRecord:
        data: dict[str, Any] = {
            "step": self._step,
            "total_steps": self._total,
            "since": self._since,
            "episodes": self._of,
            "done": self._done,
            "percent": self._percent(),
            "left_s": self._left_s(now),
            "pid": os.getpid(),
        }
        return LiveRecord(run_id=self.run_id, phase=self._phase, at=now, data=data)

    def _percent(self) -> float | None:
        """Of the run. A step counts half when its episodes are there; evaluations count nothing."""
        share = self._done / self._of if self._of else 0.0
        if self._total is None:
            return 100 * min(1.0, share) if self._of else None
        within = {"collecting": 0.5 * min(1.0, share), "training": 0.5, "saving": 1.0, "evaluating": 1.0, "starting": 0}
        return 100 * max(0.0, self._step - 1 + within[self._phase]) / self._total if self._step else 0.0

    def _left_s(self, now: float) -> float | None:
        """Seconds that are left, by the latest steps or episodes; None while nothing is known."""
        if self._total is None:
            return (now - self._since) / self._done * max(0, self._of - self._done) if self._done and self._of else None
        if len(self._begun) < 2:
            return None
        each = fmean(b - a for a, b in pairwise(self._begun))
        return max(0.0, each * (self._total - self._step + 1) - (now - self._begun[-1]))

    def _write_until_over(self) -> None:
        while not self._over.wait(self._every_s):
            self.write()

    def __enter__(self) -> Live:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and leave no rows behind. Safe to call twice."""
        if self._over.is_set():
            return
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.write()
        try:
            self._writer.clear(self.run_id)
        except CuarlError:
            logger.debug("the rows of run %s stay in the table live", self.run_id)


def _light(turn: Turn) -> Mapping[str, Any]:
    """A turn without its tokens, of which the record of the episode will have all."""
    said = turn.sampled and Sampled(text=turn.sampled.text, stop=turn.sampled.stop, policy=turn.sampled.policy)
    return turn.model_copy(update={"sampled": said, "text": {}}).model_dump(mode="json")
