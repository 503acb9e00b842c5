"""Signals: SIGINT, SIGTERM and SIGHUP all end a command in the same orderly way.

The first raises ``KeyboardInterrupt``, or, while ``run`` awaits something, has it cancelled there. Those that follow
find the command tearing down and writing how it ended, and must not break into that: they are heard by whoever listens
and change nothing else. Only somebody who still asks after ``_PATIENCE_S`` gets through again.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio

    from cuarl.train.shutdown import Shutdown

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_PATIENCE_S = 20.0
_OUTPUTS = (1, 2)
_UNHEARD_S = 1.0
"""How long a signal may go unheard that came just before a wait began, or to another thread than the one that waits."""


class _Received:
    """The signals of this process."""

    def __init__(self) -> None:
        self.listener: Callable[[int], object] | None = None
        self.held = self.late = self.heard = False
        self._first: float | None = None
        self._terminals: tuple[int, ...] = ()

    def install(self) -> None:
        """Take over all that nobody has told this process to ignore, as a shell does for jobs in the background."""
        self._terminals = tuple(fd for fd in _OUTPUTS if os.isatty(fd))
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self.take)

    def take(self, number: int, frame: FrameType | None) -> None:
        """A handler of signals."""
        if number != signal.SIGINT and number != signal.SIGTERM:
            self._leave_terminal()
        if self.held:
            self.late = True
            return
        first, self._first = self._first, self._first or time.monotonic()
        if self.listener is not None:
            self.heard = True
            self.listener(number)
        elif first is None or time.monotonic() - first > _PATIENCE_S:
            raise KeyboardInterrupt

    def _leave_terminal(self) -> None:
        """A terminal that has hung up refuses every word, which must not stop what is being saved."""
        for descriptor in self._terminals:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


_RECEIVED = _Received()
install = _RECEIVED.install


def reinstall() -> None:
    """Have the present handlers hear again what a native library has taken from them. In the main thread alone."""
    if threading.current_thread() is threading.main_thread():
        for number in ENDING:
            signal.signal(number, signal.getsignal(number))


def leave() -> None:
    """The command is over: a signal that comes now, while the interpreter is taken down, must not change the exit code.

    Ctrl-C stays, in case something hangs there.
    """
    for number in ENDING:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)


def cutting() -> bool:
    """Whether what ``run`` awaits is being cut short."""
    return _RECEIVED.heard


def hold() -> None:
    """From here on a run is over, and how it ended is written.

    A signal is heard only when ``run`` begins other work.
    """
    _RECEIVED.held = True


def end() -> bool:
    """End what ``run`` awaits, as a signal to this process would; False if it awaits nothing. For any thread."""
    listener = _RECEIVED.listener
    if listener is None:
        return False
    _RECEIVED.heard = True
    listener(signal.SIGINT)
    return True


@contextmanager
def _listening(listener: Callable[[int], object]) -> Iterator[None]:
    outer, _RECEIVED.listener = _RECEIVED.listener, listener
    try:
        yield
    finally:
        _RECEIVED.listener = outer


def wait_for(child: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that ends as this one is told to; it must not get the terminal's signals by itself."""
    waiting = threading.Thread(target=child.wait, daemon=True)
    with _listening(child.send_signal):
        waiting.start()
        while waiting.is_alive():
            waiting.join(_UNHEARD_S)
    return child.wait()


@contextmanager
def _waking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Inside, ``loop`` is woken by every signal of this process.

    Otherwise it goes on waiting where the signal came just before it began to, or to another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    woken, wakes = socket.socketpair()
    for end_ in (woken, wakes):
        end_.setblocking(False)
    outer = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    loop.add_reader(woken, woken.recv, 4096)
    try:
        yield
    finally:
        loop.remove_reader(woken)
        signal.set_wakeup_fd(outer)
        woken.close()
        wakes.close()


def run(work: Callable[[], Awaitable[T]], shutdown: Shutdown | None = None) -> T:
    """``anyio.run`` for work that a signal cancels; raises KeyboardInterrupt when it has been torn down.

    With ``shutdown`` the signal is a request that the work itself obeys, and which it may bound by blocks of its own.
    """
    import asyncio

    import anyio

    result: list[T] = []
    _RECEIVED.held = _RECEIVED.heard = False
    if _RECEIVED.late:
        raise KeyboardInterrupt

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        with _waking(loop):
            if shutdown is not None:
                shutdown.soon = loop.call_soon_threadsafe
                with _listening(lambda number: shutdown.request()), shutdown.cutting():
                    result.append(await work())
                return
            with anyio.CancelScope() as scope, _listening(lambda number: loop.call_soon_threadsafe(scope.cancel)):
                result.append(await work())
            if scope.cancel_called:  # work that was done just then has not obeyed
                result.clear()

    anyio.run(watched)
    if not result:
        raise KeyboardInterrupt
    return result[0]
