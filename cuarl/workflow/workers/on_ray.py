"""Workers as actors of a Ray cluster: one core each, their frames carried by calls.

Ray finds a core, starts the process and tells when it, or its machine, is gone. All else is the same worker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from cuarl import garbage
from cuarl.errors import ConfigError, MissingExtra, PrerequisiteError
from cuarl.safe_text import loggable
from cuarl.workflow import signals
from cuarl.workflow.workers.worker import ToCollector, Worker

_END_S = 30.0
"""How long a worker may take to close its environments."""


class Actor:
    """The worker's side. Made by Ray; all methods run in one event loop."""

    def __init__(self, folder: str, path: Sequence[str]) -> None:
        """Look for modules where the collector does, as far as its folders are here, too."""
        if os.path.isdir(folder):  # noqa: PTH112 - a name of the collector's machine
            os.chdir(folder)
        sys.path += [place for place in path if place not in sys.path]
        garbage.look_rarely()
        self._received: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._to_send: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def put(self, frames: Sequence[bytes]) -> None:
        """Take frames of the collector's."""
        for frame in frames:
            self._received.put_nowait(frame)

    async def get(self) -> list[bytes] | None:
        """Frames for the collector, waited for; None when there will be no more."""
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        found = [await self._to_send.get()]
        while not self._to_send.empty():
            found.append(self._to_send.get_nowait())
        frames = [frame for frame in found if frame is not None]
        if len(frames) < len(found):
            self._to_send.put_nowait(None)
        return frames or None

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()

        def send(frame: bytes) -> None:
            loop.call_soon_threadsafe(self._to_send.put_nowait, frame)

        worker = Worker(send)
        logging.getLogger("cuarl").addHandler(ToCollector(worker))
        try:
            await worker.serve(self._frames())
        finally:
            loop.call_soon(self._to_send.put_nowait, None)

    async def _frames(self) -> AsyncIterator[bytes]:
        while (frame := await self._received.get()) is not None:
            yield frame


class RayLine:
    """A ``line.Line``."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self.name = f"actor {actor._actor_id.hex()[:8]}"
        self._waiting: list[bytes] = []
        self._sending: asyncio.Task[None] | None = None
        self._received: list[bytes] = []
        self._begun = self._ended = False
        self._last_words = ""

    def send(self, frame: bytes) -> None:
        """Send a frame, without waiting; lost if the worker is gone."""
        self._waiting.append(frame)
        # one call at a time, or they might arrive in another order
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            frames, self._waiting = self._waiting, []
            with suppress(self._ray.exceptions.RayError):  # told to who receives, too
                await self._actor.put.remote(frames)

    async def receive(self) -> bytes | None:
        """The worker's next frame; None once it is gone."""
        while not self._received:
            try:
                frames = await self._actor.get.remote()
            except self._ray.exceptions.RayError as error:
                self._last_words = f": {loggable(_reason(error))}"
                return None
            if frames is None:
                return None
            self._received, self._begun = frames[::-1], True
        return self._received.pop()

    async def end(self) -> None:
        """Wait until the worker, which was told to end, has, and have Ray remove it."""
        if self._ended:
            return
        self._ended = True
        # one that still waits for a core has nothing to end
        with anyio.move_on_after(_END_S if self._begun else 0), suppress(self._ray.exceptions.RayError):
            if self._sending is not None:
                await self._sending
            while not self._last_words and await self._actor.get.remote() is not None:
                pass
        await anyio.to_thread.run_sync(partial(self._ray.kill, self._actor))

    async def settle(self) -> None:
        """What it has left behind is on its own machine, and on the ledger there."""

    def last_words(self) -> str:
        """Why Ray says that it is gone."""
        return self._last_words


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class RayWorkers:
    """A ``line.Source``: a cluster at ``address``; None is one of this machine, started if there is none yet."""

    here = False

    def __init__(self, address: str | None, count: int | None) -> None:
        self._address, self._count = address, count
        self._ray: Any = None

    async def open(self) -> int:
        """Connect; as many workers as were asked for, or one for each core that is free."""
        try:
            import ray
        except ImportError as error:
            raise MissingExtra("workers on a cluster need Ray", hint='pip install "cuarl[ray]"') from error
        self._ray = ray
        # in a thread, where Ray's Python leaves the signals of this process alone
        await anyio.to_thread.run_sync(self._connect)
        signals.reinstall()  # which Ray's native part has taken
        cores = int((await anyio.to_thread.run_sync(ray.available_resources)).get("CPU", 0))
        if not cores or (self._count or 0) > cores:
            raise ConfigError(
                f"{self._count or 1} workers need a core each, and the cluster has {cores} free",
                where="--workers",
                hint=f"--workers {cores}@ray…" if cores else "ray start on further machines",
            )
        return self._count or cores

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        try:
            self._ray.init(
                address=self._address,
                include_dashboard=False if self._address is None else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, RuntimeError, OSError, ValueError) as error:
            raise PrerequisiteError(
                f"the Ray cluster can't be reached: {loggable(_reason(error))}",
                where=self._address or "this machine",
                hint="ray status",
            ) from error

    async def start(self) -> RayLine:
        """Start an actor. Waits for a core."""
        made = self._ray.remote(Actor).options(num_cpus=1, max_concurrency=8)
        folders = [str(place) for place in sys.path if place]
        return RayLine(self._ray, await anyio.to_thread.run_sync(lambda: made.remote(os.getcwd(), folders)))  # noqa: PTH109

    async def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._ray is not None:
            await anyio.to_thread.run_sync(self._ray.shutdown)
