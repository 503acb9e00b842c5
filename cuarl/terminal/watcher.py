"""What a command shows of a run as it goes: lines and a bar for people, JSON lines for programs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from cuarl.monitor.console import ConsoleSink
from cuarl.rollout.pool import Progress
from cuarl.terminal.output import is_verbose, note, print_json
from cuarl.terminal.progress import EpisodeProgress, draws


class TerminalWatcher:
    """A ``workflow.watcher.Watcher``. With ``json``, standard output is for JSON lines only."""

    def __init__(self, *, json: bool = False) -> None:
        self._json, self._lines = json, ConsoleSink(note, detail=is_verbose())

    def note(self, text: str) -> None:
        """Tell the person something that is no result."""
        note(text)

    def progress(self, what: str, total: int, *, part: bool = False) -> AbstractContextManager[Progress | None]:
        """Progress for those who watch; in a pipe, a part of a run is one line when it is done."""
        return EpisodeProgress(what, total, json=self._json) if not part or self._json or draws() else nullcontext()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Show the metrics of a step: the main ones, or all as JSON."""
        if self._json:
            print_json({"event": "metrics", "step": step, **values}, line=True)
        else:
            self._lines.metrics(step, values)

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Show that something happened."""
        if self._json:
            print_json({"event": kind, **data}, line=True)
        elif kind == "plan":
            for name, text in data.items():
                note(f"{name:<11} {text}")
        else:
            self._lines.event(kind, data)

    def close(self) -> None:
        """Nothing is held."""
