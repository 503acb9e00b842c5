"""Lock-step batching: requests of concurrent episodes, answered together when everyone who may ask has asked.

Which requests share a forward pass then depends on the episodes alone and not on timing, so that results can be
reproduced bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from cuarl import pacing

Request = TypeVar("Request")
Reply = TypeVar("Reply")

_QUIET_ROUNDS = 16
"""Rounds of the event loop without news before a batch starts: time for a finished episode's slot to be taken again."""


class Batcher(Generic[Request, Reply]):
    """Collects requests into batches and gives each batch to ``run``.

    Whoever may still ask is inside ``join()``; a batch starts when all of them are waiting. With nobody there, it
    starts when nothing more arrives. ``max_wait_s`` bounds the wait for slow ones, at the price of reproducibility.
    ``order`` sorts a batch, so that the order of arrival does not matter; ``max_batch`` splits it.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Request]], Awaitable[Sequence[Reply]]],
        order: Callable[[Request], Any],
        *,
        max_batch: int,
        max_wait_s: float | None = None,
    ) -> None:
        self._run, self._order, self._max_batch = run, order, max_batch
        self._max_wait_s = math.inf if max_wait_s is None else max_wait_s
        self._joined = 0
        self._waiting: list[_Ticket[Request, Reply]] = []
        self._busy = False
        self._news = 0

    @contextmanager
    def join(self) -> Iterator[None]:
        """Inside, batches wait for one more asker."""
        self._joined += 1
        self._news += 1
        try:
            yield
        finally:
            self._joined -= 1
            self._elect()

    async def ask(self, request: Request) -> Reply:
        """Wait for the next batch, and return this request's reply. Raises what ``run`` raised."""
        ticket = _Ticket[Request, Reply](request)
        self._waiting.append(ticket)
        try:
            self._elect()
            # called to lead, one may find the batch grown incomplete while all was quiet, and waits again
            while not ticket.done:
                with anyio.move_on_after(self._max_wait_s) as patience:
                    await ticket.called.wait()
                if not ticket.done:
                    await self._lead(ticket, impatient=patience.cancelled_caught)
        finally:
            if ticket in self._waiting:
                # cancelled, perhaps when it was to lead
                self._waiting.remove(ticket)
                self._elect()
        return ticket.result()

    def _complete(self) -> bool:
        # those who have not joined (a single request to a server) wait for nobody
        return len(self._waiting) >= max(1, self._joined)

    def _elect(self) -> None:
        """Something has changed: call one of those waiting to lead, if the batch is complete."""
        self._news += 1
        if self._waiting and not self._busy and self._complete():
            self._waiting[0].called.set()

    async def _lead(self, ticket: _Ticket[Request, Reply], *, impatient: bool) -> None:
        """Run the batch, unless somebody else does or it is no longer complete."""
        if not impatient:
            # an episode that has just ended may be followed by one that joins in its slot
            await self._quiet()
        if ticket.done:
            return
        ticket.called = anyio.Event()
        if self._busy or not (impatient or self._complete()):
            return
        # rows of a pass influence each other's last bits, so their order must not be that of arrival
        batch = sorted(self._waiting, key=lambda t: self._order(t.request))
        self._waiting.clear()
        self._busy = True
        try:
            # answered as a whole even if the leader is cancelled: the others wait for it
            with anyio.CancelScope(shield=True):
                await self._answer(batch)
        finally:
            self._busy = False
            self._elect()

    async def _quiet(self) -> None:
        rounds, news = 0, self._news
        while rounds < _QUIET_ROUNDS:
            await checkpoint()
            # what waits for its turn to compute may still ask, though nothing seems to happen
            still = news == self._news and not pacing.waiting()
            rounds, news = (rounds + 1, news) if still else (0, self._news)

    async def _answer(self, batch: Sequence[_Ticket[Request, Reply]]) -> None:
        def tell(kind: object, error: BaseException | None, trace: object) -> None:
            """What stops a batch, a cancellation too, stops all that still wait for it."""
            for ticket in batch:
                if error is not None and not ticket.done:
                    ticket.settle(None, error)

        with ExitStack() as stack:
            stack.push(tell)
            for start in range(0, len(batch), self._max_batch):
                part = batch[start : start + self._max_batch]
                for ticket, reply in zip(part, await self._run([t.request for t in part]), strict=True):
                    ticket.settle(reply, None)


class _Ticket(Generic[Request, Reply]):
    """One request in the queue; ``called`` is set when it is answered or is to lead a batch."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.called = anyio.Event()
        self.done = False
        self._reply: Reply | None = None
        self._error: BaseException | None = None

    def settle(self, reply: Reply | None, error: BaseException | None) -> None:
        self._reply, self._error, self.done = reply, error, True
        self.called.set()

    def result(self) -> Reply:
        if self._error is not None:
            raise self._error
        return self._reply  # type: ignore[return-value]
