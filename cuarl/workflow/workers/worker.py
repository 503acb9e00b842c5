"""A worker: runs the episodes that a collector sends it, several at a time, in a process or a Ray actor.

It knows nothing of how frames get to it and from it. What an episode asks its policy goes to the collector, and so does
the episode when it is over.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

import cuarl
from cuarl import garbage, safe_text
from cuarl.env.backend import Backend
from cuarl.errors import CuarlError, SamplerError, StoreError
from cuarl.policy.sampler import PromptTooLong, SamplerCapabilities, SampleRequest
from cuarl.rollout.episode import run_episode
from cuarl.rollout.pause import CURRENT, Pause
from cuarl.rollout.setup import Episode, Phase
from cuarl.rollout.spec import EpisodeSpec
from cuarl.store.blobs import Blobs
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Screenshot
from cuarl.workflow import episodes as parts
from cuarl.workflow.workers import messages as m
from cuarl.workflow.workers.work import Work

NEWS_S = 1.0
"""How often the collector is told how far running episodes have come, and what they see."""


class Worker:
    """Runs episodes until its frames end; ``send`` takes its own, and must not block."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send, self._codec = send, m.Codec()
        self._opened: dict[int, _Opened] = {}
        self._running: dict[int, _Running] = {}

    def tell(self, number: int, message: m.FromWorker, keep: m.Keep | None = None) -> None:
        """Send a message about an assignment, or about none (``messages.ALL``)."""
        self._send(self._codec.pack(number, message, keep))

    async def serve(self, frames: AsyncIterator[bytes]) -> None:
        """Do as ``frames`` say until they end, or say so. Then what still runs is cut short and told, too."""
        with garbage.deferred():
            async with anyio.create_task_group() as tasks:
                self.tell(m.ALL, m.Ready(os.getpid(), cuarl.__version__))
                tasks.start_soon(self._report)
                async for frame in frames:
                    number, message = self._codec.unpack(frame)
                    if isinstance(message, m.End):
                        break
                    self._take(tasks, number, message)
                tasks.cancel_scope.cancel()

    def _take(self, tasks: TaskGroup, number: int, message: m.ToWorker) -> None:
        match message:
            case m.Open(work, what):
                self._opened[work] = opened = _Opened(what)
                tasks.start_soon(self._keep_open, work, opened)
            case m.Close(work):
                self._opened[work].over.set()
            case m.Run(work, spec):
                opened = self._opened[work]
                self._running[number] = running = _Running(number, spec, self, opened.keep)
                tasks.start_soon(self._run, opened, running)
            case _ if number in self._running:  # else it has just ended
                self._running[number].take(message)

    async def _keep_open(self, work: int, opened: _Opened) -> None:
        """Hold what the environments of a kind share, from ``Open`` to ``Close``, in one task."""
        try:
            safe_text.remember(opened.what.settings.secrets())
            backend = opened.what.backend()
            async with parts.serving(backend):
                opened.backend = backend
                opened.ready.set()
                await opened.over.wait()
        except CuarlError as error:
            opened.error = error
            opened.ready.set()
        if self._opened.get(work) is opened:
            del self._opened[work]
        self.tell(m.ALL, m.Closed(work))

    async def _run(self, opened: _Opened, running: _Running) -> None:
        CURRENT.set(running.pause)
        last: m.FromWorker = m.Done(None, cut=True)  # of one that was cancelled before it began

        def cut(episode: Episode) -> None:
            nonlocal last
            last = m.Done(episode, cut=True)

        try:
            with running.scope:
                await opened.ready.wait()
                if opened.error is not None:
                    raise opened.error
                assert opened.backend is not None, "it is ready"
                setup = opened.what.setup(opened.backend, running, running)
                last = m.Done(await run_episode(running.spec, setup, on_cancel=cut))
        except CuarlError as error:
            last = m.Broken(error)
        finally:
            del self._running[running.number]
            self.tell(running.number, last, running.keep)
            self._codec.forget(running.number)

    async def _report(self) -> None:
        while True:
            await anyio.sleep(NEWS_S)
            for running in self._running.values():
                running.report()


class ToCollector(logging.Handler):
    """Has the collector log what is logged here."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line."""
        self._worker.tell(m.ALL, m.Logged(record.name, record.levelno, record.getMessage()))


@dataclass(slots=True, eq=False)
class _Opened:
    """One kind of episodes."""

    what: Work
    ready: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)
    backend: Backend | None = None
    error: CuarlError | None = None
    """Why there can be none."""
    folder: Blobs | None = field(init=False)

    def __post_init__(self) -> None:
        self.folder = Blobs(self.what.folder) if self.what.folder else None

    def keep(self, picture: Screenshot) -> Screenshot:
        """Encode a picture, and store it where the collector would, which then only sees that it is there."""
        encoded = Screenshot.encoded(picture.png(), picture.ref)
        if self.folder is not None:
            with suppress(StoreError):  # the collector tries again, and says what is wrong
                self.folder.put([encoded])
        return encoded


@dataclass(slots=True, eq=False)
class _Asked:
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: m.Answer | None = None


@dataclass(slots=True, eq=False)
class _Running:
    """One running episode: its agent's ``Sampler``, and its ``Observer``."""

    number: int
    spec: EpisodeSpec
    worker: Worker
    keep: m.Keep
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    pause: Pause = field(default_factory=Pause)
    _asked: dict[int, _Asked] = field(default_factory=dict)
    _count: int = 0
    _seen: dict[tuple[int, int], tuple[int, int] | None] = field(default_factory=dict)
    _phase: Phase = "creating"
    _device: str = ""
    _turns: list[Turn] = field(default_factory=list)
    _screens: list[Screenshot] = field(default_factory=list)
    _news: bool = False

    def take(self, message: m.ToWorker) -> None:
        """What the collector says about the episode."""
        match message:
            case m.Answer(asked):
                self._asked[asked].answer = message
                self._asked[asked].answered.set()
            case m.Clock(stopped):
                self.pause.suspend() if stopped else self.pause.resume()
            case m.Cancel():
                self.scope.cancel()

    # --- its sampler -----------------------------------------------------------------------------------------------

    @property
    def capabilities(self) -> SamplerCapabilities:
        """Those that matter are the collector's, who knows the sampler."""
        return SamplerCapabilities(token_ids=True, logprobs=True, images=True)

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Ask the collector. Raises what its sampler raises."""
        reply = await self._reply(lambda asked: m.Ask(asked, request))
        assert isinstance(reply, Sampled | PromptTooLong), "asked for"
        return reply

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture."""
        size = (width, height)
        if size not in self._seen:
            reply = await self._reply(lambda asked: m.AskSeen(asked, size))
            assert not isinstance(reply, Sampled | PromptTooLong), "asked for"
            self._seen[size] = reply
        return self._seen[size]

    async def close(self) -> None:
        """It belongs to the collector."""

    async def _reply(self, ask: Callable[[int], m.Ask | m.AskSeen]) -> Sampled | PromptTooLong | tuple[int, int] | None:
        self._count += 1
        asked, self._asked[self._count] = self._count, (waiting := _Asked())
        try:
            self.worker.tell(self.number, ask(asked), self.keep)
            await waiting.answered.wait()
        finally:
            del self._asked[asked]
        answer = waiting.answer
        if answer is None:
            raise SamplerError("the collector has no answer")
        if answer.error is not None:
            # of what it was raised from, which may not be made for travelling, a record keeps the name alone
            raise answer.error from type(answer.cause, (Exception,), {})() if answer.cause else None
        return answer.reply

    # --- its observer ----------------------------------------------------------------------------------------------

    def phase(self, spec: EpisodeSpec, phase: Phase, device: str = "") -> None:
        """Remember it for the next news."""
        self._phase, self._device, self._news = phase, device or self._device, True

    def screen(self, spec: EpisodeSpec, screen: Screenshot) -> None:
        """Remember it for the next news."""
        self._screens.append(screen)
        self._news = True

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Remember it for the next news."""
        self._turns.append(turn)
        self._news = True

    def report(self) -> None:
        """Tell what is new."""
        if not self._news:
            return
        (turns, self._turns), (screens, self._screens), self._news = (self._turns, []), (self._screens, []), False
        self.worker.tell(self.number, m.News(self._phase, self._device, turns, screens), self.keep)
