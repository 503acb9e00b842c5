"""The trajectory store. Names are loaded on first use, so that importing the package costs nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuarl.store.blobs import Blobs, Pictures
    from cuarl.store.reader import EpisodeFilter, Reader
    from cuarl.store.records import (
        EpisodeStart,
        EpisodeSummary,
        EvaluationRecord,
        EventRecord,
        MetricPoint,
        PolicyRecord,
        RunRecord,
        SessionRecord,
        StatusChange,
        new_id,
    )
    from cuarl.store.sink import StoreSink
    from cuarl.store.store import Store
    from cuarl.store.url import masked

_HOMES = {
    "Blobs": "blobs", "EpisodeFilter": "reader", "EpisodeStart": "records", "EpisodeSummary": "records",
    "EvaluationRecord": "records", "EventRecord": "records", "MetricPoint": "records", "Pictures": "blobs",
    "PolicyRecord": "records", "Reader": "reader", "RunRecord": "records", "SessionRecord": "records",
    "StatusChange": "records", "Store": "store", "StoreSink": "sink", "masked": "url",
    "new_id": "records",
}  # fmt: skip

__all__ = [
    "Blobs", "EpisodeFilter", "EpisodeStart", "EpisodeSummary", "EvaluationRecord", "EventRecord", "MetricPoint",
    "Pictures", "PolicyRecord", "Reader", "RunRecord", "SessionRecord", "StatusChange", "Store", "StoreSink",
    "masked", "new_id",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"cuarl.store.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
