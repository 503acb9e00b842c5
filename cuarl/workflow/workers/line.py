"""The line between a collector and one worker, as the collector sees it."""

from __future__ import annotations

from typing import Protocol


class Line(Protocol):
    """Carries frames both ways, in order, whole or not at all."""

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
        """What it said before it ended, for the end of a sentence; empty if nothing."""
        ...
