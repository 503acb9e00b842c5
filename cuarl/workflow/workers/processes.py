"""Workers as processes of this machine, each at the end of a pair of sockets.

The collector's end goes with the collector, killed included: then the worker closes its environments and ends, too. A
worker is in a session of its own, so that Ctrl-C reaches the collector alone, which ends it in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from typing import IO

import anyio
import anyio.to_thread

from cuarl.env.leases import Ledger, sweep
from cuarl.errors import CuarlError
from cuarl.safe_text import loggable
from cuarl.settings import Settings

logger = logging.getLogger(__name__)

LENGTH = struct.Struct("<Q")
"""In front of each frame."""
MODULE = "cuarl.workflow.workers.process"
END_S = 30.0
"""How long a worker may take to close its environments."""


class Processes:
    """A ``line.Source``: so many processes."""

    here = True

    def __init__(self, count: int, settings: Settings) -> None:
        self._count, self._settings = count, settings

    async def open(self) -> int:
        """How many."""
        return self._count

    async def start(self) -> ProcessLine:
        """Start one."""
        return await ProcessLine.start(self._settings)

    async def close(self) -> None:
        """Nothing is shared."""


class ProcessLine:
    """A ``line.Line``. Made by ``start``."""

    def __init__(self, child: subprocess.Popen[bytes], said: IO[bytes], settings: Settings) -> None:
        self._child, self._said, self._settings = child, said, settings
        self.name = f"process {child.pid}"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._waiting = threading.Lock()
        self._last_words = ""

    @classmethod
    async def start(cls, settings: Settings) -> ProcessLine:
        """Start a worker."""
        ours, theirs = socket.socketpair()
        said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        child = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=theirs.fileno(),
            stdout=said,
            stderr=said,
            start_new_session=True,
            # many of them share the machine's cores
            env={"OMP_NUM_THREADS": "1", **os.environ},
        )
        theirs.close()
        line = cls(child, said, settings)
        ours.setblocking(False)
        line._reader, line._writer = await asyncio.open_connection(sock=ours)
        return line

    def send(self, frame: bytes) -> None:
        """Send a frame, without waiting; lost if the worker is gone."""
        assert self._writer is not None, "start made it"
        if not self._writer.is_closing():
            self._writer.writelines((LENGTH.pack(len(frame)), frame))

    async def receive(self) -> bytes | None:
        """The worker's next frame; None once it is gone."""
        assert self._reader is not None, "start made it"
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            return await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def end(self) -> None:
        """Hang up, and wait until it is gone; one that does not go is killed."""
        assert self._writer is not None, "start made it"
        self._writer.close()
        await anyio.to_thread.run_sync(self._wait)

    def _wait(self) -> None:
        with self._waiting:
            try:
                self._child.wait(END_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            if not self._said.closed:
                self._last_words = self._read()
                self._said.close()

    async def settle(self) -> None:
        """End the browsers, displays and boxes that it has left behind."""
        for lease in Ledger(self._settings.sessions_folder).leases():
            if lease.record.owner.pid == self._child.pid and lease.state == "orphaned":
                try:
                    await sweep(lease, self._settings)
                except CuarlError as error:
                    logger.warning("%s %s of a worker that died is left: %s", lease.kind, lease.id, error)

    def last_words(self) -> str:
        """How it ended, and the last line that it said; known once it has ended."""
        return self._last_words

    def _read(self) -> str:
        code = self._child.returncode
        how = f" by signal {-code}" if code < 0 else f" with exit code {code}"
        self._said.seek(0)
        # errors of a group are framed
        lines = [line.strip(" |+-") for line in self._said.read().decode(errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "")
        return how + (f", saying at last: {loggable(last)}" if last else "")
