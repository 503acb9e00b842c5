"""One sink made of several, of which none can stop a run."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cuarl.errors import CuarlError
from cuarl.types import Sink

logger = logging.getLogger(__name__)

SINK_ERRORS = (OSError, ValueError, CuarlError)
"""What a sink may raise. One around a third-party tracker raises CuarlError for whatever the tracker raises."""


class FanOut:
    """Passes everything to each of its sinks. One that fails warns once, and is tried again with the next record."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)
        self._lost: Counter[int] = Counter()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Record the metrics of one step or evaluation everywhere."""
        for position, sink in enumerate(self._sinks):
            self._try(position, partial(sink.metrics, step, values))

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record that something happened everywhere."""
        for position, sink in enumerate(self._sinks):
            self._try(position, partial(sink.event, kind, data))

    def close(self) -> None:
        """Close all sinks, and say how much was lost."""
        for position, sink in enumerate(self._sinks):
            self._try(position, sink.close)
        for position, count in self._lost.items():
            logger.warning("%s lost %d records", type(self._sinks[position]).__name__, count)

    def _try(self, position: int, call: Callable[[], None]) -> None:
        try:
            call()
        except SINK_ERRORS as error:
            if not self._lost[position]:
                name = type(self._sinks[position]).__name__
                logger.warning("%s failed, and the run goes on without it: %s", name, error)
            self._lost[position] += 1
