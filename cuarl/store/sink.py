"""The store as a sink of metrics and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.store.store import Store


class StoreSink:
    """Writes the metrics and events of one run to its store, in the background. A ``types.Sink``."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store, self._run_id = store, run_id

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Record the metrics of one step, and that the run is alive."""
        self._store.log_metrics(self._run_id, step, values)
        self._store.heartbeat(self._run_id, step)

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record that something happened."""
        self._store.log_event(self._run_id, kind, data)

    def close(self) -> None:
        """Wait until everything is stored. The store itself stays open: it isn't the sink's."""
        self._store.drain()
