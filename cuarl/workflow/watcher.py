"""Whoever watches a run: a command line draws what it does, a program takes the numbers, and silence is fine, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from cuarl.rollout.pool import Progress
from cuarl.types import Sink

Note = Callable[[str], None]
"""Takes what a person should know and is no result."""


class Watcher(Sink, Protocol):
    """Told what a run does as it goes. Its metrics and events are those of a ``types.Sink``."""

    def note(self, text: str) -> None:
        """Tell the person something that is no result."""
        ...

    def progress(self, what: str, total: int, *, part: bool = False) -> AbstractContextManager[Progress | None]:
        """Entered while ``total`` episodes are collected; gives who is told of each.

        ``part``: of a run that tells more than these.
        """
        ...


class Silent:
    """A watcher that nobody hears."""

    def note(self, text: str) -> None:
        """Nobody is told."""

    def progress(self, what: str, total: int, *, part: bool = False) -> AbstractContextManager[Progress | None]:
        """Nobody is told."""
        return nullcontext()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Nobody is told."""

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Nobody is told."""

    def close(self) -> None:
        """Nothing is held."""


SILENT: Watcher = Silent()
