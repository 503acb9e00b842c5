"""A process that has imported what commands import, and forks for each that is asked for (``tests.warm`` asks).

Alone in its threads, so that a fork is safe, and nothing is done in it but imports: a fork is what ``python -m`` would
be once it has imported the same.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, TextIO

# what commands import when they come to it, or what picks it by a name in a file
LATER = (
    "torch._dynamo", "transformers.models.auto.modeling_auto", "transformers.models.qwen3_vl.modeling_qwen3_vl",
    "transformers.models.qwen3_vl.processing_qwen3_vl", "sqlalchemy.dialects.sqlite", "alembic.command", "uvicorn",
    "uvicorn.protocols.http.h11_impl", "uvicorn.lifespan.on", "starlette.applications", "anyio._backends._asyncio",
)  # fmt: skip
LEFT_OUT = ("cuarl.__main__", "cuarl.store.migrations")
STREAMS = 3
FIRST_MS = 60_000
"""Within which whoever began it asks for the first command, if it has not died."""


def load() -> None:
    """Import every module of cuarl whose libraries are installed, and what they import later."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command sets them before it imports
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    gc.disable()
    cuarl = importlib.import_module("cuarl")
    names = [found.name for found in pkgutil.walk_packages(cuarl.__path__, "cuarl.", onerror=lambda name: None)]
    for name in (*names, *LATER):
        if not name.startswith(LEFT_OUT):
            try:
                importlib.import_module(name)
            except ImportError:  # an extra that is not installed
                continue
    gc.collect()
    gc.freeze()  # a collection in a fork writes to, and so copies, no page of what was imported
    gc.enable()
    assert len([*Path("/proc/self/task").iterdir()]) == 1, "a fork would lack the other threads"


class Server:
    """Answers one command a connection: its process id at once, its exit code when it is over."""

    def __init__(self, folder: Path) -> None:
        self._listening, self._folder = socket.socket(socket.AF_UNIX), folder
        self._listening.bind(str(folder / "new"))
        self._listening.listen(64)
        (folder / "new").rename(folder / "socket")  # whoever finds it can connect
        self._poll = select.poll()
        self._poll.register(self._listening, select.POLLIN)
        self._peers: dict[int, socket.socket] = {}
        self._children: dict[int, tuple[int, socket.socket]] = {}

    def request(self) -> dict[str, Any]:
        """What to run: returns in forks alone. Exits when the last of those who ask has gone."""
        while True:
            for descriptor, _ in self._poll.poll(None if self._peers or self._children else FIRST_MS):
                if descriptor == self._listening.fileno():
                    peer, _ = self._listening.accept()
                    self._peers[peer.fileno()] = peer
                    self._poll.register(peer, select.POLLIN)
                elif descriptor in self._children:
                    self._reap(descriptor)
                elif (asked := self._asked(descriptor)) is not None:
                    return asked
            if not self._peers and not self._children:
                shutil.rmtree(self._folder)
                Path(f"{self._folder}.lock").unlink(missing_ok=True)
                raise SystemExit

    def _asked(self, descriptor: int) -> dict[str, Any] | None:
        """In a fork, what is asked; None in the server."""
        peer = self._peers[descriptor]
        try:
            data, given, _, _ = socket.recv_fds(peer, 1 << 20, STREAMS)
        except ConnectionError:
            data, given = b"", []
        if not data:
            self._poll.unregister(descriptor)
            self._peers.pop(descriptor).close()
            return None
        while not data.endswith(b"\n"):
            data += peer.recv(1 << 20)
        child = os.fork()
        if child == 0:
            for kept in (self._listening, *self._peers.values()):
                kept.close()
            for number, stream in enumerate(given):
                os.dup2(stream, number)
            os.closerange(STREAMS, os.sysconf("SC_OPEN_MAX"))
            return json.loads(data)
        for stream in given:
            os.close(stream)
        ends = os.pidfd_open(child)
        self._children[ends] = child, peer
        self._poll.register(ends, select.POLLIN)
        peer.sendall(f"{child}\n".encode())
        return None

    def _reap(self, ends: int) -> None:
        child, peer = self._children.pop(ends)
        self._poll.unregister(ends)
        os.close(ends)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(OSError):  # somebody may wait no more
            peer.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(asked: dict[str, Any]) -> None:
    """Take on the arguments, variables and folder of a command, as if it had been started so."""
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    tempfile.tempdir = None
    time.tzset()
    sys.argv = [sys.argv[0], *asked["args"]]
    sys.path[0] = asked["cwd"]
    sys.path[1:1] = [p for p in asked["env"].get("PYTHONPATH", "").split(os.pathsep) if p and p not in sys.path]
    importlib.invalidate_caches()
    sys.stdout = sys.__stdout__ = _opened(1, "strict", -1)
    sys.stderr = sys.__stderr__ = _opened(2, "backslashreplace", 1)


def _opened(number: int, errors: str, buffering: int) -> TextIO:
    """A standard stream, as a new interpreter opens it."""
    return open(number, "w", errors=errors, buffering=buffering, closefd=False)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    server = Server(Path(sys.argv[1]))
    if os.fork():  # whoever waits for this one knows that it listens
        os._exit(0)
    become(server.request())
    runpy.run_module("cuarl", run_name="__main__", alter_sys=True)
