"""Requests to a chat-completions server: one place that decides what is sent again."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import httpx
import stamina

from cuarl import strict_json
from cuarl.errors import ConfigError, PrerequisiteError, SamplerError
from cuarl.safe_text import loggable, remember

SHOWN = 300
"""Characters of a reply that an error repeats."""
BUSY = (429, 503, 529)
"""Statuses by which a server refuses a request for the moment (529: overloaded, as some hosts say it)."""
KEPT_OPEN_S = 2.0
"""Idle connections are closed after so long: before a server does (uvicorn: 5 s), or requests meet a closed one."""
_LONGEST_WAIT_S = 60.0


class ServerLost(SamplerError):
    """The server gives no answer, fails, or no longer has what is asked for: another one may have it."""


class ServedModel(NamedTuple):
    """One entry of ``/models``."""

    id: str
    parent: str | None
    """The model that it is an adapter of; None for a model itself."""


class Endpoint:
    """A server at ``base_url``, below which ``/chat/completions`` is.

    A request is sent again only if it was not served: the connection failed before it was sent, or the server refused
    it for the moment (``BUSY``; ``Retry-After`` is kept). Even if that were wrong, a completion has no side effects.
    ``http_client`` is a client that is lent, with its own limits, and left open; ``transport`` replaces the network in
    tests.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 300.0,
        attempts: int = 6,
        max_connections: int = 64,
        transport: httpx.AsyncBaseTransport | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f'"{base_url}" is no URL of an endpoint', hint="cuarl eval http://localhost:8000/v1")
        remember([api_key] if api_key else [])
        self.url, self._attempts = base_url.rstrip("/"), attempts
        self._make_client = partial(
            httpx.AsyncClient,
            # a slot in the connection pool may be long in coming: others' answers are being sampled
            timeout=httpx.Timeout(timeout_s, connect=10.0, pool=None),
            limits=httpx.Limits(max_connections=max_connections, keepalive_expiry=KEPT_OPEN_S),
            transport=transport,
        )
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._lent = http_client
        self._open: httpx.AsyncClient | None = None

    @property
    def shown(self) -> str:
        """Its address as messages may say it."""
        return loggable(self.url)

    @property
    def _client(self) -> httpx.AsyncClient:
        if self._lent is not None:
            return self._lent
        if self._open is None:
            self._open = self._make_client()
        return self._open

    async def complete(self, body: Mapping[str, Any]) -> httpx.Response:
        """One reply of the server, the last refusal if it keeps refusing. Raises ``ServerLost``."""
        return await self._completed("chat/completions", body)

    async def _completed(self, path: str, body: Mapping[str, Any], base: str | None = None) -> httpx.Response:
        try:
            return await self._asked("POST", path, body, base)
        except httpx.HTTPError as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            raise ServerLost(
                f"{self.shown} gave no answer: {loggable(what)}", where=self.shown, hint="cuarl doctor"
            ) from error

    async def generate(self, body: Mapping[str, Any]) -> httpx.Response:
        """The same for a prompt of ids (``tokens``); the route stands beside ``/v1``. Raises ``SamplerError``."""
        return await self._completed("inference/v1/generate", body, self.url.removesuffix("/v1"))

    async def models(self) -> list[ServedModel]:
        """What the server says it serves; empty if it doesn't say. Raises ``PrerequisiteError`` if nothing answers."""
        try:
            reply = await self._asked("GET", "models")
        except httpx.HTTPError as error:
            raise PrerequisiteError(
                f"no endpoint answers: {type(error).__name__}", where=self.shown, hint="start the server"
            ) from error
        listed = json_of(reply).get("data") if reply.is_success else None
        return [ServedModel(str(m.get("id")), m.get("parent") or None) for m in listed or () if isinstance(m, dict)]

    async def adapter(self, verb: str, body: Mapping[str, str]) -> httpx.Response:
        """``load`` or ``unload`` a LoRA adapter, as vLLM does it. Raises ``SamplerError`` if nothing answers."""
        try:
            return await self._asked("POST", f"{verb}_lora_adapter", body)
        except httpx.HTTPError as error:
            raise ServerLost(f"the adapter can't be {verb}ed: {type(error).__name__}", where=self.shown) from error

    async def control(self, path: str) -> None:
        """Have vLLM do what a route beside ``/v1`` stands for. Raises ``SamplerError``."""
        try:
            reply = await self._asked("POST", path, None, self.url.removesuffix("/v1"))
        except httpx.HTTPError as error:
            raise SamplerError(f"{path} was not answered: {type(error).__name__}", where=self.shown) from error
        if not reply.is_success:
            what = f"the server does not {path.partition('?')[0]} ({reply.status_code}): {loggable(reply.text[:SHOWN])}"
            raise SamplerError(what, where=self.shown, hint="start it with --enable-sleep-mode, VLLM_SERVER_DEV_MODE=1")

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        made, self._open = self._open, None
        if made is not None:
            await made.aclose()

    async def _asked(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, base: str | None = None
    ) -> httpx.Response:
        reply: httpx.Response | None = None
        url = f"{base or self.url}/{path}"
        try:
            async for attempt in stamina.retry_context(on=_wait_before_retry, attempts=self._attempts, timeout=None):
                with attempt:
                    reply = await self._client.request(method, url, json=body, headers=self._headers)
                    if is_busy(reply):
                        raise _Refused(reply)
        except _Refused as refused:
            return refused.reply
        assert reply is not None, "the context tries at least once"
        return reply


class _Refused(Exception):
    """The server will not serve a request for the moment."""

    def __init__(self, reply: httpx.Response) -> None:
        super().__init__(f"status {reply.status_code}")
        self.reply = reply


def json_of(reply: httpx.Response) -> dict[str, Any]:
    """The JSON object in a reply. Raises ``SamplerError``."""
    try:
        body = strict_json.reply(reply.content)
    except ValueError as error:
        raise SamplerError(f"the reply is no JSON ({error}): {loggable(reply.text[:SHOWN])}") from error
    if not isinstance(body, dict):
        raise SamplerError("the reply is no JSON object")
    return body


def error_in(reply: httpx.Response) -> tuple[int, str] | None:
    """Status and words of a refusal: the reply's, or, from brokers that say 200 to everything, its body's."""
    if not reply.is_success:
        return reply.status_code, reply.text
    if not reply.content.lstrip().startswith(b"{") or b'"error"' not in reply.content[:SHOWN]:
        return None
    try:
        found = strict_json.reply(reply.content)
    except ValueError:
        return None
    error = found.get("error")
    if not error or found.get("choices"):
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return int(str(code)) if str(code).isdigit() else 500, reply.text


def is_busy(reply: httpx.Response) -> bool:
    """Whether the server refuses for the moment."""
    refused = error_in(reply)
    return refused is not None and refused[0] in BUSY


def _wait_before_retry(error: Exception) -> bool | float:
    """Whether to send a request again, and after how many seconds if the server says so."""
    if isinstance(error, _Refused):
        asked = _retry_after_s(error.reply.headers.get("retry-after"))
        # the spread keeps those who were refused together from coming back together
        return True if asked is None else min(asked, _LONGEST_WAIT_S) * (1 + random.random() / 4)
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _retry_after_s(value: str | None) -> float | None:
    """Seconds of a ``Retry-After`` header: a number, or a date (RFC 9110, section 10.2.3)."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
