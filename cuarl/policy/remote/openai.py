"""The sampler for any server that speaks OpenAI's chat completions (vLLM, SGLang, llama.cpp, hosted APIs)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

import httpx

from cuarl.errors import ConfigError, SamplerError
from cuarl.policy.prompt import Prompt, Renderer
from cuarl.policy.remote import adapters
from cuarl.policy.remote.http import SHOWN, Endpoint, ServedModel, ServerLost, error_in, json_of
from cuarl.policy.remote.tokens import generate_body, read_generated, weight_versions
from cuarl.policy.remote.wire import (
    Encoding,
    EndpointFeatures,
    Outgoing,
    difference,
    read_reply,
    request_body,
    too_long,
    why_empty,
)
from cuarl.policy.sampler import PromptTooLong, SamplerCapabilities, SampleRequest
from cuarl.safe_text import loggable
from cuarl.suggest import did_you_mean
from cuarl.trajectory import Sampled

logger = logging.getLogger(__name__)


class OpenAISampler:
    """Sends each prompt as one chat completion, pictures as ``data:`` URIs.

    What is sent again, and how often, is ``Endpoint``'s. The bound on parallel requests is there, too, and nowhere
    else.

    ``features`` say what the server gives (``remote.probe`` finds out). ``api_key`` is sent as a bearer token and
    masked in all messages. ``transport`` replaces the network in tests. ``renderer`` renders each prompt here, too: a
    sample whose prompt ids differ from ours is not exact, because training would put other ids before its answer than
    sampling did. Where the server's prompts are ours (``features.ours``), pictures go out at the size that the model
    sees, and the ids that are never sampled here are ruled out there. ``http_client`` is a client that is lent, with
    its own limits, and left open. ``placeholders`` are ids that no answer may hold, those of pictures for instance: one
    ends an answer all the same, where there are ids; otherwise they are told by their names in the text.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        features: EndpointFeatures | None = None,
        encoding: Encoding = "png",
        name: str = "",
        version: int = 0,
        timeout_s: float = 300.0,
        attempts: int = 6,
        max_connections: int = 64,
        transport: httpx.AsyncBaseTransport | None = None,
        renderer: Renderer | None = None,
        placeholders: Collection[int] = (),
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self.endpoint = Endpoint(
            base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            attempts=attempts,
            max_connections=max_connections,
            transport=transport,
            http_client=http_client,
        )
        self.model, self.name, self.version = model, name or model, version
        self.features, self._encoding = features or EndpointFeatures(), encoding
        self.renderer, self._told = renderer, set[str]()
        self._placeholders = frozenset(placeholders)
        self._adapter_name: str | None = None

    @property
    def capabilities(self) -> SamplerCapabilities:
        """By the server's features. Log-probabilities count as given only where they hold at any temperature."""
        f = self.features
        return SamplerCapabilities(
            token_ids=f.token_ids,
            logprobs=f.logprobs and f.scaled_logprobs and not f.wrong_draws,
            images=self._encoding == "png",
            name=self.name,
        )

    async def models(self) -> list[ServedModel]:
        """What the server says it serves; empty if it doesn't say. Raises ``PrerequisiteError`` if nothing answers."""
        return await self.endpoint.models()

    async def check_model(self) -> None:
        """See that the server has the model. Raises ``ConfigError``, ``PrerequisiteError`` if nothing answers."""
        # not every server lists its models; the completion that follows will tell
        names = [one.id for one in await self.models()]
        if names and self.model not in names:
            raise ConfigError(
                f'the endpoint serves no model "{self.model}"{did_you_mean(self.model, names)}',
                where=self.endpoint.shown,
                hint=f"choose from: {', '.join(names[:5])}",
            )

    def use(self, model: str) -> None:
        """Sample from another of the server's models from now on."""
        self.model = model

    async def load_adapter(self, name: str, path: str) -> None:
        """Have the server load the adapter in ``path``, a folder that it can read, and sample from it under ``name``.

        That is vLLM's ``load_lora_adapter``, which has to be allowed there. The adapter used before is unloaded. Raises
        ``SamplerError`` if the server refuses.
        """
        await adapters.load(self.endpoint, name, path)
        before, self._adapter_name, self.model = self._adapter_name, name, name
        if before is not None and before != name:
            await self.unload_adapter(before)

    async def release_adapter(self) -> None:
        """Have the server forget the adapter that was loaded last, if any. Raises ``SamplerError``."""
        if self._adapter_name is not None:
            await self.unload_adapter(self._adapter_name)

    async def unload_adapter(self, name: str) -> None:
        """Have the server forget an adapter; one that it does not have is as good. Raises ``SamplerError``."""
        await adapters.unload(self.endpoint, name)
        if self._adapter_name == name:
            self._adapter_name = None

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Answer one prompt. The server tokenises it, so ``max_prompt_tokens`` can only be checked against its count.

        Raises ``SamplerError`` with the status and the beginning of the reply.
        """
        if self.features.tokens_in and self.renderer is not None and not request.params.stop:
            return await self._by_tokens(request, self.renderer)
        reply = await self.endpoint.complete(self.body(request, self.features))
        refused = too_long(reply.status_code, reply.text)
        if refused is not None:
            return refused
        self.raise_for(reply)
        body = json_of(reply)
        needed = (body.get("usage") or {}).get("prompt_tokens") or 0
        if request.max_prompt_tokens is not None and needed > request.max_prompt_tokens:
            return PromptTooLong(needed=needed, limit=request.max_prompt_tokens)
        return self._checked(self.read(body, request, self.features), request, why_empty(body))

    async def _by_tokens(self, request: SampleRequest, renderer: Renderer) -> Sampled | PromptTooLong:
        """The same with the prompt as the ids that are trained on."""
        prompt = renderer.render(request.messages, max_tokens=request.max_prompt_tokens)
        if isinstance(prompt, PromptTooLong):
            return prompt
        reply = await self.endpoint.generate(self.tokens_body(prompt, request, self.features))
        refused = too_long(reply.status_code, reply.text)
        if refused is not None:
            return refused
        self.raise_for(reply)
        body = json_of(reply)
        sampled = read_generated(body, prompt, request, self.features, renderer)
        if sampled.prompt_ids != prompt.ids:
            self._tell_once("prompt", difference(prompt.ids, sampled.prompt_ids))
        elif not sampled.exact and len(versions := weight_versions(body)) > 1:
            self._tell_once("weights", f"weights were exchanged while it sampled ({' → '.join(versions)}): not exact")
        sampled = sampled.model_copy(update={"policy": self.name, "policy_version": self.version})
        return sampled.before_any(self._placeholders, renderer.decode)

    def tokens_body(self, prompt: Prompt, request: SampleRequest, features: EndpointFeatures) -> dict[str, Any]:
        """What is sent for ``request`` to a server that takes ids."""
        assert self.renderer is not None, "it rendered the prompt"
        return generate_body(prompt, request, self.model, features, self._outgoing(features), self.renderer.special)

    def body(self, request: SampleRequest, features: EndpointFeatures) -> dict[str, Any]:
        """What is sent for ``request`` to a server of these features."""
        return request_body(request, self.model, features, self._outgoing(features))

    def _outgoing(self, features: EndpointFeatures) -> Outgoing:
        if self.renderer is None or not features.ours:
            return Outgoing(self._encoding)
        return Outgoing(self._encoding, self.renderer.special.suppressed, self.renderer.shown)

    def read(self, body: Any, request: SampleRequest, features: EndpointFeatures) -> Sampled:
        """The sample in a reply. Raises ``SamplerError``."""
        return read_reply(
            body, request, features, policy=self.name, version=self.version, told_by_ids=bool(self._placeholders)
        )

    def raise_for(self, reply: httpx.Response) -> None:
        """Raise ``SamplerError`` for a refusal."""
        refused = error_in(reply)
        if refused is None:
            return
        status, text = refused
        hint = "set the API key of this endpoint" if status in (401, 403) else None
        kind = ServerLost if status >= 500 or status == 404 else SamplerError
        raise kind(
            f"the endpoint answered {status}: {loggable(text[:SHOWN])}",
            where=loggable(f"{self.endpoint.url}, model {self.model}"),
            hint=hint,
        )

    def _checked(self, sampled: Sampled, request: SampleRequest, taken: str) -> Sampled:
        """``sampled``, not exact if the server's prompt is not the one that we would train on."""
        if taken:
            sampled = self._restored(sampled, taken)
        text = sampled.text
        decode = self.renderer.decode if self.renderer is not None else lambda kept: text if kept else ""
        sampled = sampled.before_any(self._placeholders, decode)
        if self.renderer is None or not sampled.exact:
            return sampled
        ours = self.renderer.render(request.messages)
        if isinstance(ours, PromptTooLong) or ours.ids == sampled.prompt_ids:
            return sampled
        self._tell_once("prompt", difference(ours.ids, sampled.prompt_ids))
        return sampled.model_copy(update={"exact": False})

    def _restored(self, sampled: Sampled, taken: str) -> Sampled:
        """An answer whose text a parser of the server's took out: read from its ids where they can be read here."""
        if self.renderer is not None and sampled.exact:
            return sampled.model_copy(update={"text": self.renderer.decode(sampled.token_ids)})
        self._tell_once("empty", f"answers come without text: {taken}")
        return sampled

    def _tell_once(self, what: str, words: str) -> None:
        if what not in self._told:
            self._told.add(what)
            logger.warning("%s: %s", self.endpoint.shown, words)

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture, where its processor is here."""
        return self.renderer.seen_size(width, height) if self.renderer is not None else None

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        await self.endpoint.close()
