"""Answers in the words of chat completions, whole and as a stream. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cuarl import strict_json
from cuarl.serve.models import Served
from cuarl.serve.requests import ModelRequest
from cuarl.serve.tools import Answer
from cuarl.trajectory import Sampled


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on its way to a client."""

    id: str
    ask: ModelRequest
    served: Served
    sampled: Sampled
    answer: Answer
    call_ids: tuple[str, ...]

    @property
    def finish(self) -> str:
        """Why it ended, in the protocol's words."""
        return "tool_calls" if self.answer.calls else "length" if self.sampled.stop == "length" else "stop"

    @property
    def usage(self) -> dict[str, int]:
        """Tokens; what an endpoint did not count is 0."""
        prompt, sampled = len(self.sampled.prompt_ids), len(self.sampled.token_ids)
        return {"prompt_tokens": prompt, "completion_tokens": sampled, "total_tokens": prompt + sampled}

    def logprobs(self, start: int, end: int) -> list[dict[str, Any]]:
        """Entries of the tokens from ``start`` to ``end``."""
        probs = self.sampled.logprobs or ()
        entries = []
        for token_id, logprob in zip(self.sampled.token_ids[start:end], probs[start:end], strict=False):
            token = self.served.token(token_id)
            entries.append({"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": []})
        return entries

    def pieces(self) -> list[tuple[str, int]]:
        """The text in stretches for a stream, each with the number of tokens up to its end.

        One token each where the tokenizer is known; a character split over tokens stays whole. An answer with calls is
        one stretch: its text is not that of its tokens in a row.
        """
        ids, text, decode = self.sampled.token_ids, self.answer.text, self.served.decode
        if self.answer.calls or decode is None or not ids:
            return [(text, len(ids))]
        found, done = [], 0
        for end in range(1, len(ids)):
            so_far = decode(ids[:end])
            if text.startswith(so_far) and len(so_far) > done:
                found.append((so_far[done:], end))
                done = len(so_far)
        return [*found, (text[done:], len(ids))]


def completion(reply: Reply) -> dict[str, Any]:
    """A whole chat completion."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.answer.text or (None if reply.answer.calls else ""),
    }
    if reply.answer.calls:
        message["tool_calls"] = _calls(reply)
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
    if reply.answer.stop:
        choice["stop_reason"] = reply.answer.stop
    body = _head(reply, "chat.completion") | {"choices": [choice], "usage": reply.usage}
    if reply.ask.logprobs and reply.sampled.logprobs is not None:
        choice["logprobs"] = {"content": reply.logprobs(0, len(reply.sampled.token_ids)), "refusal": None}
    if reply.ask.token_ids and reply.sampled.exact:
        choice["token_ids"] = list(reply.sampled.token_ids)
        body["prompt_token_ids"] = list(reply.sampled.prompt_ids)
    return body


def chunks(reply: Reply) -> Iterator[dict[str, Any]]:
    """The same as a stream of chunks, behind ``opening``."""
    with_logprobs = reply.ask.logprobs and reply.sampled.logprobs is not None
    with_ids = reply.ask.token_ids and reply.sampled.exact
    start = 0
    for text, end in reply.pieces():
        choice: dict[str, Any] = {"index": 0, "delta": {"content": text}, "finish_reason": None, "logprobs": None}
        if with_logprobs:
            choice["logprobs"] = {"content": reply.logprobs(start, end), "refusal": None}
        chunk = _head(reply, "chat.completion.chunk") | {"choices": [choice]}
        if with_ids:
            choice["token_ids"] = list(reply.sampled.token_ids[start:end])
            chunk |= {"prompt_token_ids": list(reply.sampled.prompt_ids)} if start == 0 else {}
        yield chunk
        start = end
    for index, call in enumerate(_calls(reply)):
        yield _chunk(reply, {"tool_calls": [{"index": index, **call}]})
    yield _chunk(reply, {}, reply.finish)
    if reply.ask.include_usage:
        yield _head(reply, "chat.completion.chunk") | {"choices": [], "usage": reply.usage}


def opening(id: str, model: str) -> dict[str, Any]:
    """The first chunk, which says who speaks; it can be sent before anything is sampled."""
    delta = {"role": "assistant", "content": ""}
    choice = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}
    return {
        "id": id,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
    }


def event(data: Mapping[str, Any], name: str | None = None) -> str:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {strict_json.dumps(data, ensure_ascii=False)}\n\n"


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": reply.id, "object": kind, "created": int(time.time()), "model": reply.ask.model}


def _chunk(reply: Reply, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _head(reply, "chat.completion.chunk") | {"choices": [choice]}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, (name, arguments) in zip(reply.call_ids, reply.answer.calls, strict=True)
    ]
