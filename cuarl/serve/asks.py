"""What both protocols (chat completions and Responses) ask for, in one form: plain values, no pictures fetched yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cuarl.policy.sampler import SamplingParams
from cuarl.web.refusal import Refusal

MEANINGLESS = frozenset({
    "user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "parallel_tool_calls",
})  # fmt: skip
"""Fields that concern a vendor's accounts or caches: accepted, because leaving them aside changes no answer."""


@dataclass(frozen=True, slots=True)
class Words:
    """Text of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A picture, as the client names it: a ``data:`` URI or a URL."""

    url: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; ``arguments`` is JSON text, as the protocols carry it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation, in either protocol."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[Words | Link, ...]
    calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """All its text."""
        return "".join(p.text for p in self.parts if isinstance(p, Words))


@dataclass(frozen=True, slots=True)
class Defaults:
    """How to sample where a request doesn't say; with ``fixed``, whatever it says."""

    params: SamplingParams = field(default_factory=SamplingParams)
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for one answer."""

    model: str
    said: tuple[Said, ...]
    params: SamplingParams
    tools: tuple[Mapping[str, Any], ...] = ()
    """Functions: ``name``, ``description``, ``parameters``."""
    seed: int | None = None
    stream: bool = False
    include_usage: bool = False
    logprobs: bool = False
    token_ids: bool = False
    store: bool = True
    """Responses: keep the conversation, to be gone on with by its id."""


def params_of(body: Mapping[str, Any], defaults: Defaults, *, limit_names: tuple[str, ...]) -> SamplingParams:
    """Temperature, truncation, length and stops of a request. Raises Refusal for a value out of range."""
    if defaults.fixed:
        return defaults.params
    base = defaults.params
    limit = next((body[n] for n in limit_names if body.get(n) is not None), base.max_tokens)
    stop = body.get("stop") or ()
    return replace(
        base,
        temperature=number(body, "temperature", base.temperature, 0, 100),
        top_p=number(body, "top_p", base.top_p, 1e-9, 1),
        top_k=max(0, int(number(body, "top_k", base.top_k, -1, 1 << 30))),
        max_tokens=int(number({limit_names[0]: limit}, limit_names[0], base.max_tokens, 1, 1 << 20)),
        stop=(stop,) if isinstance(stop, str) else tuple(map(str, stop)),
    )  # fmt: skip


def number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    """A number of a request. Raises Refusal unless it is within its bounds."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Refusal(f"{name} must be a number from {low:g} to {high:g}, not {value!r}", param=name)
    return value


def refuse_unknown(body: Mapping[str, Any], known: Collection[str], neutral: Mapping[str, tuple[Any, ...]]) -> None:
    """No field is silently ignored: raises Refusal for one that is not ``known`` or not at a ``neutral`` value."""
    for name, value in body.items():
        if name in known or name in MEANINGLESS or value is None:
            continue
        if value not in neutral.get(name, ()):
            raise Refusal(f"{name}={value!r} is not supported by this server; leave it out", param=name)


def functions(tools: Any, tool_choice: Any, *, nested: bool) -> tuple[Mapping[str, Any], ...]:
    """The functions that may be called. ``nested``: chat completions wrap each in ``function``."""
    if tool_choice not in (None, "auto", "none"):
        raise Refusal(f"tool_choice {tool_choice!r} is not supported: the policy chooses", param="tool_choice")
    if not tools or tool_choice == "none":
        return ()
    found = []
    for i, tool in enumerate(tools):
        function = tool.get("function") if nested and isinstance(tool, Mapping) else tool
        if not isinstance(tool, Mapping) or tool.get("type") != "function" or not isinstance(function, Mapping):
            raise Refusal("only tools of type function are supported", param=f"tools[{i}]")
        if not isinstance(function.get("name"), str):
            raise Refusal("a function needs a name", param=f"tools[{i}].name")
        keys = ("name", "description", "parameters")
        found.append({k: function[k] for k in keys if function.get(k) is not None})
    return tuple(found)
