"""One episode that a worker runs, as the collector sees it: it answers what the agent asks, and hears how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from cuarl.errors import CuarlError
from cuarl.policy.sampler import Sampler, Sees
from cuarl.rollout.episode import reply_to
from cuarl.rollout.pause import CURRENT
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.workflow.workers import messages as m

_CUT_S = 5.0
"""What a worker may take, beyond closing the environment, to tell how far a cancelled episode had come."""


class WorkerGone(Exception):
    """The worker has died before it told how the episode ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """An episode that was sent to a worker. ``tell`` sends to it; ``heard`` ends when it is gone."""

    spec: EpisodeSpec
    setup: Setup
    sampler: Sampler | None
    tell: Callable[[m.ToWorker], None]
    heard: MemoryObjectReceiveStream[m.FromWorker]

    async def follow(self, on_cancel: Callable[[Episode], None] | None) -> Episode:
        """Its record.

        Cancelled, it has the worker cut it short, and gives ``on_cancel`` what there is. Raises WorkerGone, and what
        would have been raised in this process.
        """
        try:
            with self._paused():
                last = await self._conversation()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(self.setup.limits.close_s + _CUT_S):
                cut = await self._cut()
                if cut is not None and on_cancel is not None:
                    on_cancel(cut)
            raise
        if isinstance(last, m.Broken):
            raise last.error
        if last is None or last.episode is None:
            raise WorkerGone
        return last.episode

    async def _conversation(self) -> m.Done | m.Broken | None:
        """How it ended; None if the worker is gone. What is still asked then needs no answer."""
        last: m.Done | m.Broken | None = None
        async with anyio.create_task_group() as answering:
            async for message in self.heard:
                match message:
                    case m.Ask(asked, request):
                        answering.start_soon(self._answer, asked, partial(self._asked().sample, request))
                    case m.AskSeen(asked, size):
                        answering.start_soon(self._answer, asked, partial(self._seen, size))
                    case m.News():
                        self._watch(message)
                    case m.Done() | m.Broken():
                        last = message
                        break
            answering.cancel_scope.cancel()
        return last

    async def _answer(self, asked: int, ask: Callable[[], Awaitable[Any]]) -> None:
        reply = await reply_to(ask)
        if isinstance(reply, CuarlError):
            cause = type(reply.__cause__).__name__ if reply.__cause__ else ""
            self.tell(m.Answer(asked, None, reply, cause))
        else:
            self.tell(m.Answer(asked, reply))

    async def _seen(self, size: tuple[int, int]) -> tuple[int, int] | None:
        sampler = self._asked()
        return await sampler.sees(*size) if isinstance(sampler, Sees) else None

    def _asked(self) -> Sampler:
        assert self.sampler is not None, "only an agent that has one asks"
        return self.sampler

    async def _cut(self) -> Episode | None:
        self.tell(m.Cancel())
        async for message in self.heard:
            if isinstance(message, m.Done):
                return message.episode
            if isinstance(message, m.Broken):
                return None
        return None

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Inside, the worker stops the episode's clock whenever it stops here."""
        pause = CURRENT.get(None)
        if pause is None:
            yield
            return
        pause.asked = 0  # after a worker that died, it is played again by what it was answered
        pause.told = lambda stopped: self.tell(m.Clock(stopped))
        try:
            yield
        finally:
            pause.told = None

    def _watch(self, news: m.News) -> None:
        observer, spec = self.setup.observer, self.spec
        observer.phase(spec, news.phase, news.device)
        for screen in news.screens:
            observer.screen(spec, screen)
        for turn in news.turns:
            observer.turn(spec, turn)
