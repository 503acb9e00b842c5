"""Sampling through Tinker's SDK, and the conversions that training shares: prompts as chunks, errors as ours.

A prompt is a row of chunks: token ids, and pictures as PNG with the number of tokens that we expect of each, so that a
service that sees a picture in another size fails instead of shifting every position. Each picture is encoded once,
since the service compares pictures by their bytes. The log-probabilities that come with a sample are those of
temperature 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from cuarl.errors import CuarlError, MissingExtra, PrerequisiteError, SamplerError
from cuarl.policy.prompt import Renderer
from cuarl.policy.sampler import PromptTooLong, SamplerCapabilities, SampleRequest
from cuarl.safe_text import loggable, remember
from cuarl.trajectory import Sampled
from cuarl.types import Screenshot

_ENCODED = 2048
"""Encoded screenshots that are kept."""


def sdk() -> Any:
    """The module ``tinker``. Raises MissingExtra."""
    try:
        import tinker
    except ImportError as error:
        raise MissingExtra("Tinker needs its SDK", hint='pip install "cuarl[tinker]"') from error
    return tinker


def connect(api_key: str, base_url: str | None = None) -> Any:
    """A ``ServiceClient``; ``base_url`` None means TINKER_BASE_URL or the public service. Raises PrerequisiteError."""
    remember([api_key])
    tinker = sdk()
    with mapped(PrerequisiteError, "connecting to Tinker"):
        return tinker.ServiceClient(api_key=api_key, base_url=base_url)


@contextmanager
def mapped(kind: type[CuarlError], what: str) -> Iterator[None]:
    """Raise what the SDK raises as ``kind``.

    The SDK's own tree is not enough: a result that the service has lost (HTTP 410) is a ``RetryableException``, one
    that it never had (404) a plain ``ValueError``, and both reach the caller.
    """
    tinker = sdk()
    from tinker.lib.retryable_exception import RetryableException

    try:
        yield
    except tinker.AuthenticationError as error:
        raise PrerequisiteError("Tinker refuses the key", where=what, hint="export TINKER_API_KEY=…") from error
    except RetryableException as error:
        raise kind(f"Tinker has lost the result: {_first_line(error)}", where=what) from error
    except (tinker.TinkerError, ValueError) as error:
        raise kind(f"{type(error).__name__}: {_first_line(error)}", where=what) from error


def model_input(ids: Sequence[int], screenshots: Sequence[Screenshot], renderer: Renderer) -> Any:
    """Ids with expanded placeholders and their pictures as a ``ModelInput``. Raises ValueError if they don't agree."""
    tinker = sdk()
    image, rest, chunks = renderer.special.image, list(screenshots), []
    start = 0
    while start < len(ids):
        if ids[start] != image:
            end = next((i for i in range(start, len(ids)) if ids[i] == image), len(ids))
            chunks.append(tinker.types.EncodedTextChunk(tokens=list(ids[start:end])))
        else:
            if not rest:
                raise ValueError("there are more image tokens than pictures")
            screenshot = rest.pop(0)
            tokens = renderer.picture_tokens(screenshot.width, screenshot.height)
            end = start + tokens
            if any(i != image for i in ids[start:end]) or end > len(ids):
                raise ValueError(f"a picture of {tokens} tokens has fewer placeholders")
            data = _png(screenshot)
            chunks.append(tinker.types.ImageChunk(data=data, format="png", expected_tokens=tokens))
        start = end
    if rest:
        raise ValueError("there are more pictures than image tokens")
    return tinker.types.ModelInput(chunks=chunks)


class TinkerSampler:
    """Samples from one of Tinker's ``SamplingClient``; ``use`` exchanges it after an update."""

    def __init__(self, client: Any, renderer: Renderer, *, name: str, context: int = 1 << 15, version: int = 0) -> None:
        self.name, self.version = name, version
        self._client, self._renderer, self._context = client, renderer, context
        self._unsayable = renderer.special.unsayable

    @property
    def capabilities(self) -> SamplerCapabilities:
        """Ids and pictures are exact; log-probabilities are, at temperature 1."""
        return SamplerCapabilities(token_ids=True, logprobs=True, images=True, name=self.name)

    @property
    def client(self) -> Any:
        """The ``SamplingClient`` of the weights that are sampled from."""
        return self._client

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture: the service counts its tokens by the same rule."""
        return self._renderer.seen_size(width, height)

    def another(self) -> TinkerSampler:
        """One of the same weights, which follows no ``use`` of this one."""
        return TinkerSampler(self._client, self._renderer, name=self.name, context=self._context, version=self.version)

    def use(self, client: Any, version: int) -> None:
        """Sample from other weights from now on."""
        self._client, self.version = client, version

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Answer one prompt. The SDK retries; nothing is added to that. Raises ``SamplerError``."""
        params = request.params
        limit = min(self._context - params.max_tokens, request.max_prompt_tokens or self._context)
        prompt = self._renderer.render(request.messages, max_tokens=limit)
        if isinstance(prompt, PromptTooLong):
            return prompt
        version = self.version
        types = sdk().types
        wanted = types.SamplingParams(
            max_tokens=params.max_tokens,
            seed=request.seed % (1 << 31),
            temperature=params.temperature,
            top_p=params.top_p,
            top_k=params.top_k or -1,
            stop=list(params.stop) or None,
        )
        with mapped(SamplerError, f"sampling from {self.name}"):
            sent = model_input(prompt.ids, prompt.screenshots, self._renderer)
            reply = await self._client.sample(prompt=sent, num_samples=1, sampling_params=wanted)
        sequence = reply.sequences[0]
        ids = tuple(int(t) for t in sequence.tokens)
        plain = params.temperature in (0.0, 1.0) and params.top_p == 1.0 and params.top_k == 0
        logprobs = tuple(float(p) for p in sequence.logprobs) if plain and sequence.logprobs is not None else None
        sampled = Sampled(
            prompt_ids=prompt.ids,
            images=tuple(s.ref for s in prompt.screenshots),
            token_ids=ids,
            logprobs=logprobs,
            text=self._renderer.decode(ids),
            stop=self._stop(ids, sequence.stop_reason),
            temperature=params.temperature,
            policy=self.name,
            policy_version=version,
        )
        return sampled.before_any(self._unsayable, self._renderer.decode)

    async def close(self) -> None:
        """Nothing to release: the connection is the service client's."""

    def _stop(self, ids: tuple[int, ...], reason: str) -> Any:
        if reason == "length":
            return "length"
        return "eos" if ids and ids[-1] in self._renderer.special.eos else "stop_string"


@lru_cache(maxsize=_ENCODED)
def _png(screenshot: Screenshot) -> bytes:
    return screenshot.png()


def _first_line(error: BaseException) -> str:
    return loggable((str(error).strip() or type(error).__name__).splitlines()[0])
