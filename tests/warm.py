"""Commands in processes of their own that have nothing to import: forks of one process that has imported it.

Four of the five seconds of processor time that a short ``cuarl train`` takes are imports. What only a new interpreter
shows (what a command loads and how soon, that it needs nothing that another has imported) is tested by ``subprocess``.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import filelock

PIPE, DEVNULL, STDOUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT
ROOT = Path(__file__).parents[1]
# as they were before any test changed them
ENVIRONMENT, TEMPORARY = dict(os.environ), tempfile.gettempdir()
_present: list[socket.socket] = []
"""The connection that says that this process may ask for more commands."""


class Command:
    """``python -m cuarl ARGS``, running. As ``subprocess.Popen`` with ``text=True``, as far as tests need it."""

    def __init__(
        self,
        *args: str,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        stdout: int | io.IOBase | None = None,
        stderr: int | io.IOBase | None = None,
    ) -> None:
        self.args, self.returncode = args, None
        asked = {"args": args, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
        with contextlib.ExitStack() as given, Path(os.devnull).open("rb") as nothing:
            self.stdout, out = _stream(stdout, 1, given)
            self.stderr, err = (None, out) if stderr == STDOUT else _stream(stderr, 2, given)
            self._server = _connected()
            socket.send_fds(self._server, [f"{json.dumps(asked)}\n".encode()], [nothing.fileno(), out, err])
        self._said = self._server.makefile("r")
        self.pid = int(self._said.readline())

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._server], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(self._said.readline())
            self._said.close()
            self._server.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        """What is left in its pipes, when it is over. Raises TimeoutExpired."""
        ends = None if timeout is None else time.monotonic() + timeout
        said: list[str | None] = [None, None]

        def read(number: int, stream: io.TextIOWrapper) -> None:
            with stream:
                said[number] = stream.read()

        pipes = [(number, stream) for number, stream in enumerate((self.stdout, self.stderr)) if stream]
        readers = [threading.Thread(target=read, args=pipe, daemon=True) for pipe in pipes if not pipe[1].closed]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if ends is None else max(0.0, ends - time.monotonic()))
        self.wait(None if ends is None else max(0.0, ends - time.monotonic()))
        return said[0], said[1]

    def send_signal(self, number: int) -> None:
        """Nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """End it as another program would."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def run(
    *args: str, cwd: Path | str | None = None, env: Mapping[str, str] | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """The command when it is over, and what it has said. Raises TimeoutExpired."""
    command = Command(*args, cwd=cwd, env=env, stdout=PIPE, stderr=PIPE)
    try:
        out, err = command.communicate(timeout)
    finally:
        command.kill()
    return subprocess.CompletedProcess(args, command.wait(), out, err)


def _stream(
    where: int | io.IOBase | None, number: int, given: contextlib.ExitStack
) -> tuple[io.TextIOWrapper | None, int]:
    """The end that is read here, where it is a pipe, and the one that the command writes to."""
    if where == PIPE:
        reading, writing = os.pipe()
        given.callback(os.close, writing)
        return open(reading), writing  # noqa: PTH123
    if where == DEVNULL:
        return None, given.enter_context(Path(os.devnull).open("wb")).fileno()
    return None, number if where is None else where if isinstance(where, int) else where.fileno()


def _connected() -> socket.socket:
    """To the process that forks, one for all workers of a session: begun by the first, it goes with the last."""
    folder = Path(TEMPORARY) / f"cuarl-warm-{os.environ.get('PYTEST_XDIST_TESTRUNUID', str(os.getpid()))[:12]}"
    if not _present:
        with filelock.FileLock(f"{folder}.lock"):
            if not (folder / "socket").exists():
                _start(folder)
            _present.append(_connection(folder))
            atexit.register(_present[0].close)
    return _connection(folder)


def _connection(folder: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(str(folder / "socket"))
    return made


def _start(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "said").open("w") as said:
        words = [sys.executable, "-m", "tests.warm_server", str(folder)]
        # returns when it listens, and goes on in the background
        done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, stdin=DEVNULL, stdout=said, stderr=said, check=False)
    assert done.returncode == 0, (folder / "said").read_text()
