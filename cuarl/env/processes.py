"""Processes that a backend started: found again, and ended.

Whatever a backend starts carries a mark in its environment (``MARK``), which children inherit, those that leave their
process group included. By the mark all of them are found again, also by another process after a crash. Finding by mark
needs ``/proc`` (Linux).
"""

from __future__ import annotations

import os
import signal

import anyio

from cuarl.errors import EnvError
from cuarl.run.owner import PROC
from cuarl.settings import SECRETS

MARK = "CUARL_SESSION"
"""Environment variable that says to which session a process belongs."""


def without_secrets() -> dict[str, str]:
    """What somebody else's code is to see of this process's environment: none of our credentials."""
    hidden = {*SECRETS, *(f"{name}_FILE" for name in SECRETS)}
    return {name: value for name, value in os.environ.items() if name not in hidden}


def marked(mark: str) -> list[int]:
    """Process ids of all that carry the mark (this process never counts)."""
    wanted = f"{MARK}={mark}".encode()
    if not mark.strip():  # whoever has the variable, but empty, belongs to no session
        return []
    return [pid for pid in _pids() if pid != os.getpid() and wanted in _environment(pid)]


async def end_marked(mark: str, *, grace_s: float = 1.0) -> list[int]:
    """End all processes with the mark: ask, wait up to ``grace_s``, then kill. Gives those that are still there."""
    end = anyio.current_time() + grace_s
    _signal(marked(mark), signal.SIGTERM)
    while left := marked(mark):
        if anyio.current_time() >= end:
            break
        await anyio.sleep(0.02)
    # a process that is just being born may be missed by one look
    for _ in range(100):
        if not left:
            return []
        _signal(left, signal.SIGKILL)
        await anyio.sleep(0.02)
        left = marked(mark)
    return left


async def end_session(mark: str, what: str) -> None:
    """End all processes with the mark, as a lease of ``what`` needs it. Raises EnvError if some of them won't go."""
    left = await end_marked(mark)
    if left:
        raise EnvError(f"processes of {what} {mark} can't be ended: {', '.join(map(str, left))}")


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 (ten times as fast)
    except OSError:
        return []


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or somebody else's
        return []
