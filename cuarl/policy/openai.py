"""The sampler for any server that speaks the OpenAI chat-completions protocol (vLLM, SGLang, llama.cpp, hosted APIs)."""

from __future__ import annotations

import difflib
import email.utils
import random
import time
from typing import Any

import httpx
import stamina

from cuarl.errors import ConfigError, PrerequisiteError, SamplerError
from cuarl.policy.openai_wire import Encoding, EndpointFeatures, read_reply, request_body, too_long
from cuarl.policy.sampler import Message, PromptTooLong, SamplerCapabilities, SampleRequest, SamplingParams, Text
from cuarl.safe_text import loggable, remember
from cuarl.trajectory import Sampled

_SHOWN = 300
_LONGEST_WAIT_S = 60.0


class OpenAISampler:
    """Sends each prompt as one chat completion, pictures as ``data:`` URIs.

    A request is sent again only if it was not served: the connection failed before it was sent, or the server refused
    it for the moment (429, 503; ``Retry-After`` is kept). Even if that were wrong, a completion has no side effects.
    The bound on parallel requests and the retries are here and nowhere else.

    ``features`` say what the server gives (``probe`` finds out). ``api_key`` is sent as a bearer token and masked in
    all messages. ``transport`` replaces the network in tests.
    """

    def __init__(
        self, base_url: str, model: str, *, api_key: str | None = None, features: EndpointFeatures | None = None,
        encoding: Encoding = "png", name: str = "", version: int = 0, timeout_s: float = 300.0, attempts: int = 6,
        max_connections: int = 64, transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f'"{base_url}" is no URL of an endpoint', hint="cuarl eval http://localhost:8000/v1")
        remember([api_key] if api_key else [])
        self.model, self.name, self.version = model, name or model, version
        self._url = base_url.rstrip("/")
        self._features, self._encoding, self._attempts = (features or EndpointFeatures(), encoding, attempts)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            # a slot in the connection pool may be long in coming: others' answers are being sampled
            timeout=httpx.Timeout(timeout_s, connect=10.0, pool=None),
            limits=httpx.Limits(max_connections=max_connections), transport=transport,
        )  # fmt: skip

    @property
    def capabilities(self) -> SamplerCapabilities:
        """By the server's features. Log-probabilities count as given only where they hold at any temperature."""
        f = self._features
        return SamplerCapabilities(
            token_ids=f.token_ids, logprobs=f.logprobs and f.scaled_logprobs, images=self._encoding == "png",
            name=self.name,
        )  # fmt: skip

    async def probe(self) -> EndpointFeatures:
        """Ask for one token, to see that the model is there and what the server gives; used from then on.

        Whether log-probabilities include the temperature can't be seen from outside, so that setting is kept. Raises
        ``PrerequisiteError`` if the server can't be reached or refuses, ``ConfigError`` for an unknown model.
        """
        await self._check_model()
        request = SampleRequest((Message("user", (Text("Say hi."),)),), SamplingParams(max_tokens=1), seed=0)
        for wanted in (
            EndpointFeatures(token_ids=True, logprobs=True), EndpointFeatures(logprobs=True), EndpointFeatures(),
        ):  # fmt: skip
            reply = await self._post(request_body(request, self.model, wanted, self._encoding))
            if reply.status_code not in (400, 422):
                break
        try:
            self._raise_for(reply)
            body = _json(reply)
            sampled = read_reply(body, request, wanted, policy=self.name, version=self.version)
        except SamplerError as error:
            raise PrerequisiteError(error.what, where=error.where or self._url, hint=error.hint) from error
        given = body["choices"][0].get("logprobs") is not None
        self._features = EndpointFeatures(
            token_ids=sampled.exact, logprobs=given, scaled_logprobs=given and self._features.scaled_logprobs
        )
        return self._features

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Answer one prompt. The server tokenises it, so ``max_prompt_tokens`` can only be checked against its count.

        Raises ``SamplerError`` with the status and the beginning of the reply.
        """
        reply = await self._post(request_body(request, self.model, self._features, self._encoding))
        refused = too_long(reply.status_code, reply.text)
        if refused is not None:
            return refused
        self._raise_for(reply)
        body = _json(reply)
        needed = (body.get("usage") or {}).get("prompt_tokens") or 0
        if request.max_prompt_tokens is not None and needed > request.max_prompt_tokens:
            return PromptTooLong(needed=needed, limit=request.max_prompt_tokens)
        return read_reply(body, request, self._features, policy=self.name, version=self.version)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        """One reply of the server, the last refusal if it keeps refusing. Raises ``SamplerError``."""
        reply: httpx.Response | None = None
        try:
            async for attempt in stamina.retry_context(on=_wait_before_retry, attempts=self._attempts, timeout=None):
                with attempt:
                    reply = await self._client.post(f"{self._url}/chat/completions", json=body)
                    if reply.status_code in (429, 503):
                        raise _Refused(reply)
        except _Refused as refused:
            return refused.reply
        except httpx.HTTPError as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            raise SamplerError(loggable(what), where=loggable(self._url), hint="cuarl doctor") from error
        assert reply is not None, "the context tries at least once"
        return reply

    def _raise_for(self, reply: httpx.Response) -> None:
        if reply.is_success:
            return
        hint = "set the API key of this endpoint" if reply.status_code in (401, 403) else None
        raise SamplerError(
            f"the endpoint answered {reply.status_code}: {loggable(reply.text[:_SHOWN])}",
            where=loggable(f"{self._url}, model {self.model}"), hint=hint,
        )  # fmt: skip

    async def _check_model(self) -> None:
        try:
            reply = await self._client.get(f"{self._url}/models")
        except httpx.HTTPError as error:
            raise PrerequisiteError(
                f"no endpoint answers: {type(error).__name__}", where=loggable(self._url), hint="start the server"
            ) from error
        # not every server lists its models; the completion that follows will tell
        listed = _json(reply).get("data") if reply.is_success else None
        names = [str(m.get("id")) for m in listed or () if isinstance(m, dict)]
        if names and self.model not in names:
            close = difflib.get_close_matches(self.model, names, n=1)
            guess = f' (did you mean "{close[0]}"?)' if close else ""
            raise ConfigError(
                f'the endpoint serves no model "{self.model}"{guess}',
                where=loggable(self._url), hint=f"choose from: {', '.join(names[:5])}",
            )  # fmt: skip


class _Refused(Exception):
    """The server will not serve a request for the moment."""

    def __init__(self, reply: httpx.Response) -> None:
        super().__init__(f"status {reply.status_code}")
        self.reply = reply


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


def _json(reply: httpx.Response) -> dict[str, Any]:
    try:
        body = reply.json()
    except ValueError as error:
        raise SamplerError(f"the reply is no JSON: {loggable(reply.text[:_SHOWN])}") from error
    if not isinstance(body, dict):
        raise SamplerError("the reply is no JSON object")
    return body
