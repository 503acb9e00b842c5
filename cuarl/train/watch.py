"""Processes of a run end with those that started them, also if these were killed and could not say so.

A process of several looks once a second for the one that started it, and for the ``cuarl train`` above that. When
either is gone it sends itself a SIGTERM, so that it finishes the step in hand and saves; one that can't is ended after
a while.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, MutableMapping

from cuarl.run.owner import process_start

START = "CUARL_LAUNCHED_BY"
"""Process id and start of the ``cuarl train`` that launched this process."""
INTERRUPTED = 130
_LOOK_S = 1.0


def note_start(environment: MutableMapping[str, str]) -> None:
    """Note in the environment of processes to be who has started this one, unless that is known already."""
    environment.setdefault(START, named(os.getppid()))


def named(pid: int) -> str:
    """A process as it is noted."""
    return f"{pid}:{process_start(pid)}"


def watch_launcher(environment: Mapping[str, str], *, patience_s: float) -> None:
    """Begin to watch, in a thread, if this is one of several processes. ``patience_s``: how long ending may take."""
    if "LOCAL_RANK" not in environment:
        return
    watched = [named(os.getppid()), *([environment[START]] if START in environment else [])]
    threading.Thread(target=_watch, args=(watched, patience_s), name="cuarl-launcher", daemon=True).start()


def _watch(watched: list[str], patience_s: float) -> None:
    while all(_lives(process) for process in watched):
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(patience_s)
    os._exit(INTERRUPTED)


def _lives(process: str) -> bool:
    pid = int(process.partition(":")[0])
    return named(pid) == process
