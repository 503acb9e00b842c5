"""Answers in the words of the Responses protocol, whole and as a stream. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from cuarl.serve.replies import Reply


def response(reply: Reply) -> dict[str, Any]:
    """A whole response."""
    body = skeleton(reply.id, reply.ask.model, "completed")
    cut = reply.sampled.stop == "length"
    usage = reply.usage
    body |= {
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": _items(reply),
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }
    if reply.ask.token_ids and reply.sampled.exact:
        body |= {"token_ids": list(reply.sampled.token_ids), "prompt_token_ids": list(reply.sampled.prompt_ids)}
    return body


def skeleton(id: str, model: str, status: str) -> dict[str, Any]:
    """A response without its output."""
    return {
        "id": id,
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "status": status,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def events(reply: Reply, first: int) -> Iterator[dict[str, Any]]:
    """The events behind ``response.created``, numbered from ``first``."""
    numbered = enumerate(_events(reply), start=first)
    return ({**event, "sequence_number": number} for number, event in numbered)


def _events(reply: Reply) -> Iterator[dict[str, Any]]:
    for index, item in enumerate(_items(reply)):
        at = {"output_index": index, "item_id": item["id"]}
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        opened = {**item, "status": "in_progress", **empty}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        if item["type"] == "message":
            yield from _text_events(reply, item["content"][0], {**at, "content_index": 0})
        else:
            yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
            yield {
                "type": "response.function_call_arguments.done",
                **at,
                "arguments": item["arguments"],
                "name": item["name"],
            }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    whole = response(reply)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _text_events(reply: Reply, part: dict[str, Any], at: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": "", "logprobs": []}}
    start = 0
    for text, end in reply.pieces():
        logprobs = reply.logprobs(start, end) if part["logprobs"] else []
        yield {"type": "response.output_text.delta", **at, "delta": text, "logprobs": logprobs}
        start = end
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": part["logprobs"]}
    yield {"type": "response.content_part.done", **at, "part": part}


def _items(reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.answer.text or not reply.answer.calls:
        logprobs = reply.logprobs(0, len(reply.sampled.token_ids)) if reply.ask.logprobs else []
        part = {"type": "output_text", "text": reply.answer.text, "annotations": [], "logprobs": logprobs}
        items.append(
            {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        )
    for id, (name, arguments) in zip(reply.call_ids, reply.answer.calls, strict=True):
        items.append(
            {
                "id": f"fc_{id}",
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }
        )
    return items
