"""What both protocols (chat completions and Responses) ask for, in one form: plain values, no pictures fetched yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cuarl.policy.sampler import SamplingParams
from cuarl.web.refusal import Refusal

MEANINGLESS = frozenset({
    "user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "parallel_tool_calls",
})  # fmt: skip
"""Fields that concern a vendor's accounts or caches: accepted, because leaving them aside changes no answer."""
COLDEST = 1e-3
"""Lowest temperature that is not greedy: below, a division by it leaves the range of float32."""
MOST_STOPS = 64


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture, as the client names it: a ``data:`` URI or a URL."""

    url: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; ``arguments`` is JSON text, as the protocols carry it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """One message of a conversation, in either protocol."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[TextPart | ImagePart, ...]
    calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """All its text."""
        return "".join(p.text for p in self.parts if isinstance(p, TextPart))


@dataclass(frozen=True, slots=True)
class Defaults:
    """How to sample where a request doesn't say; with ``fixed``, whatever it says."""

    params: SamplingParams = field(default_factory=SamplingParams)
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request for one answer."""

    model: str
    messages: tuple[RequestMessage, ...]
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
    limit = next((name for name in limit_names if body.get(name) is not None), limit_names[0])
    temperature = number(body, "temperature", base.temperature, 0, 100)
    if 0 < temperature < COLDEST:
        raise Refusal(f"temperature must be 0, which is greedy, or at least {COLDEST:g}", param="temperature")
    return replace(
        base,
        temperature=temperature,
        top_p=number(body, "top_p", base.top_p, 1e-9, 1),
        top_k=max(0, whole(body, "top_k", base.top_k, -1, 1 << 30)),
        max_tokens=whole(body, limit, base.max_tokens, 1, 1 << 20),
        stop=_stops(body.get("stop")),
    )


def _stops(given: Any) -> tuple[str, ...]:
    if given is None or isinstance(given, str):
        return (given,) if given else ()
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given) or len(given) > MOST_STOPS:
        raise Refusal(f"stop must be a text or a list of at most {MOST_STOPS} texts", param="stop")
    return tuple(one for one in given if one)


def number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    """A number of a request. Raises Refusal unless it is within its bounds."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Refusal(f"{name} must be a number from {low:g} to {high:g}, not {shown(value)}", param=name)
    return value


def whole(body: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    """A whole number of a request. Raises Refusal unless it is within its bounds."""
    value = number(body, name, default, low, high)
    if value != int(value):
        raise Refusal(f"{name} must be a whole number, not {shown(value)}", param=name)
    return int(value)


def seed_of(body: Mapping[str, Any]) -> int | None:
    """The request's seed, if it has one. Raises Refusal for one that is no whole number of 64 bits."""
    return None if body.get("seed") is None else whole(body, "seed", 0, -(1 << 63), (1 << 64) - 1)


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A yes or no of a request, no if it is left out. Raises Refusal for anything else."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise Refusal(f"{name} must be true or false, not {shown(value)}", param=name)
    return bool(value)


def text(body: Mapping[str, Any], name: str, where: str | None = None) -> str:
    """A text of a request, empty if it is left out. Raises Refusal for anything else."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Refusal(f"{name} must be a text, not {shown(value)}", param=where or name)
    return value or ""


def items(body: Mapping[str, Any], name: str, where: str | None = None) -> Sequence[Any]:
    """A list of a request, empty if it is left out. Raises Refusal for anything else."""
    value = body.get(name)
    if value is not None and not isinstance(value, list):
        raise Refusal(f"{name} must be a list, not {shown(value)}", param=where or name)
    return value or ()


def shown(value: Any) -> str:
    """A value as an error names it: a client may send any amount of it."""
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:80]}…"


def refuse_unknown(body: Mapping[str, Any], known: Collection[str], neutral: Mapping[str, tuple[Any, ...]]) -> None:
    """No field is silently ignored: raises Refusal for one that is not ``known`` or not at a ``neutral`` value."""
    for name, value in body.items():
        if name in known or name in MEANINGLESS or value is None:
            continue
        if value not in neutral.get(name, ()):
            name = name if len(name) <= 80 else f"{name[:80]}…"
            raise Refusal(f"{name}={shown(value)} is not supported by this server; leave it out", param=name)


def functions(tools: Any, tool_choice: Any, *, nested: bool) -> tuple[Mapping[str, Any], ...]:
    """The functions that may be called. ``nested``: chat completions wrap each in ``function``."""
    if tool_choice not in (None, "auto", "none"):
        raise Refusal(f"tool_choice {shown(tool_choice)} is not supported: the policy chooses", param="tool_choice")
    if not tools or tool_choice == "none":
        return ()
    if not isinstance(tools, list):
        raise Refusal("tools must be a list", param="tools")
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
