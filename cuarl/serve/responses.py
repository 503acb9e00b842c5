"""The Responses protocol: what a request says. Pure.

Protocol: https://platform.openai.com/docs/api-reference/responses. Items that only a vendor's own tools produce (web
search, hosted computers) are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
    "model", "input", "instructions", "temperature", "top_p", "top_k", "max_output_tokens", "seed", "stop", "stream",
    "tools",
    "tool_choice", "include", "previous_response_id", "return_token_ids",
})  # fmt: skip
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "truncation": ("disabled",), "background": (False,), "text": ({"format": {"type": "text"}},), "top_logprobs": (0,),
    "stream_options": ({},),
}  # fmt: skip
_LOGPROBS = "message.output_text.logprobs"


def read_responses(body: Any, defaults: Defaults, earlier: tuple[RequestMessage, ...]) -> ModelRequest:
    """The request in ``body``, behind the conversation that it goes on with. Raises Refusal that names the field."""
    if not isinstance(body, Mapping):
        raise Refusal("the body must be a JSON object")
    refuse_unknown(body, _KNOWN, _NEUTRAL)
    include = items(body, "include")
    strange = [i for i in include if i != _LOGPROBS]
    if strange:
        raise Refusal(f"{shown(strange[0])} can't be included", param="include")
    given = body.get("input")
    sent = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(sent, list) or not sent:
        raise Refusal("input must be text or a list of items", param="input")
    said = (*earlier, *_merged([_item(item, f"input[{i}]") for i, item in enumerate(sent)]))
    instructions = text(body, "instructions")
    head = (RequestMessage("system", (TextPart(instructions),)),) if instructions else ()
    return ModelRequest(
        model=text(body, "model"),
        messages=(*head, *said),
        params=params_of(body, defaults, limit_names=("max_output_tokens",)),
        tools=functions(body.get("tools"), body.get("tool_choice"), nested=False),
        seed=seed_of(body),
        stream=flag(body, "stream"),
        logprobs=_LOGPROBS in include,
        token_ids=flag(body, "return_token_ids"),
        store=body.get("store") is not False,
    )


def _item(item: Any, where: str) -> RequestMessage:
    if not isinstance(item, Mapping):
        raise Refusal("an item must be an object", param=where)
    match item.get("type", "message"):
        case "message":
            said = text(item, "role", f"{where}.role")
            role: Any = "system" if said == "developer" else said
            if role not in ("system", "user", "assistant"):
                raise Refusal("a message needs a role: system, developer, user, assistant", param=f"{where}.role")
            return RequestMessage(role, _parts(item.get("content"), f"{where}.content"))
        case "function_call":
            id, name, arguments = (text(item, key, f"{where}.{key}") for key in ("call_id", "name", "arguments"))
            if not name:
                raise Refusal("a call needs the name of its function", param=f"{where}.name")
            return RequestMessage("assistant", (), (ToolCall(id, name, arguments or "{}"),))
        case "function_call_output":
            return RequestMessage("tool", _parts(item.get("output"), f"{where}.output"))
        case kind:
            raise Refusal(f"items of type {shown(kind)} are not supported", param=f"{where}.type")


def _parts(content: Any, where: str) -> tuple[TextPart | ImagePart, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    if not isinstance(content, list):
        raise Refusal("content must be text or a list of parts", param=where)
    return tuple(_part(part, f"{where}[{i}]") for i, part in enumerate(content))


def _part(part: Any, where: str) -> TextPart | ImagePart:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in ("input_text", "output_text", "text") and isinstance(part.get("text"), str):
        return TextPart(part["text"])
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return ImagePart(part["image_url"])
    raise Refusal(
        f"a part must be input_text, output_text or input_image with an image_url, not {shown(kind)}", param=where
    )


def _merged(said: list[RequestMessage]) -> list[RequestMessage]:
    """One message for what one answer was sent as: its text and its calls are items of their own in this protocol."""
    found: list[RequestMessage] = []
    for one in said:
        last = found[-1] if found else None
        if last is not None and one.role == last.role == "assistant" and one.calls:
            found[-1] = replace(last, calls=(*last.calls, *one.calls))
        else:
            found.append(one)
    return found
