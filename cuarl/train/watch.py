"""Processes of a run end with those that started them, and with those that they train with.

A process of several looks once a second for the one that started it, and for the ``cuarl train`` above that; these may
have been killed and could not say so. And it looks for word from its launcher that another process is gone. In either
case it sends itself a SIGTERM, so that it finishes the step in hand and saves; one that can't is ended after a while.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from cuarl.errors import PeerLost
from cuarl.run.owner import process_start
from cuarl.train.launch import LAUNCHED_HERE

START = "CUARL_LAUNCHED_BY"
"""Process id and start of the ``cuarl train`` that launched this process."""
INTERRUPTED = 130
LONGEST_END_S = 20.0
"""How long a process that has lost another one may take to save and end, before it is ended."""
_LOOK_S = 1.0
_WORD_S = 30.0
"""How long after a failed exchange the launcher's word is waited for, of what is gone."""


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
    while all(_lives(process) for process in watched) and _lost_peer() is None:
        time.sleep(_LOOK_S)
    lost = _lost_peer()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(patience_s if lost is None else min(patience_s, LONGEST_END_S))
    if lost is not None and _speaks():
        sys.stderr.write(f"error: {lost}\n")
        sys.stderr.flush()
    os._exit(INTERRUPTED if lost is None else PeerLost.exit_code)


def _lives(process: str) -> bool:
    pid = int(process.partition(":")[0])
    return named(pid) == process


# --- those that it trains with -------------------------------------------------------------------------------------


@contextmanager
def naming_lost_peers() -> Iterator[None]:
    """Around work that all processes do together: if it failed since one is gone, say which.

    Raises PeerLost in the first process of a node, and SystemExit in the others, which leave speaking to that.
    """
    try:
        yield
    except (RuntimeError, KeyboardInterrupt) as error:
        exchange = any(word in str(error) for word in ("gloo", "NCCL", "TCPStore")) or "Dist" in type(error).__name__
        lost = _lost_peer(_WORD_S if isinstance(error, RuntimeError) and exchange else 0.0)
        if lost is None:
            raise
        if not _speaks():
            raise SystemExit(PeerLost.exit_code) from error
        raise PeerLost(lost) from error


def _lost_peer(wait_s: float = 0.0) -> str | None:
    """What the launcher says is gone; None if nothing is, or if another launcher has started this process."""
    file = os.environ.get(LAUNCHED_HERE)
    until = time.monotonic() + wait_s
    while file is not None:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except OSError:
            if time.monotonic() > until:
                return None
        time.sleep(0.2)
    return None


def _speaks() -> bool:
    return os.environ.get("LOCAL_RANK") == "0"
