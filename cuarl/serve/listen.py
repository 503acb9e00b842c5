"""A policy's service on a port, with what goes on beside it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from cuarl.web.listen import serving

if TYPE_CHECKING:
    from cuarl.serve.app import Service

_SWEEP_S = 30.0


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


async def _sweep(service: Service) -> None:
    while True:
        await anyio.sleep(_SWEEP_S)
        await service.sessions.sweep()
