"""Pausing running episodes, and playing them again to where they were.

Episodes of asynchronous training wait for an update now and then. The time that they are paused counts for none of
their limits, and what they had sampled is kept, so that an interrupted run can play them again to the same place.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio

from cuarl.errors import EnvError, SamplerError
from cuarl.policy.sampler import Picture, PromptTooLong, Sampler, SamplerCapabilities, SampleRequest, Sees
from cuarl.trajectory import Sampled


@dataclass(slots=True, eq=False)
class Pause:
    """What is kept of one running episode."""

    answers: list[Sampled] = field(default_factory=list)
    """What it sampled, turn by turn; of an episode that is played again, also what is still to come."""
    asked: int = 0
    paused_s: float = 0.0
    """Seconds that it was paused."""
    told: Callable[[bool], object] | None = None
    """Told when its clock stops (True) and goes on, where the episode runs in another process."""
    _scope: anyio.CancelScope | None = None
    _since: float | None = None
    _left: float = 0.0

    @contextmanager
    def bounding(self, scope: anyio.CancelScope) -> Iterator[None]:
        """Inside, ``scope`` has the deadline that is put off."""
        self._scope = scope
        try:
            yield
        finally:
            self._scope = None

    def suspend(self) -> None:
        """Stop its clock."""
        if self._since is not None or (self._scope is None and self.told is None):
            return
        self._since = time.monotonic()
        if self._scope is not None:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = math.inf
        if self.told is not None:
            self.told(True)

    def resume(self) -> None:
        """Let its clock go on."""
        if self._since is None:
            return
        self.paused_s += time.monotonic() - self._since
        self._since = None
        if self._scope is not None:
            self._scope.deadline = anyio.current_time() + self._left
        if self.told is not None:
            self.told(False)


CURRENT: ContextVar[Pause] = ContextVar("CURRENT")
"""That of the episode which the present task runs."""


def clock() -> float:
    """Seconds on a monotonic clock that stands still while the present episode is paused."""
    return time.monotonic() - CURRENT.get().paused_s


@contextmanager
def pausable(scope: anyio.CancelScope) -> Iterator[None]:
    """A ``Setup.pausable``: the present episode's."""
    with CURRENT.get().bounding(scope):
        yield


class PauseGate:
    """Where samplers wait: it shuts before a pass once ``full`` says so, and opens when it is told to."""

    def __init__(self) -> None:
        self.full: Callable[[], bool] = lambda: False
        self._shut = anyio.Event()
        self._opened: anyio.Event | None = None
        self.over = False
        """Whether it has ended: whatever comes of episodes still under way is not wanted."""
        self._asking: set[Pause] = set()

    async def passing(self) -> None:
        """Go through, or wait. Raises SamplerError if it will never open again."""
        if self.full():
            self.close()
        if self._opened is not None:
            await self._opened.wait()
        self.check()

    def check(self) -> None:
        """Raise SamplerError if it will never open again."""
        if self.over:
            raise SamplerError("collecting has ended")

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Inside, one request is under way. Here it waits with its batch, before a pass (``passing``)."""
        yield

    def finished(self) -> None:
        """An episode is complete."""

    def close(self) -> None:
        """Let nobody through, and stop the clocks of those who ask."""
        if self._opened is None:
            self._opened = anyio.Event()
            for pause in self._asking:
                pause.suspend()
            self._shut.set()

    def open(self) -> None:
        """Let everybody through."""
        opened, self._opened = self._opened, None
        if opened is not None:
            self._shut = anyio.Event()
            for pause in self._asking:
                pause.resume()
            opened.set()

    def end(self) -> None:
        """Turn away all who wait or come."""
        self.over = True
        self.open()

    async def shut(self) -> None:
        """Wait until it is shut."""
        await self._shut.wait()

    @contextmanager
    def asking(self, pause: Pause) -> Iterator[None]:
        """Inside, an episode waits for an answer."""
        self._asking.add(pause)
        if self._opened is not None:
            pause.suspend()
        try:
            yield
        finally:
            self._asking.discard(pause)
            pause.resume()


class RecallingSampler:
    """Asks ``sampler``, except for what the present episode was answered before it was interrupted."""

    def __init__(self, sampler: Sampler, gate: PauseGate) -> None:
        self._sampler, self._gate = sampler, gate

    @property
    def capabilities(self) -> SamplerCapabilities:
        """Those of the sampler."""
        return self._sampler.capabilities

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture."""
        return await self._sampler.sees(width, height) if isinstance(self._sampler, Sees) else None

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """The answer that is known, or a new one. Raises EnvError if the episode does not repeat itself."""
        pause = CURRENT.get()
        if pause.asked < len(pause.answers):
            answer = pause.answers[pause.asked]
            limit = request.max_prompt_tokens
            if limit is not None and _was_narrower(request, answer):
                return PromptTooLong(needed=limit + 1, limit=limit)
            _check_repeated(request, answer, pause.asked)
        else:
            with self._gate.asking(pause):
                async with self._gate.request():
                    fresh = await self._sampler.sample(request)
            if isinstance(fresh, PromptTooLong):
                return fresh
            answer = fresh
            pause.answers.append(answer)
        pause.asked += 1
        return answer

    async def close(self) -> None:
        """Close the sampler."""
        await self._sampler.close()


def _was_narrower(request: SampleRequest, answer: Sampled) -> bool:
    """Whether ``answer`` was given to a prompt with fewer screenshots of the past, for which alone there was room."""
    shown, seen = _shown(request), [ref.digest for ref in answer.images]
    return 0 < len(seen) < len(shown) and shown[-len(seen) :] == seen


def _shown(request: SampleRequest) -> list[str]:
    return [p.screenshot.digest for m in request.messages for p in m.parts if isinstance(p, Picture)]


def _check_repeated(request: SampleRequest, answer: Sampled, turn: int) -> None:
    if _shown(request) != [ref.digest for ref in answer.images]:
        raise EnvError(
            f"the environment did not show the same again at turn {turn} of an episode that was played again "
            "after an interruption"
        )
