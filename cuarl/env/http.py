"""Requests to services that hold devices: one place that decides what may be sent again.

A request that changes something is sent again only where it certainly was not carried out: no connection came about, or
the service refused it with status 429. After anything else (a dropped connection, a status 5xx, a time-out) nobody
knows, and the episode fails rather than act twice. Requests that only read, or that may be repeated, are tried again
then, too.
"""

from __future__ import annotations

import random
import ssl
import uuid
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import httpx
import stamina

from cuarl import strict_json
from cuarl.errors import EnvError
from cuarl.safe_text import masked

SHOWN = 200
"""Characters of a service's answer that an error repeats."""
LONGEST_WAIT_S = 30.0
"""Most seconds between two attempts where the service does not say how many."""
LONGEST_ASKED_S = 120.0
"""A service that wants to be left alone for longer has no room: that is an error, and not waited for."""
KEPT_OPEN_S = 2.0
"""Idle connections are closed after this long: before a server does, so that no request runs into a closed one."""
LOST = (httpx.codes.BAD_GATEWAY, httpx.codes.GATEWAY_TIMEOUT)
"""By which a gateway says that no answer came from behind it."""
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_UNSENDABLE = (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)


class UnknownOutcome(EnvError):
    """A request of which nobody knows whether it was carried out."""


class LostReply(UnknownOutcome):
    """The request was sent, and then the connection broke, here or behind a gateway, or the time was up."""


@cache
def trusted() -> ssl.SSLContext:
    """The certificates that are trusted, read once for all services: reading them takes longer than most requests."""
    return httpx.create_ssl_context()


class Service:
    """One HTTP service. ``name`` is what errors call it; ``headers`` go with every request and are never shown.

    ``auth`` is for credentials that change while they are used, ``verify`` for a service with certificates of its own,
    ``hints`` say what to do about a refusal, by its status.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 60.0,
        attempts: int = 8,
        auth: httpx.Auth | None = None,
        verify: ssl.SSLContext | None = None,
        hints: Mapping[int, str] | None = None,
    ) -> None:
        self.name, self.base_url = name, base_url.rstrip("/")
        self._headers, self._timeout_s, self._attempts = dict(headers or {}), timeout_s, attempts
        self._auth, self._verify, self._hints = auth, verify, dict(hints or {})
        self._open: httpx.AsyncClient | None = None

    async def send(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
        accept: Collection[int] = (),
        timeout_s: float | None = None,
    ) -> httpx.Response:
        """The reply, of status 2xx or one in ``accept``. Raises EnvError (or UnknownOutcome), naming the request.

        ``repeatable`` says that carrying it out twice does no harm.
        """
        # the key tells a server, and our fakes, that two arrivals are one request
        sent = {**self._headers, **(headers or {}), "Idempotency-Key": uuid.uuid4().hex}
        where = masked(f"{method} {self.base_url}/{path}")
        reply: httpx.Response | None = None
        try:
            async for attempt in stamina.retry_context(
                on=lambda error: _again(error, repeatable),
                attempts=self._attempts,
                timeout=None,
                wait_max=LONGEST_WAIT_S,
            ):
                with attempt:
                    reply = await self._client.request(
                        method,
                        f"{self.base_url}/{path}",
                        json=json,
                        params=params,
                        headers=sent,
                        timeout=timeout_s or self._timeout_s,
                    )
                    if reply.status_code == httpx.codes.TOO_MANY_REQUESTS or reply.is_server_error:
                        raise _Refused(reply)
        except _Refused as refused:
            reply = refused.reply
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            what = masked(f"{type(error).__name__}: {error}".rstrip(": "))
            kind = EnvError if isinstance(error, (*_UNSENT, *_UNSENDABLE)) else LostReply
            raise kind(f"{self.name} did not answer: {what}", where=where) from error
        assert reply is not None, "the context tries at least once"
        if not reply.is_success and reply.status_code not in accept:
            what = f"{self.name} answered {reply.status_code}: {masked(reply.text[:SHOWN])}"
            kind = UnknownOutcome if reply.is_server_error else EnvError
            kind = LostReply if reply.status_code in LOST else kind
            raise kind(what, where=where, hint=self._hints.get(reply.status_code))
        return reply

    async def json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The same for a reply that is a JSON object. Raises EnvError for any other."""
        reply = await self.send(method, path, **options)
        try:
            body = strict_json.reply(reply.content)
        except strict_json.NotJson as error:
            body = error
        if not isinstance(body, dict):
            why = f" ({body})" if isinstance(body, strict_json.NotJson) else ""
            raise EnvError(
                f"{self.name} answered with something else than a JSON object{why}: {masked(reply.text[:SHOWN])}",
                where=masked(f"{method} {self.base_url}/{path}"),
            )
        return body

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        made, self._open = self._open, None
        if made is not None:
            await made.aclose()

    @property
    def _client(self) -> httpx.AsyncClient:
        if self._open is None:
            limits = httpx.Limits(max_connections=256, keepalive_expiry=KEPT_OPEN_S)
            self._open = httpx.AsyncClient(
                limits=limits, follow_redirects=False, verify=self._verify or trusted(), auth=self._auth
            )
        return self._open


class _Refused(Exception):
    def __init__(self, reply: httpx.Response) -> None:
        super().__init__(f"status {reply.status_code}")
        self.reply = reply


def _again(error: Exception, repeatable: bool) -> bool | float:
    """Whether to send a request again, and after how many seconds if the server says so."""
    if isinstance(error, _Refused):
        if error.reply.status_code != httpx.codes.TOO_MANY_REQUESTS:
            return repeatable
        try:
            asked = float(error.reply.headers.get("retry-after", ""))
        except ValueError:
            return True
        # the spread keeps those who were refused together from coming back together
        return asked <= LONGEST_ASKED_S and max(0.0, asked) * (1 + random.random() / 4)
    return isinstance(error, _UNSENT) or (repeatable and isinstance(error, httpx.TransportError))
