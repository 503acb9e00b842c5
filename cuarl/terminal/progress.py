"""How far a command's episodes have got.

A bar on a terminal, a line every few seconds elsewhere, JSON lines on request.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cuarl.safe_text import printable
from cuarl.terminal.output import console, is_terminal, note, print_json
from cuarl.terminal.state import STATE
from cuarl.trajectory import Trajectory

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PLAIN_EVERY_S = 5.0


class EpisodeProgress:
    """Call it with each finished episode. As a context manager it draws, where there is somebody to see it."""

    def __init__(
        self, what: str, total: int, *, json: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._total, self._json, self._clock = printable(what), total, json, clock
        self._judged = self._successes = self._failed = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._spoken = clock()

    def __enter__(self) -> Self:
        """Start drawing."""
        if draws():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._what, total=self._total)
            self._bar.start()
        return self

    def __call__(self, trajectory: Trajectory, done: int, total: int) -> None:
        """One more episode has ended."""
        self._failed += trajectory.failure is not None
        if trajectory.success is not None:
            self._judged, self._successes = self._judged + 1, self._successes + trajectory.success
        if self._json:
            print_json(episode_line(trajectory, done, total), line=True)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total, description=f"{self._what}: {self._state()}")
        elif self._clock() - self._spoken >= _PLAIN_EVERY_S and STATE.display != "none":
            self._spoken = self._clock()
            note(f"{self._what}: {done}/{total} episodes, {self._state()}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wipe the drawing away."""
        if self._bar is not None:
            self._bar.stop()

    def _state(self) -> str:
        rate = f"success {self._successes / self._judged:.0%}" if self._judged else "no verdict yet"
        return f"{rate}, {self._failed} failed" if self._failed else rate


def draws() -> bool:
    """Whether progress is drawn rather than told."""
    if STATE.quiet or STATE.display in ("plain", "none"):
        return False
    return STATE.display == "rich" or (is_terminal(sys.stderr) and not os.environ.get("CI"))


def episode_line(trajectory: Trajectory, done: int, total: int) -> dict[str, object]:
    """An episode as one JSON line."""
    t = trajectory
    return {
        "event": "episode",
        "episode_id": t.episode_id,
        "task_id": t.task_id,
        "stop": t.stop,
        "success": t.success,
        "reward": t.reward,
        "turns": len(t.turns),
        "wall_s": round(t.wall_s, 3),
        "failure": t.failure and f"{t.failure.boundary} {t.failure.kind}",
        "done": done,
        "total": total,
    }
