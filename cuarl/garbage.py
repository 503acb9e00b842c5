"""When Python looks for garbage in cycles.

Often and briefly among new objects, rarely among all, and not while episodes run.

Simulated devices make many small objects that live long and form no cycles. Python's own counters weigh new objects
against those that went, so that with full caches tens of thousands wait for one collection, which then takes 20 ms; one
of all objects takes several times that. ``pacing`` looks at the new ones every few passes of the event loop instead.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

THRESHOLDS = (10_000, 4, 250)
"""Of ``gc``: once in 10,000 new objects instead of 700, and among all objects once in 10,000,000."""
DEFERRED = 8_000
"""Collections of new objects before one of all, while episodes run."""


def look_rarely() -> None:
    """Set the thresholds of a process that cuarl has for itself.

    With Python's own, looking for cycles took about a tenth of the simulator's time (``benchmarks/sim.py``).
    """
    gc.set_threshold(*THRESHOLDS)


def look_at_new() -> None:
    """Collect garbage among the objects made since the last time, unless the program has turned collections off."""
    if _is_on():
        gc.collect(1)


def _is_on() -> bool:
    return gc.isenabled() and gc.get_threshold()[0] > 0


@contextmanager
def loading() -> Iterator[None]:
    """Inside, a process that cuarl has for itself loads modules: neither then nor later is garbage looked for in them.

    They make hundreds of thousands of objects that stay, which each collection of all objects would walk through.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.freeze()
            gc.enable()


class _Deferral:
    """How many want collections of all objects deferred, and the thresholds from before the first of them."""

    def __init__(self) -> None:
        self._lock, self._count = Lock(), 0
        self._before = gc.get_threshold()

    def begin(self) -> None:
        with self._lock:
            if self._count == 0:
                self._before = gc.get_threshold()
                if _is_on():
                    gc.set_threshold(*map(max, self._before, (*THRESHOLDS[:2], DEFERRED)))
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                gc.set_threshold(*self._before)


_DEFERRAL = _Deferral()


@contextmanager
def deferred() -> Iterator[None]:
    """Inside, collections of all objects are put off; they are made up for afterwards. May be nested, and overlap."""
    _DEFERRAL.begin()
    try:
        yield
    finally:
        _DEFERRAL.end()
