"""A wish to end training early, as a signal expresses it: heard at once, obeyed where nothing is lost.

The step in hand is finished or undone, everything finished is saved, and then training ends. Several processes must
do so at the same place, or the others would wait for one that is gone: wherever the loop may end it asks ``agree``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

GRACE_S = 30.0
"""How long after a signal training may take to save and end: what Kubernetes and Slurm leave before they kill."""

_FOR_SAVING = 1 / 3
"""The part of it that is kept for saving: until then what is under way may be finished."""


_AGAIN_S = 2.0
"""How long after a request another one is the same."""


class StepUndone(Exception):
    """A step was given up before it changed any weight: everything is as it was at its beginning."""


class Shutdown:
    """Whether training is to end, and by when. ``request`` may be called by a signal handler."""

    def __init__(
        self,
        grace_s: float = GRACE_S,
        *,
        agreed: Callable[[bool], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``agreed`` says on every process whether any of them has passed True; every process must call it."""
        self._patience_s, self._agreed, self._clock = grace_s * (1 - _FOR_SAVING), agreed, clock
        self._since, self._until = 0.0, math.inf
        self.requested = False
        self.soon: Callable[[Callable[[], None]], object] = lambda call: call()
        """How to have something done in the event loop: a signal handler runs between any two instructions of it."""
        self._scope: anyio.CancelScope | None = None

    @contextmanager
    def cutting(self) -> Iterator[None]:
        """Inside, the first request cancels what is awaited, which ends the block; inner blocks before outer ones."""
        with anyio.CancelScope() as scope:
            outer, self._scope = self._scope, scope
            try:
                if self.requested:
                    scope.cancel()
                yield
            finally:
                self._scope = outer

    def request(self) -> None:
        """Ask for the end. Whoever asks again does not want to wait for what could be finished."""
        now = self._clock()
        if self.requested:
            # one wish may arrive on several ways, by a launcher and from whoever told that
            self._until = min(self._until, now) if now - self._since > _AGAIN_S else self._until
            return
        self.requested, self._since, self._until = True, now, now + self._patience_s
        if self._scope is not None:
            self.soon(self._scope.cancel)

    def agree(self, failing: bool = False) -> bool:
        """Whether all are to end here, since one was asked to, or is ``failing``. The same on every process."""
        mine = self.requested or failing
        ending = mine if self._agreed is None else self._agreed(mine)
        if ending and not mine:
            self.request()
        return ending

    @property
    def left_s(self) -> float:
        """Seconds that what is under way may still take; infinite while nobody has asked."""
        return max(0.0, self._until - self._clock())
