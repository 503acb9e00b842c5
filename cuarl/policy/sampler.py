"""The sampler seam: messages in, token-exact samples out.

A conversation is a list of ``Message``; a past answer of the policy is carried as ``SampledText`` with its ids, so that
no text is tokenised twice. An in-process sampler renders messages to ids itself and returns the prompt ids it used;
a remote one sends text and says, by its capabilities, what it cannot give exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from cuarl.trajectory import Sampled
from cuarl.types import Screenshot


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot in the prompt."""

    screenshot: Screenshot


@dataclass(frozen=True, slots=True)
class SampledText:
    """An earlier answer of the policy, with the ids it was sampled as (None if an endpoint gave text only).

    ``token_ids`` end with the end-of-turn token if and only if it was sampled.
    """

    text: str
    token_ids: tuple[int, ...] | None = None


Part = Text | Picture | SampledText


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to draw. ``temperature`` 0 means greedy (logprobs are then those at temperature 1)."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 2048
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One prompt to answer. ``seed`` alone decides the draw, whatever else is in the batch.

    ``max_prompt_tokens`` refuses a prompt that is too long (the reply is then a ``PromptTooLong``), before any forward.
    Requests of one ``group`` begin alike, so whoever has several servers sends them to the same one; it changes no
    answer.
    """

    messages: tuple[Message, ...]
    params: SamplingParams
    seed: int
    max_prompt_tokens: int | None = None
    group: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PromptTooLong:
    """The prompt does not fit: a stop reason of the episode, not an error."""

    needed: int
    limit: int


@dataclass(frozen=True, slots=True)
class SamplerCapabilities:
    """What a sampler gives exactly. Training refuses what is not, by name."""

    token_ids: bool
    logprobs: bool
    images: bool
    name: str = ""


class Sampler(Protocol):
    """A policy that answers prompts. Raises ``SamplerError`` for anything that is not the policy's doing."""

    @property
    def capabilities(self) -> SamplerCapabilities:
        """Fixed for the life of the object."""
        ...

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Answer one prompt. Concurrent calls may be batched by the implementation."""
        ...

    async def close(self) -> None:
        """Release everything."""
        ...


@runtime_checkable
class Sees(Protocol):
    """A sampler that knows the size at which its model sees a picture."""

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """Width and height in pixels at which the model sees a ``width`` x ``height`` picture; None if unknown."""
        ...
