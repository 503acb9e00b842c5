"""Listening: a service on a port, until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio

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


def bind(host: str, port: int, token: str | None) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises MissingSecret for an open address without a token."""
    from cuarl.serve.app import is_loopback

    if token is None and not is_loopback(host):
        raise MissingSecret(
            "whoever reaches this address could use the model, so a token is needed",
            where=f"--host {host}", hint="export CUARL_SERVE_TOKEN=…, or leave --host out",
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
    host, port = sock.getsockname()[:2]
    server, over = _server(service), anyio.Event()

    async def run() -> None:
        with anyio.CancelScope(shield=True):
            try:
                await server.serve(sockets=[sock])
            finally:
                over.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(_sweep, service)
        try:
            while not server.started and not over.is_set():
                await anyio.sleep(0.01)
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
        finally:
            server.should_exit = True
            with anyio.CancelScope(shield=True):
                await over.wait()
                await service.sessions.close()
                await service.pictures.close()
            tasks.cancel_scope.cancel()


def _server(service: Service) -> Any:
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves the process's signals to whoever runs the loop."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(
        uvicorn.Config(
            service.app(), log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5, ws="none"
        )
    )


async def _sweep(service: Service) -> None:
    while True:
        await anyio.sleep(_SWEEP_S)
        await service.sessions.sweep()
