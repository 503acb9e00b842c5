"""Connections with an end: uvicorn bounds only how long one may lie idle between two requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 15.0
"""Longest time from the first byte of a request (or the connection's start) to the end of its headers."""
LINGER_S = 15.0
"""How long the rest of a body is still taken and thrown away once its request was answered, so that clients read the
answer."""

STALLED_S = 60.0
"""Longest time that a client may let an answer lie without taking a byte of it."""


class BoundedConnection(H11Protocol):
    """HTTP of one connection, closed where the client does not get on with its request."""

    _deadline: asyncio.TimerHandle | None = None
    _waits_for = ""
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first headers, from now on."""
        super().connection_made(transport)
        self._bound()

    def data_received(self, data: bytes) -> None:
        """Read on, and see what is still owed."""
        super().data_received(data)
        self._bound()

    def on_response_complete(self) -> None:
        """Wait for the rest of the request, if that was answered before its end."""
        super().on_response_complete()
        # between two requests uvicorn's own timer runs
        if self.conn.their_state is not h11.IDLE:
            self._bound()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._end_wait()
        self._end_stall()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """See to it that the client takes what is written."""
        super().pause_writing()
        self._expect_less(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It has taken most of it."""
        self._end_stall()
        super().resume_writing()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """As uvicorn's, but what is no handshake (a POST, a body, too many headers) is answered, not left waiting."""
        super().handle_websocket_upgrade(event)
        protocol: Any = self.transport.get_protocol()
        if not protocol.handshake_initiated:
            self.send_400_response("this is no opening handshake of a WebSocket")

    def send_400_response(self, msg: str) -> None:
        """As uvicorn's, but in JSON, and also where the answer has begun already: then it ends there."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"detail": msg})
            self.transport.write(
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
                f"content-length: {len(body)}\r\n\r\n{body}".encode()
            )
        self.transport.close()

    def _expect_less(self, than: int) -> None:
        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left < than:
                self._expect_less(left)
            else:  # to close would be to wait until all is taken
                self.transport.abort()

        self._stalled = asyncio.get_running_loop().call_later(STALLED_S, look)

    def _end_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        self._stalled = None

    def _bound(self) -> None:
        """Have a deadline while the client owes something. More of the same does not move it."""
        owed = self._owed()
        if owed == self._waits_for:
            return
        self._end_wait()
        if owed and not self.transport.is_closing():
            wait_s = HEADERS_S if owed == "headers" else LINGER_S
            self._deadline = asyncio.get_running_loop().call_later(wait_s, self.transport.close)
            self._waits_for = owed

    def _owed(self) -> str:
        if self.conn.their_state is h11.IDLE:
            return "headers"
        answered: Any = (h11.DONE, h11.MUST_CLOSE)
        return "rest" if self.conn.their_state is h11.SEND_BODY and self.conn.our_state in answered else ""

    def _end_wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline, self._waits_for = None, ""
