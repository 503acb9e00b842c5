"""The chat-completions wire format, both ways. Pure.

Servers differ in what they give beyond text. ``return_token_ids`` (vLLM) gives the ids of prompt and answer.
Log-probabilities are those of the distribution that was sampled from only if the server applies the temperature to
them, or if the temperature is 1 and nothing is cut off; otherwise they are left out, never passed off as exact.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    tokens_in: bool = False
    """It takes prompts as ids, pictures in them, and gives ids back (``tokens``)."""
    ours: bool = False
    """Its prompts are those that are rendered here, id by id: it has the tokenizer and template that we know."""
    left_out: tuple[str, ...] = ()
    """Fields of a request that it refuses by name."""
    wrong_draws: str = ""
    """Why it does not sample from the distribution that it tells; empty unless it was found out."""
    top_k_off: int = 0
    """What it calls a ``top_k`` that cuts nothing off: 0, or -1."""


NEUTRAL: Mapping[str, float] = {
    "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
}  # fmt: skip
"""Sent with every request. What a request leaves out, vLLM and SGLang take from the model's ``generation_config.json``,
and then sample from another distribution than the one whose log-probabilities they tell."""
BIAS = "logit_bias"
NEVER = -100.0
"""Bias of what must not be sampled, the lowest that the protocol has."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """How a request is written down."""

    encoding: Encoding = "png"
    suppressed: Sequence[int] = ()
    """Ids that are never sampled here, so that they must not be there either."""
    shown: Callable[[Screenshot], Screenshot] | None = None
    """A picture as the model sees it: sent so, no server resizes it in its own way."""


def request_body(
    request: SampleRequest, model: str, features: EndpointFeatures, outgoing: Outgoing | None = None
) -> dict[str, Any]:
    """The JSON body that asks for one answer."""
    params, out = request.params, outgoing or Outgoing()
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(m, out) for m in request.messages],
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_tokens": params.max_tokens,
        "seed": request.seed % (1 << 63),
    }
    body |= {name: value for name, value in NEUTRAL.items() if name not in features.left_out}
    if params.top_k or "top_k" in body:
        body["top_k"] = params.top_k or features.top_k_off
    if out.suppressed and BIAS not in features.left_out:
        body[BIAS] = {str(i): NEVER for i in out.suppressed}
    if params.stop:
        body["stop"] = list(params.stop)
    if features.logprobs:
        body["logprobs"] = True
    if features.token_ids:
        body["return_token_ids"] = True
    return body


def _message(message: Message, out: Outgoing) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text) | SampledText(text):
                content.append({"type": "text", "text": text})
            case Picture(screenshot):
                shown = out.shown(screenshot) if out.shown else screenshot
                content.append({"type": "image_url", "image_url": {"url": data_uri(shown, out.encoding)}})
    if all(c["type"] == "text" for c in content):
        # plain text is what every server and chat template takes
        return {"role": message.role, "content": "".join(c["text"] for c in content)}
    return {"role": message.role, "content": content}


def data_uri(screenshot: Screenshot, encoding: Encoding) -> str:
    """The picture as a ``data:`` URI. JPEG is smaller, but not what a policy in process would see."""
    data = screenshot.png() if encoding == "png" else screenshot.jpeg(quality=95)
    return f"data:image/{encoding};base64,{base64.b64encode(data).decode()}"


def read_reply(
    body: Any,
    request: SampleRequest,
    features: EndpointFeatures,
    *,
    policy: str,
    version: int,
    told_by_ids: bool = False,
) -> Sampled:
    """The sample in a reply. A placeholder's name in the text ends it there, unless ``told_by_ids`` and there are ids.

    Raises ``SamplerError`` if it is no chat completion.
    """
    try:
        choice = body["choices"][0]
        text = _text(choice["message"].get("content"))
        finish = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SamplerError("the reply is no chat completion", where=str(body)[:200]) from error
    ids = tuple(choice.get("token_ids") or ())
    prompt_ids = tuple(body.get("prompt_token_ids") or ())
    logprobs = _logprobs(choice) if exact_logprobs(request.params, features) else None
    if ids and logprobs is not None and len(ids) != len(logprobs):
        raise SamplerError(f"the reply has {len(ids)} token ids but {len(logprobs)} log-probabilities")
    end = (
        len(text) if ids and told_by_ids else min((text.find(p) for p in PLACEHOLDERS if p in text), default=len(text))
    )
    return Sampled(
        prompt_ids=prompt_ids,
        images=tuple(s.ref for s in _pictures(request.messages)),
        token_ids=ids,
        logprobs=logprobs if ids else None,
        text=text[:end],
        stop="special_token" if end < len(text) else stop_of(finish, choice.get("stop_reason")),
        temperature=request.params.temperature,
        policy=policy,
        policy_version=version,
        exact=bool(ids and prompt_ids) and _keeps_answers(prompt_ids, request.messages),
    )


def _text(content: Any) -> str:
    """The text of an answer, which some servers give in parts."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [part.get("text") for part in content]
    return "".join(part for part in parts if isinstance(part, str))


def why_empty(body: Mapping[str, Any]) -> str:
    """Where the text of an answer has gone, if a parser of the server's took it out of the content; else empty."""
    message = body["choices"][0]["message"]
    if _text(message.get("content")):
        return ""
    for part, parser in (
        ("tool_calls", "tool-call-parser"),
        ("reasoning_content", "reasoning-parser"),
        ("reasoning", "reasoning-parser"),
    ):
        if message.get(part):
            return f"the server put it into {part}; start it without a parser (vLLM: no --{parser})"
    return ""


def exact_logprobs(params: SamplingParams, features: EndpointFeatures) -> bool:
    """Whether the server's log-probabilities are those of the distribution that is sampled from."""
    plain = params.temperature in (0.0, 1.0) and params.top_p == 1.0 and params.top_k == 0
    return features.logprobs and not features.wrong_draws and (plain or features.scaled_logprobs)


def answer_tokens(body: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Tokens and log-probabilities in a reply, whatever distribution they are of; empty if it has none."""
    choices = body.get("choices") or [{}]
    content = (choices[0].get("logprobs") or {}).get("content") or ()
    return [(str(one.get("token")), float(one["logprob"])) for one in content]


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


def stop_of(finish: str | None, reason: object) -> Literal["eos", "length", "stop_string"]:
    """Why an answer ended, from a reply's ``finish_reason`` and ``stop_reason``."""
    if finish == "length":
        return "length"
    return "stop_string" if isinstance(reason, str) else "eos"


def _pictures(messages: Sequence[Message]) -> list[Screenshot]:
    return [p.screenshot for m in messages for p in m.parts if isinstance(p, Picture)]


def _keeps_answers(prompt_ids: tuple[int, ...], messages: Sequence[Message]) -> bool:
    """Whether past answers are in the prompt with their sampled ids: the server tokenised their text anew."""
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
