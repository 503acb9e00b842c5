"""A background thread between recorders and the disk: bounded, batched, ordered; errors come out at ``flush``."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import anyio.to_thread

from cuarl.errors import StoreError
from cuarl.store.writes import Write

_BATCH = 128
_GATHER_S = 0.25
"""How long a write waits for others that share its transaction, unless somebody waits for it.

A transaction costs as much as five episodes of it."""


class Writer:
    """Hands writes to ``commit`` in the order they came, several in one transaction when they come quickly.

    A batch that fails is tried write by write, so that a bad one doesn't take its neighbours with it.
    """

    def __init__(self, commit: Callable[[Sequence[Write]], None], capacity: int) -> None:
        """Hold at most ``capacity`` writes; whoever brings more waits."""
        self._commit, self._capacity = commit, capacity
        self._waiting: deque[Write] = deque()
        self._busy = False
        self._closing = False
        self._stopped = False
        self._flushing = 0
        self._errors: list[StoreError] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cuarl-store", daemon=True)

    def put(self, write: Write) -> None:
        """Queue a write; waits while the queue is full. Raises StoreError if the store is closed."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._append(write)

    async def put_async(self, write: Write) -> None:
        """Queue a write without blocking the event loop."""
        with self._changed:
            if self._has_room():
                self._append(write)
                return
        await anyio.to_thread.run_sync(self.put, write)

    def flush(self) -> None:
        """Wait until everything queued is committed. Raises StoreError if any of it was not, then forgets it."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._stopped or not (self._waiting or self._busy))
            self._flushing -= 1
            errors, self._errors = self._errors, []
            if self._waiting or self._busy:
                raise StoreError(f"the store's writer broke down with {len(self._waiting)} writes waiting")
        if len(errors) == 1:
            raise errors[0]
        if errors:
            first = errors[0]
            raise StoreError(f"{len(errors)} writes failed, first: {first.what}", where=first.where, hint=first.hint)

    def close(self) -> None:
        """Flush and stop. Raises what ``flush`` raises. Safe to call twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        self.flush()

    def _has_room(self) -> bool:
        return self._closing or self._stopped or len(self._waiting) < self._capacity

    def _append(self, write: Write) -> None:
        if self._closing or self._stopped:
            raise StoreError("the store is closed")
        if self._thread.ident is None:
            self._thread.start()
        self._waiting.append(write)
        self._changed.notify_all()

    def _run(self) -> None:
        try:
            while batch := self._take():
                self._write(batch)
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
        finally:  # whatever happened, nobody may wait for this thread any more
            with self._changed:
                self._stopped = True
                self._changed.notify_all()

    def _take(self) -> list[Write]:
        """Wait for a write and a moment for more; give what is there then, up to a batch.

        Empty once closed and done.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(self._enough, timeout=_GATHER_S)
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            self._busy = bool(batch)
            self._changed.notify_all()
            return batch

    def _enough(self) -> bool:
        full = len(self._waiting) >= min(_BATCH, self._capacity)
        return full or self._closing or bool(self._flushing)

    def _write(self, writes: Sequence[Write]) -> None:
        try:
            self._commit(writes)
        except StoreError as error:
            if len(writes) == 1:
                with self._changed:
                    self._errors.append(error)
                return
            for write in writes:
                self._write([write])
