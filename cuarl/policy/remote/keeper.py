"""Keeps a server for as long as its standard input is open: ``python -m cuarl.policy.remote.keeper COMMAND …``.

Whoever starts it holds the other end of a pipe. When that process is gone, killed included, the pipe ends, and with it
the server and all that the server has started. Ends with the server's code where that ends first.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

_LOOK_S = 0.5
_PATIENCE_S = 20.0
"""How long a server may take to end by itself."""


def keep(command: Sequence[str]) -> int:
    """Run ``command`` until standard input ends; its exit code, or 0 if it was ended here."""
    # it ends by the pipe alone: Ctrl-C and the end of a terminal reach who holds it, which may need the server still.
    # Not SIG_IGN, which the server would inherit
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], _LOOK_S)
        if readable and not os.read(sys.stdin.fileno(), 1024):
            _end(child)
            return 0
    _signal(child, signal.SIGKILL)
    return child.returncode


def _end(child: subprocess.Popen[bytes]) -> None:
    _signal(child, signal.SIGTERM)
    until = time.monotonic() + _PATIENCE_S
    while child.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    # what it had started may be left even where itself is gone
    _signal(child, signal.SIGKILL)
    child.wait()


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    raise SystemExit(keep(sys.argv[1:]))
