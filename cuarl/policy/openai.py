"""The sampler for any server that speaks the OpenAI chat-completions protocol (vLLM, SGLang, llama.cpp, hosted APIs)."""

from __future__ import annotations

import difflib
import email.utils
import logging
import random
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Protocol

import httpx
import stamina

from cuarl.errors import ConfigError, PrerequisiteError, SamplerError
from cuarl.policy.openai_wire import (
    Encoding,
    EndpointFeatures,
    answer_logprobs,
    difference,
    read_reply,
    request_body,
    too_long,
)
from cuarl.policy.sampler import Message, PromptTooLong, SamplerCapabilities, SampleRequest, SamplingParams, Text
from cuarl.safe_text import loggable, remember
from cuarl.trajectory import Sampled

_SHOWN = 300
_LONGEST_WAIT_S = 60.0
_PROBED = 8
_ALMOST_GREEDY = 0.01
"""Temperature at which the likeliest token is all but certain."""
_CLEARLY = 0.05
"""Nats over the probed tokens that a greedy answer must lack of certainty, for the probe to tell anything."""
_ALLOW_ADAPTERS = "vLLM: VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora; cuarl serve: --adapters FOLDER"

logger = logging.getLogger(__name__)


class PromptRenderer(Protocol):
    """What is needed of ``render.Renderer``, without its imports."""

    images: Any

    def render(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Any:
        """Messages to a ``Prompt``."""
        ...


class OpenAISampler:
    """Sends each prompt as one chat completion, pictures as ``data:`` URIs.

    A request is sent again only if it was not served: the connection failed before it was sent, or the server refused
    it for the moment (429, 503; ``Retry-After`` is kept). Even if that were wrong, a completion has no side effects.
    The bound on parallel requests and the retries are here and nowhere else.

    ``features`` say what the server gives (``probe`` finds out). ``api_key`` is sent as a bearer token and masked in
    all messages. ``transport`` replaces the network in tests. ``renderer`` renders each prompt here, too: a sample whose
    prompt ids differ from ours is not exact, because training would put other ids before its answer than sampling did.
    ``http_client`` is a client that is lent, with its own limits, and left open. ``placeholders`` are ids of pictures: an answer that holds one is told by them, since its text may leave them out.
    """

    def __init__(
        self, base_url: str, model: str, *, api_key: str | None = None, features: EndpointFeatures | None = None,
        encoding: Encoding = "png", name: str = "", version: int = 0, timeout_s: float = 300.0, attempts: int = 6,
        max_connections: int = 64, transport: httpx.AsyncBaseTransport | None = None, renderer: PromptRenderer | None = None,
        placeholders: Collection[int] = (), http_client: httpx.AsyncClient | None = None,
    ) -> None:  # fmt: skip
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f'"{base_url}" is no URL of an endpoint', hint="cuarl eval http://localhost:8000/v1")
        remember([api_key] if api_key else [])
        self.model, self.name, self.version = model, name or model, version
        self._url = base_url.rstrip("/")
        self._features, self._encoding, self._attempts = (features or EndpointFeatures(), encoding, attempts)
        self._renderer, self._told = renderer, False
        self._placeholders = frozenset(placeholders)
        self._adapter_name: str | None = None
        self._make_client = partial(
            httpx.AsyncClient,
            # a slot in the connection pool may be long in coming: others' answers are being sampled
            timeout=httpx.Timeout(timeout_s, connect=10.0, pool=None),
            limits=httpx.Limits(max_connections=max_connections), transport=transport,
        )  # fmt: skip
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._lent = http_client
        self._open: httpx.AsyncClient | None = None

    @property
    def _client(self) -> httpx.AsyncClient:
        if self._lent is not None:
            return self._lent
        if self._open is None:
            self._open = self._make_client()
        return self._open

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

        Whether log-probabilities include the temperature is seen by asking for the same likeliest tokens greedily and
        almost greedily: with the temperature in them, the latter are close to 0. Raises ``PrerequisiteError`` if the
        server can't be reached or refuses, ``ConfigError`` for an unknown model.
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
        scaled = given and (self._features.scaled_logprobs or await self._scales())
        self._features = EndpointFeatures(token_ids=sampled.exact, logprobs=given, scaled_logprobs=scaled)
        return self._features

    async def _scales(self) -> bool:
        """Whether log-probabilities are of the distribution after the temperature; False if it can't be told."""
        found = []
        for temperature in (0.0, _ALMOST_GREEDY):
            params = SamplingParams(temperature=temperature, max_tokens=_PROBED)
            request = SampleRequest((Message("user", (Text("Say hi."),)),), params, seed=0)
            reply = await self._post(request_body(request, self.model, EndpointFeatures(logprobs=True), self._encoding))
            if not reply.is_success:
                return False
            found.append(answer_logprobs(_json(reply)) or ())
        greedy, almost = found
        return len(greedy) == len(almost) > 0 and sum(greedy) < -_CLEARLY and sum(almost) > -_CLEARLY / 10

    async def load_adapter(self, name: str, path: str) -> None:
        """Have the server load the adapter in ``path``, a folder that it can read, and sample from it under ``name``.

        That is vLLM's ``load_lora_adapter``, which has to be allowed there. The adapter used before is unloaded. Raises
        ``SamplerError`` if the server refuses.
        """
        await self._adapter("load", {"lora_name": name, "lora_path": path})
        before, self._adapter_name, self.model = self._adapter_name, name, name
        if before is not None and before != name:
            await self._adapter("unload", {"lora_name": before}, missing_ok=True)

    async def _adapter(self, verb: str, body: dict[str, str], *, missing_ok: bool = False) -> None:
        try:
            reply = await self._client.post(f"{self._url}/{verb}_lora_adapter", json=body, headers=self._headers)
        except httpx.HTTPError as error:
            raise SamplerError(
                f"the adapter can't be {verb}ed: {type(error).__name__}", where=loggable(self._url)
            ) from error
        if reply.is_success or (missing_ok and reply.status_code in (400, 404)):
            return
        raise SamplerError(
            f"the server does not {verb} the adapter ({reply.status_code}): {loggable(reply.text[:_SHOWN])}",
            where=loggable(f"{self._url}/{verb}_lora_adapter"), hint=_ALLOW_ADAPTERS,
        )  # fmt: skip

    def use(self, model: str) -> None:
        """Sample from another of the server's models from now on."""
        self.model = model

    async def models(self) -> list[str]:
        """What the server says it serves; empty if it doesn't say. Raises ``PrerequisiteError`` if nothing answers."""
        try:
            reply = await self._client.get(f"{self._url}/models", headers=self._headers)
        except httpx.HTTPError as error:
            raise PrerequisiteError(
                f"no endpoint answers: {type(error).__name__}", where=loggable(self._url), hint="start the server"
            ) from error
        listed = _json(reply).get("data") if reply.is_success else None
        return [str(m.get("id")) for m in listed or () if isinstance(m, dict)]

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
        sampled = read_reply(body, request, self._features, policy=self.name, version=self.version)
        return self._checked(sampled, request)

    def _checked(self, sampled: Sampled, request: SampleRequest) -> Sampled:
        """``sampled``, not exact if the server's prompt is not the one that we would train on."""
        if not self._placeholders.isdisjoint(sampled.token_ids):
            sampled = sampled.model_copy(update={"stop": "special_token"})
        if self._renderer is None or not sampled.exact:
            return sampled
        ours = self._renderer.render(request.messages)
        if isinstance(ours, PromptTooLong) or ours.ids == sampled.prompt_ids:
            return sampled
        if not self._told:
            self._told = True
            logger.warning("%s: %s", loggable(self._url), difference(ours.ids, sampled.prompt_ids))
        return sampled.model_copy(update={"exact": False})

    def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture, where its processor is here."""
        if self._renderer is None:
            return None
        seen: tuple[int, int] = self._renderer.images.resized(width, height)
        return seen

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        made, self._open = self._open, None
        if made is not None:
            await made.aclose()

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        """One reply of the server, the last refusal if it keeps refusing. Raises ``SamplerError``."""
        reply: httpx.Response | None = None
        try:
            async for attempt in stamina.retry_context(on=_wait_before_retry, attempts=self._attempts, timeout=None):
                with attempt:
                    reply = await self._client.post(f"{self._url}/chat/completions", json=body, headers=self._headers)
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
        # not every server lists its models; the completion that follows will tell
        names = await self.models()
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
