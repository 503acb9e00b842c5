"""A process as the owner of something that may outlive it: told apart from others that are given the same number."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Literal

from cuarl.types import Record

PROC = Path("/proc")
State = Literal["live", "orphaned", "unknown"]
"""Whether the owner lives: ``unknown`` is one of another machine or container, which can't be seen from here."""


class Owner(Record):
    """The process that uses something."""

    host: str
    boot: str
    """Changes with every start of the machine; empty where the system doesn't tell."""
    namespace: str
    """Which process ids are meant (containers have their own); empty where the system doesn't tell."""
    pid: int
    started: str
    """When the process started, in the system's own words: with ``pid`` it means one process and no other."""

    @classmethod
    def me(cls) -> Owner:
        """This process."""
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot=boot_id(),
            namespace=pid_namespace(),
            pid=pid,
            started=process_start(pid) or "",
        )

    def state(self) -> State:
        """Whether it lives, as far as can be told from here."""
        here = Owner.me()
        if self.host != here.host:
            return "unknown"
        if self.boot != here.boot:  # this machine has been started anew since
            return "orphaned"
        if self.namespace != here.namespace:
            return "unknown"
        started = process_start(self.pid)
        if started is not None and not self.started:  # it may be the owner, or another that was given its number
            return "unknown"
        return "live" if started == self.started else "orphaned"


def process_start(pid: int) -> str | None:
    """When a process started, comparable for equality only; None if there is no such process, or only its remains."""
    if PROC.joinpath("self", "stat").exists():
        try:
            # the name of the program, in brackets, may hold blanks and brackets
            fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    return _start_by_psutil(pid)


def boot_id() -> str:
    """A name of the time since the machine was started; empty where the system doesn't tell."""
    return _read(PROC / "sys/kernel/random/boot_id")


def pid_namespace() -> str:
    """A name of the set of process ids that are seen from here; empty where the system doesn't tell."""
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _start_by_psutil(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except psutil.Error:
        return None
