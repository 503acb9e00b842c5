"""Metrics and events as JSON lines: append-only, flushed, whole lines only, and repaired after a crash."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cuarl.run.atomic import write_text
from cuarl.safe_text import safe_json

_DEEPEST = 100
"""How deeply a line may be nested; what a run writes has three levels or four."""

logger = logging.getLogger(__name__)


class JsonLinesSink:
    """Writes ``metrics.jsonl`` and ``events.jsonl`` of a run. A ``types.Sink``.

    A metrics line is ``{"step": 3, "time": 1767323045.1, "reward/mean": 0.4, …}``; a value that is not finite is null.
    An event line is ``{"event": "checkpoint", "time": …, …}``. ``resume_step`` moves metrics of later steps, which will
    be written again, to ``metrics.superseded.jsonl``, so that no curve doubles back.
    """

    def __init__(
        self,
        metrics_path: Path,
        events_path: Path,
        *,
        resume_step: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for path in (metrics_path, events_path):
            _drop_torn_line(path)
        if resume_step is not None:
            _supersede(metrics_path, resume_step)
        self._metrics, self._events = _Lines(metrics_path), _Lines(events_path)
        self._clock = clock

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Write the metrics of one step or evaluation on one line."""
        self._metrics.add(_line({"step": step, "time": self._clock(), **values}))

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write that something happened on one line, secrets masked."""
        self._events.add(_line({"event": kind, "time": self._clock(), **data}))

    def close(self) -> None:
        """Close the files; safe to call twice. Raises OSError if lines could not be written to the end."""
        try:
            self._metrics.close()
        finally:
            self._events.close()


class _Lines:
    """A file that whole lines are added to. What finds the disk full is kept, and written with the next line."""

    def __init__(self, path: Path) -> None:
        self._path, self._waiting = path, b""
        self._file = path.open("ab", buffering=0)
        self._warned = False

    def add(self, line: bytes) -> None:
        self._waiting += line
        try:
            self._write()
        except OSError as error:
            if not self._warned:
                logger.warning("%s can't be written now, and is tried again: %s", self._path, error.strerror)
            self._warned = True

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self._write()
        except OSError as error:
            lost = self._waiting.count(b"\n")
            raise OSError(error.errno, f"{error.strerror}, {lost} lines are lost", str(self._path)) from error
        finally:
            self._file.close()

    def _write(self) -> None:
        while self._waiting:
            # a part of it may fit; readers leave a torn line out until its rest is there
            self._waiting = self._waiting[self._file.write(self._waiting) :]


def parse_lines(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """The objects on the lines that hold one; a line torn by a crash, or nested too deeply, is left out."""
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and _is_shallow(value):
            found.append(value)
    return found


def _is_shallow(record: dict[str, Any]) -> bool:
    """Whether what is done with it can follow it to the bottom, one call a level."""
    level: list[Any] = [record]
    for _ in range(_DEEPEST):
        level = [v for x in level for v in (x.values() if isinstance(x, dict) else x if isinstance(x, list) else ())]
        if not level:
            return True
    return False


def _line(record: Mapping[str, Any]) -> bytes:
    return f"{safe_json(record)}\n".encode()


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line without an end: the process was killed while it wrote it."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with path.open("rb+") as file:
            file.truncate(len(whole))


def _supersede(path: Path, resume_step: int) -> None:
    if not path.exists():
        return
    records = parse_lines(path.read_bytes().splitlines())
    later = [record for record in records if record.get("step", 0) > resume_step]
    if later:
        with path.with_name("metrics.superseded.jsonl").open("ab") as aside:
            aside.writelines(map(_line, later))
        kept = [record for record in records if record.get("step", 0) <= resume_step]
        write_text(path, b"".join(map(_line, kept)).decode())
