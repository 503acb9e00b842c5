"""Listening: an application on a port, until it is told to stop. Needs the extra web; importing this does not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from cuarl.errors import MissingExtra, MissingSecret, PrerequisiteError
from cuarl.web.rules import is_loopback

if TYPE_CHECKING:
    import uvicorn

MESSAGE_BYTES = 1 << 20
"""Largest message of a WebSocket."""
_UNTIL_CONNECTED = 4
"""Rounds of the event loop from a connection's acceptance until its protocol has it, with one to spare."""


def require_web() -> None:
    """Raise MissingExtra unless the packages of a server are there."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("serving needs the extra web", hint='pip install "cuarl[web]"') from error


def bind(
    host: str, port: int, token: str | None, *, what: str = "the model", variable: str = "CUARL_SERVE_TOKEN"
) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises MissingSecret for an open address without a token.

    ``what`` is served there, and ``variable`` sets the token.
    """
    if token is None and not is_loopback(host):
        raise MissingSecret(
            f"whoever reaches this address could use {what}, so a token is needed",
            where=f"--host {host}",
            hint=f"export {variable}=…, or leave --host out",
        )
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise PrerequisiteError(
            f"can't listen there: {error.strerror}", where=f"{host}:{port}", hint="--port 0 takes a free one"
        ) from error
    return made


@asynccontextmanager
async def serving(
    app: Any, sock: socket.socket, *, close: Callable[[], Awaitable[object]] | None = None, websockets: bool = False
) -> AsyncIterator[str]:
    """Have an ASGI application answer on ``sock`` while inside; gives the base URL. ``close`` is run at the end."""
    host, port = sock.getsockname()[:2]
    server, over = make_server(app, websockets=websockets), anyio.Event()

    async def run() -> None:
        with anyio.CancelScope(shield=True):
            try:
                await server.serve(sockets=[sock])
            finally:
                over.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            while not server.started and not over.is_set():
                await anyio.sleep(0.01)
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
        finally:
            server.should_exit = True
            with anyio.CancelScope(shield=True):
                await over.wait()
                if close is not None:
                    await close()


def make_server(app: Any, *, websockets: bool = False, **options: Any) -> uvicorn.Server:
    """A server that leaves the process's signals to whoever runs the loop, and bounds what clients may do.

    ``options`` are further ones of uvicorn's.
    """
    import uvicorn

    from cuarl.web.connection import BoundedConnection

    class Quiet(uvicorn.Server):
        """Leaves no connection open either."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for server in self.servers:
                await stop_accepting(server)
            await super().shutdown(sockets)

    return Quiet(
        uvicorn.Config(
            app,
            http=BoundedConnection,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=5,
            ws="websockets-sansio" if websockets else "none",
            ws_max_size=MESSAGE_BYTES,
            server_header=False,
            proxy_headers=False,
            **options,
        )
    )


async def stop_accepting(server: asyncio.Server) -> None:
    """Take no further connections, and let those begin that were just accepted; ``server`` is to be closed next.

    Where it is closed between the two, asyncio of Python 3.11 loses the connection without closing it.
    """
    for sock in server.sockets:
        asyncio.get_running_loop().remove_reader(sock)
    for _ in range(_UNTIL_CONNECTED):
        await asyncio.sleep(0)
