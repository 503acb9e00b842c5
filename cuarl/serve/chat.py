"""Chat completions: what a request says. Pure.

Protocol: https://platform.openai.com/docs/api-reference/chat, and ``return_token_ids`` and ``top_k`` as vLLM has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.serve.requests import (
    Defaults,
    ImagePart,
    ModelRequest,
    RequestMessage,
    TextPart,
    ToolCall,
    flag,
    functions,
    items,
    params_of,
    refuse_unknown,
    seed_of,
    shown,
    text,
)
from cuarl.web.refusal import Refusal

_KNOWN = frozenset({
    "model", "messages", "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed",
    "stream",
    "stream_options", "logprobs", "return_token_ids", "tools", "tool_choice",
})  # fmt: skip
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,), "top_logprobs": (0,), "presence_penalty": (0,), "frequency_penalty": (0,), "logit_bias": ({},),
    "response_format": ({"type": "text"},), "modalities": (["text"],), "min_p": (0,), "repetition_penalty": (1,),
}  # fmt: skip
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def read_chat(body: Any, defaults: Defaults) -> ModelRequest:
    """The request in ``body``. Raises Refusal that names the field at fault."""
    if not isinstance(body, Mapping):
        raise Refusal("the body must be a JSON object")
    refuse_unknown(body, _KNOWN, _NEUTRAL)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal("messages must be a list with at least one message", param="messages")
    options = body.get("stream_options") or {}
    if not isinstance(options, Mapping):
        raise Refusal("stream_options must be an object", param="stream_options")
    return ModelRequest(
        model=text(body, "model"),
        messages=tuple(_said(m, i) for i, m in enumerate(messages)),
        params=params_of(body, defaults, limit_names=("max_completion_tokens", "max_tokens")),
        tools=functions(body.get("tools"), body.get("tool_choice"), nested=True),
        seed=seed_of(body),
        stream=flag(body, "stream"),
        include_usage=flag(options, "include_usage"),
        logprobs=flag(body, "logprobs"),
        token_ids=flag(body, "return_token_ids"),
    )


def _said(message: Any, index: int) -> RequestMessage:
    where = f"messages[{index}]"
    role: Any = _ROLES.get(text(message, "role", f"{where}.role")) if isinstance(message, Mapping) else None
    if role is None:
        raise Refusal(f"a message needs a role: {', '.join(_ROLES)}", param=f"{where}.role")
    calls = tuple(
        _call(c, f"{where}.tool_calls[{i}]") for i, c in enumerate(items(message, "tool_calls", f"{where}.tool_calls"))
    )
    content = message.get("content")
    if content is None and not calls:
        raise Refusal("a message needs content", param=f"{where}.content")
    return RequestMessage(role, _parts(content, f"{where}.content"), calls)


def _parts(content: Any, where: str) -> tuple[TextPart | ImagePart, ...]:
    if content is None or isinstance(content, str):
        return (TextPart(content),) if content else ()
    if not isinstance(content, list):
        raise Refusal("content must be text or a list of parts", param=where)
    return tuple(_part(p, f"{where}[{i}]") for i, p in enumerate(content))


def _part(part: Any, where: str) -> TextPart | ImagePart:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in ("text", "refusal") and isinstance(part.get("text", part.get("refusal")), str):
        return TextPart(part.get("text", part.get("refusal")))
    if kind == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else image
        if isinstance(url, str):
            return ImagePart(url)
    raise Refusal(f"a part must be text or image_url, not {shown(kind)}", param=where)


def _call(call: Any, where: str) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Refusal("a tool call needs a function with a name", param=where)
    arguments = text(function, "arguments", f"{where}.function.arguments") or "{}"
    return ToolCall(text(call, "id", f"{where}.id"), function["name"], arguments)
