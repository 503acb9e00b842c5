"""An OpenEnv server: what it tells over HTTP, and sessions, each on a WebSocket of its own.

Source of the protocol: OpenEnv 0.10. One message is answered by one; nothing is ever sent twice, and a connection that
is lost ends its session, and so the episode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx

from cuarl import strict_json
from cuarl.env.http import Service
from cuarl.errors import ConfigError, EnvError, MissingExtra
from cuarl.safe_text import masked

CONNECT_S = 10.0
ATTEMPTS = 3
CLOSE_S = 5.0
LARGEST = 100 * 2**20
"""Bytes of the largest message: some servers send pictures as lists of numbers."""
SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
NO_SUCH_ROUTE = (404, 405, 501)


class Refused(Exception):
    """The server did not take a message: it was not valid there."""


def require_websockets() -> None:
    """Raise MissingExtra if the package that speaks WebSocket is not installed."""
    if find_spec("websockets") is None:
        raise MissingExtra("OpenEnv needs the package websockets", hint="pip install 'cuarl[openenv]'")


class Server:
    """An OpenEnv server at a URL. Raises ConfigError for what is none."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise ConfigError(f'"{url}" is no address of an OpenEnv server', where="env.url", hint="http://HOST:PORT")
        base = url.rstrip("/").partition("://")[2]
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        scheme = SCHEMES[parts.scheme]
        self.url = f"{scheme}://{base}/ws"
        self.local = _is_local(parts.hostname)
        self._http = Service(
            "the OpenEnv server", f"{scheme.replace('ws', 'http')}://{base}", self._headers, attempts=ATTEMPTS
        )

    async def schema(self) -> dict[str, Any]:
        """The JSON Schemas of its actions, observations and state. Raises EnvError."""
        return await self._http.json("GET", "schema", repeatable=True)

    async def tasks(self, split: str) -> list[Any] | None:
        """The tasks of a split, in the order of the list; None where the server has no lists. Raises EnvError."""
        named = await self._http.send("GET", "list_environments", repeatable=True, accept=NO_SUCH_ROUTE)
        names = _json(named) if named.is_success else []
        if not isinstance(names, list) or not names:
            return None
        reply = await self._http.send(
            "POST", f"{names[0]}/tasks", json={"split": split}, repeatable=True, accept=(400, 422, 500, *NO_SUCH_ROUTE)
        )
        body = _json(reply) if reply.is_success else None
        told = body.get("tasks") if isinstance(body, dict) else None
        return told if isinstance(told, list) else None

    async def close(self) -> None:
        """Close the connections for what is told over HTTP."""
        await self._http.close()

    async def session(self) -> Session:
        """A new session. Raises EnvError."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException

        # a proxy never leads to this machine
        proxy: dict[str, Any] = {"proxy": None} if self.local else {}
        try:
            socket = await connect(
                self.url,
                additional_headers=self._headers,
                open_timeout=CONNECT_S,
                close_timeout=CLOSE_S,
                max_size=LARGEST,
                **proxy,
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            raise EnvError(
                f"the OpenEnv server can't be reached: {error or 'no answer'}", where=masked(self.url)
            ) from error
        return Session(socket, masked(self.url))


def _json(reply: httpx.Response) -> Any:
    """What an answer says. Raises EnvError."""
    try:
        return strict_json.reply(reply.content)
    except strict_json.NotJson as error:
        raise EnvError(f"the OpenEnv server answered with something else than JSON: {error}") from error


class Session:
    """One environment on a server."""

    def __init__(self, socket: Any, where: str) -> None:
        self._socket, self._where = socket, where

    async def ask(self, kind: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The data that a message is answered with. Raises Refused, and EnvError for anything else amiss."""
        from websockets.exceptions import ConnectionClosed

        message = {"type": kind} if data is None else {"type": kind, "data": dict(data)}
        try:
            with _sent_or_closed():
                await self._socket.send(json.dumps(message))
            # a server that has no room says so, and closes before it was asked
            reply = strict_json.reply(await self._socket.recv())
        except ConnectionClosed as error:
            raise EnvError(f"the OpenEnv server has closed the session: {error}", where=self._where) from error
        except ValueError as error:
            raise EnvError("the OpenEnv server answered with something else than JSON", where=self._where) from error
        found = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(found, dict):
            raise EnvError(f"the OpenEnv server answered {str(reply)[:200]}", where=self._where)
        if reply.get("type") == "error":
            raise self._error(found)
        return found

    async def close(self) -> None:
        """End the session. One that is lost has ended."""
        from websockets.exceptions import ConnectionClosed

        with anyio.move_on_after(CLOSE_S, shield=True):
            try:
                await self._socket.send(json.dumps({"type": "close"}))
                await self._socket.close()
            except ConnectionClosed:
                return

    def _error(self, data: Mapping[str, Any]) -> Exception:
        code, message = str(data.get("code", "")), masked(str(data.get("message", "")))
        if code == "VALIDATION_ERROR":
            details = [
                f"{'.'.join(map(str, e.get('loc', ())))}: {e.get('msg', '')}" for e in data.get("errors", [])[:3]
            ]
            return Refused("; ".join([message, *details]))
        hint = "--openenv-sessions 1, or let the server have more" if code == "CAPACITY_REACHED" else None
        return EnvError(f"the OpenEnv server says {code}: {message}", where=self._where, hint=hint)


def _sent_or_closed() -> Any:
    """Goes on where a message could not be sent any more, since the reason may have been said already."""
    from contextlib import suppress

    from websockets.exceptions import ConnectionClosed

    return suppress(ConnectionClosed)


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
