"""What a server gives and takes, found out by asking it, never by its version."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

import anyio
import httpx
from PIL import Image

from cuarl import strict_json
from cuarl.errors import PrerequisiteError, SamplerError
from cuarl.policy.remote.draws import AGAIN, ASKED, DrawTest, Position, is_doubtful, judge, read
from cuarl.policy.remote.http import json_of
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.tokens import read_generated
from cuarl.policy.remote.wire import BIAS, NEUTRAL, EndpointFeatures, answer_tokens
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampleRequest, SamplingParams, Text
from cuarl.trajectory import Sampled
from cuarl.types import Screenshot

logger = logging.getLogger(__name__)

_REFUSED = (400, 422)
_PROBED = 8
_ALMOST_GREEDY = 0.01
"""Temperature at which the likeliest token is all but certain."""
_CLEARLY = 0.05
"""Nats over the probed tokens that a greedy answer must lack of certainty, for the probe to tell anything."""
_DRAWS, _DRAWN = 24, 24
"""Answers that are drawn to see how the server samples, and tokens in each."""
_GREETING = (Message("user", (Text("Say hi."),)),)
_WHITE = Screenshot(Image.new("RGB", (64, 64), "white"))
_UNSURE = (Message("user", (Text("Say twenty words at random."),)),)
"""What no policy has one answer to."""


async def probe(sampler: OpenAISampler) -> EndpointFeatures:
    """Ask for one token, to see that the model is there and what the server gives and takes; sets the sampler's.

    Raises ``PrerequisiteError`` if the server can't be reached or refuses, ``ConfigError`` for an unknown model.
    """
    await sampler.check_model()
    try:
        features, sampled, body = await _opening(sampler)
        given = body["choices"][0].get("logprobs") is not None
        features = features.model_copy(update={"token_ids": sampled.exact, "logprobs": given})
        if _is_ours(sampler, sampled):
            features = await _ruled_out(sampler, features.model_copy(update={"ours": True}))
            features = features.model_copy(update={"tokens_in": given and await _takes_tokens(sampler, features)})
        scaled = given and (sampler.features.scaled_logprobs or await _scales(sampler, features))
    except SamplerError as error:
        raise PrerequisiteError(error.what, where=error.where or sampler.endpoint.shown, hint=error.hint) from error
    sampler.features = features.model_copy(update={"scaled_logprobs": scaled})
    return sampler.features


async def check_draws(sampler: OpenAISampler) -> DrawTest:
    """See by what it draws whether the server samples from the log-probabilities that it tells.

    Where the first draws look doubtful, more are made before anything is said. Raises ``SamplerError`` for a server
    that fails at it; one that does not tell the likeliest tokens is not tested.
    """
    found = await _drawn(sampler, range(_DRAWS)) if sampler.features.logprobs else []
    doubtful = is_doubtful(found)
    if doubtful:
        found += await _drawn(sampler, range(_DRAWS, _DRAWS * AGAIN))
    test = judge(found, first=not doubtful)
    sampler.features = sampler.features.model_copy(update={"wrong_draws": test.problem})
    return test


async def _drawn(sampler: OpenAISampler, seeds: Iterable[int]) -> list[Position]:
    """Where the tokens of one answer for each seed stand, in the order of the seeds."""
    found: dict[int, list[Position]] = {}
    failed: list[SamplerError] = []

    async def draw(seed: int) -> None:
        request = SampleRequest(_UNSURE, SamplingParams(max_tokens=_DRAWN), seed=seed)
        body = sampler.body(request, sampler.features) | {"top_logprobs": ASKED}
        try:
            reply = await sampler.endpoint.complete(body)
            found[seed] = read(json_of(reply)) if reply.is_success else []
        except SamplerError as error:
            failed.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for seed in seeds:
            group.start_soon(draw, seed)
    if failed:
        raise failed[0]
    return [position for seed in sorted(found) for position in found[seed]]


def less(features: EndpointFeatures, sent: Mapping[str, Any], reply: httpx.Response) -> EndpointFeatures | None:
    """What to do without after a refusal: fields that it names, else one after the other; None if none is left."""
    optional = [name for name in (*NEUTRAL, BIAS, "return_token_ids", "logprobs") if name in sent]
    named = [name for name in optional if name in _named(reply)]
    if not named:
        big = [name for name in optional if name in ("return_token_ids", "logprobs")]
        named = big[:1] or optional
    if not named:
        return None
    if named == ["top_k"] and features.top_k_off == 0:
        return features.model_copy(update={"top_k_off": -1})
    left_out = [name for name in named if name in NEUTRAL or name == BIAS]
    return features.model_copy(
        update={
            "token_ids": features.token_ids and "return_token_ids" not in named,
            "logprobs": features.logprobs and "logprobs" not in named,
            "left_out": (*features.left_out, *left_out),
        }
    )


def _named(reply: httpx.Response) -> set[str]:
    """Fields that a refusal speaks of: those that it names as such, else all the words in it that may be some.

    Servers that repeat the request they refuse would name everything, so their own word for the field comes first.
    """
    try:
        body = strict_json.reply(reply.content)
    except ValueError:
        body = None
    if isinstance(body, dict):
        error = body.get("error")
        if isinstance(error, dict) and error.get("param"):
            return {str(error["param"])}
        detail = body.get("detail")
        if isinstance(detail, list):
            return {str(part) for one in detail if isinstance(one, dict) for part in one.get("loc") or ()}
    return set(re.findall(r"[a-z_]+", reply.text))


async def _opening(sampler: OpenAISampler) -> tuple[EndpointFeatures, Sampled, dict[str, Any]]:
    request = SampleRequest(_GREETING, SamplingParams(max_tokens=1), seed=0)
    features: EndpointFeatures | None = EndpointFeatures(token_ids=True, logprobs=True)
    while features is not None:
        wanted, sent = features, sampler.body(request, features)
        reply = await sampler.endpoint.complete(sent)
        if reply.status_code not in _REFUSED:
            break
        features = less(wanted, sent, reply)
    sampler.raise_for(reply)
    body = json_of(reply)
    return wanted, sampler.read(body, request, wanted), body


def _is_ours(sampler: OpenAISampler, sampled: Sampled) -> bool:
    """Whether the server has the tokenizer and the template that we know: then ids mean the same on both sides."""
    if sampler.renderer is None or not sampled.exact:
        return False
    ours = sampler.renderer.render(_GREETING)
    return not isinstance(ours, PromptTooLong) and ours.ids == sampled.prompt_ids


async def _ruled_out(sampler: OpenAISampler, features: EndpointFeatures) -> EndpointFeatures:
    """The features, with what the server says to ids that are not to be sampled."""
    request = SampleRequest(_GREETING, SamplingParams(max_tokens=1), seed=0)
    sent = sampler.body(request, features)
    if BIAS not in sent:
        return features
    reply = await sampler.endpoint.complete(sent)
    if reply.status_code not in _REFUSED:
        sampler.raise_for(reply)
        return features
    logger.info("%s takes no %s: placeholders may be sampled there", sampler.endpoint.shown, BIAS)
    return features.model_copy(update={"left_out": (*features.left_out, BIAS)})


async def _takes_tokens(sampler: OpenAISampler, features: EndpointFeatures) -> bool:
    """Whether a prompt of ids with a picture in it comes to the model as we would train on it."""
    assert sampler.renderer is not None, "the prompts are ours"
    shown = Message("user", (Picture(_WHITE), Text("Say hi.")))
    request = SampleRequest((shown,), SamplingParams(max_tokens=1), seed=0)
    prompt = sampler.renderer.render(request.messages)
    assert not isinstance(prompt, PromptTooLong), "there is no bound"
    reply = await sampler.endpoint.generate(sampler.tokens_body(prompt, request, features))
    if not reply.is_success:
        return False
    try:
        answer = read_generated(json_of(reply), prompt, request, features, sampler.renderer)
    except SamplerError:
        return False
    return answer.exact and answer.logprobs is not None


async def _scales(sampler: OpenAISampler, features: EndpointFeatures) -> bool:
    """Whether log-probabilities are of the distribution after the temperature; False if it can't be told.

    With the temperature in them, those of an almost greedy answer are close to 0; without it, they are at most those of
    the greedy one, as long as the two go together.
    """
    found = []
    for temperature in (0.0, _ALMOST_GREEDY):
        params = SamplingParams(temperature=temperature, max_tokens=_PROBED)
        request = SampleRequest(_UNSURE, params, seed=0)
        wanted = features.model_copy(update={"token_ids": False})
        reply = await sampler.endpoint.complete(sampler.body(request, wanted))
        if not reply.is_success:
            return False
        found.append(answer_tokens(json_of(reply)))
    together = 1 + sum(1 for _ in takewhile(lambda pair: pair[0][0] == pair[1][0], zip(*found, strict=False)))
    greedy, almost = (sum(logprob for _, logprob in one[:together]) for one in found)
    return greedy < -_CLEARLY and almost > greedy / 2
