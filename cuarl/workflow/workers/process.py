"""The worker's side of a pair of sockets: ``python -m cuarl.workflow.workers.process``, for ``processes`` alone.

Standard input is the socket. Two threads carry frames between it and the event loop, so that its end is noticed even
while somebody's environment blocks the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType

import anyio

from cuarl import garbage
from cuarl.workflow.workers.processes import END_S, LENGTH
from cuarl.workflow.workers.worker import ToCollector, Worker

_PATIENCE_S = END_S - 5.0


class _Socket:
    """Frames from and to the collector."""

    def __init__(self, line: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._line, self._loop = line, loop
        self._received: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.send = self._to_send.put
        threading.Thread(target=self._receive, name="cuarl-receive", daemon=True).start()
        self._sender = threading.Thread(target=self._send, name="cuarl-send", daemon=True)
        self._sender.start()

    async def frames(self) -> AsyncIterator[bytes]:
        """Until the collector hangs up."""
        while (frame := await self._received.get()) is not None:
            yield frame

    def hang_up(self) -> None:
        """End the frames, as if the collector had."""
        self._loop.call_soon_threadsafe(self._received.put_nowait, None)

    def close(self) -> None:
        """Send what is left."""
        self._to_send.put(None)
        self._sender.join()
        self._line.close()

    def _receive(self) -> None:
        with self._line.makefile("rb", buffering=1 << 20) as incoming:
            while len(head := incoming.read(LENGTH.size)) == LENGTH.size:
                length = LENGTH.unpack(head)[0]
                if len(frame := incoming.read(length)) < length:
                    break
                self._loop.call_soon_threadsafe(self._received.put_nowait, frame)
        self.hang_up()
        # nobody is left to end this process if an environment of somebody's own never returns
        time.sleep(_PATIENCE_S)
        os._exit(1)

    def _send(self) -> None:
        gone = False
        while (frame := self._to_send.get()) is not None:
            try:
                if not gone:
                    self._line.sendall(LENGTH.pack(len(frame)) + frame)
            except OSError:  # the collector is gone: what is left is for nobody
                gone = True


async def _serve(line: socket.socket) -> None:
    connection = _Socket(line, asyncio.get_running_loop())

    def end(number: int, frame: FrameType | None) -> None:
        connection.hang_up()

    signal.signal(signal.SIGTERM, end)
    worker = Worker(connection.send)
    logging.getLogger("cuarl").addHandler(ToCollector(worker))
    try:
        await worker.serve(connection.frames())
    finally:
        connection.close()


def main() -> None:
    """Serve the socket that is standard input."""
    line = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    # Ctrl-C and the end of a terminal reach the collector, which ends its workers. Not SIG_IGN, which what they start
    # would inherit
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    garbage.look_rarely()
    anyio.run(_serve, line)


if __name__ == "__main__":
    main()
