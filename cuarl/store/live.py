"""Writes the table ``live``: at once or not at all, since what is a second old is of no use to anybody."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Engine, delete

from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store.apply import upsert
from cuarl.store.records import LiveRecord

_ANSWER_S = 5.0


class LiveWriter:
    """Rows of runs and episodes that are under way. Nothing is queued, spooled or tried again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def write(self, records: Sequence[LiveRecord], run_id: str, gone: Sequence[str] = ()) -> None:
        """Insert or replace rows, and remove those of episodes of ``run_id`` that are over. Raises StoreError."""

        def work(connection: Connection) -> None:
            upsert(connection, t.LiveRow, [record.model_dump() for record in records])
            if gone:
                row = t.LiveRow
                connection.execute(delete(row).where(row.run_id == run_id, row.episode_id.in_(gone)))

        transaction.write(self._engine, work, retry_s=0, answer_s=_ANSWER_S)

    def clear(self, run_id: str) -> None:
        """Remove all rows of a run. Raises StoreError."""

        def work(connection: Connection) -> None:
            connection.execute(delete(t.LiveRow).where(t.LiveRow.run_id == run_id))

        transaction.write(self._engine, work, retry_s=0, answer_s=_ANSWER_S)
