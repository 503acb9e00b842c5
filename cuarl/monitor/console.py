"""Metrics and events as lines of text while a command runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuarl.monitor.lines import HEADLINE, event_line, metrics_line

QUIET_EVENTS = frozenset({"start", "done", "episode", "progress"})
"""Events that the command itself already tells the person."""


class ConsoleSink:
    """Hands one line per step, and one per noteworthy event, to ``write``. A ``types.Sink``."""

    def __init__(self, write: Callable[[str], None], *, show: Sequence[str] = HEADLINE) -> None:
        self._write, self._show = write, show

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Write the headline metrics of one step."""
        line = metrics_line(step, values, self._show)
        if line:
            self._write(line)

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write that something noteworthy happened."""
        if kind not in QUIET_EVENTS:
            self._write(event_line(kind, data))

    def close(self) -> None:
        """Nothing is held."""
