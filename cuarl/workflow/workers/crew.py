"""The workers of a collector: who runs which episode, and what becomes of the episodes of one that dies."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

import cuarl
from cuarl.errors import EnvError, PrerequisiteError
from cuarl.policy.sampler import Sampler
from cuarl.rollout.episode import lost
from cuarl.rollout.pool import one_error
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.workflow.workers import messages as m
from cuarl.workflow.workers.line import Line, Source
from cuarl.workflow.workers.remote import Remote, WorkerGone
from cuarl.workflow.workers.work import Work

logger = logging.getLogger(__name__)

_MOST_WORKERS = 3
"""How many workers may die of one episode before it counts as failed."""
_CLOSE_S = 30.0


@dataclass(slots=True, eq=False)
class _Seat:
    """The place of one worker; another takes it if it dies."""

    number: int
    line: Line | None = None
    """None while nobody sits there."""
    scope: anyio.CancelScope = field(default_factory=lambda: anyio.CancelScope(shield=True))
    """A command that is cut short still hears how far its episodes had come."""
    codec: m.Codec = field(default_factory=m.Codec)
    assigned: dict[int, MemoryObjectSendStream[m.FromWorker]] = field(default_factory=dict)
    opened: dict[int, anyio.Event] = field(default_factory=dict)
    """Kinds of episodes that it is prepared for, and what tells when it is no longer."""
    closing: dict[int, anyio.Event] = field(default_factory=dict)
    reserved: bool = False
    """Whether it runs, or waits for, an episode that is to be alone there."""

    def tell(self, number: int, message: m.ToWorker) -> None:
        if self.line is not None:
            self.line.send(self.codec.pack(number, message))

    def leave(self) -> None:
        """The worker is gone."""
        self.line, self.codec = None, m.Codec()
        for stream in self.assigned.values():
            stream.close()
        for closed in (*self.opened.values(), *self.closing.values()):
            closed.set()
        self.opened, self.closing = {}, {}


class Crew:
    """The workers of ``source``, started when the first episode needs one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seats: list[_Seat] = []
        self._numbers = itertools.count(m.ALL + 1)
        self._works: dict[int, Work] = {}
        self._tasks: TaskGroup | None = None
        self._ending = False

    @property
    def here(self) -> bool:
        """Whether they see the folders of this machine."""
        return self._source.here

    @asynccontextmanager
    async def employed(self) -> AsyncIterator[None]:
        """Inside, workers can be started; afterwards there are none."""
        self._seats, self._ending, self._changed = [], False, anyio.Event()
        with one_error():
            async with anyio.create_task_group() as self._tasks:
                try:
                    yield
                finally:
                    self._ending = True
                    with anyio.CancelScope(shield=True):
                        await self._dismiss()
                        await self._source.close()

    async def start(self) -> None:
        """Start them, and wait until all are there, so that each gets its share."""
        assert self._tasks is not None, "inside employed()"
        if not self._seats:
            self._seats = [_Seat(number + 1) for number in range(await self._source.open())]
            for seat in self._seats:
                self._tasks.start_soon(self._keep, seat)
        while any(seat.line is None for seat in self._seats):
            await self._changed.wait()

    def prepare(self, work: Work) -> int:
        """The number of a kind of episodes from now on."""
        number = next(self._numbers)
        self._works[number] = work
        return number

    async def rest(self, works: Collection[int]) -> None:
        """Have the workers release what environments of these kinds share, until further episodes need it."""
        waiting = []
        for seat in self._seats:
            for work in [work for work in works if work in seat.opened]:
                seat.closing[work] = seat.opened.pop(work)
                seat.tell(m.ALL, m.Close(work))
                waiting.append(seat.closing[work])
        with anyio.move_on_after(_CLOSE_S):
            for closed in waiting:
                await closed.wait()

    async def play(
        self,
        work: int,
        sampler: Sampler | None,
        spec: EpisodeSpec,
        setup: Setup,
        on_cancel: Callable[[Episode], None] | None,
    ) -> Episode:
        """Run an episode at a worker, and at others if that dies of it or of anything else.

        One that has lost two workers has the third for itself, so that it takes no others with it, and others it.
        """
        try:
            for tried in range(_MOST_WORKERS):
                setup.observer.phase(spec, "creating")
                with suppress(WorkerGone):
                    async with self._seat(alone=tried == _MOST_WORKERS - 1) as seat:
                        return await self._at(seat, work, sampler, spec, setup, on_cancel)
                setup.observer.phase(spec, "done")
            return lost(
                spec, setup, EnvError(f"{_MOST_WORKERS} workers have died while they ran it, the last one alone")
            )
        finally:
            setup.observer.phase(spec, "done")

    async def _at(
        self,
        seat: _Seat,
        work: int,
        sampler: Sampler | None,
        spec: EpisodeSpec,
        setup: Setup,
        on_cancel: Callable[[Episode], None] | None,
    ) -> Episode:
        number = next(self._numbers)
        send, heard = anyio.create_memory_object_stream[m.FromWorker](math.inf)
        seat.assigned[number] = send
        try:
            if work not in seat.opened:
                seat.opened[work] = anyio.Event()
                seat.tell(m.ALL, m.Open(work, self._works[work]))
            seat.tell(number, m.Run(work, spec))
            remote = Remote(
                spec=spec, setup=setup, sampler=sampler, tell=lambda said: seat.tell(number, said), heard=heard
            )
            # until its verdict is there, it or the next in its place may still ask: what shares a batch is decided by
            # the episodes, and not by when news of their ends arrives
            with setup.join():
                return await remote.follow(on_cancel)
        finally:
            seat.assigned.pop(number).close()
            heard.close()
            seat.codec.forget(number)

    @asynccontextmanager
    async def _seat(self, *, alone: bool) -> AsyncIterator[_Seat]:
        """That of the worker with the fewest episodes; ``alone``: which has no others meanwhile."""
        while not (there := [seat for seat in self._seats if seat.line is not None and not seat.reserved]):
            await self._changed.wait()
        seat = min(there, key=lambda seat: len(seat.assigned))
        seat.reserved = alone
        try:
            while alone and (seat.assigned or seat.line is None):
                await self._changed.wait()
            yield seat
        finally:
            if alone:
                seat.reserved = False
            self._tell_changed()

    # --- one worker after the other ----------------------------------------------------------------------------------

    async def _keep(self, seat: _Seat) -> None:
        """Have somebody in a seat. Raises PrerequisiteError if a worker ends before it has begun."""
        with seat.scope:
            while not self._ending:
                line = await self._source.start()
                try:
                    await self._serve(seat, line)
                finally:
                    seat.leave()
                    with anyio.CancelScope(shield=True):
                        await line.end()
                if not self._ending:
                    how = line.last_words()
                    logger.warning("worker %d (%s) has died%s; what it ran is run again", seat.number, line.name, how)
                    await line.settle()

    async def _serve(self, seat: _Seat, line: Line) -> None:
        first = await line.receive()
        if first is None:
            await line.end()
            raise PrerequisiteError(f"a worker ended while it started{line.last_words()}", where=line.name)
        _, ready = seat.codec.unpack(first)
        if ready.version != cuarl.__version__:
            raise PrerequisiteError(
                f"a worker has cuarl {ready.version}, and this is {cuarl.__version__}",
                where=line.name,
                hint=f"pip install cuarl=={cuarl.__version__}",
            )
        seat.line = line
        self._tell_changed()
        await self._listen(seat, line)

    async def _listen(self, seat: _Seat, line: Line) -> None:
        while (frame := await line.receive()) is not None:
            number, message = seat.codec.unpack(frame)
            match message:
                case m.Logged(name, level, text):
                    logging.getLogger(name).log(level, "worker %d: %s", seat.number, text)
                case m.Closed(work):
                    # by itself it closes what could not be opened
                    closed = seat.closing.pop(work, None) or seat.opened.pop(work, None)
                    if closed is not None:
                        closed.set()
                case _ if number in seat.assigned:
                    seat.assigned[number].send_nowait(message)
                case _:  # of an episode that nobody waits for any more
                    seat.codec.forget(number)

    def _tell_changed(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _dismiss(self) -> None:
        """End all of them, and those that are just starting."""
        async with anyio.create_task_group() as ending:
            for seat in self._seats:
                if seat.line is not None:
                    seat.tell(m.ALL, m.End())
                    ending.start_soon(seat.line.end)
        for seat in self._seats:
            seat.scope.cancel()
