"""Replies as vLLM 0.32.0 gave them (its CPU build, the shipped base, one red picture), read as they are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from cuarl.errors import SamplerError
from cuarl.policy.remote.draws import LISTED, read
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.probe import less
from cuarl.policy.remote.wire import BIAS, NEUTRAL, EndpointFeatures
from cuarl.policy.sampler import PromptTooLong, SampleRequest, SamplingParams
from cuarl.trajectory import Sampled
from tests.unit.policy.pictures import messages, screen

REPLIES = json.loads(Path(__file__).with_name("replies_of_vllm.json").read_text(encoding="utf-8"))
REQUEST = SampleRequest(messages("Turn Wi-Fi on", screen(1)), SamplingParams(max_tokens=3), seed=5)


def reply(name: str) -> httpx.Response:
    return httpx.Response(REPLIES[name]["status"], text=REPLIES[name]["text"])


def sampler(*names: str) -> OpenAISampler:
    """A sampler whose server gives these replies in turn."""
    left = list(names)
    features = EndpointFeatures(token_ids=True, logprobs=True, scaled_logprobs=True)
    transport = httpx.MockTransport(lambda request: reply(left.pop(0)))
    return OpenAISampler("http://server/v1", "/models/tiny", transport=transport, features=features)


def test_a_completion_has_the_ids_of_prompt_and_answer_with_its_end() -> None:
    sampled = anyio.run(sampler("completion").sample, REQUEST)
    assert isinstance(sampled, Sampled)
    assert sampled.token_ids == (2966, 2923) and sampled.stop == "eos" and sampled.exact
    assert sampled.logprobs == pytest.approx((-0.1521788, -6.1e-6), abs=1e-6)
    assert sampled.text.startswith("<tool_call>") and len(sampled.prompt_ids) > 4


def test_models_are_told_from_adapters_by_their_parent() -> None:
    assert anyio.run(sampler("models").models) == [("/models/tiny", None), ("t1-step-000002", "/models/tiny")]


def test_a_prompt_beyond_the_context_is_no_error() -> None:
    assert anyio.run(sampler("too_long").sample, REQUEST) == PromptTooLong(needed=2049, limit=2048)


def test_lists_of_likeliest_tokens_are_read() -> None:
    (position,) = read(json.loads(REPLIES["listed"]["text"]))
    assert 0 < position.likeliest <= 1 and 0 <= position.rank <= 1
    assert math.isclose(position.told.mean, 0.5, abs_tol=1e-4)
    assert len(json.loads(REPLIES["listed"]["text"])["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) > LISTED


@pytest.mark.parametrize(
    ("name", "changed"),
    [("bad_top_k", {"top_k_off": -1}), ("bias", {"left_out": (BIAS,)})],
)
def test_a_refusal_names_what_to_do_without(name: str, changed: dict[str, Any]) -> None:
    features = EndpointFeatures(token_ids=True, logprobs=True)
    sent = {**NEUTRAL, BIAS: {}, "return_token_ids": True, "logprobs": True}
    assert less(features, sent, reply(name)) == features.model_copy(update=changed)


def test_an_adapter_is_loaded_and_one_that_is_gone_is_as_good_as_unloaded() -> None:
    async def run() -> None:
        served = sampler("load", "unload_again")
        await served.load_adapter("t1-step-000002", "/runs/t1/adapters/step-000002")
        await served.release_adapter()

    anyio.run(run)


@pytest.mark.parametrize(
    ("name", "says"), [("load_again", "already been loaded"), ("load_nowhere", "No adapter found for /nowhere/x")]
)
def test_a_refused_adapter_is_told_in_its_words(name: str, says: str) -> None:
    with pytest.raises(SamplerError, match=says) as caught:
        anyio.run(sampler(name).load_adapter, "x", "/nowhere/x")
    assert ("must be able to read it" in str(caught.value.hint)) == (name == "load_nowhere")
