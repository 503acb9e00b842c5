"""Listening: a service on a port, until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from cuarl.env.local_server import stop_accepting
from cuarl.errors import MissingExtra, MissingSecret, PrerequisiteError

if TYPE_CHECKING:
    from cuarl.serve.app import Service

_SWEEP_S = 30.0


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
    from cuarl.serve.app import is_loopback

    if token is None and not is_loopback(host):
        raise MissingSecret(
            f"whoever reaches this address could use {what}, so a token is needed",
            where=f"--host {host}", hint=f"export {variable}=…, or leave --host out",
        )  # fmt: skip
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
async def listening(service: Service, sock: socket.socket) -> AsyncIterator[str]:
    """Serve on ``sock`` while inside; gives the base URL, without ``/v1``. Sessions still open then end unscored."""

    async def close() -> None:
        await service.sessions.close()
        await service.pictures.close()

    async with serving(service.app(), sock, close=close) as url, anyio.create_task_group() as tasks:
        tasks.start_soon(_sweep, service)
        yield url
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving(
    app: Any, sock: socket.socket, *, close: Callable[[], Awaitable[object]] | None = None, websockets: bool = False
) -> AsyncIterator[str]:
    """Have an ASGI application answer on ``sock`` while inside; gives the base URL. ``close`` is run at the end."""
    host, port = sock.getsockname()[:2]
    server, over = _server(app, websockets), anyio.Event()

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


def _server(app: Any, websockets: bool) -> Any:
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves the process's signals to whoever runs the loop, and no connection open."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for server in self.servers:
                await stop_accepting(server)
            await super().shutdown(sockets)

    return Quiet(
        uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5,
            ws="websockets-sansio" if websockets else "none",
        )
    )  # fmt: skip


async def _sweep(service: Service) -> None:
    while True:
        await anyio.sleep(_SWEEP_S)
        await service.sessions.sweep()
