"""How the local servers that stand in for services are run on loopback, and how servers end without leaking a connection."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from cuarl.errors import MissingExtra

if TYPE_CHECKING:
    from starlette.applications import Starlette


def run(make_app: Callable[[], Starlette], port: int, *exports: str) -> None:
    """Serve the application on 127.0.0.1. ``exports`` are printed first: the lines that tell a shell where it is.

    Without the packages of a server this leaves the program, saying what to install.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise SystemExit(
            str(MissingExtra("the server needs the extra web", hint='pip install "cuarl[web]"'))
        ) from error
    sys.stdout.write("".join(f"{line}\n" for line in exports))
    sys.stdout.flush()
    uvicorn.run(make_app(), host="127.0.0.1", port=port, log_level="warning")


_UNTIL_CONNECTED = 4
"""Rounds of the event loop from a connection's acceptance until its protocol has it, with one to spare."""


async def stop_accepting(server: asyncio.Server) -> None:
    """Take no further connections, and let those begin that were just accepted; ``server`` is to be closed next.

    Where it is closed between the two, asyncio of Python 3.11 loses the connection without closing it.
    """
    for sock in server.sockets:
        asyncio.get_running_loop().remove_reader(sock)
    for _ in range(_UNTIL_CONNECTED):
        await asyncio.sleep(0)
