"""Metrics and events as lines of text while a command runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuarl.monitor.lines import HEADLINE, event_line, metrics_line

QUIET_EVENTS = frozenset({"start", "done", "episode", "progress"})
"""Events that the command itself already tells the person."""


SILENT_STEPS = 3
"""After so many steps in which no group had rewards that differ, a person is told what to do about it."""
NO_SIGNAL = (
    f"no signal for {SILENT_STEPS} steps: in every group all rewards were equal, so nothing was learnt. What may "
    "help: tasks that succeed sometimes (--difficulty easy), more attempts (--group-size 16), more variety "
    "(--temperature 1.2), or collecting again in place of such groups (--dynamic-sampling-rounds 2)"
)


class ConsoleSink:
    """Hands one line per step, and one per noteworthy event, to ``write``. A ``types.Sink``."""

    def __init__(self, write: Callable[[str], None], *, show: Sequence[str] = HEADLINE) -> None:
        self._write, self._show = write, show
        self._silent = 0

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Write the headline metrics of one step."""
        line = metrics_line(step, values, self._show)
        if line:
            self._write(line)
        if "group/frac_mixed" in values:
            self._silent = 0 if values["group/frac_mixed"] > 0 else self._silent + 1
            if self._silent == SILENT_STEPS:
                self._write(NO_SIGNAL)

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write that something noteworthy happened."""
        if kind not in QUIET_EVENTS:
            self._write(event_line(kind, data))

    def close(self) -> None:
        """Nothing is held."""
