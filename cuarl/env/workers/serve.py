"""The worker's side: answer requests from standard input until it ends.

Whatever the environment prints goes to standard error, since standard output belongs to the replies.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

from cuarl.env.workers.frames import Call, Refused, pack


def serve(call: Call) -> None:
    """Answer each request by ``call``.

    A ``Refused`` is told to the owner; any other error ends the process, traceback said.
    """
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    _print_lines_at_once()
    for line in requests:
        try:
            reply, picture = call(json.loads(line))
        except Refused as error:
            reply, picture = {"refused": str(error)}, b""
        replies.write(pack(reply, picture))
        replies.flush()
    call({"call": "close"})


def _print_lines_at_once() -> None:
    """What was printed before an error stands before its traceback, which is the last that the owner reads."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
