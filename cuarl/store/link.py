"""The way into the database for writes: retried, and spooled while a server is away.

A caller of ``write`` sees one of three outcomes: the writes are committed, all in one transaction; they are on disk in
the spool, in order, and will be committed once; or an error, and nothing of them is stored.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from sqlalchemy import Engine, select

from cuarl.errors import StoreError
from cuarl.store import transaction
from cuarl.store.apply import apply_all
from cuarl.store.deadline import answered_within
from cuarl.store.spool import Spool
from cuarl.store.transaction import ServerAway
from cuarl.store.url import masked
from cuarl.store.writes import Write

log = logging.getLogger(__name__)

_SPOOL_BATCH = 64
_PROBE_S = 2.0
_PATIENCE = 4


class Link:
    """Writes through one engine, one transaction at a time. Thread-safe."""

    def __init__(
        self,
        engine: Engine,
        spool: Spool | None,
        *,
        retry_s: float = transaction.RETRY_S,
        answer_s: float = transaction.ANSWER_S,
        away_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Try a write for ``retry_s`` seconds, each time waiting ``answer_s`` at most.

        Once the server is known to be away, it is looked for every ``away_s`` seconds.
        """
        self._engine, self._spool = engine, spool
        self._retry_s, self._answer_s, self._away_s, self._clock = retry_s, answer_s, away_s, clock
        self._name = masked(engine.url)
        self._gate = threading.RLock()
        self._away_until: float | None = None

    @property
    def away(self) -> bool:
        """Whether writes go to the spool at present."""
        return self._away_until is not None

    @property
    def spooled(self) -> bool:
        """Whether writes wait in the spool, those of other processes included."""
        return self._spool is not None and bool(self._spool.files())

    def write(self, writes: Sequence[Write]) -> None:
        """Commit writes together, or spool them. Raises StoreError, and then stores nothing of them."""
        with self._gate:
            if self._spool is None:
                self._commit(writes, self._retry_s)
            elif not self._recovered(self._spool):
                self._spool.append(writes)
            else:
                try:
                    self._commit(writes, self._retry_s)
                except ServerAway:
                    self._lose()
                    self._spool.append(writes)

    def adopt(self) -> None:
        """Apply what processes that died have left in the spool."""
        with self._gate:
            while self._spool is not None and self._spool.adopt():
                if not self._recovered(self._spool):
                    return

    def close(self) -> None:
        """Try a last time to empty the spool. Raises StoreError if writes are still waiting; they stay on disk."""
        with self._gate:
            if self._spool is None:
                return
            self._away_until = None if self._away_until is None else self._clock()
            emptied = self._recovered(self._spool)
            files = ", ".join(map(str, self._spool.files()))
            self._spool.close()
        if not emptied:
            raise StoreError(
                f"{self._name} is still away; what was recorded meanwhile is kept, and stored at the next start",
                where=files,
                hint="cuarl db check   # once the server is back; any command stores it",
            )

    def _recovered(self, spool: Spool) -> bool:
        """Whether the database may be written to: nothing is waiting any more, and it isn't known to be away."""
        if self._away_until is not None and (self._clock() < self._away_until or not self._answers()):
            return False
        if spool.holds:
            try:
                self._drain(spool)
            except ServerAway:
                self._lose()
                return False
            log.warning("all spooled writes are stored in %s", self._name)
        self._away_until = None
        return True

    def _answers(self) -> bool:
        """Whether a server that was away answers again, and quickly; until it does, nobody shall wait for it."""
        try:
            with answered_within(min(_PROBE_S, self._answer_s)):
                transaction.read(self._engine, lambda session: session.execute(select(1)), retry_s=0)
        except ServerAway:
            self._lose()
            return False
        return True

    def _drain(self, spool: Spool) -> None:
        batch: list[Write] = []
        for write in spool.read():
            batch.append(write)
            if len(batch) == _SPOOL_BATCH:
                self._commit_spooled(spool, batch)
                batch = []
        self._commit_spooled(spool, batch)
        spool.clear()

    def _commit_spooled(self, spool: Spool, batch: Sequence[Write]) -> None:
        """Commit a batch; a write that the database refuses is put aside, so that it doesn't hold up the others."""
        try:
            # it has just answered a probe, and a batch is many writes: on a slow link the spool must empty, too
            self._commit(batch, 0, answers=_PATIENCE)
        except ServerAway:
            raise
        except StoreError as error:
            if len(batch) == 1:
                log.error("a spooled write was put aside in %s: %s", spool.reject(batch[0]), error)
                return
            for write in batch:
                self._commit_spooled(spool, [write])

    def _lose(self) -> None:
        if self._away_until is None:
            log.warning("%s is away: writes are kept on disk meanwhile", self._name)
        self._away_until = self._clock() + self._away_s

    def _commit(self, writes: Sequence[Write], retry_s: float, *, answers: int = 1) -> None:
        if writes:
            transaction.write(
                self._engine,
                lambda connection: apply_all(writes, connection),
                retry_s=retry_s,
                answer_s=answers * self._answer_s,
            )
