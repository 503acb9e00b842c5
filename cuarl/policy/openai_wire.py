"""The chat-completions wire format, both ways. Pure.

Servers differ in what they give beyond text. ``return_token_ids`` (vLLM) gives the ids of prompt and answer.
Log-probabilities are those of the distribution that was sampled from only if the server applies the temperature to
them, or if the temperature is 1 and nothing is cut off; otherwise they are left out, never passed off as exact.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cuarl.errors import SamplerError
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampledText, SampleRequest, SamplingParams, Text
from cuarl.trajectory import Sampled
from cuarl.types import Record, Screenshot

Encoding = Literal["png", "jpeg"]

PLACEHOLDERS = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")
"""Special tokens that no answer may hold: there is no picture behind them."""

_CONTEXT = re.compile(r"context[ _](?:length|window|size)\D{0,20}(\d+)", re.IGNORECASE)


class EndpointFeatures(Record):
    """What a server gives beyond text."""

    token_ids: bool = False
    """Ids of prompt and answer, on request (``return_token_ids``)."""
    logprobs: bool = False
    """Log-probabilities of the answer's tokens."""
    scaled_logprobs: bool = False
    """They are of the distribution after temperature and truncation (vLLM: ``--logprobs-mode processed_logprobs``)."""


def request_body(request: SampleRequest, model: str, features: EndpointFeatures, encoding: Encoding) -> dict[str, Any]:
    """The JSON body that asks for one answer."""
    params = request.params
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(m, encoding) for m in request.messages],
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_tokens": params.max_tokens,
        "seed": request.seed % (1 << 63),
    }
    if params.top_k:
        body["top_k"] = params.top_k
    if params.stop:
        body["stop"] = list(params.stop)
    if features.logprobs:
        body["logprobs"] = True
    if features.token_ids:
        body["return_token_ids"] = True
    return body


def _message(message: Message, encoding: Encoding) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text) | SampledText(text):
                content.append({"type": "text", "text": text})
            case Picture(screenshot):
                content.append({"type": "image_url", "image_url": {"url": data_uri(screenshot, encoding)}})
    if all(c["type"] == "text" for c in content):
        # plain text is what every server and chat template takes
        return {"role": message.role, "content": "".join(c["text"] for c in content)}
    return {"role": message.role, "content": content}


def data_uri(screenshot: Screenshot, encoding: Encoding) -> str:
    """The picture as a ``data:`` URI. JPEG is smaller, but not what a policy in process would see."""
    data = screenshot.png() if encoding == "png" else screenshot.jpeg(quality=95)
    return f"data:image/{encoding};base64,{base64.b64encode(data).decode()}"


def read_reply(body: Any, request: SampleRequest, features: EndpointFeatures, *, policy: str, version: int) -> Sampled:
    """The sample in a reply. Raises ``SamplerError`` if it is no chat completion."""
    try:
        choice = body["choices"][0]
        text = choice["message"].get("content") or ""
        finish = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SamplerError("the reply is no chat completion", where=str(body)[:200]) from error
    ids = tuple(choice.get("token_ids") or ())
    prompt_ids = tuple(body.get("prompt_token_ids") or ())
    logprobs = _logprobs(choice) if exact_logprobs(request.params, features) else None
    if ids and logprobs is not None and len(ids) != len(logprobs):
        raise SamplerError(f"the reply has {len(ids)} token ids but {len(logprobs)} log-probabilities")
    return Sampled(
        prompt_ids=prompt_ids, images=tuple(s.ref for s in _pictures(request.messages)), token_ids=ids,
        logprobs=logprobs if ids else None, text=text, stop=_stop(finish, choice.get("stop_reason"), text),
        temperature=request.params.temperature, policy=policy, policy_version=version,
        exact=bool(ids and prompt_ids) and _keeps_answers(prompt_ids, request.messages),
    )  # fmt: skip


def exact_logprobs(params: SamplingParams, features: EndpointFeatures) -> bool:
    """Whether the server's log-probabilities are those of the distribution that is sampled from."""
    plain = params.temperature in (0.0, 1.0) and params.top_p == 1.0 and params.top_k == 0
    return features.logprobs and (plain or features.scaled_logprobs)


def answer_logprobs(body: Mapping[str, Any]) -> tuple[float, ...] | None:
    """The log-probabilities in a reply, whatever distribution they are of; None if it has none."""
    choices = body.get("choices") or [{}]
    return _logprobs(choices[0])


def difference(ours: Sequence[int], theirs: Sequence[int]) -> str:
    """Where two prompts part, in words."""
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    return (
        f"the server's prompt is not ours: {len(theirs)} tokens against {len(ours)}, different from token {at} on "
        f"({list(theirs[at : at + 4])} against {list(ours[at : at + 4])}); such samples are not exact"
    )


def _logprobs(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    content = (choice.get("logprobs") or {}).get("content")
    return None if content is None else tuple(float(c["logprob"]) for c in content)


def _stop(finish: str | None, reason: object, text: str) -> Literal["eos", "length", "stop_string", "special_token"]:
    if any(p in text for p in PLACEHOLDERS):
        return "special_token"
    if finish == "length":
        return "length"
    return "stop_string" if isinstance(reason, str) else "eos"


def _pictures(messages: Sequence[Message]) -> list[Screenshot]:
    return [p.screenshot for m in messages for p in m.parts if isinstance(p, Picture)]


def _keeps_answers(prompt_ids: tuple[int, ...], messages: Sequence[Message]) -> bool:
    """Whether past answers are in the prompt with the ids they were sampled as: the server tokenised their text anew."""
    start = 0
    for part in (p for m in messages for p in m.parts if isinstance(p, SampledText)):
        ids = part.token_ids
        if ids is None:
            return False
        found = next(
            (i for i in range(start, len(prompt_ids) - len(ids) + 1) if prompt_ids[i : i + len(ids)] == ids), -1
        )
        if found < 0:
            return False
        start = found + len(ids)
    return True


def too_long(status: int, message: str) -> PromptTooLong | None:
    """The refusal of a prompt that does not fit, if that is what an error reply says."""
    limit = _CONTEXT.search(message) if status in (400, 413, 422) else None
    if limit is None:
        return None
    # the reply may count the prompt alone, or with the room for the answer
    needed = max(int(n) for n in re.findall(r"\d+", message))
    return PromptTooLong(needed=max(needed, int(limit[1]) + 1), limit=int(limit[1]))
