"""Where a collector's workers come from, and the line to each, as the collector sees them."""

from __future__ import annotations

from typing import Protocol


class Line(Protocol):
    """Carries frames between a collector and one worker, in order, whole or not at all."""

    name: str
    """Who is at its other end, for people."""

    def send(self, frame: bytes) -> None:
        """Send a frame, without waiting; lost if the worker is gone."""
        ...

    async def receive(self) -> bytes | None:
        """The worker's next frame; None once it is gone."""
        ...

    async def end(self) -> None:
        """Hang up: the worker ends by itself, or is ended. Returns once it is gone. Safe to call twice."""
        ...

    async def settle(self) -> None:
        """After a worker that died: end what it has left behind, as far as that can be seen from here."""
        ...

    def last_words(self) -> str:
        """How it ended, and what it said at last, for the end of a sentence; empty while that is not known."""
        ...


class Source(Protocol):
    """Where workers come from."""

    here: bool
    """Whether they see the folders of this machine."""

    async def open(self) -> int:
        """Get ready to start workers; how many there are to be. Raises PrerequisiteError or ConfigError."""
        ...

    async def start(self) -> Line:
        """Start one."""
        ...

    async def close(self) -> None:
        """No more are started, and all have ended."""
        ...
