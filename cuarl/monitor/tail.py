"""What a run says, as it says it: its metrics and events in the order of their times, until it ends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from cuarl.errors import ConfigError
from cuarl.monitor.follow import Follower
from cuarl.run import Run
from cuarl.run.lookup import run_folders
from cuarl.run.manifest import MANIFEST

GOING_ON = ("running", "created")
"""What the status of a run is while more may come."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a run."""

    time: float
    """Unix time, seconds."""
    step: int | None
    """The training step; None for an event that names none."""
    event: str | None
    """The kind of event; None for metrics."""
    values: dict[str, Any]
    record: dict[str, Any]
    """The line as it was written."""


class Since(NamedTuple):
    """Where to begin: at a time, or at a step."""

    time: float = 0.0
    step: int = 0

    def admits(self, entry: Entry) -> bool:
        """Whether the entry is late enough."""
        return entry.time >= self.time and (entry.step is None or entry.step >= self.step)


def parse_since(text: str | None, now: float) -> Since:
    """Read ``30s``, ``10m``, ``2h``, ``1d``, a step number, or an ISO date and time. Raises ConfigError for others."""
    if text is None:
        return Since()
    if text.isdigit():
        return Since(step=int(text))
    duration = _DURATION.fullmatch(text)
    if duration:
        return Since(time=now - float(duration[1]) * _SECONDS[duration[2]])
    try:
        return Since(time=datetime.fromisoformat(text).astimezone().timestamp())
    except ValueError as error:
        raise ConfigError(f'can\'t read "{text}" as a time', where="--since", hint="--since 10m") from error


def tail(
    run: Run,
    *,
    follow: bool = True,
    poll_s: float = 0.5,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Entry]:
    """Yield everything the run has said and, with ``follow``, what it says until it ends. Never writes."""
    followers = [Follower(run.metrics_path), Follower(run.events_path)]
    try:
        while True:
            # asked before reading: what is written up to the end is still read below
            over = not follow or run.status not in GOING_ON
            yield from sorted((_entry(r) for f in followers for r in f.poll()), key=lambda entry: entry.time)
            if over:
                return
            sleep(poll_s)
    finally:
        for follower in followers:
            follower.close()


def await_run(runs_dir: Path, *, poll_s: float = 0.5, sleep: Callable[[float], None] = time.sleep) -> Path:
    """Wait until a run is made in ``runs_dir``, or one that is there goes on, and return its directory."""
    known = _written(runs_dir)
    while True:
        for path, at in _written(runs_dir).items():
            if at != known.get(path) and Run(path).status in GOING_ON:
                return path
        sleep(poll_s)


def _written(runs_dir: Path) -> dict[Path, int]:
    """When each run's manifest was written last."""
    return {path: (path / MANIFEST).stat().st_mtime_ns for path in run_folders(runs_dir)}


def _entry(record: dict[str, Any]) -> Entry:
    values = {key: value for key, value in record.items() if key not in ("step", "time", "event")}
    when, step, event = record.get("time"), record.get("step"), record.get("event")
    return Entry(
        time=float(when) if isinstance(when, int | float) else 0.0,
        step=step if isinstance(step, int) else None,
        event=str(event) if event is not None else None,
        values=values,
        record=record,
    )
